import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { walkList, type PagedList } from '../../src/paging/walk.ts';
import { readPage } from '../../src/paging/page-size.ts';
import { KnownLists } from '../../src/paging/known-lists.ts';
import { indexOf } from '../../src/paging/page-index.ts';
import {
  PageFailedError,
  SizeRefusedError,
  type FetchPage,
  type Page,
} from '../../src/paging/page.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';
import { KINDS, type Serials, type Traits } from '../service/list-model.ts';
import { pageOf, readPageOf, recordsOf, World } from './world.ts';

describe('the requests of a walk', () => {
  test.each(KINDS)(
    'are several at a time once the list is known, with %s cursors',
    async (kind) => {
      const world = new World(500, { kind, limit: 20, concurrency: 4 });
      await world.walk();
      expect(world.maxInFlight).toBe(1);
      world.service.apply({ do: 'insert', at: 100, count: 1 });
      expect((await world.walk()).records).toEqual(world.service.shown);
      expect(world.maxInFlight).toBe(4);
      world.maxInFlight = 0;
      // Also from a cursor that no page of the index has.
      await world.walk({ after: world.service.page(null, 15).endCursor, records: 300 });
      expect(world.maxInFlight).toBe(4);
    },
  );

  test.each([0, 9])('are few more if the service goes down after %i pages', async (after) => {
    const world = new World(500, { limit: 10, concurrency: 4 });
    await world.walk();
    const failing = { failure: { after, answers: Infinity } };
    const requests = await world.costOf(async () => {
      const { error } = await world.walk(undefined, failing);
      expect(error).toBeInstanceOf(PageFailedError);
    });
    // No more than those ahead of the reader.
    expect(requests).toBeLessThanOrEqual(after + 3 * 4);
  });

  test('are one page ahead of the reader in a list that is not known', async () => {
    const world = new World(50, { limit: 5 });
    let read = 0;
    for await (const _ of walkList(world.list, { after: null })) {
      read += 1;
      await setImmediate();
      expect(world.requests).toBe(Math.min(read + 1, 10));
    }
  });

  test('are not continued when the reader leaves', async () => {
    const world = new World(500, { limit: 10, concurrency: 4 });
    await world.drain();
    world.holds = true;
    for (const inFlight of [4, 1]) {
      const pages = walkList(world.list, { after: null });
      const first = pages.next();
      await setImmediate();
      world.answerOne();
      await first;
      await setImmediate();
      expect(world.inFlight).toBe(inFlight);
      const { requests } = world;
      await pages.return();
      while (world.inFlight > 0) {
        world.answerOne();
        await setImmediate();
      }
      expect(world.requests).toBe(requests);
      world.known.begin('letters')(0, undefined);
    }
  });
});

/** A list whose page sizes are recorded. All its records are hidden, so that only `size` says something. */
function sizedList(traits: Partial<Traits>) {
  const world = new World(500, { usual: 50, isHidden: () => true, ...traits });
  const requested: number[] = [];
  const { size } = world.list;
  const fetchPage: FetchPage = (after, first) => {
    requested.push(first);
    return world.fetchPage(after, first);
  };
  const fetch = () => readPage({ size, fetchPage }, null, 50);
  return { ...world.list, service: world.service, clock: world.clock, requested, fetch };
}

describe('the size of pages', () => {
  test('grows again after ten minutes, one step after the other', async () => {
    const { service, clock, requested, fetch } = sizedList({ accepts: 12 });
    await fetch();
    clock.jump(10 * MINUTE - 1);
    await fetch();
    expect(requested).toEqual([50, 25, 12, 12]);
    clock.jump(1);
    await fetch();
    expect(requested.slice(4)).toEqual([24, 12]);
    service.accepts = 50;
    for (const expected of [24, 48, 50, 50]) {
      clock.jump(10 * MINUTE);
      await fetch();
      expect(requested.at(-1)).toBe(expected);
    }
  });

  test('is halved once by pages that are refused at the same time', async () => {
    const { size, fetch } = sizedList({ accepts: 25 });
    await Promise.all([1, 2, 3, 4].map(() => fetch()));
    expect(size.limit).toBe(25);
  });

  test('is not raised by the refusal of a larger page that arrives late', async () => {
    const { size, service, fetch, fetchPage } = sizedList({ accepts: 12 });
    const late = Promise.withResolvers<never>();
    let requests = 0;
    const slowly: FetchPage = (after, first) => {
      requests += 1;
      return requests === 1 ? late.promise : fetchPage(after, first);
    };
    const slow = readPage({ size, fetchPage: slowly }, null, 50);
    await fetch();
    service.accepts = 50;
    late.reject(new SizeRefusedError('The page costs too much.'));
    await slow;
    expect(size.limit).toBe(12);
  });

  test('is learned from a page that the service cuts, and not from the number of records', async () => {
    const { size, fetch } = sizedList({ limit: 20 });
    await fetch();
    expect(size.limit).toBe(20);
  });
});

test('a known list with offset cursors is returned whole although many of the returned records are removed', async () => {
  const world = new World(500, { kind: 'position', limit: 20, concurrency: 4 });
  await world.drain();
  const change = { do: 'remove', at: 0, count: 60 } as const;
  const { records } = await world.walk(undefined, { changes: [{ change, after: 4 }] });
  expect(records).toEqual(expect.arrayContaining(world.service.shown));
});

