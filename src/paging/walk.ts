import { codedError } from '../errors.ts';
import { identityHash } from './identities.ts';
import { CursorRefusedError, ReadPage, unlessRefused, WALK_LEFT, type FetchPage } from './page.ts';
import { IndexBuilder, OVERLAP, type PageIndexes } from './page-index.ts';
import type { PageSize } from './page-size.ts';
import { canReadAhead, PagesAhead, SMALLEST_LIMIT } from './pages-ahead.ts';
import type { Totals } from './totals.ts';

/** A page of a walk. */
export interface WalkedPage<R = unknown> {
  /** The page as it was read, which may repeat records of the pages before it. */
  readonly page: ReadPage<R>;
  /** The offsets in the page, ascending, of the records that no earlier page of the walk had. */
  readonly offsets: readonly number[];
}

/** The pages of a walk, in order. No request is sent after its reader has left. */
export type WalkedPages<R = unknown> = AsyncGenerator<WalkedPage<R>, void, undefined>;

/** A list of the service, with its filters and one selection. */
export interface PagedList<R = unknown> {
  /** Names the list with its filters, whatever is selected: one index serves all selections. */
  readonly name: string;
  /** Already bound to the caller: abort, budget, priority. */
  readonly fetchPage: FetchPage<R>;
  readonly indexes: PageIndexes;
  readonly size: PageSize;
  /** The most pages in flight for one walk. */
  readonly concurrency: number;
  /** Where to keep the number of records of a whole walk. */
  readonly totals?: Pick<Totals, 'begin'>;
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
  readonly #fetchPage: FetchPage<R>;
  /** Undefined if the list has no index that helps. */
  readonly #ahead: PagesAhead<R> | undefined;
  /** A part of a list is too little for an index or a total. */
  readonly #isWhole: boolean;
  readonly #seen = new Seen();
  /** The number of records still needed. */
  #left: number;
  #hasEnded = false;
  /** The cursors of the pages that were returned since the last one that was read from the cursor of the page before. */
  #returned: (string | null)[] = [];
  /** Undefined if the last page was not read in sequence. */
  #stalls: Stalls | undefined;

  constructor(list: PagedList<R>, options: WalkOptions<R>) {
    const { after, start, records = Infinity } = options;
    this.#list = list;
    this.#options = options;
    this.#fetchPage = list.size.fetching(list.fetchPage);
    this.#isWhole = after === null && !start && records === Infinity;
    this.#left = records;
    const index = list.indexes.get(list.name);
    if (index && canReadAhead(index, list.size.limit, records)) {
      const { concurrency } = list;
      const read = (at: string | null) => this.#readInFull(at);
      this.#ahead = new PagesAhead({ index, after, concurrency, read });
    }
  }

  async *pages(): WalkedPages<R> {
    const { readsAhead = true } = this.#options;
    const { name, indexes, totals } = this.#list;
    const builder = this.#isWhole ? new IndexBuilder() : undefined;
    const keepTotal = this.#isWhole ? totals?.begin(name) : undefined;
    try {
      let next = this.#first();
      for (;;) {
        const page = await next;
        builder?.add(page);
        const walked = this.#seen.take(page);
        this.#left -= walked.offsets.length;
        const goesOn = page.hasNextPage && this.#left > 0;
        if (goesOn && readsAhead) {
          next = this.#behind(walked);
          // It may fail while the reader works, and nothing awaits it yet.
          next.catch(() => {});
        }
        yield walked;
        if (!goesOn) break;
        if (!readsAhead) next = this.#behind(walked);
      }
    } finally {
      this.#hasEnded = true;
    }
    // Not reached if the walk fails or its reader leaves.
    if (builder) indexes.keep(name, builder.finish());
    keepTotal?.(this.#seen.count);
  }

  async #first(): Promise<ReadPage<R>> {
    const { after, start } = this.#options;
    this.#returned = [after];
    if (start) return start;
    const size = this.#ahead?.isIndexed ? this.#list.size.limit : this.#size;
    const first = this.#request(after, size);
    this.#ahead?.begin(this.#left);
    return first;
  }

