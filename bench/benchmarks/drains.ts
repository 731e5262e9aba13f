import { ask, mustBeTheList, timed, type GraphqlEndpoint } from '../ask.ts';
import { bareLoop, readAtATime, type Cursor } from '../bare-pages.ts';
import { startGateway } from '../gateway.ts';
import { randomNumbers } from '../random-numbers.ts';
import type { Benchmark, Row } from '../report.ts';
import { startBenchSandbox, type BenchSandbox } from '../services.ts';
import type { SandboxCommand } from '../processes/sandbox-process.ts';

const PERSONS = 5_000;
const LATENCY = 20;
const ROUNDS = 3;
/** Pages in flight. */
const AT_A_TIME = 8;
/** 1 % of the persons. */
const CHANGED = PERSONS / 100;

export const drains: Benchmark = {
  title: `all of ${PERSONS} persons, ${LATENCY} ms upstream latency, ${AT_A_TIME} pages in flight, ${ROUNDS} rounds`,
  measure: async () => {
    await using sandbox = await startBenchSandbox({ persons: PERSONS, latency: LATENCY });
    const env = { DRAIN_CONCURRENCY: String(AT_A_TIME) };
    await using gateway = await startGateway(sandbox, { env });
    // Only a warm-up: a gateway drains each list for the first time only once.
    await measureChange(sandbox, gateway, changes.inserts);
    const rounds: Round[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      rounds.push(await measureRound(sandbox, gateway));
    }
    return rowsOf(rounds);
  },
};

interface Round {
  /** Milliseconds. */
  readonly bare: number;
  /** Milliseconds. */
  readonly atATime: number;
  readonly changes: Record<keyof typeof changes, ChangedList>;
}

interface ChangedList {
  readonly first: Drained;
  readonly second: Drained;
  readonly afterChange: Drained;
}

interface Drained {
  /** Milliseconds. */
  readonly time: number;
  /** Pages that the upstream received. */
  readonly requests: number;
}

const random = randomNumbers(1);

/** Random positions in a list, valid if changes are applied from the last to the first. */
const anywhere = (count: number, length: number) =>
  Array.from({ length: count }, () => Math.floor(random() * (length - count))).toSorted(
    (a, b) => b - a,
  );

type Change = (length: number) => SandboxCommand[];

const changes = {
  inserts: (length) => [{ do: 'insert', at: anywhere(CHANGED, length) }],
  removals: (length) => [{ do: 'remove', at: anywhere(CHANGED, length) }],
  'inserts and removals': (length) => [
    { do: 'insert', at: anywhere(CHANGED / 2, length) },
    { do: 'remove', at: anywhere(CHANGED / 2, length) },
  ],
  'inserts, all at the front': () => [{ do: 'insert', at: Array(CHANGED).fill(0) }],
  'removals, all at the front': () => [{ do: 'remove', at: Array(CHANGED).fill(0) }],
} satisfies Record<string, Change>;

async function measureRound(sandbox: BenchSandbox, gateway: GraphqlEndpoint): Promise<Round> {
  let cursors: Cursor[] = [];
  const bare = await timed(async () => (cursors = await bareLoop(sandbox)));
  const atATime = await timed(() => readAtATime(sandbox, cursors, AT_A_TIME));
  const measured = {} as Round['changes'];
  for (const [name, change] of Object.entries(changes) as [keyof typeof changes, Change][]) {
    measured[name] = await measureChange(sandbox, gateway, change);
  }
  return { bare, atATime, changes: measured };
}

/** Measures a list that the gateway does not know yet, so that one change does not affect the next. */
async function measureChange(
  sandbox: BenchSandbox,
  gateway: GraphqlEndpoint,
  change: Change,
): Promise<ChangedList> {
  await forgetList(sandbox, gateway);
  const first = await drain(sandbox, gateway);
  const second = await drain(sandbox, gateway);
  for (const command of change(PERSONS)) await sandbox.tell(command);
  return { first, second, afterChange: await drain(sandbox, gateway) };
}

/** Empties the list once, so that the gateway forgets it. */
async function forgetList(sandbox: BenchSandbox, gateway: GraphqlEndpoint): Promise<void> {
  await sandbox.tell({ do: 'replace', persons: 0 });
  await drain(sandbox, gateway);
  await sandbox.tell({ do: 'replace', persons: PERSONS });
}

async function drain(sandbox: BenchSandbox, gateway: GraphqlEndpoint): Promise<Drained> {
  const { requests: before } = await sandbox.tell({ do: 'look' });
  let persons: { id: string }[] = [];
  const time = await timed(async () => {
    const query = '{ allPersons { id firstName } }';
    persons = (await ask<{ allPersons: { id: string }[] }>(gateway, query)).allPersons;
  });
  const ids = persons.map(({ id }) => id);
  const { requests } = await mustBeTheList(sandbox, ids);
  return { time, requests: requests - before };
}

function rowsOf(rounds: readonly Round[]): Row[] {
  const names = Object.keys(changes) as (keyof typeof changes)[];
  const ofAll = rounds.flatMap(({ bare, changes: measured }) =>
    names.map((name) => ({ bare, ...measured[name] })),
  );
  const ofChange = (name: keyof typeof changes) =>
    rounds.map(({ bare, changes: measured }) => ({ bare, ...measured[name] }));
  return [
    { what: 'the bare loop', figures: rounds.map(({ bare }) => bare), unit: 'ms' },
    {
      what: `the bare pages, ${AT_A_TIME} at a time: faster than the bare loop`,
      figures: rounds.map(({ bare, atATime }) => bare / atATime),
      unit: 'x',
    },
    {
      what: 'the first drain: takes as long as the bare loop',
      figures: ofAll.map(({ bare, first }) => first.time / bare),
      unit: 'x',
      promise: { atMost: 1.1 },
    },
    ...speedUps('a second drain', 6, ofAll, ({ second }) => second),
    ...names.flatMap((name) =>
      speedUps(`after 1 % ${name}`, 4, ofChange(name), ({ afterChange }) => afterChange),
    ),
  ];
}

type Measured = ChangedList & { readonly bare: number };

function speedUps(
  what: string,
  atLeast: number,
  measured: readonly Measured[],
  drained: (round: Measured) => Drained,
): Row[] {
  const row = { unit: 'x', promise: { atLeast } };
  return [
    {
      what: `${what}: faster than the first`,
      figures: measured.map((round) => round.first.time / drained(round).time),
      ...row,
    },
    {
      what: `${what}: faster than the bare loop`,
      figures: measured.map((round) => round.bare / drained(round).time),
      ...row,
    },
    {
      what: `${what}: upstream requests per request of the first`,
      figures: measured.map((round) => drained(round).requests / round.first.requests),
      unit: 'x',
    },
  ];
}
