// Imports the engine's insides, and goes when the engine is replaced.
import fc from 'fast-check';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { walkList, type WalkableList } from '../../src/paging/list-walk.ts';
import { createPace } from '../../src/paging/parallel-walk.ts';
import { createPageIndexes } from '../../src/paging/page-index.ts';
import type { FetchPage } from '../../src/paging/page.ts';
import {
  HeldRequests,
  ModelList,
  type Change,
  type CursorKind,
  type Letter,
} from './model-list.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { worstOfSequential } from '../support/random/worst-of-sequential.ts';

const KINDS = ['keyset', 'record', 'position'] as const satisfies CursorKind[];
const RUNS = randomRuns(100);

const offset = fc.nat(80);
const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('insert' as const),
      at: fc.oneof(fc.constant(0), offset),
      count: fc.constantFrom(1, 1, 2, 9),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('remove' as const),
      at: offset,
      count: fc.constantFrom(1, 1, 2, 9),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('move' as const), from: offset, to: offset }),
  },
);
const newLimit: fc.Arbitrary<Change> = fc.record({
  do: fc.constant('limit' as const),
  to: fc.integer({ min: 1, max: 16 }),
});
const anyChange = fc.oneof({ weight: 8, arbitrary: change }, { weight: 1, arbitrary: newLimit });

const history: fc.Arbitrary<History> = fc.record({
  length: fc.nat(70),
  // Pages of less than 10 records are not read in parallel.
  limit: fc.oneof(fc.integer({ min: 10, max: 16 }), fc.integer({ min: 1, max: 9 })),
  concurrency: fc.integer({ min: 1, max: 5 }),
  /** What happens before the second walk, before the third, … */
  between: fc.array(fc.array(anyChange, { maxLength: 5 }), { minLength: 1, maxLength: 4 }),
  choices: fc.array(fc.nat(30), { minLength: 1, maxLength: 40 }),
});

/**
 * Small pages, of which two were read before the removal and are joined after it. Over position cursors, reading on
 * from each of them once lost the same nine records twice.
 */
const removedUnderTwoPages: [History, Meanwhile[]] = [
  {
    length: 34,
    limit: 16,
    concurrency: 1,
    between: [
      [
        { do: 'limit', to: 2 },
        { do: 'insert', at: 0, count: 1 },
      ],
    ],
    choices: [0],
  },
  [
    { change: { do: 'remove', at: 0, count: 9 }, after: 3 },
    { change: { do: 'insert', at: 22, count: 1 }, after: 3 },
  ],
];

describe.each(KINDS)('with %s cursors', (kind) => {
  test('an unchanged list is returned exactly, whatever happened to it since its last walk', async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ length, limit, concurrency, between, choices }) => {
        const world = startWorld(new ModelList(kind, length, limit), concurrency);
        for (const changes of [[], ...between]) {
          changes.forEach((each) => world.list.apply(each));
          expect(await world.walk(choices)).toEqual(world.list.ids());
          expect(world.held.maxInFlight).toBeLessThanOrEqual(concurrency + 1);
        }
      }),
      { numRuns: 2 * RUNS },
    );
  });

  test('in a list that changes meanwhile, no more records are lost than by a walk page by page', async () => {
    const during = fc.array(fc.record({ change, after: fc.nat(25) }), {
      minLength: 1,
      maxLength: 2,
    });
    await fc.assert(
      fc.asyncProperty(history, during, async (past, meanwhile) => {
        const { length, limit, concurrency, between, choices } = past;
        const world = startWorld(new ModelList(kind, length, limit), concurrency);
        await world.walk(choices);
        for (const changes of between) changes.forEach((each) => world.list.apply(each));
        const before = world.list.copy();
        const changes = meanwhile.toSorted((left, right) => left.after - right.after);

        const walked = await world.walk(choices, changes).catch((error: Error) => error);
        const worst = worstOfSequential(
          before,
          changes.map((each) => each.change),
        );
        if (walked instanceof Error) {
          expect(worst).toBe('fails');
          return;
        }
        expect(new Set(walked).size).toBe(walked.length);
        const lost = world.list
          .stillSince(before.changes)
          .filter((identity) => !walked.includes(identity));
        if (worst !== 'fails') expect(lost.length).toBeLessThanOrEqual(worst);
        if (kind === 'keyset') expect(lost).toEqual([]);
      }),
      { numRuns: RUNS, examples: [removedUnderTwoPages] },
    );
  });
});

