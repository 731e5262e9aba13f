import { createHash } from 'node:crypto';
import { askPage, post, timed, type GraphqlEndpoint } from '../ask.ts';
import { startGateway, type BenchGateway } from '../gateway.ts';
import { jsonParts } from '../multipart.ts';
import { residentOf } from '../process-figures.ts';
import { median, type Benchmark, type Row } from '../report.ts';
import { startBenchSandbox } from '../services.ts';

const PERSONS = 1_000_000;
const LATENCY = 50;
const ROUNDS = 5;
const WARM_UPS = 3;
const MB = 1024 * 1024;

export const streaming: Benchmark = {
  title: `allPersons @stream of ${PERSONS} persons, no upstream latency; the first records with ${LATENCY} ms`,
  measure: async () => [...(await measureWhole()), ...(await measureFirstRecords())],
};

async function measureWhole(): Promise<Row[]> {
  await using sandbox = await startBenchSandbox({ persons: PERSONS });
  await using gateway = await startGateway(sandbox, {
    env: { DRAIN_MAX_ITEMS: String(2 * PERSONS) },
    reports: 'processes/reports.ts',
  });
  const fresh = residentOf(gateway.pid);
  // A warm-up: the engine keeps memory for garbage, whatever the length of the list.
  for (let time = 0; time < WARM_UPS; time += 1) {
    for await (const _ of stream(gateway, PERSONS / 10));
  }
  const { requests: before } = await sandbox.tell({ do: 'look' });
  const { inUse } = await gateway.report();
  using resident = watchResident(gateway);
  const ids = createHash('sha256');
  let count = 0;
  let inUseAtEnd = inUse;
  const time = await timed(async () => {
    for await (const records of stream(gateway)) {
      count += records.length;
      for (const { id } of records) ids.update(`${id}\n`);
      if (count === PERSONS) inUseAtEnd = (await gateway.report()).inUse;
    }
  });
  const { requests, digest } = await sandbox.tell({ do: 'look' });
  if (ids.digest('hex') !== digest) {
    throw new Error(`The ${count} persons that came are not the ${PERSONS} of the sandbox.`);
  }
  return [
    { what: 'records a second', figures: [(count / time) * 1_000], unit: '' },
    { what: 'upstream requests', figures: [requests - before], unit: '' },
    {
      what: 'upstream requests / full pages',
      figures: [(requests - before) / (PERSONS / 50)],
      unit: 'x',
    },
    {
      what: 'growth of the memory in use, until the last page',
      figures: [(inUseAtEnd - inUse) / MB],
      unit: 'MB',
      promise: { atMost: 100 },
    },
    {
      what: `growth of the resident memory, after ${WARM_UPS} streams of a tenth`,
      figures: [(resident.highest() - resident.begin) / MB],
      unit: 'MB',
      promise: { atMost: 100 },
    },
    {
      what: 'growth of the resident memory since the start, with room for garbage',
      figures: [(resident.highest() - fresh) / MB],
      unit: 'MB',
    },
  ];
}

/** Measures the time to the first records at a known latency; then the caller leaves. */
async function measureFirstRecords(): Promise<Row[]> {
  await using sandbox = await startBenchSandbox({ persons: PERSONS, latency: LATENCY });
  await using gateway = await startGateway(sandbox, {
    env: { DRAIN_MAX_ITEMS: String(2 * PERSONS) },
  });
  const ratios: number[] = [];
  for (let round = -1; round < ROUNDS; round += 1) {
    const latencies: number[] = [];
    for (let time = 0; time < 5; time += 1) latencies.push(await timed(() => askPage(sandbox, 50)));
    const first = await timed(async () => {
      for await (const records of stream(gateway)) if (records.length > 0) break;
    });
    // The first run includes work that is done only once.
    if (round >= 0) ratios.push(first / median(latencies));
  }
  return [{ what: 'the first records come after', figures: ratios, unit: 'upstream latencies' }];
}

interface Part {
  readonly data?: { readonly allPersons: readonly Person[] } | null;
  readonly incremental?: readonly { items: readonly Person[] | null; path: [string, number] }[];
  readonly errors?: readonly { message: string }[];
  readonly hasNext: boolean;
}

interface Person {
  readonly id: string;
}

/** The records as they arrive. A caller who stops reading leaves the gateway. */
async function* stream(
  gateway: GraphqlEndpoint,
  limit?: number,
): AsyncGenerator<readonly Person[], void, undefined> {
  const leaving = new AbortController();
  try {
    const args = limit === undefined ? '' : `(limit: ${limit})`;
    const query = `{ allPersons${args} @stream(initialCount: 0) { id firstName } }`;
    const options = { accept: 'multipart/mixed', signal: leaving.signal };
    const response = await post(gateway, { query }, options);
    let got = 0;
    let hasNext = true;
    for await (const part of jsonParts(response) as AsyncGenerator<Part>) {
      const pieces = [
        ...(part.data ? [{ items: part.data.allPersons, path: ['allPersons', 0] }] : []),
        ...(part.incremental ?? []),
      ];
      for (const { items, path } of pieces) {
        if (!items || path[1] !== got) throw new Error(`It went wrong: ${JSON.stringify(part)}`);
        got += items.length;
        yield items;
      }
      if (part.errors) throw new Error(part.errors[0]!.message);
      ({ hasNext } = part);
      if (!hasNext) return;
    }
    throw new Error(`The stream was cut off after ${got} persons.`);
  } finally {
    leaving.abort();
  }
}

/** Bytes: the highest value since this call. */
function watchResident({ pid }: BenchGateway) {
  const begin = residentOf(pid);
  let highest = begin;
  const timer = setInterval(() => (highest = Math.max(highest, residentOf(pid))), 100);
  return { begin, highest: () => highest, [Symbol.dispose]: () => clearInterval(timer) };
}