test('a known list with offset cursors is no stalled one where records in front come after others went', async () => {
  const world = new World(300, { kind: 'position', limit: 20 });
  await world.drain();
  const gone = { change: { do: 'remove', at: 0, count: 20 }, after: 14 } as const;
  const come = { change: { do: 'insert', at: 0, count: 60 }, after: 15 } as const;
  const { error } = await world.walk(undefined, { changes: [gone, come] });
  expect(error).toBeUndefined();
});

test('a walk that fails, or whose reader leaves, keeps the known index of its list', async () => {
  const world = new World(100, { limit: 10 });
  const left = walkList(world.list, { after: null });
  await left.next();
  await world.drain();
  const known = world.known.indexOf('letters');
  expect(known).toBeDefined();
  await left.return();
  await world.walk(undefined, { failure: { after: 5, answers: Infinity } });
  expect(world.known.indexOf('letters')).toBe(known);
});

test('a page that fails while the reader works fails the walk later, and does not end the process', async () => {
  const world = new World(100, { limit: 10 });
  const pages = walkList(world.list, { after: null });
  world.onRead = () => (world.fails = true);
  await pages.next();
  await setImmediate();
  await expect(pages.next()).rejects.toThrow('The service is down.');
});

test.each([0, 120, 395])(
  'a list whose ids repeat in one page, from record %i on, is returned whole by every walk',
  async (offset) => {
    const ids = Array.from({ length: 400 }, (_, number) => `p${number}`);
    const fetchPage: PagedList<Serials>['fetchPage'] = async (after, first) => {
      const start = Number(after ?? 0);
      const end = Math.min(start + first, ids.length);
      const records = numbers.slice(start, end);
      const known = ids.slice(start, end);
      return { records, ids: known, hasNextPage: end < 400, endCursor: String(end), size: first };
    };
    const numbers = ids.map((_, number) => number);
    const list = { ...new World(0).list, fetchPage };
    const whole = async () => (await recordsOf(walkList(list, { after: null }))).records;
    // First they do not repeat yet, so that the list has an index.
    expect(await whole()).toEqual(numbers);
    for (const id of [ids[offset]!, 'again its own']) {
      ids[offset + 2] = id;
      for (let walks = 0; walks < 3; walks += 1) expect(await whole()).toEqual(numbers);
    }
  },
);

type Ids = readonly (string | null)[];

const at = (endCursor: string | null, ...records: Ids) => pageOf(records, { endCursor });

test.each<[string, Page<Ids>[], (string | null)[] | 'stalled']>([
  ['no cursor', [at(null, 'a')], 'stalled'],
  ['the same cursor, and no new record', [at('x', 'a'), at('x', 'b'), at('x', 'b')], 'stalled'],
  ['the same cursor, and records without ids', [at('x', 'a'), at('x', null)], 'stalled'],
  ['the same cursor, and ids that repeat', [at('x', 'a'), at('x', 'b', 'b')], 'stalled'],
  ['a cursor that was seen before', [at('x', 'a'), at('y', 'b'), at('x')], 'stalled'],
  ['no records, and a moving cursor', [at('x'), at('y', 'a'), at(null)], ['a']],
  [
    'an id twice, after which no record is dropped',
    [at('x', 'a', 'b'), at('y', 'c', 'c'), at(null, 'b', 'c')],
    ['a', 'b', 'c', 'c', 'b', 'c'],
  ],
])('a list is read on or DRAIN_STALLED if a page has %s', async (_, pages, expected) => {
  const isStalled = expected === 'stalled';
  const all = isStalled ? pages : [...pages.slice(0, -1), { ...pages.at(-1)!, hasNextPage: false }];
  let requests = 0;
  const list = { ...new World(0).list, fetchPage: async () => all[(requests += 1) - 1]! };
  const walked = await recordsOf(walkList<Ids>(list, { after: null }), (error) => error);
  expect(requests).toBe(pages.length);
  if (isStalled) expect(walked.error).toMatchObject({ extensions: { code: 'DRAIN_STALLED' } });
  else expect(walked).toMatchObject({ records: expected, error: undefined });
});

test('a list that repeats itself under ever new cursors ends with DRAIN_STALLED', async () => {
  let cursor = 0;
  const fetchPage = async () => at(String((cursor += 1)), 'a');
  const walked = recordsOf(walkList<Ids>({ ...new World(0).list, fetchPage }, { after: null }));
  await expect(walked).rejects.toMatchObject({ extensions: { code: 'DRAIN_STALLED' } });
  expect(cursor).toBeLessThan(2_000);
});

/** An index of this many pages of 40 records. */
const indexWith = (pages: number) =>
  indexOf(
    Array.from({ length: pages }, (_, number) => {
      const ids = Array.from({ length: 40 }, (__, index) => `${number}-${index}`);
      return readPageOf(`c${number}`, ids);
    }),
  );

const knownLists = (maxIds: number) =>
  new KnownLists({ clock: new ManualClock(), maxIds, totalSeconds: 300 });
const keep = (known: KnownLists, list: string, pages: number) =>
  known.begin(list)(0, indexWith(pages));

test('the indexes of lists stay within INDEX_MAX_IDS: the least recently used is dropped, and a longer list has none', () => {
  const known = knownLists(1_000);
  for (const list of ['a', 'b', 'c']) keep(known, list, 5);
  known.indexOf('a');
  for (const list of ['d', 'e']) keep(known, list, 5);
  const kept = ['a', 'b', 'c', 'd', 'e'].filter((list) => known.indexOf(list));
  expect(kept).toEqual(['a', 'd', 'e']);
  keep(known, 'long', 30);
  expect(known.indexOf('long')).toBeUndefined();
  const none = knownLists(0);
  keep(none, 'a', 1);
  expect(none.indexOf('a')).toBeUndefined();
});
