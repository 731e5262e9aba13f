import { Slots } from '../queue.ts';
import { joinPages, type Join } from './join.ts';
import { CursorRefusedError, ReadPage, unlessRefused, type FetchPage } from './page.ts';
import type { PageIndex } from './page-index.ts';

/** Pages requested ahead of the reader, for each page that may be in flight: enough to go on while a gap is read. */
const AHEAD = 3;
/** The most bytes of pages ahead of the reader. Until the size of a page is known, only those in flight are ahead. */
const MAX_BYTES_AHEAD = 16 * 1024 * 1024;
/** The most pages of the index that are compared with one page. */
const MAX_CANDIDATES = 4;
/** How many more pages may be apart than joined. Beyond that, pages do not overlap, and reading ahead is no use. */
const MAX_APART = 4;

export interface PagesAheadOptions {
  readonly index: PageIndex;
  /** Returns the largest page that the service gives. */
  readonly limit: () => number;
  /** The most pages in flight. */
  readonly concurrency: number;
}

/** Reads the pages of an index ahead of the reader, and finds those that continue a page. */
export class PagesAhead<R> {
  readonly #fetchPage: FetchPage<R>;
  readonly #index: PageIndex;
  readonly #limit: () => number;
  readonly #concurrency: number;
  readonly #leaving: AbortSignal;
  readonly #slots: Slots;
  readonly #reads = new Map<number, Promise<ReadPage<R> | undefined>>();
  /** The pages of the index by the hashes of the records before and at their start. */
  readonly #starts = new Map<number, number[]>();
  #passed = 0;
  #joined = 0;
  #apart = 0;
  /** Bytes of the largest page; undefined until one was read. */
  #largest: number | undefined;

  constructor(
    fetchPage: FetchPage<R>,
    { index, limit, concurrency }: PagesAheadOptions,
    leaving: AbortSignal,
  ) {
    this.#fetchPage = fetchPage;
    this.#index = index;
    this.#limit = limit;
    this.#concurrency = concurrency;
    this.#leaving = leaving;
    this.#slots = new Slots(concurrency);
    for (const [number, { behind, hashes }] of index.pages.entries()) {
      for (const hash of [behind, hashes[0]]) {
        if (typeof hash !== 'number') continue;
        const pages = this.#starts.get(hash);
        if (pages) pages.push(number);
        else this.#starts.set(hash, [number]);
      }
    }
  }

  /**
   * Requests a page of the index and those behind it, as far as the walk may be ahead. Forgets those before it.
   *
   * @param records the number of records needed
   */
  lookAhead(from: number, records: number): void {
    for (; this.#passed < from; this.#passed += 1) this.#reads.delete(this.#passed);
    const { pages } = this.#index;
    const end = Math.min(pages.length, from + this.#mostAhead);
    let before = 0;
    for (let number = from; number < end && before < records; number += 1) {
      void this.read(number);
      // It is read in full, so that it overlaps with the next one.
      if (before + this.#limit() >= records) break;
      before += pages[number]!.count;
    }
  }

  get #mostAhead(): number {
    if (this.#largest === undefined) return this.#concurrency;
    return Math.min(AHEAD * this.#concurrency, Math.ceil(MAX_BYTES_AHEAD / this.#largest));
  }

  /** Reads a page of the index once. @returns undefined if that fails: the service may refuse its cursor by now */
  read(number: number): Promise<ReadPage<R> | undefined> {
    let read = this.#reads.get(number);
    if (!read) {
      const { after } = this.#index.pages[number]!;
      read = this.#request(after, this.#limit(), { isUrgent: false }).catch(() => undefined);
      this.#reads.set(number, read);
    }
    return read;
  }

  /** @throws the failure of the page */
  async mustRead(number: number): Promise<void> {
    const { after } = this.#index.pages[number]!;
    const page = this.#request(after, this.#limit());
    this.#reads.set(
      number,
      page.catch(() => undefined),
    );
    await page;
  }

  /** Reads a page again. @returns undefined if the service refuses its cursor by now @throws the failure of the page */
  async readAgain(after: string | null): Promise<ReadPage<R> | undefined> {
    const page = await unlessRefused(this.#request(after, this.#limit()));
    return page instanceof CursorRefusedError ? undefined : page;
  }

  /** For the parts that are read in sequence. */
  fetchPage(after: string | null, first: number, leaving = this.#leaving): Promise<ReadPage<R>> {
    return this.#request(after, first, { leaving });
  }

  /** Returns the number of the page that continues a page of the index, if that is proved. */
  async following(page: ReadPage<R>, number: number): Promise<number | undefined> {
    const next = await this.joining(page, number + 1);
    if (next === undefined) this.#apart += 1;
    else this.#joined += 1;
    return next;
  }

  /**
   * Returns the number of a page of the index that continues a page.
   *
   * @param next the one that may first; -1: unknown
   * @returns undefined if none of the likely ones does
   */
  async joining(page: ReadPage<R>, next: number): Promise<number | undefined> {
    const candidates = new Set([next]);
    for (const number of candidates) {
      if (this.#isHopeless) return undefined;
      const join = await this.#compare(page, number);
      if (join === 'joined') return number;
      if (number === next)
        for (const later of this.#likelyBehind(page, next)) candidates.add(later);
      if (join === 'inside' && candidates.size < MAX_CANDIDATES) candidates.add(number + 1);
    }
    return undefined;
  }

  /** @returns undefined if there is no such page, or it cannot be read */
  async #compare(page: ReadPage<R>, number: number): Promise<Join | undefined> {
    const indexed = this.#index.pages[number];
    if (!indexed) return undefined;
    const isNew = !this.#reads.has(number);
    const read = await this.read(number);
    const join = read && joinPages(page, read, indexed.behind);
    if (isNew && join !== 'joined') this.#apart += 1;
    return join;
  }

  /** Returns the first pages of the index that begin in this page, according to the records at their start. */
  #likelyBehind(page: ReadPage<R>, next: number): readonly number[] {
    const likely = page.identities.hashes.flatMap((hash) => this.#starts.get(hash) ?? []);
    const later = likely.filter((number) => number > next).toSorted((a, b) => a - b);
    return later.slice(0, MAX_CANDIDATES - 1);
  }

  get #isHopeless(): boolean {
    return this.#apart > this.#joined + MAX_APART;
  }

  /** @param isUrgent sent before pages ahead: the reader waits for it */
  #request(
    after: string | null,
    first: number,
    { isUrgent = true, leaving = this.#leaving } = {},
  ): Promise<ReadPage<R>> {
    const read = async () => {
      leaving.throwIfAborted();
      const page = new ReadPage(after, await this.#fetchPage(after, first, leaving));
      this.#largest = Math.max(this.#largest ?? 1, page.bytes);
      return page;
    };
    return this.#slots.run(read, { isUrgent });
  }
}
