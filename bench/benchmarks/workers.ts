import process from 'node:process';
import { openCpuShares } from '../cpu-shares.ts';
import { FRONT_DOOR, startGateway } from '../gateway.ts';
import { startLoad, type Load } from '../load.ts';
import { measurePages, takeTurns, type Contender, type PageFigures } from '../measure-pages.ts';
import { pagesOf } from '../persons-pages.ts';
import { childrenOf, cpuOf } from '../process-figures.ts';
import type { Benchmark, Row } from '../report.ts';
import { startUpstream, type Upstream } from '../services.ts';

const COUNTS = [1, 2, 4] as const;
/** The part of a core for each worker. All workers leave more than one core to the service and the load generator. */
const SHARE = 0.12;
/** Percent of its share that each worker must use. Otherwise the round did not measure the workers. */
const LEAST_USE = 95;
/** The number of rounds that count. */
const ROUNDS = 8;
const MOST_ROUNDS = 24;
const ROUND_MS = 4_000;
/** Requests for each worker, after which a process has reached its full speed. */
const WARM_UP = 30_000;
const WARM_UP_MS = 2_000;
/** Connections of each worker, enough to keep it busy while it may use its share. */
const CONNECTIONS = 32;
/** More than are in flight to four workers. */
const PAGES = 320;
/**
 * UPSTREAM_CONCURRENCY for each worker, which gets its part of the whole. Connections are not divided quite evenly, and
 * a request that waits for its turn costs more CPU than others.
 */
const TURNS = 2 * CONNECTIONS;

type Count = (typeof COUNTS)[number];

interface Group extends Contender {
  readonly count: Count;
  /** The processes that answer requests. */
  readonly workers: readonly number[];
}

interface Figures extends PageFigures {
  /** Microseconds that the worker uses for one request. */
  readonly workerCpu: number;
  /** The part of its share that each worker used. */
  readonly uses: readonly number[];
}

type Round = Record<Count, Figures>;

export const workers: Benchmark = {
  title:
    `persons(first: 50), ${PAGES} different pages in turn, each worker with ${SHARE * 100} % of a core ` +
    `and ${CONNECTIONS} connections, no upstream latency`,
  measure: async () => {
    using shares = openCpuShares();
    await using upstream = await startUpstream({ persons: PAGES * 50 });
    await using load = startLoad();
    await using started = new AsyncDisposableStack();
    const groups = {} as Record<Count, Group>;
    for (const count of COUNTS) {
      const env = {
        ...FRONT_DOOR,
        WORKERS: String(count),
        UPSTREAM_CONCURRENCY: String(TURNS * count),
      };
      const server = started.use(await startGateway(upstream, { env }));
      const pids = count === 1 ? [server.pid] : childrenOf(server.pid);
      if (pids.length !== count) throw new Error(`It started ${pids.length} of ${count} workers.`);
      groups[count] = { count, server, workers: pids, bodies: await pagesOf(server, PAGES) };
    }
    for (const count of COUNTS) await warmUp(load, upstream, groups[count]);
    for (const count of COUNTS) for (const pid of groups[count].workers) shares.limit(pid, SHARE);
    const rounds = takeTurns(COUNTS, (count) => measure(load, upstream, groups[count], ROUND_MS));
    return rowsOf(await saturated(rounds));
  },
};

async function warmUp(load: Load, upstream: Upstream, group: Group): Promise<void> {
  let requests = 0;
  while (requests < WARM_UP * group.count) {
    const { rate, seconds } = await measure(load, upstream, group, WARM_UP_MS);
    requests += rate * seconds;
  }
}

async function measure(load: Load, upstream: Upstream, group: Group, ms: number): Promise<Figures> {
  const { workers: pids, count } = group;
  const before = pids.map(cpuOf);
  const figures = await measurePages(load, upstream, group, ms, CONNECTIONS * count);
  const used = pids.map((pid, at) => cpuOf(pid) - before[at]!);
  const { rate, seconds } = figures;
  const total = used.reduce((sum, cpu) => sum + cpu);
  return {
    ...figures,
    workerCpu: (total / (rate * seconds)) * 1_000_000,
    uses: used.map((cpu) => cpu / seconds / SHARE),
  };
}

/** The rounds in which all workers used their share; reports the others. */
async function saturated(rounds: AsyncIterable<Round>): Promise<Round[]> {
  const counted: Round[] = [];
  let number = 0;
  for await (const round of rounds) {
    number += 1;
    const idle = COUNTS.flatMap((count) => {
      const least = Math.min(...round[count].uses) * 100;
      return least < LEAST_USE ? `one of ${count} used ${least.toFixed(1)} %` : [];
    });
    if (idle.length === 0) counted.push(round);
    else {
      process.stdout.write(
        `  Round ${number} does not count: ${idle.join(', ')} of its share, and not ${LEAST_USE} %.\n`,
      );
    }
    if (counted.length === ROUNDS) return counted;
    if (number === MOST_ROUNDS) break;
  }
  throw new Error(
    `Only ${counted.length} of ${number} rounds count: workers did not get their share of CPU, or not enough ` +
      'requests. Use an idle machine.',
  );
}

function rowsOf(rounds: readonly Round[]): Row[] {
  const several = COUNTS.filter((count) => count > 1);
  const rows = (
    counts: readonly Count[],
    what: string,
    unit: string,
    of: (figures: Figures) => number,
  ) =>
    counts.map((count) => ({
      what: `${nameOf(count)}: ${what}`,
      figures: rounds.map((round) => of(round[count])),
      unit,
    }));
  return [
    ...rows(COUNTS, 'requests/s', '', ({ rate }) => rate),
    ...rows(COUNTS, 'CPU of a request', 'us', ({ workerCpu }) => workerCpu),
    ...rows(several, 'CPU of a request in the primary', 'us', ({ cpu }) => cpu),
    ...rows(COUNTS, 'upstream requests of a request', '', (round) => round.upstreamRequests),
    ...rows(COUNTS, 'least use of a share', '%', ({ uses }) => Math.min(...uses) * 100),
    ...rows(COUNTS, 'highest use of a share', '%', ({ uses }) => Math.max(...uses) * 100),
    ...several.map((count) => ({
      what: `${nameOf(count)}: requests/s, of one worker`,
      figures: rounds.map((round) => round[count].rate / round[1].rate),
      unit: 'x',
      promise: { atLeast: 0.9 * count },
    })),
  ];
}

function nameOf(count: Count): string {
  return count === 1 ? 'one worker' : `${count} workers`;
}
