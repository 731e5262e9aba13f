import { Slots } from '../queue.ts';
import { joinPages, type Join } from './join.ts';
import type { Pace } from './pace.ts';
import { CursorRefusedError, ReadPage, type FetchPage } from './page.ts';
import { OVERLAP, type PageIndex } from './page-index.ts';

/** What leads from one page of the index to a later one. */
export interface Link<R> {
  /** Pages that are not in the index; each is proved to continue the one before. */
  readonly between: readonly ReadPage<R>[];
  /** The page of the index that continues the last of them; undefined if none is known. */
  readonly to?: number;
}

/** Pages requested ahead of the reader, for each page that may be in flight: enough to go on while a gap is bridged. */
const AHEAD = 3;
/** The most bytes of pages ahead of the reader. Until the size of a page is known, only those in flight are ahead. */
const MAX_BYTES_AHEAD = 16 * 1024 * 1024;
/** The most pages of a gap that are read ahead of the reader. A longer gap is read when the reader reaches it. */
const MAX_BETWEEN = 4;
/** The most pages of the index that are compared with one page. */
const MAX_CANDIDATES = 4;
/** Pages that may fail in a row before none are read ahead: the service is probably down. */
const MAX_FAILURES = 3;
/** How many more pages may be apart than joined. Beyond that, pages do not overlap, and reading ahead is no use. */
const MAX_APART = 4;

export interface PagesAheadOptions {
  readonly index: PageIndex;
  /** Returns the largest page that the service gives. */
  readonly limit: () => number;
  readonly pace: Pace;
}

/** Reads the pages of an index ahead of the reader, and finds what leads from each to the next. */
export class PagesAhead<R> {
  readonly #fetchPage: FetchPage<R>;
  readonly #index: PageIndex;
  readonly #limit: () => number;
  readonly #pace: Pace;
  readonly #leaving: AbortSignal;
  readonly #slots: Slots;
  readonly #reads = new Map<number, Promise<ReadPage<R> | undefined>>();
  readonly #links = new Map<number, Promise<Link<R>>>();
  /** The pages of the index by the hashes of the records before and at their start. */
  readonly #starts = new Map<number, number[]>();
  #passed = 0;
  #failures = 0;
  #joined = 0;
  #apart = 0;
  /** Bytes of the largest page; undefined until one was read. */
  #largest: number | undefined;

  constructor(
    fetchPage: FetchPage<R>,
    { index, limit, pace }: PagesAheadOptions,
    leaving: AbortSignal,
  ) {
    this.#fetchPage = fetchPage;
    this.#index = index;
    this.#limit = limit;
    this.#pace = pace;
    this.#leaving = leaving;
    this.#slots = new Slots(() => pace.limit);
    for (const [number, { behind, hashes }] of index.pages.entries()) {
      for (const hash of [behind, hashes?.[0]]) {
        if (typeof hash !== 'number') continue;
        const pages = this.#starts.get(hash);
        if (pages) pages.push(number);
        else this.#starts.set(hash, [number]);
      }
    }
  }

  /**
   * Requests a page of the index and those behind it, as far as the walk may be ahead, and links them. Forgets those
   * before it.
   *
   * @param records the number of records needed
   */
  lookAhead(from: number, records: number): void {
    for (; this.#passed < from; this.#passed += 1) {
      this.#reads.delete(this.#passed);
      this.#links.delete(this.#passed);
    }
    const { pages } = this.#index;
    const end = Math.min(pages.length, from + this.#mostAhead);
    let before = 0;
    for (let number = from; number < end && before < records; number += 1) {
      void this.read(number);
      if (number > from) void this.link(number - 1);
      // It is read in full, so that it overlaps with the next one.
      if (before + this.#limit() >= records) break;
      before += pages[number]!.count;
    }
  }

  get #mostAhead(): number {
    const { limit } = this.#pace;
    if (this.#largest === undefined) return limit;
    return Math.min(AHEAD * limit, Math.ceil(MAX_BYTES_AHEAD / this.#largest));
  }

  /** Reads a page of the index once. @returns undefined if that fails: the service may refuse its cursor by now */
  read(number: number): Promise<ReadPage<R> | undefined> {
    let read = this.#reads.get(number);
    if (!read) {
      read = this.#try(this.#index.pages[number]!.after, this.#limit());
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
    try {
      return await this.#request(after, this.#limit());
    } catch (error) {
      if (error instanceof CursorRefusedError) return undefined;
      throw error;
    }
  }

  /** For the parts that are read in sequence. */
  fetchPage(after: string | null, first: number, leaving = this.#leaving): Promise<ReadPage<R>> {
    return this.#request(after, first, { leaving });
  }

  /** Returns what leads on from a page of the index. It is found as soon as the pages are there. */
  link(number: number): Promise<Link<R>> {
    let link = this.#links.get(number);
    if (!link) {
      link = this.#findLink(number);
      this.#links.set(number, link);
    }
    return link;
  }

  async #findLink(number: number): Promise<Link<R>> {
    const between: ReadPage<R>[] = [];
    let last = await this.read(number);
    while (last?.hasNextPage && last.identities.areUnique) {
      const to = await this.joining(last, number + 1);
      if (between.length === 0) this.#countJoin(to !== undefined);
      if (to !== undefined) return { between, to };
      if (between.length === MAX_BETWEEN || this.#isHopeless) break;
      last = await this.#readBehind(last);
      if (last) between.push(last);
    }
    return { between };
  }

  /** Reads a page that continues another one, as their records prove. @returns undefined if they do not */
  async #readBehind(page: ReadPage<R>): Promise<ReadPage<R> | undefined> {
    const limit = this.#limit();
    const shorter = await this.#try(page.after, limit - OVERLAP, { isUrgent: true });
    if (!shorter?.endCursor) return undefined;
    const next = await this.#try(shorter.endCursor, limit, { isUrgent: true });
    const behind = shorter.identities.hashes.at(-1) ?? null;
    return next && joinPages(page, next, behind) === 'joined' ? next : undefined;
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

  #countJoin(isJoined: boolean): void {
    if (isJoined) this.#joined += 1;
    else this.#apart += 1;
  }

  /** Reads a page that the reader may never need, so it is left out while the service is down. */
  async #try(
    after: string | null,
    first: number,
    { isUrgent = false } = {},
  ): Promise<ReadPage<R> | undefined> {
    try {
      return await this.#request(after, first, { isUrgent, isAhead: true });
    } catch {
      return undefined;
    }
  }

  /**
   * @param isUrgent sent before other pages ahead: a page that was read waits for this one
   * @param isAhead left out while the service is down
   */
  #request(
    after: string | null,
    first: number,
    { isUrgent = true, isAhead = false, leaving = this.#leaving } = {},
  ): Promise<ReadPage<R>> {
    const read = async () => {
      leaving.throwIfAborted();
      if (isAhead && this.#failures >= MAX_FAILURES) throw LEFT_OUT;
      try {
        const page = new ReadPage(after, await this.#fetchPage(after, first, leaving));
        this.#failures = 0;
        this.#largest = Math.max(this.#largest ?? 1, page.bytes);
        return page;
      } catch (error) {
        // A service that refuses a cursor is not down.
        this.#failures = error instanceof CursorRefusedError ? 0 : this.#failures + 1;
        throw error;
      }
    };
    return this.#slots.run(read, { isUrgent });
  }
}

/** Created once: a new error with its stack would cost more than the page it stands for. */
const LEFT_OUT = new Error('The service is probably down.');
