import { codedError } from '../errors.ts';
import type { KnownLists } from './known-lists.ts';
import { CursorRefusedError, unlessRefused, type FetchPage, type ReadPage } from './page.ts';
import { indexOf, OVERLAP } from './page-index.ts';
import { readPage, type PageSize } from './page-size.ts';
import { canReadAhead, readAhead, SMALLEST_LIMIT } from './pages-ahead.ts';

/** A page of a walk. */
export interface WalkedPage<R = unknown> {
  /** The page as it was read, which may repeat records of the pages before it. */
  readonly page: ReadPage<R>;
  /** The offsets in the page, ascending, of the records that no earlier page of the walk had. */
  readonly offsets: readonly number[];
}

/** The pages of a walk, in order. When its reader leaves, no further ones are read. */
export type WalkedPages<R = unknown> = AsyncGenerator<WalkedPage<R>, void, undefined>;

/** A list of the service, with its filters and one selection. */
export interface PagedList<R = unknown> {
  /** Names the list with its filters, whatever is selected: one index serves all selections. */
  readonly name: string;
  /** Already bound to the caller: abort, budget, priority. */
  readonly fetchPage: FetchPage<R>;
  readonly known: KnownLists;
  readonly size: PageSize;
  /** The most pages in flight for one walk. */
  readonly concurrency: number;
}

export interface WalkOptions<R = unknown> {
  /** A cursor of the service; null: the start of the list. */
  readonly after: string | null;
  /** The page behind that cursor, if it was just read. */
  readonly start?: ReadPage<R> | undefined;
  /** The number of records needed; the last page can have more. Default: all. */
  readonly records?: number | undefined;
  /** Whether the next page is requested before the reader needs it. Default: true. */
  readonly readsAhead?: boolean;
}

/** After this number of pages in a row without a new record, a walk has stalled, whatever the cursors are. */
const MAX_BARREN_PAGES = 1_000;

/**
 * Walks a list: one page after the other the first time, several at the same time once the list has an index. A walk of
 * the whole list leaves the index for the next one.
 *
 * With an index, it is proved by records that each page continues the page before (join.ts). If that cannot be proved,
 * the walk reads on in sequence until it meets a later page of the index. A list that does not change during the walk is
 * returned exactly, whatever happened to it since the index was made. If the list changes during the walk, no more
 * records are lost than by reading it page by page.
 *
 * @throws DRAIN_STALLED after the last page, if the service claims a next page to which no cursor leads;
 *   CursorRefusedError or PageFailedError of a page that the walk cannot do without; what else `fetchPage` throws
 */
export function walkList<R>(list: PagedList<R>, options: WalkOptions<R>): WalkedPages<R> {
  return new Walk(list, options).pages();
}

class Walk<R> {
  readonly #list: PagedList<R>;
  readonly #options: WalkOptions<R>;
  readonly #records: number;
  /** A part of a list is too little for an index or a total. */
  readonly #isWhole: boolean;
  /** Undefined if the list has no index that helps. */
  readonly #ahead: ReturnType<typeof readAhead<R>> | undefined;
  readonly #seen = new Set<number>();
  /** False once an id occurred twice in one page: from then on no record is dropped, and no page proves a join. */
  #idsAreUnique = true;
  #count = 0;
  /** The cursors of the pages that were returned since the last one that was read from the cursor of the page before. */
  #returned: (string | null)[];
  /** Where pages that were read in sequence end. */
  readonly #cursors = new Set<string>();
  /** How many of these in a row had no new record. */
  #barrenPages = 0;

  constructor(list: PagedList<R>, options: WalkOptions<R>) {
    const { after, start, records = Infinity } = options;
    this.#list = list;
    this.#options = options;
    this.#records = records;
    this.#isWhole = after === null && !start && records === Infinity;
    this.#returned = [after];
    const { name, size, known, concurrency } = list;
    const index = known.indexOf(name);
    if (index && canReadAhead(index, size.limit, records)) {
      const read = (cursor: string | null) => readPage(list, cursor);
      this.#ahead = readAhead(index, { after, concurrency, read });
    }
  }

