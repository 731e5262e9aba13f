import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createSearches, SEARCH_AGAIN_AFTER_MS } from '../../src/paging/lookup/searches.ts';
import type { SearchWalk } from '../../src/paging/lookup/search.ts';
import { freePages } from '../support/free-pages.ts';
import { ManualClock } from '../support/manual-clock.ts';

test('a walk that stands still ends as soon as nobody can join it any more', async () => {
  const { searches, walks, find } = startWorld();
  await find('0');
  expect(walks[0]!.aborted).toBe(false);
  searches.separate();
  expect(walks[0]!.aborted).toBe(true);
});

test('one that somebody waits for ends when they have what they wait for, or leave', async () => {
  for (const wanted of ['2', 'nobody']) {
    const { searches, walks, find } = startWorld();
    const leaving = new AbortController();
    const found = find(wanted, leaving.signal);
    searches.separate();
    expect(walks[0]!.aborted).toBe(false);
    if (wanted === 'nobody') leaving.abort();
    await found.catch(() => {});
    expect(walks[0]!.aborted).toBe(true);
  }
});

test('what a walk passed long ago is walked again, however often it was made to go on', async () => {
  const { clock, walks, find } = startWorld();
  await find('0');
  clock.jump(SEARCH_AGAIN_AFTER_MS - 1_000);
  await find('1');
  expect(walks).toHaveLength(1);
  clock.jump(1_000);
  await find('2');
  expect(walks).toHaveLength(2);
});

/** A list of endless pages of one record each. */
function startWorld() {
  const clock = new ManualClock();
  const searches = createSearches({ clock, maxItems: 1_000, maxRecords: 1_000 });
  const walks: AbortSignal[] = [];
  const walk: SearchWalk = async function* (hold, signal) {
    walks.push(signal);
    const ask = hold.held(async () => {
      await setImmediate();
      return { items: [], hasNextPage: true, endCursor: null };
    });
    for (let at = 0; ; at += 1) {
      await ask({ after: null, first: undefined }, signal);
      const after = String(at);
      const records = [{ record: { identity: after }, place: 0 }];
      yield { records, after, endCursor: after, size: 1, hasNextPage: true };
    }
  };
  const list = { key: 'list', name: 'list', index: () => undefined, walk };
  const find = (identity: string, signal = new AbortController().signal) =>
    searches.find(list, [identity], new Map(), { signal, pages: freePages() });
  return { clock, searches, walks, find };
}
