import { setTimeout as wait } from 'node:timers/promises';
import { pathOf } from '../child-processes.ts';
import { FRONT_DOOR, startGateway, type BenchGateway, type Server } from '../gateway.ts';
import { startLoad, type Load } from '../load.ts';
import { startHive } from '../peers.ts';
import { peakOf, watchPeak } from '../process-figures.ts';
import type { Benchmark, Row } from '../report.ts';
import { startUpstream } from '../services.ts';

const PERSONS = 100_000;
const HEAP_MB = 512;
const DRAINS = 40;
const DIFFERENT = 20;
const ALIASES = 30;
const STALLED = 30;
/** The time for which clients that do not read are observed, ms. */
const STALLED_MS = 20_000;
/** An answer of the service of 7 MB: nearly the largest that is accepted. It is read in one go. */
const ITEMS = 150_000;
const MB = 1024 * 1024;

const DRAIN = JSON.stringify({ query: '{ allPersons { id firstName } }' });
const LARGE = JSON.stringify({ query: 'query Large { persons { items { id firstName } } }' });

export const crowds: Benchmark = {
  title: `what a gateway with ${HEAP_MB} MB of heap lives through, ${PERSONS} persons`,
  measure: async () => {
    const rows = [...(await measure('one reader', readOnce)), ...(await readLarge())];
    for (const [with_, env] of Object.entries(LANES)) {
      for (const [name, crowd] of Object.entries(FLOODS)) {
        rows.push(...(await measure(`${name}${with_}`, crowd, env)));
      }
    }
    return rows;
  },
};

/** Runs one kind of load, and returns its rows. */
type Crowd = (load: Load, server: BenchGateway) => Promise<Row[]>;

const FLOODS: Readonly<Record<string, Crowd>> = {
  [`${DRAINS} identical drains at once`]: drainTogether,
  [`${DIFFERENT} different drains at once`]: drainDifferently,
  [`${ALIASES} long aliases in one operation`]: drainLongAliases,
  [`${STALLED} clients that stop reading`]: stopReading,
};

const LANES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '': {},
  ', with a plugin': { GATEWAY_CONFIG: pathOf('processes/every-hook.config.mts') },
};

async function measure(name: string, crowd: Crowd, env = {}): Promise<Row[]> {
  await using upstream = await startUpstream({ persons: PERSONS });
  await using load = startLoad();
  await using gateway = await startGateway(upstream, {
    env: { ...FRONT_DOOR, ...env },
    execArgv: [`--max-old-space-size=${HEAP_MB}`],
    reports: 'processes/reports.ts',
  });
  watchPeak(gateway.pid);
  const health = watchHealth(gateway);
  await gateway.report();
  const rows = await crowd(load, gateway);
  const { longestBlock: block } = gateway.hasEnded() ? NO_REPORT : await gateway.report();
  const { slowest, peak } = await health.stop();
  const alive = !gateway.hasEnded();
  return [
    ...rows,
    { what: 'the process lives', figures: [Number(alive)], unit: '', promise: { atLeast: 1 } },
    {
      what: 'the slowest /health meanwhile',
      figures: [alive ? slowest : Infinity],
      unit: 'ms',
      promise: { atMost: 150 },
    },
    { what: BLOCK, figures: [block], unit: 'ms', promise: { atMost: 50 } },
    { what: 'resident at the peak', figures: [peak / MB], unit: 'MB', promise: { atMost: 420 } },
  ].map((row) => ({ ...row, what: `${name}: ${row.what}` }));
}

const BLOCK = 'the longest block of the event loop';
const NO_REPORT = { longestBlock: Infinity };

async function readOnce(load: Load, { endpoint, headers }: Server): Promise<Row[]> {
  // Several times, because a new process is still compiling its functions.
  for (let round = 0; round < 5; round += 1)
    await load.read({ endpoint, headers, bodies: [DRAIN] });
  return [];
}

