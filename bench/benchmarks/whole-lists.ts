import { FRONT_DOOR, startGateway, type Server } from '../gateway.ts';
import { startLoad, type Load } from '../load.ts';
import { startBareLoop, startDocumented } from '../peers.ts';
import { peakOf, residentOf, watchPeak } from '../process-figures.ts';
import type { Answered } from '../processes/load-process.ts';
import type { Benchmark, Row } from '../report.ts';
import { startUpstream, type Upstream } from '../services.ts';

const PERSONS = 100_000;
const COLD_ROUNDS = 4;
/** More rounds, because the bare loop takes 200 or 300 ms: the kernel may wake the other process late. */
const WARM_ROUNDS = 12;
const SLOW = { persons: 5_000, latency: 20 };
const SLOW_ROUNDS = 3;
const MB = 1024 * 1024;
const BODY = JSON.stringify({ query: '{ allPersons { id firstName } }' });

export const wholeLists: Benchmark = {
  title: `allPersons of ${PERSONS} persons without upstream latency, and of ${SLOW.persons} with ${SLOW.latency} ms`,
  measure: async () => {
    await using upstream = await startUpstream({ persons: PERSONS });
    await using load = startLoad();
    // The first reading lets the upstream prepare its answers.
    await measureCold(upstream, load);
    const cold = [];
    for (let round = 0; round < COLD_ROUNDS; round += 1)
      cold.push(await measureCold(upstream, load));
    const warm = await measureWarm(upstream, load, PERSONS, WARM_ROUNDS);
    await using slow = await startUpstream(SLOW);
    const behind = await measureWarm(slow, load, SLOW.persons, SLOW_ROUNDS);
    return [...rowsOfCold(cold), ...rowsOfWarm(warm), ...rowsOfSlow(behind)];
  },
};

interface Drained {
  readonly ms: number;
  /** Bytes, at the peak. */
  readonly growth: number;
}

interface Cold {
  readonly bare: Drained;
  readonly gateway: Drained;
  readonly documented: Drained;
}

/** Measures each in a new process. */
async function measureCold(upstream: Upstream, load: Load): Promise<Cold> {
  let bare: Drained;
  {
    await using loop = await startBareLoop(upstream);
    bare = await measureGrowth(loop.pid, async () => await loop.read(PERSONS));
  }
  const answers: Answered[] = [];
  const drain = async (server: Server) =>
    await measureGrowth(server.pid, async () => {
      const answered = await read(load, server);
      answers.push(answered);
      return answered.ms;
    });
  let gateway: Drained;
  {
    await using server = await startGateway(upstream, { env: FRONT_DOOR });
    gateway = await drain(server);
  }
  await using server = await startDocumented(upstream);
  const documented = await drain(server);
  if (answers[0]!.digest !== answers[1]!.digest) {
    throw new Error('The answers of the gateway and of documented stitching differ.');
  }
  return { bare, gateway, documented };
}

interface Warm {
  readonly bare: number;
  readonly first: number;
  readonly again: number;
}

/** Measures in processes that have read such lists before, but not this one. */
async function measureWarm(
  upstream: Upstream,
  load: Load,
  persons: number,
  count: number,
): Promise<Warm[]> {
  await using loop = await startBareLoop(upstream);
  await using server = await startGateway(upstream, { env: FRONT_DOOR });
  const rounds: Warm[] = [];
  for (let round = -3; round < count; round += 1) {
    // A gateway that finds a list empty forgets it.
    await upstream.tell({ do: 'serve', list: 'empty', persons: 0 });
    await read(load, server, 0);
    const list = round % 2 === 0 ? 'first' : 'second';
    await upstream.tell({ do: 'serve', list, persons });
    const bare = await loop.read(persons);
    const first = await read(load, server, persons);
    const again = await read(load, server, persons);
    if (again.digest !== first.digest) throw new Error('The second drain answers something else.');
    if (round >= 0) rounds.push({ bare, first: first.ms, again: again.ms });
  }
  return rounds;
}

async function read(load: Load, server: Server, persons = PERSONS): Promise<Answered> {
  const { endpoint, headers } = server;
  const [answered] = await load.read({ endpoint, headers, bodies: [BODY] });
  const { status, bytes, start } = answered!;
  if (status !== 200 || bytes < persons * 30) throw new Error(`It answered ${status}: ${start}`);
  return answered!;
}

async function measureGrowth(pid: number, action: () => Promise<number>): Promise<Drained> {
  watchPeak(pid);
  const before = residentOf(pid);
  const ms = await action();
  return { ms, growth: peakOf(pid) - before };
}

function rowsOfCold(rounds: readonly Cold[]): Row[] {
  const ms = (name: keyof Cold) => rounds.map((round) => round[name].ms);
  const growth = (name: keyof Cold) => rounds.map((round) => round[name].growth / MB);
  return [
    { what: 'cold: the bare loop', figures: ms('bare'), unit: 'ms' },
    { what: 'cold: this gateway', figures: ms('gateway'), unit: 'ms' },
    { what: 'cold: documented stitching', figures: ms('documented'), unit: 'ms' },
    {
      what: 'cold: as long as the bare loop',
      figures: rounds.map(({ gateway, bare }) => gateway.ms / bare.ms),
      unit: 'x',
      promise: { atMost: 1.7 },
    },
    { what: 'peak growth: the bare loop', figures: growth('bare'), unit: 'MB' },
    { what: 'peak growth: this gateway', figures: growth('gateway'), unit: 'MB' },
    { what: 'peak growth: documented stitching', figures: growth('documented'), unit: 'MB' },
    {
      what: 'peak growth, of documented stitching',
      figures: rounds.map(({ gateway, documented }) => gateway.growth / documented.growth),
      unit: 'x',
      promise: { atMost: 0.35 },
    },
  ];
}

function rowsOfWarm(rounds: readonly Warm[]): Row[] {
  return [
    { what: 'warm: the bare loop', figures: rounds.map(({ bare }) => bare), unit: 'ms' },
    { what: 'warm: this gateway', figures: rounds.map(({ first }) => first), unit: 'ms' },
    {
      what: 'warm: as long as the bare loop',
      figures: rounds.map(({ first, bare }) => first / bare),
      unit: 'x',
    },
    {
      what: 'warm, again: as long as the bare loop',
      figures: rounds.map(({ again, bare }) => again / bare),
      unit: 'x',
      promise: { atMost: 0.8 },
    },
  ];
}

function rowsOfSlow(rounds: readonly Warm[]): Row[] {
  return [
    {
      what: `with ${SLOW.latency} ms a page: as long as the bare loop`,
      figures: rounds.map(({ first, bare }) => first / bare),
      unit: 'x',
      promise: { atMost: 1.1 },
    },
    {
      what: `with ${SLOW.latency} ms a page, again: as fast as the bare loop`,
      figures: rounds.map(({ again, bare }) => bare / again),
      unit: 'x',
      promise: { atLeast: 6 },
    },
  ];
}
