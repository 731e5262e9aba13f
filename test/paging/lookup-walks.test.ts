// Imports the engine's insides, and goes when the engine is replaced.
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  createLookupWalks,
  WALK_AGAIN_AFTER_MS,
  type SharedList,
} from '../../src/paging/look-up.ts';
import { PageRecords } from '../../src/paging/page.ts';
import { freePages } from '../support/gateway/free-pages.ts';
import { ManualClock } from '../support/random/manual-clock.ts';

test('a walk ends when no lookup waits for it, and the next lookup goes on behind its last page', async () => {
  const { walks, find, read } = startWorld();
  await find('1');
  expect(walks).toMatchObject([{ position: null, signal: { aborted: true } }]);
  expect(read).toEqual([0, 1]);
  await find('0');
  expect(walks).toHaveLength(1);
  await find('3');
  expect(walks[1]).toMatchObject({ position: { end: '1', identity: '1' } });
  expect(read).toEqual([0, 1, 2, 3]);
  expect(walks[1]!.unfinished).toBe(walks[0]!.unfinished);
});

test('a walk that lookups wait for ends when they have their records, or leave', async () => {
  for (const id of ['2', 'nobody']) {
    const { lookupWalks, walks, find } = startWorld();
    const leaving = new AbortController();
    const lookup = find(id, { signal: leaving.signal });
    lookupWalks.separate();
    expect(walks[0]!.signal.aborted).toBe(false);
    if (id === 'nobody') leaving.abort();
    await lookup.catch(() => {});
    expect(walks[0]!.signal.aborted).toBe(true);
  }
});

test('a list is walked again some time after a walk began, however often lookups continued it', async () => {
  const { clock, walks, find } = startWorld();
  const starts = () => walks.filter(({ position }) => position === null).length;
  await find('0');
  clock.jump(WALK_AGAIN_AFTER_MS - 1_000);
  await find('1');
  expect(starts()).toBe(1);
  clock.jump(1_000);
  await find('2');
  expect(starts()).toBe(2);
});

test('lookups use no walk from before a mutation', async () => {
  const { lookupWalks, walks, find } = startWorld();
  await find('1');
  lookupWalks.separate();
  await find('0');
  expect(walks.map(({ position }) => position)).toEqual([null, null]);
});

/** Lists of endless pages of one record each. */
function startWorld() {
  const clock = new ManualClock();
  const lookupWalks = createLookupWalks({ clock, maxItems: 1_000, maxRecords: 1_000 });
  const walks: {
    position: Parameters<SharedList['begin']>[0];
    signal: AbortSignal;
    unfinished: Parameters<SharedList['begin']>[2];
  }[] = [];
  const read: number[] = [];
  const begin: SharedList['begin'] = async function* (position, { signal }, unfinished) {
    walks.push({ position, signal, unfinished });
    for (let at = position ? Number(position.identity) + 1 : 0; ; at += 1) {
      await setImmediate();
      read.push(at);
      const after = String(at);
      const items = [{ identity: after, index: 0 }];
      const records = new PageRecords({ items, hasNextPage: true, endCursor: after }, 0, 1);
      yield { records, after, endCursor: after, size: 1, hasNextPage: true };
    }
  };
  const find = (
    identity: string,
    { signal = new AbortController().signal }: { signal?: AbortSignal } = {},
  ) => {
    const list: SharedList = { key: 'list', name: 'list', index: () => undefined, begin };
    return lookupWalks.find(list, [identity], new Map(), { signal, pages: freePages() });
  };
  return { clock, lookupWalks, walks, find, read };
}