/** A plain list, which the service does not page. */
async function readLarge(): Promise<Row[]> {
  await using upstream = await startUpstream({ persons: 50 });
  await upstream.tell({ do: 'enlarge', items: ITEMS });
  await using load = startLoad();
  await using hive = await startHive(upstream);
  await using gateway = await startGateway(upstream, { env: FRONT_DOOR });
  const read = async ({ endpoint, headers }: Server) => {
    const [answer] = await load.read({ endpoint, headers, bodies: [LARGE] });
    if (answer!.bytes < ITEMS * 30) throw new Error(`It answered ${answer!.start}`);
    return answer!.ms;
  };
  const rounds: { ours: number; theirs: number }[] = [];
  for (let round = -3; round < 9; round += 1) {
    const measured = { ours: await read(gateway), theirs: await read(hive) };
    if (round >= 0) rounds.push(measured);
  }
  return [
    {
      what: `one answer with ${ITEMS} items: time, of Hive Gateway`,
      figures: rounds.map(({ ours, theirs }) => ours / theirs),
      unit: 'x',
      promise: { atMost: 1 },
    },
  ];
}

async function drainTogether(load: Load, { endpoint, headers }: Server): Promise<Row[]> {
  const answers = await load.read({ endpoint, headers, bodies: Array<string>(DRAINS).fill(DRAIN) });
  const whole = answers.filter(({ status, bytes }) => status === 200 && bytes > PERSONS * 30);
  const same = whole.filter(({ digest }) => digest === whole[0]!.digest);
  const refused = answers.filter(({ start }) => start.includes('"code"'));
  return [
    { what: 'answered', figures: [same.length], unit: '' },
    answeredOrRefused(same.length + refused.length, DRAINS),
    { what: 'the last answer', figures: [Math.max(...answers.map(({ ms }) => ms))], unit: 'ms' },
  ];
}

/** Each has another selection, so that they share no walk. */
async function drainDifferently(load: Load, { endpoint, headers }: Server): Promise<Row[]> {
  const bodies = Array.from({ length: DIFFERENT }, (_, at) =>
    JSON.stringify({ query: `{ allPersons { id name${at}: firstName } }` }),
  );
  const answers = await load.read({ endpoint, headers, bodies });
  const settled = answers.filter(
    ({ bytes, start }) => bytes > PERSONS * 30 || start.includes('"code"'),
  );
  return [answeredOrRefused(settled.length, DIFFERENT)];
}

function answeredOrRefused(count: number, all: number): Row {
  return { what: 'answered or refused', figures: [count], unit: '', promise: { atLeast: all } };
}

/** 4 KB in, 400 MB out, or an error instead. */
async function drainLongAliases(load: Load, { endpoint, headers }: Server): Promise<Row[]> {
  const aliases = Array.from({ length: ALIASES }, (_, at) => `${'a'.repeat(120)}${at}: id`);
  const body = JSON.stringify({ query: `{ allPersons { ${aliases.join(' ')} } }` });
  const [answer] = await load.read({ endpoint, headers, bodies: [body] });
  return [{ what: 'the answer', figures: [answer!.bytes / MB], unit: 'MB' }];
}

async function stopReading(load: Load, { endpoint, headers }: Server): Promise<Row[]> {
  await load.stall({ endpoint, headers, bodies: Array<string>(STALLED).fill(DRAIN) });
  await wait(STALLED_MS);
  await load.drop();
  return [];
}

/** Sends requests without a pause, one after the other. */
function watchHealth(server: Server) {
  const address = new URL('/health', server.endpoint);
  const stopping = new AbortController();
  let slowest = 0;
  let peak = 0;
  const watching = (async () => {
    while (!stopping.signal.aborted && !server.hasEnded()) {
      const start = performance.now();
      try {
        await (await fetch(address)).text();
      } catch {
        // The gateway has ended, or is about to: the caller checks that afterwards.
      }
      slowest = Math.max(slowest, performance.now() - start);
      if (!server.hasEnded()) peak = Math.max(peak, peakOf(server.pid) || 0);
      await wait(10);
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      await watching;
      return { slowest, peak };
    },
  };
}
