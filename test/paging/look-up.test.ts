// Imports the engine's insides, and goes when the engine is replaced.
import fc from 'fast-check';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { walkList } from '../../src/paging/list-walk.ts';
import { createLookupWalks, lookUp, WALK_AGAIN_AFTER_MS } from '../../src/paging/look-up.ts';
import { createPace } from '../../src/paging/parallel-walk.ts';
import { createPageIndexes } from '../../src/paging/page-index.ts';
import { freePages } from '../support/gateway/free-pages.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { HeldRequests, ModelList, type Change, type CursorKind } from './model-list.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const KINDS = ['keyset', 'record', 'position'] as const satisfies CursorKind[];
const RUNS = randomRuns(100);

const offset = fc.oneof(fc.nat(80), fc.constant(0));
const count = fc.constantFrom(1, 1, 2, 9);
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ do: fc.constant('insert' as const), at: offset, count }),
  fc.record({ do: fc.constant('remove' as const), at: offset, count }),
  fc.record({ do: fc.constant('move' as const), from: offset, to: offset }),
);
const newLimit: fc.Arbitrary<Change> = fc.record({
  do: fc.constant('limit' as const),
  to: fc.integer({ min: 1, max: 16 }),
});
const caller = fc.record({
  // Greater ids do not exist.
  ids: fc.array(fc.nat(120), { minLength: 1, maxLength: 20 }),
  /** The caller leaves after this many further answers. */
  leavesAfter: fc.option(fc.nat(10), { freq: 4 }),
  comesAfter: fc.nat(8),
});
const history = fc.record({
  length: fc.nat(70),
  limit: fc.integer({ min: 1, max: 16 }),
  concurrency: fc.integer({ min: 1, max: 5 }),
  isWarm: fc.boolean(),
  rounds: fc.array(
    fc.record({
      changes: fc.array(
        fc.oneof({ weight: 8, arbitrary: change }, { weight: 1, arbitrary: newLimit }),
        {
          maxLength: 5,
        },
      ),
      callers: fc.array(caller, { minLength: 1, maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  choices: fc.array(fc.nat(30), { minLength: 1, maxLength: 40 }),
});
type History = typeof history extends fc.Arbitrary<infer H> ? H : never;

/** One lookup, whose requests are answered in turn. */
function lookupOf(id: number, past: Partial<History>, changes: Change[] = []): History {
  const callers = [{ ids: [id], leavesAfter: null, comesAfter: 0 }];
  return {
    length: 3,
    limit: 10,
    concurrency: 1,
    isWarm: false,
    rounds: [{ changes, callers }],
    choices: [0],
    ...past,
  };
}

const oneInFront: Change = { do: 'insert', at: 0, count: 1 };
const nineInFront: Change = { do: 'insert', at: 0, count: 9 };

/** After each walk that meets the record, the list is changed in front of it. */
const pushedByOne: [History, Change[]] = [
  lookupOf(0, {}),
  [oneInFront, { do: 'remove', at: 0, count: 1 }, { do: 'move', from: 22, to: 0 }],
];
/** After each of two walks that meet the record, a change pushes it out of the pages near. */
const pushedFarAway: [History, Change[]] = [
  lookupOf(0, { length: 1, limit: 3 }),
  [
    nineInFront,
    ...Array.from({ length: 6 }, () => ({ do: 'limit' as const, to: 3 })),
    { ...nineInFront, at: 9 },
  ],
];
/** A new record is met in the only page of the list, and then pushed out of it. */
const pushedOutOfOnlyPage: [History, Change[]] = [
  lookupOf(1, { length: 1, limit: 3, isWarm: true }, [oneInFront]),
  [nineInFront],
];

/**
 * The whole list is removed, so that the cursors of its pages may be refused; it is still known that its records are
 * gone.
 */
const allRemoved: [History, number] = [
  {
    ...lookupOf(0, { length: 9, limit: 5, isWarm: true }),
    rounds: [[0], [5, 6, 7, 8]].map((ids, round) => ({
      changes: round === 0 ? [{ do: 'remove', at: 0, count: 9 }] : [],
      callers: [{ ids, leavesAfter: null, comesAfter: 0 }],
    })),
  },
  1_000,
];

/** A caller leaves when the page with the record arrives, and another one comes. */
const leftWithItsPage: [History, number] = [
  {
    ...lookupOf(2, { length: 3, limit: 2, choices: [0] }),
    rounds: [
      {
        changes: [],
        callers: [
          { ids: [2], leavesAfter: 2, comesAfter: 3 },
          { ids: [2], leavesAfter: null, comesAfter: 5 },
        ],
      },
    ],
  },
  1_000,
];

describe.each(KINDS)('with %s cursors', (kind) => {
  test('in an unchanged list every existing record is found and no other, whichever callers come and leave', async () => {
    await fc.assert(
      fc.asyncProperty(history, fc.constantFrom(1_000, 1_000, 20), async (past, maxRecords) => {
        const world = startWorld(kind, past, maxRecords);
        if (past.isWarm) await world.walk();
        for (const { changes, callers } of past.rounds) {
          changes.forEach((each) => world.list.apply(each));
          const existing = new Set(world.list.ids());
          for (const { ids, results } of await world.ask(callers)) {
            for (const id of ids) {
              const result = results.get(id);
              // Where not every position is remembered, the lookup may have to be repeated later.
              if (result && 'error' in result) expect(maxRecords).toBe(20);
              else
                expect([id, result?.record.identity]).toEqual([
                  id,
                  existing.has(id) ? id : undefined,
                ]);
            }
          }
          world.clock.jump(WALK_AGAIN_AFTER_MS);
        }
      }),
      { numRuns: RUNS, examples: [allRemoved, leftWithItsPage] },
    );
  });

  test('in a list that changes meanwhile, no record is mistaken for another', async () => {
    expect.hasAssertions();
    await fc.assert(
      fc.asyncProperty(
        history,
        fc.array(change, { minLength: 1, maxLength: 12 }),
        async (past, during) => {
          const world = startWorld(kind, past, 1_000);
          if (past.isWarm) await world.walk();
          past.rounds[0]!.changes.forEach((each) => world.list.apply(each));
          const before = world.list.changes;
          const pushedOn = during.reduce((sum, each) => sum + positionsPushed(each), 0);
          const ever = new Set(world.list.ids());
          for (const { ids, results } of await world.ask(past.rounds[0]!.callers, during)) {
            const still = new Set(world.list.stillSince(before));
            for (const id of ids) {
              const result = results.get(id);
              if (result && 'record' in result) expect(result.record.identity).toBe(id);
              // A walk by other cursors may itself miss a record that never moved.
              if (kind !== 'keyset' || !still.has(id) || !ever.has(id)) continue;
              expect(result).not.toBeNull();
              // A record that is pushed further may be met again and again, and be gone each time that it is read.
              if (pushedOn <= world.list.limit) expect(result).toHaveProperty('record');
            }
          }
        },
      ),
      { numRuns: RUNS, examples: [pushedByOne, pushedFarAway, pushedOutOfOnlyPage] },
    );
  });
});

test('a walk that goes on after the list has changed meets the records behind the page that it left', async () => {
  const past = { ...lookupOf(0, {}), length: 40, limit: 5 };
  const world = startWorld('position', past, 1_000);
  await world.walk();
  // Records that the index does not know: the lookups walk.
  for (const at of [12, 18]) world.list.apply({ do: 'insert', at, count: 1 });
  const ask = async (id: number) => {
    const [answer] = await world.ask([{ ids: [id], leavesAfter: null, comesAfter: 0 }]);
    return answer!.results.get(String(id));
  };
  expect(await ask(40)).toHaveProperty('record');
  world.list.apply({ do: 'remove', at: 0, count: 2 });
  // With cursors that name positions, the page behind the last one now begins two records too late.
  expect(await ask(41)).toHaveProperty('record');
});

test('lookups that go on with a walk after changes of the list miss no record that stands still', async () => {
  expect.hasAssertions();
  await fc.assert(
    fc.asyncProperty(history, async (past) => {
      const world = startWorld('keyset', past, 1_000);
      if (past.isWarm) await world.walk();
      const before = world.list.changes;
      const ever = new Set(world.list.ids());
      for (const { changes, callers } of past.rounds) {
        changes.forEach((each) => world.list.apply(each));
        const still = new Set(world.list.stillSince(before));
        for (const { ids, results } of await world.ask(callers)) {
          for (const id of ids) {
            if (ever.has(id) && still.has(id)) expect(results.get(id)).toHaveProperty('record');
          }
        }
      }
    }),
    { numRuns: RUNS },
  );
});

/** By how many positions a change can push a record on. */
function positionsPushed(edit: Change): number {
  if (edit.do === 'insert') return edit.count;
  return edit.do === 'move' ? 1 : 0;
}

function startWorld(
  kind: CursorKind,
  { length, limit, concurrency, choices }: History,
  maxRecords: number,
) {
  const list = new ModelList(kind, length, limit);
  const held = new HeldRequests(list);
  const clock = new ManualClock();
  const indexes = createPageIndexes(maxRecords);
  const lookupWalks = createLookupWalks({ clock, maxItems: 1_000, maxRecords });
  const { fetchPage } = held;
  const walkable = { key: 'letters', field: 'letters', indexes, pace: createPace(concurrency) };
  const lookFor = (ids: readonly string[], leaving: AbortSignal) =>
    lookUp(
      {
        fetchPage,
        fetchIdentities: fetchPage,
        shared: {
          key: 'letters',
          name: 'letters',
          index: () => indexes.get('letters'),
          begin: (position, { signal }, unfinished) =>
            walkList(
              { ...walkable, fetchPage, fetchIdentities: fetchPage },
              { position, unfinished, signal },
            ),
        },
        walks: lookupWalks,
      },
      ids,
      { signal: leaving, pages: freePages() },
    );
  return {
    list,
    clock,
    walk: async () => {
      const { signal } = new AbortController();
      const pages = walkList(
        { ...walkable, fetchPage, fetchIdentities: fetchPage },
        { position: null, signal },
      );
      const walking = (async () => {
        for await (const _ of pages);
      })();
      await answerUntil(walking, () => {});
    },
    ask: async (
      callers: readonly { ids: number[]; leavesAfter: number | null; comesAfter: number }[],
      during: readonly Change[] = [],
    ) => {
      const answers = callers.map(({ ids }) => ({
        ids: [...new Set(ids.map(String))],
        leaving: new AbortController(),
        results: Promise.withResolvers<Awaited<ReturnType<typeof lookFor>> | undefined>(),
      }));
      const all = Promise.all(answers.map(({ results }) => results.promise));
      await answerUntil(all, (step) => {
        const changed = during[step - 1];
        if (changed) list.apply(changed);
        for (const [at, { comesAfter, leavesAfter }] of callers.entries()) {
          const { ids, leaving, results } = answers[at]!;
          if (comesAfter === step) {
            lookFor(ids, leaving.signal).then(results.resolve, (error: unknown) => {
              if (leaving.signal.aborted) results.resolve(undefined);
              else results.reject(error);
            });
          }
          if (leavesAfter !== null && comesAfter + leavesAfter === step) leaving.abort();
        }
      });
      return (
        await Promise.all(
          answers.map(async ({ ids, results }) => ({ ids, results: await results.promise })),
        )
      ).flatMap(({ ids, results }) => (results ? [{ ids, results }] : []));
    },
  };

  /** Answers the requests in the order of the choices. */
  async function answerUntil(over: Promise<unknown>, onStep: (step: number) => void) {
    const state = { isOver: false };
    const ended = over.finally(() => {
      state.isOver = true;
    });
    ended.catch(() => {});
    for (let step = 0; !state.isOver; step += 1) {
      if (step > 10_000) throw new Error('The lookups hang.');
      onStep(step);
      await setImmediate();
      await setImmediate();
      if (held.waiting > 0) held.answerOne(choices[step % choices.length]!);
    }
    await ended;
  }
}