test('a walk continues after a page read ahead whose cursor the service now refuses', async () => {
  const world = startWorld(new ModelList('record', 34, 16), 1);
  await world.walk([0]);
  world.list.apply({ do: 'limit', to: 2 });
  world.list.apply({ do: 'insert', at: 0, count: 1 });
  const before = world.list.ids();
  const removal: Change = { do: 'remove', at: before.indexOf('23'), count: 1 };
  expect(await world.walk([0], [{ change: removal, after: 13 }])).toEqual(before);
});

test('a walk finds its position after a thousand pages before it were removed at once', async () => {
  const world = startWorld(new ModelList('position', 17_600, 10), 5, 17_600);
  await world.walk([0]);
  const removal: Change = { do: 'remove', at: 0, count: 8_250 };
  const walked = new Set(await world.walk([0], [{ change: removal, after: 2_120 }]));
  expect(world.list.ids().filter((id) => !walked.has(id))).toEqual([]);
});

test('a page that was requested ahead of a gap ends as soon as the walk is back at a page of its index', async () => {
  const world = startWorld(new ModelList('keyset', 200, 10), 2);
  await world.walk([0]);
  world.list.apply({ do: 'insert', at: 100, count: 60 });
  let ended = 0;
  const fetchPage: FetchPage<Letter> = (request, signal) =>
    world.held.fetchPage(request, signal).catch((error: unknown) => {
      ended += 1;
      throw error;
    });
  const { signal } = new AbortController();
  const walk = walkList({ ...world.walkable, fetchPage }, { position: null, signal });
  const endedBefore: number[] = [];
  const state = { isOver: false };
  const walking = (async () => {
    for await (const _ of walk) endedBefore.push(ended);
  })().finally(() => {
    state.isOver = true;
  });
  for (let turn = 0; !state.isOver; turn += 1) {
    await setImmediate();
    if (turn % 4 === 0 && world.held.waiting > 0) world.held.answerOne(0);
  }
  await walking;
  expect(endedBefore.at(-1)).toBe(1);
});

interface History {
  length: number;
  limit: number;
  concurrency: number;
  between: Change[][];
  choices: number[];
}

interface Meanwhile {
  change: Change;
  /** After this many answers. */
  after: number;
}

function startWorld(list: ModelList, concurrency: number, maxRecords = 1_000) {
  const held = new HeldRequests(list);
  const walkable: WalkableList<Letter> = {
    fetchPage: held.fetchPage,
    fetchIdentities: held.fetchPage,
    key: 'letters',
    field: 'letters',
    indexes: createPageIndexes(maxRecords),
    pace: createPace(concurrency),
  };
  return {
    list,
    held,
    walkable,
    /** Answers the requests in the order of the choices. */
    walk: async (choices: readonly number[], meanwhile: readonly Meanwhile[] = []) => {
      const state = { isOver: false };
      const walking = collect(walkable).finally(() => {
        state.isOver = true;
      });
      walking.catch(() => {});
      const due = [...meanwhile];
      for (let turn = 0; !state.isOver; turn += 1) {
        await setImmediate();
        while (due[0] && due[0].after <= turn) list.apply(due.shift()!.change);
        if (held.waiting > 0) held.answerOne(choices[turn % choices.length]!);
      }
      // Later changes are applied too, so that both walks have the same history.
      for (const { change: late } of due) list.apply(late);
      return walking;
    },
  };
}

async function collect(list: WalkableList<Letter>): Promise<string[]> {
  const walked: string[] = [];
  const { signal } = new AbortController();
  for await (const { records } of walkList(list, { position: null, signal })) {
    walked.push(...records.list.map(({ identity }) => identity));
  }
  return walked;
}
