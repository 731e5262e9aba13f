import { continues } from './join.ts';
import type { ReadPage } from './page.ts';
import { hashBehind, OVERLAP, type PageIndex } from './page-index.ts';

/** Smaller pages would consist mostly of overlap, so they are read one after the other. */
export const SMALLEST_LIMIT = 10;
/** The most pages of the index that are compared with one page. */
const MAX_CANDIDATES = 4;

/** @param records the number of records needed */
export function canReadAhead(pages: PageIndex, limit: number, records: number): boolean {
  if (limit < SMALLEST_LIMIT || pages.length < 2 || records <= limit) return false;
  // Pages that begin a full page apart do not overlap: the limit is smaller now, or the service rounds it up. Those that
  // begin less than half a page apart are of a selection with small pages: all records would be read several times.
  const usable = pages.filter(({ hashes: { length } }) => length < limit && 2 * length >= limit);
  return usable.length >= pages.length / 2;
}

interface AheadOptions<R> {
  /** The cursor of the first page of the walk. */
  readonly after: string | null;
  /** The most pages in flight. */
  readonly concurrency: number;
  /** Reads a page of the index, as large as the service gives it. */
  readonly read: (after: string | null) => Promise<ReadPage<R>>;
}

/** Reads the pages of an index ahead of the reader, and finds those that continue a page. */
export function readAhead<R>(pages: PageIndex, { after, concurrency, read }: AheadOptions<R>) {
  /** By the numbers of the pages. Undefined if that failed: the service may refuse the cursor by now. */
  const reads = new Map<number, Promise<ReadPage<R> | undefined>>();
  /** The number of the last page of the index that the walk has met; -1: none. */
  let met = pages.findIndex((page) => page.after === after);

  return {
    /** Requests the first page of the walk, if the index has it, and those behind it. @param records how many are needed */
    first(records: number): Promise<ReadPage<R>> | undefined {
      if (met < 0) return undefined;
      const page = read(after);
      requestNext(concurrency - 1, records - pages[met]!.hashes.length - OVERLAP);
      return page;
    },

    /**
     * Returns the page of the index that continues a page; undefined if none is proved to.
     *
     * @param records the number of records needed behind the page
     */
    async following(page: ReadPage<R>, records: number): Promise<ReadPage<R> | undefined> {
      if (met >= 0) requestNext(concurrency, records);
      for (const number of candidates(page)) {
        const next = await pageOf(number);
        if (next && continues(next, page, hashBehind(pages, number))) {
          met = number;
          return next;
        }
      }
      return undefined;
    },
  };

  /** Requests this many pages, unless fewer are needed, and forgets those before them. */
  function requestNext(count: number, records: number): void {
    const from = met + 1;
    for (const number of reads.keys()) if (number < from) reads.delete(number);
    const end = Math.min(pages.length, from + count);
    let before = 0;
    for (let number = from; number < end && before < records; number += 1) {
      void pageOf(number);
      before += pages[number]!.hashes.length;
    }
  }

  function pageOf(number: number): Promise<ReadPage<R> | undefined> {
    const reading = reads.get(number) ?? read(pages[number]!.after).catch(() => undefined);
    reads.set(number, reading);
    return reading;
  }

  /** The next page of the index, and the first ones behind it whose cursors were made from records of this page. */
  function* candidates({ identities: { hashes } }: ReadPage<R>): Generator<number> {
    const next = met + 1;
    let left = MAX_CANDIDATES;
    for (let number = next; number < pages.length && left > 0; number += 1) {
      const behind = hashBehind(pages, number);
      const isNext = met >= 0 && number === next;
      if (!isNext && (behind === undefined || !hashes.includes(behind))) continue;
      yield number;
      left -= 1;
    }
  }
}
