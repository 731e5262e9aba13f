// Imports the engine's insides, and goes when the engine is replaced.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { identityHash, identityHasher, IdentitySet } from '../../src/paging/identities.ts';
import {
  identitiesOf,
  PageRecords,
  type FetchPage,
  type Page,
  type PageIdentities,
  type PageRequest,
} from '../../src/paging/page.ts';
import { walk } from '../../src/paging/walk.ts';

interface Letter {
  identity: string;
  index: number;
}

test('a walk returns every record of a list once and in order, without a needless request', async () => {
  const lists = fc.record({
    length: fc.nat(60),
    pageLimit: fc.integer({ min: 1, max: 12 }),
    limit: fc.option(fc.integer({ min: 1, max: 70 }), { nil: undefined }),
    start: fc.nat(60),
  });
  await fc.assert(
    fc.asyncProperty(lists, async ({ length, pageLimit, limit, start }) => {
      const { fetchPage, requests, letters } = list(length, pageLimit);
      const walked: string[] = [];
      const after = start === 0 ? null : String(start);
      const signal = new AbortController().signal;
      for await (const { records } of walk(fetchPage, { after, signal, ...(limit && { limit }) })) {
        walked.push(...records.list.map(({ identity }) => identity));
      }
      const expected = letters.slice(start, start + (limit ?? length));
      expect(walked).toEqual(expected.map(({ identity }) => identity));
      expect(requests).toHaveLength(Math.max(1, Math.ceil(expected.length / pageLimit)));
    }),
  );
});

test('one page is in flight while the consumer works, and never more', async () => {
  const { fetchPage, requests } = list(50, 5);
  let consumed = 0;
  const signal = new AbortController().signal;
  for await (const _ of walk(fetchPage, { after: null, signal })) {
    consumed += 1;
    await new Promise(setImmediate);
    expect(requests.length).toBe(Math.min(consumed + 1, 10));
  }
});

test('the next page is requested, and the request written, before anything is done with a page', async () => {
  const { fetchPage } = list(15, 5);
  const events: string[] = [];
  // As undici does it: a request is written in the check phase of the event loop, not when it is made.
  const fetch: FetchPage<Letter> = async (request, signal) => {
    await Promise.resolve();
    setImmediate(() => events.push(`written: ${request.after}`));
    const page = await fetchPage(request, signal);
    const identities = () => {
      events.push(`hashed: ${request.after}`);
      return identitiesOf(page);
    };
    return new LazilyHashed(page, identities);
  };
  const signal = new AbortController().signal;
  const onPage = (after: string | null) => events.push(`looked at: ${after}`);
  for await (const _ of walk(fetch, { after: null, signal }, { onPage })) await Promise.resolve();
  expect(events.filter((event) => event !== 'written: null')).toEqual([
    'written: 5',
    'looked at: null',
    'written: 10',
    'looked at: 5',
    // Of the first page only when there is a second one.
    'hashed: null',
    'hashed: 5',
    'looked at: 10',
    'hashed: 10',
  ]);
});

/** As a page of bytes does it. */
class LazilyHashed implements Page<Letter> {
  readonly items: readonly Letter[];
  readonly count: number;
  readonly hasNextPage: boolean;
  readonly endCursor: string | null;
  readonly #hash: () => PageIdentities;
  #identities: PageIdentities | undefined;

  constructor({ items, hasNextPage, endCursor }: Page<Letter>, hash: () => PageIdentities) {
    this.items = items;
    this.count = items.length;
    this.hasNextPage = hasNextPage;
    this.endCursor = endCursor;
    this.#hash = hash;
  }