  /** Returns the page behind one that was just returned. */
  async #behind(walked: WalkedPage<R>): Promise<ReadPage<R>> {
    const { page } = walked;
    if (this.#ahead && this.#seen.idsAreUnique) {
      const following = await this.#ahead.following(page, this.#left);
      if (following) {
        this.#returned.push(following.after);
        this.#stalls = undefined;
        return following;
      }
      const again = await this.#readEndAgain();
      if (again) {
        this.#returned = [again.after];
        return again;
      }
    }
    this.#stalls ??= new Stalls();
    if (this.#stalls.isStalled(walked, this.#seen)) throw stalled();
    this.#returned = [page.endCursor];
    return this.#request(page.endCursor, this.#size);
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
    const cursors = this.#returned;
    if (cursors.length === 1) return undefined;
    for (let back = 1; back < cursors.length; back *= 2) {
      const page = await this.#readAgain(cursors.at(-back)!);
      if (page && this.#repeats(page)) return page;
    }
    return this.#readAgain(cursors[0]!);
  }

  async #readAgain(after: string | null): Promise<ReadPage<R> | undefined> {
    const page = await unlessRefused(this.#readInFull(after));
    return page instanceof CursorRefusedError ? undefined : page;
  }

  /** Whether the page repeats two returned records, or its only record: one of several may have been moved there. */
  #repeats(page: ReadPage<R>): boolean {
    const repeated = this.#seen.repeatedBy(page);
    return (
      page.identities.areUnique && repeated > 0 && repeated >= Math.min(2, page.records.length)
    );
  }

  /** The number of records of a page that is read in sequence: less than the limit, if pages are to overlap. */
  get #size(): number {
    const { limit } = this.#list.size;
    const overlaps = (this.#isWhole || this.#ahead) && limit >= SMALLEST_LIMIT;
    return Math.min(overlaps ? limit - OVERLAP : limit, this.#left);
  }

  #readInFull(after: string | null): Promise<ReadPage<R>> {
    return this.#request(after, this.#list.size.limit);
  }

  async #request(after: string | null, first: number): Promise<ReadPage<R>> {
    // Its reader may have left while a page was read ahead.
    if (this.#hasEnded) throw WALK_LEFT;
    return new ReadPage(after, await this.#fetchPage(after, first));
  }
}

/** The records that a walk has returned so far. */
class Seen {
  readonly #hashes = new Set<number>();
  #idsAreUnique = true;
  #count = 0;

  /** The number of records returned. */
  get count(): number {
    return this.#count;
  }

  /** False once an id occurred twice in one page: from then on no record is dropped, and no page proves a join. */
  get idsAreUnique(): boolean {
    return this.#idsAreUnique;
  }

  /** Takes the next page: drops the records that earlier pages had, which is what happens when a list moves. */
  take<R>(page: ReadPage<R>): WalkedPage<R> {
    const { hashes, hasRepeats } = page.identities;
    if (hasRepeats) this.#idsAreUnique = false;
    const offsets: number[] = [];
    for (const [offset, hash] of hashes.entries()) {
      const isNew = Number.isNaN(hash) || !this.#hashes.has(hash);
      if (isNew || !this.#idsAreUnique) offsets.push(offset);
      this.#hashes.add(hash);
    }
    this.#count += offsets.length;
    return { page, offsets };
  }

  /** Returns how many records of a page were returned before. */
  repeatedBy(page: ReadPage): number {
    return page.identities.hashes.filter((hash) => this.#hashes.has(hash)).length;
  }
}

/** After this number of pages in a row without a new record, a walk has stalled, whatever the cursors are. */
const MAX_BARREN_PAGES = 1_000;

/** Detects that no cursor leads on, in pages that are read one after the other. */
class Stalls {
  readonly #cursors = new Set<number>();
  #barrenPages = 0;

  /** Empty pages with a moving cursor are no stall. A known cursor is one, unless a record is proved to be new. */
  isStalled({ page, offsets }: WalkedPage, seen: Seen): boolean {
    this.#barrenPages = offsets.length === 0 ? this.#barrenPages + 1 : 0;
    if (page.endCursor === null || this.#barrenPages >= MAX_BARREN_PAGES) return true;
    const cursor = identityHash(page.endCursor);
    if (!this.#cursors.has(cursor)) {
      this.#cursors.add(cursor);
      return false;
    }
    return !seen.idsAreUnique || offsets.every((offset) => page.ids[offset] === null);
  }
}

function stalled(): Error {
  return codedError(
    'DRAIN_STALLED',
    'The recruiting service says that the list has a next page, but its cursor does not lead there. ' +
      'Try again later; if the error persists, report it to the support of the service.',
  );
}
