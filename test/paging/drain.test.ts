import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { codedError } from '../../src/errors.ts';
import type { Position } from '../../src/paging/cursor.ts';
import { drain, walkTogether } from '../../src/paging/drain.ts';
import { walkBehind } from '../../src/paging/resume.ts';
import { CallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { PageFailedError, ReadPage } from '../../src/paging/page.ts';
import { SharedWalks } from '../../src/paging/shared-walk.ts';
import { WalkSlots } from '../../src/paging/walk-slots.ts';
import { stalled, type WalkedPages } from '../../src/paging/walk.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { ModelService, KINDS } from './model-service.ts';
import { WalkWorld } from './walk-world.ts';

type Options = Parameters<typeof drain>[1];

test('a list of exactly the allowed length is drained, and all drains of an operation share one budget', async () => {
  const budget = { max: 20, left: 20 };
  expect(await drained(letters(12), { budget })).toMatchObject({ error: undefined });
  expect(await drained(letters(8), { budget })).toMatchObject({ error: undefined });
  const { error } = await drained(letters(1), { budget });
  expect(error).toMatchObject({ extensions: { code: 'DRAIN_LIMIT_EXCEEDED', drained: 0 } });
});

const unreachable = codedError('UPSTREAM_UNREACHABLE', 'The service is unavailable.');
const failed = new PageFailedError('failed', { cause: unreachable });

test.each<[string, unknown, object]>([
  [
    'that a failing page interrupts',
    failed,
    { code: 'DRAIN_INTERRUPTED', reason: 'UPSTREAM_UNREACHABLE' },
  ],
  [
    'that fails for an unknown reason',
    new Error('secret'),
    { code: 'DRAIN_INTERRUPTED', reason: null },
  ],
  ['whose cursor does not move', stalled(), { code: 'DRAIN_STALLED' }],
  ['whose caller has used its pages', refused(), { code: 'RATE_LIMITED', retryAfter: 60 }],
])('a drain %s says how many records it has, and how to go on', async (_, error, extensions) => {
  const parts = await drained(letters(6, error));
  expect(parts.records).toEqual(LETTERS.slice(0, 6));
  expect(parts.error).toMatchObject({
    message: expect.stringMatching(/after 6 records/),
    extensions: { ...extensions, drained: 6, resumeAfter: 'behind f' },
  });
  expect((parts.error as Error).message).not.toContain('secret');

  const whole = await drained(letters(6, error), { delivered: 'whole' });
  expect((whole.error as Error).message).toContain('None of them is in this answer.');
});

test('a count that fails has no resumeAfter, and gives its records back to the budget', async () => {
  const budget = { max: 20, left: 20 };
  const { error } = await drained(letters(6, failed), { budget, delivered: 'result' });
  expect(error).toMatchObject({
    message: expect.stringContaining('Send the operation again.'),
    extensions: { code: 'DRAIN_INTERRUPTED', drained: 6, resumeAfter: null },
  });
  expect(budget.left).toBe(20);
});

test('a drain whose caller leaves ends with the reason of the caller', async () => {
  const leaving = new AbortController();
  leaving.abort(new Error('left'));
  const { error } = await drained(letters(6, leaving.signal.reason), { signal: leaving.signal });
  expect(error).toBe(leaving.signal.reason);
});

test.each(KINDS)('a drain resumes behind any record, with %s cursors', async (kind) => {
  for (const isKnown of [false, true]) {
    const { service, list, held } = new WalkWorld(
      new ModelService({ kind, length: 60, limit: 10 }),
      4,
    );
    const now = {
      ...list,
      fetchPage: async (...[after, first]: [string | null, number]) => service.page(after, first),
    };
    expect(held.requests).toBe(0);
    const ends: [Position, number][] = [];
    for await (const { page, offsets } of walkBehind(now, null)) {
      for (const offset of offsets) {
        const { after, endCursor: end } = page;
        const at = { after, end, size: page.records.length, offset, id: page.ids[offset]! };
        ends.push([at, page.records[offset]!]);
      }
    }
    if (!isKnown) list.indexes.drop(list.name);
    for (const [position, serial] of ends) {
      const rest: number[] = [];
      for await (const { page, offsets } of walkBehind(now, position))
        rest.push(...offsets.map((offset) => page.records[offset]!));
      expect(rest).toEqual(service.shown.filter((each) => each > serial));
    }
  }
});

test('equal drains take one turn together, and a drain of one page needs none', async () => {
  const { list } = new WalkWorld(new ModelService({ kind: 'key', length: 60, limit: 10 }), 4);
  const clock = new ManualClock();
  const drains = { walks: new SharedWalks(), slots: new WalkSlots(1, clock) };
  const callers = new CallerBudgets(60, clock);
  const service = new ModelService({ kind: 'key', length: 60, limit: 10 });
  let requests = 0;
  const begin = (name: string, caller: string, limit?: number) =>
    walkTogether(drains, {
      name,
      listFor: (readers) => ({
        ...list,
        fetchPage: async (after, first) => {
          readers.spend();
          requests += 1;
          await setImmediate();
          return service.page(after, first);
        },
      }),
      position: null,
      limit,
      caller,
      operation: {},
      budget: new PageBudget(callers, caller, true),
      signal: new AbortController().signal,
    });
  const read = await Promise.all(
    [begin('all', 'a'), begin('all', 'b'), begin('ten', 'c', 10), begin('ids', 'd')].map(
      countRecords,
    ),
  );
  expect(read).toEqual([60, 60, 10, 60]);
  expect(drains.slots).toMatchObject({ taken: 0, waiting: 0 });
  // Two walks of all pages, eight records each, and one page.
  expect(requests).toBe(2 * 8 + 1);
});

test('a drain that is only collected keeps its turn to its end, so that not all of them are in memory at once', async () => {
  const clock = new ManualClock();
  const drains = { walks: new SharedWalks(), slots: new WalkSlots(1, clock) };
  const order: string[] = [];
  const drainAs = (caller: string) => {
    const service = new ModelService({ kind: 'key', length: 400, limit: 10 });
    const { list } = new WalkWorld(service, 4);
    return walkTogether(drains, {
      name: caller,
      listFor: () => ({
        ...list,
        fetchPage: async (after, first) => {
          order.push(caller);
          await setImmediate();
          return service.page(after, first);
        },
      }),
      position: null,
      limit: undefined,
      caller,
      operation: {},
      budget: new PageBudget(new CallerBudgets(0, clock), caller, true),
      signal: new AbortController().signal,
      keepsAll: true,
    });
  };
  expect(await Promise.all(['a', 'b', 'c'].map(drainAs).map(countRecords))).toEqual([
    400, 400, 400,
  ]);
  expect(order.filter((caller, at) => caller !== order[at - 1])).toEqual(['a', 'b', 'c']);
});

async function countRecords(pages: WalkedPages): Promise<number> {
  let records = 0;
  for await (const { offsets } of pages) records += offsets.length;
  return records;
}

const LETTERS = Array.from('abcdefghijkl');

/** A walk of the first letters in pages of four, which ends with an error. */
async function* letters(count: number, error?: unknown): WalkedPages<string> {
  for (let from = 0; from < count; from += 4) {
    const records = LETTERS.slice(from, Math.min(count, from + 4));
    const page = { records, ids: records, hasNextPage: true, endCursor: null, size: 4 };
    yield { page: new ReadPage(null, page), offsets: records.map((_, offset) => offset) };
  }
  if (error) throw error;
}

async function drained(pages: WalkedPages<string>, options: Partial<Options> = {}) {
  const records: string[] = [];
  try {
    const all = drain(pages, {
      limit: undefined,
      position: null,
      budget: { max: 1_000, left: 1_000 },
      signal: new AbortController().signal,
      toCursor: ({ id }) => `behind ${id}`,
      delivered: 'parts',
      ...options,
    });
    for await (const { page, offsets } of all)
      records.push(...offsets.map((offset) => page.records[offset]!));
  } catch (error) {
    return { records, error };
  }
  return { records, error: undefined };
}

function refused(): unknown {
  const callers = new CallerBudgets(1, new ManualClock());
  callers.spend('key:portal');
  try {
    callers.spend('key:portal');
  } catch (error) {
    return error;
  }
  throw new Error('It was not refused.');
}
