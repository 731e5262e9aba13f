import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { CallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { PageFailedError, ReadPage } from '../../src/paging/page.ts';
import { SharedWalks, type BeginWalk, type ReaderOptions } from '../../src/paging/shared-walk.ts';
import type { WalkedPage, WalkedPages } from '../../src/paging/walk.ts';
import { ManualClock } from '../support/random/manual-clock.ts';

const MEGABYTE = 1024 * 1024;

test('equal drains under way share one walk, and each gets every record', async () => {
  const list = new CountedList(100);
  const readers = Array.from({ length: 50 }, () => list.join());
  const read = await Promise.all(readers.map(all));
  for (const records of read) expect(records).toEqual(list.records);
  expect(list).toMatchObject({ begun: 1, pulled: 100 });
  await all(list.join());
  expect(list.begun).toBe(2);
});

test.each([
  ['many', 100, 0, false],
  ['many, while another reader keeps all', 100, 0, true],
  ['large', 10, 5 * MEGABYTE, false],
])(
  'a slow reader delays no other, gets every record, and makes the walk keep few pages if they are %s',
  async (_, pages, bytes, keepsAll) => {
    const list = new CountedList(pages, bytes);
    const [slow, fast] = [list.join(), list.join({ keepsAll })];
    await slow.next();
    expect(await all(fast)).toEqual(list.records);
    expect(list.pulled).toBe(pages);
    expect(await all(slow)).toEqual(list.records.slice(1));
    expect(list.begun).toBe(2);
  },
);

test('all others get everything if a reader leaves, and the walk ends with the last one', async () => {
  const list = new CountedList(100);
  const leaving = new AbortController();
  const [first, second] = [list.join({ signal: leaving.signal }), list.join()];
  await first.next();
  await second.next();
  const waiting = first.next();
  await first.next();
  leaving.abort();
  await expect(waiting.then(() => first.next())).rejects.toThrow(/abort/i);
  expect(list.signals[0]!.aborted).toBe(false);
  await second.return();
  expect(list.signals[0]!.aborted).toBe(true);
  expect(list.pulled).toBeLessThan(5);
});

test('a reader that leaves while its page is on the way does not wait for it', async () => {
  const held = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const walks = new SharedWalks();
  const reader = walks.join('list', holdingPage(held.promise), readerOptions(leaving.signal));
  const page = reader.next();
  await setImmediate();
  leaving.abort();
  await expect(page).rejects.toThrow(/abort/i);
  held.resolve();
});

test('a walk that fails fails for all readers, behind the pages before', async () => {
  const list = new CountedList(100);
  list.failsAt = 3;
  const readers = [list.join(), list.join()];
  const failures = await Promise.all(
    readers.map(async (reader) => {
      for (let page = 0; page < 3; page += 1) expect((await reader.next()).done).toBe(false);
      return reader.next().catch((error: unknown) => error);
    }),
  );
  for (const failure of failures) expect(failure).toBeInstanceOf(PageFailedError);
});

test('readers spend for a page together: each caller once, and only who cannot afford it is refused', async () => {
  const clock = new ManualClock();
  const callers = new CallerBudgets(40, clock);
  const budget = (caller: string) => new PageBudget(callers, caller, true);
  const list = new CountedList(30);
  for (let page = 0; page < 25; page += 1) callers.spend('poor');
  const rich = [budget('rich'), budget('rich'), budget('rich')].map((each) =>
    list.join({ budget: each }),
  );
  const poor = list.join({ budget: budget('poor') });
  const [refused, ...read] = await Promise.all([
    all(poor).catch((error: unknown) => error),
    ...rich.map(all),
  ]);
  expect(refused).toMatchObject({ extensions: { code: 'RATE_LIMITED' } });
  for (const records of read) expect(records).toEqual(list.records);
  expect(list).toMatchObject({ begun: 1, pulled: 30 });
  for (let page = 0; page < 10; page += 1) callers.spend('rich');
  expect(() => callers.spend('rich')).toThrow(/40 pages a minute/);
});

/** A list of pages with one record each, and the walks of it. */
class CountedList {
  readonly walks = new SharedWalks();
  readonly records: readonly number[];
  readonly signals: AbortSignal[] = [];
  failsAt = Infinity;
  begun = 0;
  pulled = 0;
  readonly #bytes: number;

  constructor(pages: number, bytes = 0) {
    this.records = Array.from({ length: pages }, (_, number) => number);
    this.#bytes = bytes;
  }

  join(options: Partial<ReaderOptions> = {}): WalkedPages<number> {
    const begin: BeginWalk<number> = (readers, last) => this.#walk(readers, last);
    return this.walks.join('list', begin, { ...readerOptions(), ...options });
  }

  async *#walk(
    readers: Parameters<BeginWalk<number>>[0],
    last: WalkedPage<number> | undefined,
  ): WalkedPages<number> {
    this.begun += 1;
    this.signals.push(readers.signal);
    for (const number of this.records.slice(last ? last.page.records[0]! + 1 : 0)) {
      readers.spend();
      await setImmediate();
      if (number === this.failsAt) throw new PageFailedError('gone');
      this.pulled += 1;
      yield pageOf(number, this.#bytes);
    }
  }
}

function holdingPage(until: Promise<void>): BeginWalk<number> {
  return async function* walk() {
    await until;
    yield pageOf(0, 0);
  };
}

function pageOf(number: number, bytes: number): WalkedPage<number> {
  const records = [number];
  const ids = [String(number)];
  const page = { records, ids, hasNextPage: true, endCursor: String(number), size: 1, bytes };
  return { page: new ReadPage(String(number - 1), page), offsets: [0] };
}

function readerOptions(signal = new AbortController().signal): ReaderOptions {
  const free = new CallerBudgets(0, new ManualClock());
  return { budget: new PageBudget(free, 'anybody', true), signal };
}

async function all(pages: WalkedPages<number>): Promise<number[]> {
  const read: number[] = [];
  for await (const { page, offsets } of pages)
    read.push(...offsets.map((offset) => page.records[offset]!));
  return read;
}
