import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { codedError } from '../../src/errors.ts';
import { drain, endOf, walkTogether } from '../../src/paging/drain.ts';
import { CallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { PageFailedError, ReadPage } from '../../src/paging/page.ts';
import { walkBehind } from '../../src/paging/resume.ts';
import { SharedWalks, type BeginWalk, type ReaderOptions } from '../../src/paging/shared-walk.ts';
import { WalkSlots } from '../../src/paging/walk-slots.ts';
import { stalled, type WalkedPage, type WalkedPages } from '../../src/paging/walk.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { KINDS } from '../service/list-model.ts';
import { pageOf, recordsOf, World } from './world.ts';

const LETTERS = Array.from('abcdefghijkl');

/** A walk of the first letters in pages of four, which ends with an error. */
async function* letters(count: number, error?: unknown): WalkedPages<string> {
  for (let from = 0; from < count; from += 4) {
    const records = LETTERS.slice(from, Math.min(count, from + 4));
    yield { page: new ReadPage(null, pageOf(records)), offsets: [...records.keys()] };
  }
  if (error) throw error;
}

function drained(pages: WalkedPages<string>, options: Partial<Parameters<typeof drain>[1]> = {}) {
  const pagesOfDrain = drain(pages, {
    limit: undefined,
    position: null,
    budget: { max: 1_000, left: 1_000 },
    signal: new AbortController().signal,
    toCursor: ({ id }) => `behind ${id}`,
    delivered: 'parts',
    ...options,
  });
  return recordsOf(pagesOfDrain, (error) => error);
}

const rateLimited = codedError('RATE_LIMITED', 'Too many pages.', {
  extensions: { retryAfter: 60 },
});
const failed = new PageFailedError('failed', {
  cause: codedError('UPSTREAM_UNREACHABLE', 'The service is unavailable.'),
});

describe('a drain', () => {
  test.each<[string, unknown, object]>([
    ['a page fails', failed, { code: 'DRAIN_INTERRUPTED', reason: 'UPSTREAM_UNREACHABLE' }],
    ['it is unknown why', new Error('secret'), { code: 'DRAIN_INTERRUPTED', reason: null }],
    ['the cursor does not move', stalled(), { code: 'DRAIN_STALLED' }],
    ['the pages are used up', rateLimited, { code: 'RATE_LIMITED', retryAfter: 60 }],
  ])(
    'that ends says how many records it has, and how to go on: %s',
    async (_, error, extensions) => {
      const parts = await drained(letters(6, error));
      expect(parts.records).toEqual(LETTERS.slice(0, 6));
      expect(parts.error).toMatchObject({
        message: expect.stringMatching(/after 6 records/),
        extensions: { ...extensions, drained: 6, resumeAfter: 'behind f' },
      });
      expect(parts.error!.message).not.toContain('secret');
      const whole = await drained(letters(6, error), { delivered: 'whole' });
      expect(whole.error!.message).toContain('None of them is in this answer.');
    },
  );

  test('of exactly the allowed length is whole, and all drains of an operation share one budget', async () => {
    const budget = { max: 20, left: 20 };
    for (const count of [12, 8])
      expect(await drained(letters(count), { budget })).toMatchObject({ error: undefined });
    const { error } = await drained(letters(1), { budget });
    expect(error).toMatchObject({ extensions: { code: 'DRAIN_LIMIT_EXCEEDED', drained: 0 } });
  });

  test('whose caller leaves ends with the reason of the caller', async () => {
    const signal = AbortSignal.abort(new Error('left'));
    const { error } = await drained(letters(6, signal.reason), { signal });
    expect(error).toBe(signal.reason);
  });

  test.each(KINDS)('resumes behind any record, with %s cursors', async (kind) => {
    const world = new World(60, { kind, limit: 10 });
    for (const isKnown of [false, true]) {
      const pages: WalkedPage<number>[] = [];
      for await (const walked of walkBehind(world.list, null)) pages.push(walked);
      const ends = pages.flatMap(({ page, offsets }) =>
        offsets.map((_, at) => endOf({ page, offsets: offsets.slice(0, at + 1) })!),
      );
      if (!isKnown) world.list.indexes.drop('letters');
      for (const [record, position] of ends.entries()) {
        const { records } = await recordsOf(walkBehind(world.list, position));
        expect(records).toEqual(world.service.shown.slice(record + 1));
      }
    }
  });
});

/** Begins drains of lists with so many records; `order` has the caller of each request. */
function startDrains(length = 60) {
  const clock = new ManualClock();
  const drains = { walks: new SharedWalks(), slots: new WalkSlots(1, clock) };
  const callers = new CallerBudgets(0, clock);
  const order: string[] = [];
  const walk = (name: string, caller: string, limit?: number, keepsAll = false) => {
    const { list } = new World(length, { limit: 10 });
    return walkTogether(drains, {
      name,
      listFor: (readers) => ({
        ...list,
        fetchPage: async (...request) => {
          readers.spend();
          order.push(caller);
          await setImmediate();
          return list.fetchPage(...request);
        },
      }),
      position: null,
      limit,
      caller,
      operation: {},
      budget: new PageBudget(callers, caller, true),
      signal: new AbortController().signal,
      keepsAll,
    });
  };
  const begin = async (...of: Parameters<typeof walk>) =>
    (await recordsOf(walk(...of))).records.length;
  return { drains, order, walk, begin };
}

describe('drains at the same time', () => {
  test('take one turn together if they are equal, and one of one page needs none', async () => {
    const { drains, order, begin } = startDrains();
    const begun = [begin('all', 'a'), begin('all', 'b'), begin('ten', 'c', 10), begin('ids', 'd')];
    expect(await Promise.all(begun)).toEqual([60, 60, 10, 60]);
    expect(drains.slots).toMatchObject({ taken: 0, waiting: 0 });
    // Two walks of all pages, eight records each, and one page.
    expect(order).toHaveLength(2 * 8 + 1);
  });

  test('of which one needs only a page do not wait for the others', async () => {
    const { drains, begin } = startDrains();
    const { signal } = new AbortController();
    const giveBack = await drains.slots.take({ caller: 'a', operation: {}, signal });
    expect(await begin('ten', 'b', 10)).toBe(10);
    giveBack();
  });

  test('go on behind the last record of a reader that has fallen behind', async () => {
    const { walk, begin } = startDrains(400);
    const slow = walk('all', 'slow');
    const fast = begin('all', 'fast');
    const { value: first } = await slow.next();
    expect(await fast).toBe(400);
    const read = first!.offsets.length;
    const rest = Array.from({ length: 400 - read }, (_, at) => read + at);
    expect((await recordsOf(slow)).records).toEqual(rest);
  });

  test('keep their turn to the end if they are only collected, so that not all are in memory at once', async () => {
    const { order, begin } = startDrains();
    await Promise.all(['a', 'b', 'c'].map((caller) => begin(caller, caller, undefined, true)));
    expect(order.filter((caller, at) => caller !== order[at - 1])).toEqual(['a', 'b', 'c']);
  });
});

const MEGABYTE = 1024 * 1024;

describe('a shared walk', () => {
  test('gives each reader every record', async () => {
    const list = sharedList(100);
    const readers = Array.from({ length: 50 }, () => list.join());
    for (const read of await Promise.all(readers.map(all))) expect(read).toEqual(list.records);
    expect(list).toMatchObject({ walks: { length: 1 }, pulled: 100 });
    await all(list.join());
    expect(list.walks).toHaveLength(2);
  });

  test.each([
    ['many', 100, 0, false],
    ['many, while another reader keeps all', 100, 0, true],
    ['large', 10, 5 * MEGABYTE, false],
  ])(
    'keeps few pages for a slow reader, who delays no other and gets every record, if they are %s',
    async (_, pages, bytes, keepsAll) => {
      const list = sharedList(pages, bytes);
      const [slow, fast] = [list.join(), list.join({ keepsAll })];
      await slow.next();
      await slow.next();
      expect(await all(fast)).toEqual(list.records);
      expect(list.pulled).toBe(pages);
      expect(await all(slow)).toEqual(list.records.slice(1));
      expect(list.walks).toHaveLength(2);
    },
  );

  test('goes on if a reader leaves, who does not wait for its page, and ends with the last one', async () => {
    const list = sharedList(100);
    const leaving = new AbortController();
    const [first, second] = [list.join({ signal: leaving.signal }), list.join()];
    await first.next();
    await second.next();
    const gate = (list.gate = Promise.withResolvers<void>());
    const page = first.next();
    await setImmediate();
    leaving.abort();
    await expect(page).rejects.toThrow(/abort/i);
    const { signal } = list.walks[0]!;
    expect(signal.aborted).toBe(false);
    gate.resolve();
    await second.next();
    await second.return();
    expect(signal.aborted).toBe(true);
    expect(list.pulled).toBeLessThan(5);
  });

  test('that fails fails for all readers, behind the pages before', async () => {
    const list = sharedList(100);
    list.failsAt = 3;
    const ended = [list.join(), list.join()].map((reader) => recordsOf(reader, (error) => error));
    for (const { records, error } of await Promise.all(ended)) {
      expect(records).toEqual([0, 2]);
      expect(error).toBeInstanceOf(PageFailedError);
    }
  });

  test('is spent for together: each caller once, and only who cannot afford a page is refused', async () => {
    const callers = new CallerBudgets(40, new ManualClock());
    const list = sharedList(30);
    callers.spend('poor', 25);
    const join = (caller: string) => list.join({ budget: new PageBudget(callers, caller, true) });
    const rich = [join('rich'), join('rich'), join('rich')].map(all);
    await expect(all(join('poor'))).rejects.toMatchObject({ extensions: { code: 'RATE_LIMITED' } });
    for (const records of await Promise.all(rich)) expect(records).toEqual(list.records);
    expect(list).toMatchObject({ walks: { length: 1 }, pulled: 30 });
    callers.spend('rich', 10);
    expect(() => callers.spend('rich')).toThrow(/40 pages a minute/);
  });
});

const isNew = (number: number) => number % 3 !== 1;

/** A list of pages with one record each, of which every third one has no new record, and the walks of it. */
function sharedList(pages: number, bytes = 0) {
  const shared = new SharedWalks();
  const numbers = Array.from({ length: pages }, (_, number) => number);
  const state = {
    records: numbers.filter(isNew),
    walks: [] as Parameters<BeginWalk<number>>[0][],
    pulled: 0,
    failsAt: Infinity,
    /** Holds back the next page. */
    gate: undefined as PromiseWithResolvers<void> | undefined,
    join: (options: Partial<ReaderOptions> = {}): WalkedPages<number> => {
      const budget = new PageBudget(new CallerBudgets(0, new ManualClock()), 'anybody', true);
      const { signal } = new AbortController();
      return shared.join('list', walk, { budget, signal, ...options });
    },
  };
  async function* walk(...[readers, last]: Parameters<BeginWalk<number>>): WalkedPages<number> {
    state.walks.push(readers);
    for (const number of numbers.slice(last && endOf(last) ? last.page.records[0]! + 1 : 0)) {
      readers.spend();
      await setImmediate();
      await state.gate?.promise;
      if (number === state.failsAt) throw new PageFailedError('gone');
      state.pulled += 1;
      const page = { ...pageOf([String(number)], { bytes }), records: [number] };
      yield { page: new ReadPage(null, page), offsets: isNew(number) ? [0] : [] };
    }
  }
  return state;
}

async function all(pages: WalkedPages<number>): Promise<number[]> {
  return (await recordsOf(pages)).records;
}
