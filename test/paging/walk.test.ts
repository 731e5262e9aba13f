import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { walkList, type PagedList } from '../../src/paging/list-walk.ts';
import { CursorRefusedError, PageFailedError, type Page } from '../../src/paging/page.ts';
import { KINDS, ModelService, type Change, type Traits } from './model-service.ts';
import { WalkWorld } from './walk-world.ts';

test.each(KINDS)(
  'a second walk reads several pages at the same time, over %s cursors, and returns the list as it is now',
  async (kind) => {
    const world = new WalkWorld(new ModelService({ kind, length: 500, limit: 20 }), 4);
    await world.walk();
    expect(world.held.maxInFlight).toBe(1);
    const first = world.held.requests;
    world.service.apply({ do: 'insert', at: 100, count: 1 });
    expect((await world.walk()).serials).toEqual(world.service.shown);
    expect(world.held.maxInFlight).toBe(4);
    expect(world.held.requests - first).toBeLessThanOrEqual(first + 1);
  },
);

test('one page is in flight while the reader works, and never more', async () => {
  const world = new WalkWorld(new ModelService({ kind: 'key', length: 50, limit: 5 }), 1);
  let read = 0;
  for await (const _ of readAtOnce(world)) {
    read += 1;
    await setImmediate();
    expect(world.held.requests).toBe(Math.min(read + 1, 10));
  }
});

test('a reader who leaves ends the requests in flight, and no further one is sent', async () => {
  const world = new WalkWorld(new ModelService({ kind: 'key', length: 500, limit: 10 }), 4);
  await world.walk();
  for (const inFlight of [4, 1]) {
    const pages = walkList(world.list, { after: null });
    const first = pages.next();
    await setImmediate();
    world.held.answerOne(0);
    await first;
    await setImmediate();
    expect(world.held.inFlight).toBe(inFlight);
    const { requests, aborted } = world.held;
    await pages.return();
    await setImmediate();
    expect(world.held.aborted).toBe(aborted + inFlight);
    expect(world.held.requests).toBe(requests);
    expect(world.held.inFlight).toBe(0);
    world.list.indexes.drop('letters');
  }
});

test('a page that fails while the reader works fails the walk later, and does not end the process', async () => {
  const list = listOf((after) =>
    after === null
      ? Promise.resolve(page(['a'], 'b'))
      : Promise.reject(new PageFailedError('gone')),
  );
  const pages = walkList(list, { after: null });
  await pages.next();
  await setImmediate();
  await expect(pages.next()).rejects.toThrow('gone');
});

test('a walk of a known list reads no more pages than it needs', async () => {
  const world = new WalkWorld(new ModelService({ kind: 'key', length: 500, limit: 20 }), 8);
  await world.walk();
  for (const [records, requests] of [
    [21, 2],
    [38, 2],
    [39, 3],
  ] as const) {
    const before = world.held.requests;
    const { serials } = await world.walk(undefined, { after: null, records });
    expect(serials.slice(0, records)).toEqual(world.service.shown.slice(0, records));
    expect(world.held.requests - before).toBe(requests);
  }
});

test('a walk that fails, or whose reader leaves, keeps the known index of its list', async () => {
  const world = new WalkWorld(new ModelService({ kind: 'key', length: 100, limit: 10 }), 1);
  const left = readAtOnce(world);
  await left.next();
  await world.walk();
  const known = world.list.indexes.get('letters');
  expect(known).toBeDefined();
  await left.return();
  await world.walk(undefined, undefined, { failure: { after: 5, answers: Infinity } });
  expect(world.list.indexes.get('letters')).toBe(known);
});

test.each([0, 30, 120, 395])(
  'a list whose ids repeat in one page, from record %i on, is returned whole by every walk',
  async (offset) => {
    const ids = Array.from({ length: 400 }, (_, number) => `p${number}`);
    const fetchPage: PagedList['fetchPage'] = async (after, first) => {
      const start = Number(after ?? 0);
      const records = ids.slice(start, start + first).map((_, number) => start + number);
      const end = start + records.length;
      const known = ids.slice(start, end);
      return { records, ids: known, hasNextPage: end < 400, endCursor: String(end), size: first };
    };
    const list = listOf(fetchPage);
    const numbers = Array.from({ length: 400 }, (_, number) => number);
    // First they do not repeat yet, so that the list has an index.
    expect(await collect(list)).toEqual(numbers);
    ids[offset + 2] = ids[offset]!;
    for (let walks = 0; walks < 3; walks += 1) expect(await collect(list)).toEqual(numbers);
    ids[offset + 2] = 'again its own';
    for (let walks = 0; walks < 3; walks += 1) expect(await collect(list)).toEqual(numbers);
  },
);

