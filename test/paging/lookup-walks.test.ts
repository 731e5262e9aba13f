import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { BeginWalk } from '../../src/paging/drain/shared-walk.ts';
import { createLookupWalks, WALK_AGAIN_AFTER_MS } from '../../src/paging/drain/lookup-walks.ts';
import { PageRecords, type Identified } from '../../src/paging/page.ts';
import { freePages } from '../support/gateway/free-pages.ts';
import { ManualClock } from '../support/random/manual-clock.ts';

test('a walk that rests ends as soon as no lookup can join it any more', async () => {
  const { lookupWalks, walks, find } = startWorld();
  await find('0');
  expect(walks[0]!.aborted).toBe(false);
  lookupWalks.separate();
  expect(walks[0]!.aborted).toBe(true);
});

test('a walk that lookups wait for ends when they have their records, or leave', async () => {
  for (const wanted of ['2', 'nobody']) {
    const { lookupWalks, walks, find } = startWorld();
    const leaving = new AbortController();
    const found = find(wanted, { signal: leaving.signal });
    lookupWalks.separate();
    expect(walks[0]!.aborted).toBe(false);
    if (wanted === 'nobody') leaving.abort();
    await found.catch(() => {});
    expect(walks[0]!.aborted).toBe(true);
  }
});

test('a list is walked again some time after a walk began, however often lookups continued it', async () => {
  const { clock, walks, find } = startWorld();
  await find('0');
  clock.jump(WALK_AGAIN_AFTER_MS - 1_000);
  await find('1');
  expect(walks).toHaveLength(1);
  clock.jump(1_000);
  await find('2');
  expect(walks).toHaveLength(2);
});

test('the walk of a list in which nobody looks up anything any more ends with the next walk of another', async () => {
  const { clock, walks, find } = startWorld();
  await find('0', { key: 'one' });
  await find('0', { key: 'two' });
  clock.jump(WALK_AGAIN_AFTER_MS);
  expect(walks.map(({ aborted }) => aborted)).toEqual([false, false]);
  await find('0', { key: 'three' });
  expect(walks.map(({ aborted }) => aborted)).toEqual([true, true, false]);
});

/** Lists of endless pages of one record each. */
function startWorld() {
  const clock = new ManualClock();
  const lookupWalks = createLookupWalks({ clock, maxItems: 1_000, maxRecords: 1_000 });
  const walks: AbortSignal[] = [];
  const begin: BeginWalk<Identified> = async function* (_position, { signal, held }) {
    walks.push(signal);
    const request = held(async () => {
      await setImmediate();
      return { items: [], hasNextPage: true, endCursor: null };
    });
    for (let at = 0; ; at += 1) {
      await request({ after: null, first: undefined }, signal);
      const after = String(at);
      const items = [{ identity: after, index: 0 }];
      const records = new PageRecords({ items, hasNextPage: true, endCursor: after }, 0, 1);
      yield { records, after, endCursor: after, size: 1, hasNextPage: true };
    }
  };
  const find = (
    identity: string,
    {
      key = 'list',
      signal = new AbortController().signal,
    }: { key?: string; signal?: AbortSignal } = {},
  ) => {
    const list = { key, name: key, index: () => undefined, begin };
    return lookupWalks.find(list, [identity], new Map(), { signal, pages: freePages() });
  };
  return { clock, lookupWalks, walks, find };
}