  async *pages(): WalkedPages<R> {
    const { readsAhead = true } = this.#options;
    const read: Pick<ReadPage, 'after' | 'identities'>[] = [];
    const keep = this.#isWhole ? this.#list.known.begin(this.#list.name) : undefined;
    let next: Promise<ReadPage<R>> | undefined = this.#first();
    while (next) {
      const page: ReadPage<R> = await next;
      const { after, identities } = page;
      if (this.#isWhole) read.push({ after, identities });
      const walked = this.#take(page);
      const goesOn = page.hasNextPage && this.#count < this.#records;
      next = goesOn && readsAhead ? this.#behind(walked) : undefined;
      // It may fail while the reader works, and nothing awaits it yet.
      next?.catch(() => {});
      yield walked;
      if (goesOn) next ??= this.#behind(walked);
    }
    // Not reached if the walk fails or its reader leaves.
    keep?.(this.#count, indexOf(read));
  }

  async #first(): Promise<ReadPage<R>> {
    const { after, start } = this.#options;
    if (start) return start;
    const known = this.#ahead?.first(this.#records);
    return known ?? readPage(this.#list, after, this.#pageSize());
  }

  /** Drops the records that earlier pages had, which is what happens when a list moves. */
  #take(page: ReadPage<R>): WalkedPage<R> {
    const seen = this.#seen;
    const { hashes, hasRepeats } = page.identities;
    if (hasRepeats) this.#idsAreUnique = false;
    const offsets: number[] = [];
    for (const [offset, hash] of hashes.entries()) {
      if (!this.#idsAreUnique || !seen.has(hash)) offsets.push(offset);
      if (!Number.isNaN(hash)) seen.add(hash);
    }
    this.#count += offsets.length;
    return { page, offsets };
  }

  /** Returns the page behind one that was just returned. */
  async #behind(walked: WalkedPage<R>): Promise<ReadPage<R>> {
    if (this.#ahead && this.#idsAreUnique) {
      const following = await this.#ahead.following(walked.page, this.#records - this.#count);
      if (following) {
        this.#returned.push(following.after);
        return following;
      }
      const again = await this.#readEndAgain();
      if (again) {
        this.#returned = [again.after];
        // If cursors are offsets and records came in front, the walk passes the same ones with the same records again.
        this.#cursors.clear();
        return again;
      }
    }
    if (this.#isStalled(walked)) throw stalled();
    const { endCursor } = walked.page;
    this.#returned = [endCursor];
    return readPage(this.#list, endCursor, this.#pageSize());
  }

  /**
   * Reads the last returned page again, to continue from there. It may have been read long ago: if its cursor is an
   * offset, and records before it were removed since, then records that were never returned have moved in front of
   * it. So if the page repeats no returned record, an earlier page is read instead.
   *
   * The first of these pages is used whatever it holds: a record that is removed between two pages read in turn is
   * lost once, as in any walk page by page, and not again at each page that was read ahead.
   *
   * @returns undefined if the page was just read, or if the service refuses all these cursors by now
   * @throws the failure of the page
   */
  async #readEndAgain(): Promise<ReadPage<R> | undefined> {
    const returned = this.#returned;
    if (returned.length === 1) return undefined;
    for (let back = 1; ; back = Math.min(2 * back, returned.length)) {
      const page = await unlessRefused(readPage(this.#list, returned.at(-back)!));
      const isRefused = page instanceof CursorRefusedError;
      if (back === returned.length) return isRefused ? undefined : page;
      if (!isRefused && this.#repeats(page)) return page;
    }
  }

  /** Whether the page repeats two returned records, or its only record: one of several may have been moved there. */
  #repeats({ identities: { hashes, areUnique } }: ReadPage<R>): boolean {
    const repeated = hashes.filter((hash) => this.#seen.has(hash)).length;
    return areUnique && repeated > 0 && repeated >= Math.min(2, hashes.length);
  }

  /**
   * Whether no cursor leads on from a page that was read in sequence. Empty pages with a moving cursor are no stall. A
   * known cursor is one, unless a record is proved to be new.
   */
  #isStalled({ page: { endCursor, ids }, offsets }: WalkedPage<R>): boolean {
    this.#barrenPages = offsets.length === 0 ? this.#barrenPages + 1 : 0;
    if (endCursor === null || this.#barrenPages >= MAX_BARREN_PAGES) return true;
    const isKnown = this.#cursors.has(endCursor);
    this.#cursors.add(endCursor);
    return isKnown && !(this.#idsAreUnique && offsets.some((offset) => ids[offset] !== null));
  }

  /** The number of records of a page that is read in sequence: less than the limit, if pages are to overlap. */
  #pageSize(): number {
    const { limit } = this.#list.size;
    const overlaps = (this.#isWhole || this.#ahead) && limit >= SMALLEST_LIMIT;
    return Math.min(overlaps ? limit - OVERLAP : limit, this.#records - this.#count);
  }
}

function stalled(): Error {
  return codedError(
    'DRAIN_STALLED',
    'The recruiting service says that the list has a next page, but its cursor does not lead there. ' +
      'Try again later; if the error persists, report it to the support of the service.',
  );
}