test.each<[string, Page[]]>([
  ['no cursor', [page(['a'], null)]],
  ['the same cursor, and no new record', [page(['a'], 'x'), page(['b'], 'x'), page(['b'], 'x')]],
  ['the same cursor, and records without ids', [page(['a'], 'x'), page([null], 'x')]],
  ['the same cursor, and ids that repeat', [page(['a'], 'x'), page(['b', 'b'], 'x')]],
  ['a cursor that was seen before', [page(['a'], 'x'), page(['b'], 'y'), page([], 'x')]],
])('a list whose next page has %s ends with DRAIN_STALLED', async (_, pages) => {
  let requests = 0;
  const fetchPage = async () => pages[(requests += 1) - 1]!;
  const walked = collect(listOf(fetchPage));
  await expect(walked).rejects.toMatchObject({ extensions: { code: 'DRAIN_STALLED' } });
  expect(requests).toBe(pages.length);
});

test('a list that repeats itself under ever new cursors ends with DRAIN_STALLED', async () => {
  let cursor = 0;
  const fetchPage = async () => page(['a'], String((cursor += 1)));
  const walked = collect(listOf(fetchPage));
  await expect(walked).rejects.toMatchObject({ extensions: { code: 'DRAIN_STALLED' } });
  expect(cursor).toBeLessThan(2_000);
});

test.each<[string, Page[], (string | null)[]]>([
  [
    'empty pages with a moving cursor are skipped',
    [page([], 'x'), page(['a'], 'y'), page([], null)],
    ['a'],
  ],
  [
    'a record that two pages have is returned once',
    [page(['a', 'b'], 'x'), page(['b', 'c'], null)],
    ['a', 'b', 'c'],
  ],
  [
    'records without ids are returned as they come',
    [page([null, 'a'], 'x'), page([null, 'a'], null)],
    [null, 'a', null],
  ],
  [
    'once an id occurs twice in a page, no record is dropped',
    [page(['a', 'b'], 'x'), page(['c', 'c'], 'y'), page(['b', 'c'], null)],
    ['a', 'b', 'c', 'c', 'b', 'c'],
  ],
])('%s', async (_, pages, expected) => {
  let requests = 0;
  const last = pages.at(-1)!;
  const all = [...pages.slice(0, -1), { ...last, hasNextPage: false }];
  expect(await collect(listOf(async () => all[(requests += 1) - 1]!))).toEqual(expected);
});

test('a refused cursor at which a walk begins is refused to its reader', async () => {
  const world = new WalkWorld(new ModelService({ kind: 'record', length: 30, limit: 10 }), 1);
  const { error } = await world.walk(undefined, { after: '99' });
  expect(error).toBeInstanceOf(CursorRefusedError);
});

test('a walk finds its position after a thousand pages before it were removed at once', async () => {
  const service = new ModelService({ kind: 'position', length: 17_600, limit: 10 });
  const world = new WalkWorld(service, 5, { maxIds: 100_000 });
  await world.walk();
  const removal: Change = { do: 'remove', at: 0, count: 8_250 };
  const { serials } = await world.walk(undefined, undefined, {
    changes: [{ change: removal, after: 2_120 }],
  });
  const walked = new Set(serials);
  expect(service.shown.filter((serial) => !walked.has(serial))).toEqual([]);
});

test.each([0, 9])(
  'a service that goes down after %i pages gets few more requests than from a walk page by page',
  async (after) => {
    const world = new WalkWorld(new ModelService({ kind: 'key', length: 500, limit: 10 }), 4);
    await world.walk();
    const before = world.held.requests;
    const failure = { after, answers: Infinity };
    const { serials, error } = await world.walk(undefined, undefined, { failure });
    expect(error).toBeInstanceOf(PageFailedError);
    expect(serials).toEqual(world.service.shown.slice(0, serials.length));
    // Those in flight, those sent before three had failed, and one for which the reader waits.
    expect(world.held.requests - before).toBeLessThanOrEqual(after + 2 * 4);
  },
);

test.each<[string, Partial<Traits>]>([
  ['cuts pages without saying so', { reports: false }],
  ['rounds sizes up', { sizing: 'rounded' }],
])('a list of which the service %s is read at little more cost', async (_, traits) => {
  const service = new ModelService({ kind: 'key', length: 2_000, limit: 20, ...traits });
  const world = new WalkWorld(service, 4, { usual: 50 });
  await world.walk();
  const first = world.held.requests;
  expect((await world.walk()).serials).toEqual(world.service.shown);
  expect(world.held.requests - first).toBeLessThanOrEqual(1.5 * first);
});

function page(ids: (string | null)[], endCursor: string | null): Page {
  return { records: ids, ids, hasNextPage: true, endCursor, size: 50 };
}

function listOf(fetchPage: PagedList['fetchPage']): PagedList {
  return {
    ...new WalkWorld(new ModelService({ kind: 'key', length: 0, limit: 50 }), 1).list,
    fetchPage,
  };
}

async function collect(list: PagedList): Promise<unknown[]> {
  const records: unknown[] = [];
  for await (const { page: read, offsets } of walkList(list, { after: null })) {
    records.push(...offsets.map((offset) => read.records[offset]));
  }
  return records;
}

/** A walk whose requests are answered in the next turn. */
async function* readAtOnce({ list, held }: WalkWorld) {
  const fetchPage: PagedList<number>['fetchPage'] = (...request) => {
    const answer = held.fetchPage(...request);
    held.answerOne(0);
    return answer;
  };
  yield* walkList({ ...list, fetchPage }, { after: null });
}