  get identities(): PageIdentities {
    return (this.#identities ??= this.#hash());
  }
}

test('records of a page are the same as columns and one by one', () => {
  const columns = fc.record({
    size: fc.nat(20),
    from: fc.nat(20),
    to: fc.nat(20),
    without: fc.uniqueArray(fc.nat(20)),
    first: fc.nat(25),
  });
  fc.assert(
    fc.property(columns, ({ size, from, to, without, first }) => {
      const items = Array.from({ length: size }, (_, index) => ({ identity: `${index}`, index }));
      const [start, end] = [Math.min(from, size), Math.min(Math.max(from, to), size)];
      const left = new Set(without.filter((index) => index >= start && index < end));
      const page = { items, hasNextPage: false, endCursor: null };
      const records = new PageRecords(page, start, end, left.size > 0 ? left : undefined);
      const expected = items.slice(start, end).filter(({ index }) => !left.has(index));
      expect(records.list).toEqual(expected);
      expect(records.length).toBe(expected.length);
      expect([...records.first(first)]).toEqual(expected.slice(0, first));
      expect(records.first(first).length).toBe(Math.min(first, expected.length));
    }),
  );
});

test('a consumer who leaves ends the request in flight, and no further one is sent', async () => {
  const { fetchPage, requests, signals } = list(50, 5);
  const signal = new AbortController().signal;
  let pages = 0;
  for await (const _ of walk(fetchPage, { after: null, signal })) {
    pages += 1;
    if (pages === 2) break;
  }
  await new Promise(setImmediate);
  expect(requests).toHaveLength(3);
  expect(signals.at(-1)?.aborted).toBe(true);
});

test('a page that fails while the consumer is busy fails the walk later, and does not crash the process', async () => {
  const { fetchPage } = list(50, 5);
  const failing: FetchPage<Letter> = (request, signal) =>
    request.after === null ? fetchPage(request, signal) : Promise.reject(new Error('gone'));
  const pages: number[] = [];
  const reading = async () => {
    const signal = new AbortController().signal;
    for await (const { size } of walk(failing, { after: null, signal })) {
      pages.push(size);
      await new Promise(setImmediate);
    }
  };
  await expect(reading()).rejects.toThrow('gone');
  expect(pages).toEqual([5]);
});

test('a walk of a list that repeats itself under ever new cursors ends too', async () => {
  let cursor = 0;
  const same: FetchPage<Letter> = async () => ({
    items: [{ identity: 'a', index: 0 }],
    hasNextPage: true,
    endCursor: String((cursor += 1)),
  });
  const reading = async () => {
    const signal = new AbortController().signal;
    const pages = walk(same, { after: null, signal });
    while (!(await pages.next()).done);
  };
  await expect(reading()).rejects.toMatchObject({ extensions: { code: 'DRAIN_STALLED' } });
  expect(cursor).toBeLessThan(2000);
});

test('a set of identities distinguishes many similar ones', () => {
  const set = new IdentitySet();
  const identities = Array.from({ length: 200_000 }, (_, index) => `Person:${index}`);
  expect(identities.every((identity) => set.add(identityHash(identity)))).toBe(true);
  expect(identities.some((identity) => set.add(identityHash(identity)))).toBe(false);
  expect(set.size).toBe(identities.length);
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ unit: 'grapheme' }), { maxLength: 50 }), (texts) => {
      const fresh = new IdentitySet();
      expect(texts.filter((text) => fresh.add(identityHash(text)))).toEqual(texts);
      expect(texts.filter((text) => fresh.add(identityHash(text)))).toEqual([]);
    }),
  );
});

test('an id in bytes has the same hash as the id in text', () => {
  const asIs = /^[^\\\u007f-\uffff]*$/;
  fc.assert(
    fc.property(fc.string(), fc.string({ unit: 'binary' }), fc.nat(20), (type, id, start) => {
      const bytes = Buffer.from(`${' '.repeat(start)}${id}`);
      const hashed = identityHasher(type)(bytes, start, bytes.length);
      expect(hashed).toBe(asIs.test(id) ? identityHash(`${type}:${id}`) : undefined);
    }),
  );
});

/** A list of this many letters, in pages of at most `pageLimit`, whose cursors are the offset of the next one. */
function list(length: number, pageLimit: number) {
  const letters = Array.from({ length }, (_, index) => ({ identity: `L${index}` }));
  const requests: PageRequest[] = [];
  const signals: AbortSignal[] = [];
  const fetchPage: FetchPage<Letter> = async (request, signal): Promise<Page<Letter>> => {
    requests.push(request);
    signals.push(signal);
    const start = Number(request.after ?? 0);
    const items = letters
      .slice(start, start + Math.min(request.first ?? pageLimit, pageLimit))
      .map((letter, index) => ({ ...letter, index }));
    const end = start + items.length;
    return { items, hasNextPage: end < length, endCursor: items.length > 0 ? String(end) : null };
  };
  return { fetchPage, requests, signals, letters };
}
