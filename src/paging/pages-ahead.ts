import { continues } from './join.ts';
import type { ReadPage } from './page.ts';
import { OVERLAP, type PageIndex } from './page-index.ts';

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

/** Reads the pages of an index ahead of the reader, and finds those that continue a page. */
export class PagesAhead<R> {
  readonly #pages: PageIndex;
  readonly #concurrency: number;
  readonly #read: (after: string | null) => Promise<ReadPage<R>>;
  /** By the numbers of the pages. Undefined if that failed: the service may refuse the cursor by now. */
  readonly #reads = new Map<number, Promise<ReadPage<R> | undefined>>();
  /** The number of the last page of the index that the walk has met; -1: none. */
  #met: number;

  /**
   * @param after the cursor of the first page of the walk
   * @param concurrency the most pages in flight
   * @param read reads a page of the index, as large as the service gives it
   */
  constructor(
    pages: PageIndex,
    after: string | null,
    concurrency: number,
    read: (after: string | null) => Promise<ReadPage<R>>,
  ) {
    this.#pages = pages;
    this.#concurrency = concurrency;
    this.#read = read;
    this.#met = pages.findIndex((page) => page.after === after);
  }

  /** Whether the walk has met a page of the index. If it is the first one, it is read in full. */
  get isIndexed(): boolean {
    return this.#met >= 0;
  }

  /** Requests the pages behind the first one. @param records the number of records needed from the first one on */
  begin(records: number): void {
    if (!this.isIndexed) return;
    const { hashes } = this.#pages[this.#met]!;
    this.#requestNext(this.#concurrency - 1, records - hashes.length - OVERLAP);
  }

  /**
   * Returns the page of the index that continues a page; undefined if none is proved to.
   *
   * @param records the number of records needed behind the page
   */
  async following(page: ReadPage<R>, records: number): Promise<ReadPage<R> | undefined> {
    if (this.isIndexed) this.#requestNext(this.#concurrency, records);
    for (const number of this.#candidates(page)) {
      const next = await this.#pageOf(number);
      if (next && continues(next, page, this.#pages[number]!.behind)) {
        this.#met = number;
        return next;
      }
    }
    return undefined;
  }

  /** Requests this many pages, unless fewer are needed, and forgets those before them. */
  #requestNext(count: number, records: number): void {
    const pages = this.#pages;
    const from = this.#met + 1;
    for (const number of this.#reads.keys()) if (number < from) this.#reads.delete(number);
    const end = Math.min(pages.length, from + count);
    let before = 0;
    for (let number = from; number < end && before < records; number += 1) {
      void this.#pageOf(number);
      before += pages[number]!.hashes.length;
    }
  }

  #pageOf(number: number): Promise<ReadPage<R> | undefined> {
    let read = this.#reads.get(number);
    if (!read) {
      read = this.#read(this.#pages[number]!.after).catch(() => undefined);
      this.#reads.set(number, read);
    }
    return read;
  }

  /** The next page of the index, and the first ones behind it whose cursors were made from records of this page. */
  *#candidates({ identities: { hashes } }: ReadPage<R>): Generator<number, void, undefined> {
    const pages = this.#pages;
    const next = this.#met + 1;
    let candidates = 0;
    for (let number = next; number < pages.length && candidates < MAX_CANDIDATES; number += 1) {
      const { behind } = pages[number]!;
      const isNext = this.isIndexed && number === next;
      if (!isNext && (behind === null || !hashes.includes(behind))) continue;
      yield number;
      candidates += 1;
    }
  }
}
