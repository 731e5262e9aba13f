import { ask, askPage, mustBeTheList, timed, type Asking } from './ask.ts';
import { startBenchSandbox, startGateway, type BenchSandbox } from './processes.ts';
import { randomNumbers } from './random-numbers.ts';
import type { Benchmark, Row } from './report.ts';
import type { SandboxCommand } from './sandbox-process.ts';

const PERSONS = 5_000;
const LATENCY = 20;
const ROUNDS = 5;
/** 1 % of the persons. */
const CHANGED = PERSONS / 100;

export const drains: Benchmark = {
  title: `all of ${PERSONS} persons, ${LATENCY} ms upstream latency, 8 pages in flight, ${ROUNDS} rounds`,
  measure: async () => {
    await using sandbox = await startBenchSandbox({ persons: PERSONS, latency: LATENCY });
    const rounds: Round[] = [];
    // The first one is only to get the sandbox going.
    await bareLoop(sandbox);
    for (let round = 0; round < ROUNDS; round += 1) rounds.push(await measureRound(sandbox));
    return rowsOf(rounds);
  },
};

/** Milliseconds. */
interface Round {
  readonly bare: number;
  readonly first: number;
  readonly second: number;
  readonly afterChange: Record<keyof typeof changes, number>;
}

const random = randomNumbers(1);

/** The positions are right when they are gone through in turn: from the last to the first. */
const anywhere = (count: number, length: number) =>
  Array.from({ length: count }, () => Math.floor(random() * (length - count))).toSorted(
    (a, b) => b - a,
  );

const changes = {
  inserts: (length) => [{ do: 'insert', at: anywhere(CHANGED, length) }],
  removals: (length) => [{ do: 'remove', at: anywhere(CHANGED, length) }],
  'inserts and removals': (length) => [
    { do: 'insert', at: anywhere(CHANGED / 2, length) },
    { do: 'remove', at: anywhere(CHANGED / 2, length) },
  ],
  'inserts, all at the front': () => [{ do: 'insert', at: Array(CHANGED).fill(0) }],
  'removals, all at the front': () => [{ do: 'remove', at: Array(CHANGED).fill(0) }],
} satisfies Record<string, (length: number) => SandboxCommand[]>;

/** A gateway of its own: it must not know the list. */
async function measureRound(sandbox: BenchSandbox): Promise<Round> {
  await using gateway = await startGateway(sandbox, { env: { DRAIN_CONCURRENCY: '8' } });
  // What a gateway has to do once in its life is no part of a drain: its tokens, its connections.
  for (let time = 0; time < 20; time += 1) await askPage(gateway, 1);

  const bare = await timed(() => bareLoop(sandbox));
  const first = await drain(gateway, sandbox);
  const second = await drain(gateway, sandbox);
  const afterChange: Record<string, number> = {};
  for (const [name, change] of Object.entries(changes)) {
    const { persons } = await sandbox.tell({ do: 'look' });
    for (const command of change(persons)) await sandbox.tell(command);
    afterChange[name] = await drain(gateway, sandbox);
  }
  return { bare, first, second, afterChange: afterChange as Round['afterChange'] };
}

/** What one writes without a gateway. */
async function bareLoop(sandbox: BenchSandbox): Promise<void> {
  const ids: string[] = [];
  let after: string | null = null;
  for (;;) {
    const { items, pageInfo } = await askPage(sandbox, 50, after);
    for (const { id } of items) ids.push(id);
    if (!pageInfo.hasNextPage) break;
    after = pageInfo.endCursor;
  }
  await mustBeTheList(sandbox, ids);
}

async function drain(gateway: Asking, sandbox: BenchSandbox): Promise<number> {
  let persons: { id: string }[] = [];
  const time = await timed(async () => {
    const query = '{ allPersons { id firstName } }';
    persons = (await ask<{ allPersons: { id: string }[] }>(gateway, query)).allPersons;
  });
  const ids = persons.map(({ id }) => id);
  await mustBeTheList(sandbox, ids);
  return time;
}

function rowsOf(rounds: readonly Round[]): Row[] {
  const row = (what: string, figure: (round: Round) => number, promise?: Row['promise']): Row => ({
    what,
    figures: rounds.map(figure),
    unit: 'x',
    ...(promise && { promise }),
  });
  return [
    { what: 'the bare loop', figures: rounds.map(({ bare }) => bare), unit: 'ms' },
    row('the first drain takes as long as the bare loop', ({ first, bare }) => first / bare, {
      atMost: 1.1,
    }),
    row('a second drain is faster than the first', ({ first, second }) => first / second, {
      atLeast: 6,
    }),
    row('a second drain is faster than the bare loop', ({ bare, second }) => bare / second, {
      atLeast: 6,
    }),
    ...(Object.keys(changes) as (keyof typeof changes)[]).flatMap((name) => [
      row(
        `after 1 % ${name}: faster than the first`,
        ({ first, afterChange }) => first / afterChange[name],
        { atLeast: 4 },
      ),
      row(
        `after 1 % ${name}: faster than the bare loop`,
        ({ bare, afterChange }) => bare / afterChange[name],
      ),
    ]),
  ];
}
