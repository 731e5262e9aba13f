// Imports the engine's insides, and goes when the engine is replaced.
import fc from 'fast-check';
import { GraphQLError } from 'graphql';
import { describe, expect, test } from 'vitest';
import {
  readBackward,
  readForward,
  type Slice,
  type SliceEnd,
  type SlicePart,
} from '../../src/paging/connection.ts';
import type { Position } from '../../src/paging/cursor.ts';
import { drainPages } from '../../src/paging/drain.ts';
import { walkList, type Tail, type WalkableList } from '../../src/paging/list-walk.ts';
import { createPace } from '../../src/paging/parallel-walk.ts';
import type { FetchPage } from '../../src/paging/page.ts';
import { createPageIndexes } from '../../src/paging/page-index.ts';
import { codedError, codeOf } from '../../src/errors.ts';
import { ModelList, type Change, type CursorKind, type Letter } from './model-list.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const RUNS = randomRuns(250);
const { signal } = new AbortController();

const moves = fc.record({
  do: fc.constant('move' as const),
  from: fc.nat(200),
  to: fc.nat(200),
});
const comings = fc.record({
  do: fc.constantFrom('insert' as const, 'remove' as const),
  at: fc.oneof(fc.constant(0), fc.nat(200)),
  count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 40 })),
});

interface Case {
  readonly cursors: CursorKind;
  readonly length: number;
  /** The page of the cursor began behind this many records, and had `size` records. */
  readonly skipped: number;
  readonly size: number;
  readonly offset: number;
  /** After how many of the changes the list is walked; undefined: never. */
  readonly walkedAfter: number | undefined;
  readonly changes: readonly Change[];
  readonly count: number;
}

const casesOf = (changes: fc.Arbitrary<Change>): fc.Arbitrary<Case> =>
  fc.record({
    cursors: fc.constantFrom<CursorKind>('keyset', 'record', 'position'),
    length: fc.integer({ min: 1, max: 150 }),
    skipped: fc.oneof(fc.constant(0), fc.nat(149)),
    size: fc.integer({ min: 1, max: LIMIT }),
    offset: fc.nat(LIMIT - 1),
    walkedAfter: fc.option(fc.nat(6), { nil: undefined }),
    changes: fc.array(changes, { maxLength: 6 }),
    count: fc.oneof(fc.constantFrom(1, 3), fc.integer({ min: 1, max: 60 })),
  });

/** The model's page limit. With 20 pages each way, all these lists are read as a whole. */
const LIMIT = 20;
/** With it, forty records each way are read. */
const SMALL_LIMIT = 2;

describe('the cursor of an existing record', () => {
  test.each([
    ['records come and go', comings],
    ['records move as well', fc.oneof(comings, moves)],
  ] as const)(
    'exactly the records after and before it are returned: %s',
    async (_name, changes) => {
      await fc.assert(
        fc.asyncProperty(casesOf(changes), async (setting) => {
          const { model, world, position } = await take(setting);
          const ids = model.ids();
          const at = ids.indexOf(position.identity!);
          fc.pre(at >= 0);
          const before = ids.slice(Math.max(0, at - setting.count), at);
          expect(shown(await world.last(setting.count, position))).toEqual({
            ids: before,
            hasNextPage: true,
            hasPreviousPage: at > setting.count,
          });
          // Behind the last record of a page, the service's own cursor is used.
          const isEnd = position.offset === position.size - 1;
          fc.pre(!isEnd || setting.cursors === 'record');
          const after = ids.slice(at + 1, at + 1 + setting.count);
          expect(shown(await world.first(setting.count, position))).toEqual({
            ids: after,
            hasNextPage: at + 1 + setting.count < ids.length,
            hasPreviousPage: true,
          });
          expect(await world.rest(position)).toEqual(ids.slice(at + 1));
        }),
        { numRuns: RUNS },
      );
    },
  );
});

describe.each([
  ['the cursor of a removed record', LIMIT],
  ['the cursor of a record that is removed, or too far away to be found,', SMALL_LIMIT],
])('%s', (_name, limit) => {
  test('no record after it is skipped, or the cursor is refused', async () => {
    await fc.assert(
      fc.asyncProperty(casesOf(comings), async (setting) => {
        const { model, world, position, behind } = await take(setting, limit);
        const ids = model.ids();
        fc.pre(limit === SMALL_LIMIT || !ids.includes(position.identity!));
        const isEnd = position.offset === position.size - 1;
        fc.pre(!isEnd || setting.cursors !== 'position');
        const result = await world.first(setting.count, position).catch(codeOf);
        fc.pre(!(mayBeLost(setting, limit) && result === 'CURSOR_INVALID'));
        const records = shown(result as Whole).ids;
        const start = records.length > 0 ? ids.indexOf(records[0]!) : ids.length;
        expect(records).toEqual(ids.slice(start, start + setting.count));
        const next = behind.find((id) => ids.includes(id));
        expect(start).toBeLessThanOrEqual(next === undefined ? ids.length : ids.indexOf(next));
      }),
      { numRuns: RUNS },
    );
  });

  test('no record before it is skipped, or the cursor is refused', async () => {
    await fc.assert(
      fc.asyncProperty(casesOf(comings), async (setting) => {
        const { model, world, position, front } = await take(setting, limit);
        const ids = model.ids();
        fc.pre(limit === SMALL_LIMIT || !ids.includes(position.identity!));
        const result = await world.last(setting.count, position).catch(codeOf);
        fc.pre(!(mayBeLost(setting, limit) && result === 'CURSOR_INVALID'));
        const records = shown(result as Whole).ids;
        const end = records.length > 0 ? ids.indexOf(records.at(-1)!) + 1 : 0;
        expect(records).toEqual(ids.slice(Math.max(0, end - setting.count), end));
        const previous = front.findLast((id) => ids.includes(id));
        expect(end).toBeGreaterThan(previous === undefined ? -1 : ids.indexOf(previous));
      }),
      { numRuns: RUNS },
    );
  });
});

