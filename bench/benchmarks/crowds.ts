import { setTimeout as wait } from 'node:timers/promises';
import { FRONT_DOOR, startGateway, type BenchGateway, type Server } from '../gateway.ts';
import { startLoad, type Load } from '../load.ts';
import { peakOf, watchPeak } from '../process-figures.ts';
import type { Benchmark, Row } from '../report.ts';
import { startUpstream, type Upstream } from '../services.ts';

const PERSONS = 100_000;
const HEAP_MB = 512;
const DRAINS = 40;
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
  measure: async () => [
    ...(await measure('one reader', readOnce)),
    ...(await measure(`${DRAINS} identical drains at once`, drainTogether)),
    ...(await measure(`${ALIASES} long aliases in one operation`, drainLongAliases)),
    ...(await measure(`${STALLED} clients that stop reading`, stopReading)),
    ...(await measure(`one answer with ${ITEMS} items`, readLarge)),
  ],
};

/** Runs one kind of load, and returns its rows. */
type Crowd = (load: Load, server: BenchGateway, upstream: Upstream) => Promise<Row[]>;

async function measure(name: string, crowd: Crowd): Promise<Row[]> {
  await using upstream = await startUpstream({ persons: PERSONS });
  await using load = startLoad();
  await using gateway = await startGateway(upstream, {
    env: FRONT_DOOR,
    execArgv: [`--max-old-space-size=${HEAP_MB}`],
    reports: 'processes/reports.ts',
  });
  watchPeak(gateway.pid);
  const health = watchHealth(gateway);
  const rows = await crowd(load, gateway, upstream);
  const { slowest, peak } = await health.stop();
  const alive = !gateway.hasEnded();
  return [
    ...rows,
    { what: 'the process lives', figures: [Number(alive)], unit: '', promise: { atLeast: 1 } },
    {
      what: 'the slowest /health meanwhile',
      figures: [alive ? slowest : Infinity],
      unit: 'ms',
      promise: { atMost: 100 },
    },
    { what: 'resident at the peak', figures: [peak / MB], unit: 'MB', promise: { atMost: 400 } },
  ].map((row) => ({ ...row, what: `${name}: ${row.what}` }));
}

async function readOnce(load: Load, gateway: BenchGateway): Promise<Row[]> {
  return [await longestBlock(load, gateway, DRAIN)];
}

/** Measures several times, because a new process is still compiling its functions. */
async function longestBlock(load: Load, gateway: BenchGateway, body: string): Promise<Row> {
  const { endpoint, headers } = gateway;
  const figures: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    await gateway.report();
    await wait(50);
    await load.read({ endpoint, headers, body, clients: 1 });
    figures.push((await gateway.report()).longestBlock);
  }
  const what = 'the longest block of the event loop';
  return { what, figures, unit: 'ms', promise: { atMost: 50 } };
}

/** A plain list, which the service does not page. */
async function readLarge(load: Load, gateway: BenchGateway, upstream: Upstream): Promise<Row[]> {
  await upstream.tell({ do: 'enlarge', items: ITEMS, style: 'compact' });
  return [await longestBlock(load, gateway, LARGE)];
}

async function drainTogether(load: Load, { endpoint, headers }: Server): Promise<Row[]> {
  const answers = await load.read({ endpoint, headers, body: DRAIN, clients: DRAINS });
  const whole = answers.filter(({ status, bytes }) => status === 200 && bytes > PERSONS * 30);
  const same = whole.filter(({ digest }) => digest === whole[0]!.digest);
  return [
    { what: 'answered', figures: [same.length], unit: '', promise: { atLeast: DRAINS } },
    { what: 'the last answer', figures: [Math.max(...answers.map(({ ms }) => ms))], unit: 'ms' },
  ];
}

/** 4 KB in, 400 MB out, or an error instead. */
async function drainLongAliases(load: Load, { endpoint, headers }: Server): Promise<Row[]> {
  const aliases = Array.from({ length: ALIASES }, (_, at) => `${'a'.repeat(120)}${at}: id`);
  const body = JSON.stringify({ query: `{ allPersons { ${aliases.join(' ')} } }` });
  const [answer] = await load.read({ endpoint, headers, body, clients: 1 });
  return [{ what: 'the answer', figures: [answer!.bytes / MB], unit: 'MB' }];
}

async function stopReading(load: Load, { endpoint, headers }: Server): Promise<Row[]> {
  await load.stall({ endpoint, headers, body: DRAIN, clients: STALLED });
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
