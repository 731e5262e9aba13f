// Imports the engine's insides, and goes when the engine is replaced.
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { SharedWalk } from '../../src/paging/shared-walk.ts';
import { identitiesFrom, PageRecords, type Page } from '../../src/paging/page.ts';
import { createPace, prefetchPages } from '../../src/paging/parallel-walk.ts';
import type { Identified } from '../../src/paging/page.ts';
import type { WalkedPage } from '../../src/paging/walk.ts';
import { freePages } from '../support/gateway/free-pages.ts';

const MEGABYTE = 1024 * 1024;
const { signal } = new AbortController();

test.each([
  ['1 KB', 1_024, 16],
  ['5 MB', 5 * MEGABYTE, 4],
  ['100 MB', 100 * MEGABYTE, 1],
])('a walk reads fewer pages ahead if they are large: %s', async (_, memory, ahead) => {
  const read: number[] = [];
  const walk = prefetched(memory, (page) => void read.push(page));
  walk.lookAhead(0, Infinity);
  await turns();
  // By now, their size is known.
  expect(read).toHaveLength(16);
  for (const page of [8, 15, 16, 20]) {
    walk.lookAhead(page, Infinity);
    await turns();
    expect(Math.max(...read)).toBe(Math.max(15, page + ahead - 1));
  }
});

test('a walk ends, whatever the size of its pages', async () => {
  const walk = prefetched(100 * MEGABYTE, () => {});
  for (let page = 0; page < PAGES; page += 1) {
    walk.lookAhead(page, Infinity);
    // A walk compares each page with the one behind it.
    for (const number of [page, Math.min(page + 1, PAGES - 1)]) {
      expect((await walk.page(number))?.page.memory).toBe(100 * MEGABYTE);
    }
  }
});

const PAGES = 40;

function prefetched(memory: number, onRead: (page: number) => void) {
  const pages = Array.from({ length: PAGES }, (_, page) => ({
    after: page === 0 ? null : String(page),
    behind: null,
    count: 1,
    records: [page],
  }));
  return prefetchPages<Identified>(
    async ({ after }) => {
      onRead(Number(after));
      return pageOf(Number(after), memory);
    },
    {
      index: { pages, complete: true },
      limit: 50,
      pace: createPace(8),
      signal,
      onSettled: () => {},
    },
  );
}

test('a shared walk keeps fewer pages for slower readers if they are large', async () => {
  const begun: (string | null)[] = [];
  const walk = new SharedWalk<Identified>({
    begin: async function* begin(position) {
      begun.push(position && position.identity);
      for (let page = position ? Number(position.identity) + 1 : 0; page < 10; page += 1) {
        yield walked(page, 5 * MEGABYTE);
      }
    },
  });
  const [fast, slow] = [0, 1].map(() => walk.read({ budget: freePages(), signal }));
  await slow!.next();
  const [all, rest] = [await idsOf(fast!), await idsOf(slow!)];
  expect(all).toEqual(Array.from({ length: 10 }, (_, page) => String(page)));
  expect(rest).toEqual(all.slice(1));
  // The fast one read ten pages, and the last three were kept.
  expect(begun).toEqual([null, '0']);
});

async function idsOf(pages: AsyncIterable<WalkedPage<Identified>>): Promise<(string | null)[]> {
  const ids: (string | null)[] = [];
  for await (const { records } of pages) ids.push(...records.list.map(({ identity }) => identity));
  return ids;
}

function walked(page: number, memory: number): WalkedPage<Identified> {
  const records = new PageRecords(pageOf(page, memory), 0, 1);
  return { records, after: String(page), endCursor: null, size: 1, hasNextPage: true };
}

function pageOf(page: number, memory: number): Page<Identified> {
  return {
    items: [{ identity: String(page), index: 0 }],
    identities: identitiesFrom([page + 1]),
    hasNextPage: true,
    endCursor: String(page + 1),
    memory,
  };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await setImmediate();
}