test('a list that changes meanwhile returns an answer or a coded error', async () => {
  const changes = fc.oneof(comings, moves);
  const settings = fc.tuple(casesOf(changes), fc.array(changes, { minLength: 1, maxLength: 6 }));
  await fc.assert(
    fc.asyncProperty(settings, async ([setting, meanwhile]) => {
      const { world, position } = await take(setting);
      world.meanwhile.push(...meanwhile);
      for (const read of [world.first, world.last]) {
        const result = await read(Math.min(setting.count, LIMIT), position).catch(codeOf);
        if (typeof result === 'string')
          expect(['CURSOR_INVALID', 'DRAIN_INTERRUPTED']).toContain(result);
        else expect(result).toMatchObject({ edges: expect.any(Array) });
      }
    }),
    { numRuns: RUNS },
  );
});

test.each([
  ['the service fails there', new GraphQLError('A record is broken.'), 2],
  ['the service is unavailable', codedError('UPSTREAM_TIMEOUT', 'It took too long.'), 1],
])('a failure that is not due to the cursor is passed on: %s', async (_name, failure, requests) => {
  const model = new ModelList('keyset', 30, LIMIT);
  const { endCursor: end, items } = model.answer({ after: null, first: 10 });
  let requestCount = 0;
  const fetchPage: FetchPage<Letter> = async (request) => {
    requestCount += 1;
    if (request.after === end) throw failure;
    return model.answer(request);
  };
  const after = { after: null, end, size: 10, offset: 9, identity: items[9]!.identity };
  const reading = readForward(
    { list: { fetchIdentities: fetchPage }, fetchPage },
    { first: 5, after, before: null, signal },
  );
  await expect(whole(reading)).rejects.toBe(failure);
  expect(requestCount).toBe(requests);
});

/** Whether the position may be lost: its page may be refused too, or the ends of the list be too far away. */
function mayBeLost({ cursors }: Case, limit: number): boolean {
  return cursors === 'record' || limit === SMALL_LIMIT;
}

async function take(setting: Case, limit = LIMIT) {
  const model = new ModelList(setting.cursors, setting.length, limit);
  const ids = model.ids();
  const skipped = setting.skipped % setting.length;
  const size = Math.min(setting.size, limit, setting.length - skipped);
  const after = skipped === 0 ? null : cursorAt(model, skipped);
  const page = model.answer({ after, first: size });
  const offset = setting.offset % size;
  const position: Position = {
    after,
    end: page.endCursor,
    size,
    offset,
    identity: page.items[offset]!.identity,
  };
  const world = worldOf(model);
  if (setting.walkedAfter === 0) await world.walk();
  for (const [index, change] of setting.changes.entries()) {
    model.apply(change);
    if (index + 1 === setting.walkedAfter) await world.walk();
  }
  const at = skipped + offset;
  return { model, world, position, front: ids.slice(0, at), behind: ids.slice(at + 1) };
}

function cursorAt(model: ModelList, count: number): string {
  let after: string | null = null;
  for (let left = count; left > 0; left -= Math.min(left, model.limit)) {
    after = model.answer({ after, first: Math.min(left, model.limit) }).endCursor;
  }
  return after!;
}

function worldOf(model: ModelList) {
  const meanwhile: Change[] = [];
  const fetchPage: FetchPage<Letter> = async (request) => {
    const page = model.answer(request);
    const change = meanwhile.shift();
    if (change) model.apply(change);
    return page;
  };
  const list: WalkableList<Letter> = {
    fetchPage,
    fetchIdentities: fetchPage,
    key: 'letters',
    field: 'Query.letters',
    indexes: createPageIndexes(10_000),
    pace: createPace(4),
  };
  const searched = { fetchIdentities: fetchPage, index: () => list.indexes.get(list.key) };
  const walk = (position: Position | null, tail?: Tail) =>
    drainPages(walkList(list, { position, tail, signal }), {
      limit: undefined,
      position,
      budget: { max: 10_000, left: 10_000 },
      signal,
      toCursor: () => '',
      delivered: 'parts',
    });
  return {
    /** Changes of the list; one is applied after each page that is read. */
    meanwhile,
    walk: async () => {
      for await (const _ of walk(null));
    },
    /** The ids that a drain gives that begins behind the record. */
    rest: async (position: Position) => {
      const ids: (string | null)[] = [];
      for await (const { records } of walk(position)) {
        ids.push(...records.list.map(({ identity }) => identity));
      }
      return ids;
    },
    first: (first: number, after: Position) =>
      whole(readForward({ list: searched, fetchPage }, { first, after, before: null, signal })),
    last: (last: number, before: Position) =>
      whole(
        readBackward(
          {
            list: searched,
            fetchPage,
            walk: (tail) => walk(null, tail),
            isCostly: false,
            walkIdentities: (tail) => walk(null, tail),
          },
          { last, before, after: null, signal },
        ),
      ),
  };
}

type Whole = Pick<SlicePart<Letter>, 'edges'> & SliceEnd;

async function whole(slice: Slice<Letter>): Promise<Whole> {
  const edges: SlicePart<Letter>['edges'][number][] = [];
  for (;;) {
    const { done, value } = await slice.next();
    if (done) return { edges, ...value };
    edges.push(...value.edges);
  }
}

function shown({ edges, hasNextPage, hasPreviousPage }: Whole) {
  return { ids: edges.map(({ record }) => record.identity), hasNextPage, hasPreviousPage };
}
