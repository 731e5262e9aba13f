import type { FetchPage, ReadPage } from './page.ts';
import { OVERLAP } from './page-index.ts';
import { PagesAhead, type PagesAheadOptions } from './pages-ahead.ts';
import { stalled, walk, WALK_LEFT, type Seen, type WalkedPage, type WalkedPages } from './walk.ts';

interface ParallelWalkOptions<R> extends PagesAheadOptions {
  /** A cursor of the service, of the index or not; null: the start of the list. */
  readonly after: string | null;
  /** The page behind that cursor, if it was just read. */
  readonly start?: ReadPage<R> | undefined;
  /** The number of records needed; the last page can have more. */
  readonly records: number;
  readonly seen: Seen;
  /** Called for each page before it is yielded. */
  readonly onPage?: ((page: ReadPage<R>) => void) | undefined;
}

/**
 * Walks a list that has an index: reads its pages at the same time, and proves by records that each continues the page
 * before. If that cannot be proved, it reads on in sequence until it meets a later page of the index.
 *
 * A list that does not change during the walk is returned exactly, whatever happened to it since the index was made. If
 * the list changes during the walk, no more records are lost than by reading it page by page.
 */
export function walkInParallel<R>(
  fetchPage: FetchPage<R>,
  options: ParallelWalkOptions<R>,
): WalkedPages<R> {
  return new ParallelWalk(fetchPage, options).pages();
}

class ParallelWalk<R> {
  readonly #options: ParallelWalkOptions<R>;
  readonly #leaving = new AbortController();
  readonly #ahead: PagesAhead<R>;
  readonly #returned: ReturnedPages<R>;
  /** The number of records still needed. */
  #left: number;

  constructor(fetchPage: FetchPage<R>, options: ParallelWalkOptions<R>) {
    this.#options = options;
    this.#ahead = new PagesAhead(fetchPage, options, this.#leaving.signal);
    this.#returned = new ReturnedPages(this.#ahead, options.seen);
    this.#left = options.records;
  }

  async *pages(): WalkedPages<R> {
    try {
      let number = yield* this.#begin();
      while (number !== undefined) {
        this.#ahead.lookAhead(number, this.#left);
        const page: ReadPage<R> = (await this.#ahead.read(number))!;
        yield this.#take(page);
        if (this.#isEnd(page)) return;
        const next: number | undefined = await this.#ahead.following(page, number);
        number = next ?? (yield* this.#readOnBehind(page, number + 1));
      }
    } finally {
      this.#leaving.abort(WALK_LEFT);
    }
  }

  #take(page: ReadPage<R>): WalkedPage<R> {
    const { seen, onPage } = this.#options;
    onPage?.(page);
    this.#returned.add(page);
    const walked = seen.take(page);
    this.#left -= walked.offsets.length;
    return walked;
  }

  #isEnd(page: ReadPage<R>): boolean {
    return this.#left <= 0 || !page.hasNextPage;
  }

  /** Returns the number of the first page of the index that the walk has met, and that was read. */
  async *#begin(): PagesUntil<R> {
    const { index, after, start } = this.#options;
    const ahead = this.#ahead;
    const number = index.pages.findIndex((page) => page.after === after);
    const next = number < 0 ? -1 : number + 1;
    if (start) {
      yield this.#take(start);
      this.#returned.restart(start);
      if (this.#isEnd(start)) return undefined;
      if (number >= 0) ahead.lookAhead(next, this.#left);
      const met = await ahead.joining(start, next);
      if (met !== undefined) return met;
      if (start.endCursor === null) throw stalled();
      return yield* this.#readOn(start.endCursor, next);
    }
    if (number < 0) return yield* this.#readOn(after, next);
    const first = ahead.mustRead(number);
    ahead.lookAhead(number, this.#left);
    await first;
    return number;
  }

  /** Reads on behind a page that was read long ago perhaps, so it is read again. See `#readOn`. */
  async *#readOnBehind(page: ReadPage<R>, next: number): PagesUntil<R> {
    const again = page.identities.areUnique ? await this.#returned.readEndAgain() : undefined;
    // Records without an id would be returned twice.
    const isUsable = again?.identities.areUnique;
    if (isUsable) {
      const walked = this.#take(again);
      if (walked.offsets.length > 0) yield walked;
    }
    const last = isUsable ? again : page;
    if (this.#isEnd(last)) return undefined;
    if (last.endCursor === null) throw stalled();
    return yield* this.#readOn(last.endCursor, next);
  }

  /**
   * Reads page by page until one joins a page of the index.
   *
   * @param next the page of the index that may join first; -1: unknown
   * @returns the number of the page that joined
   */
  async *#readOn(after: string | null, next: number): PagesUntil<R> {
    const { limit, seen, onPage } = this.#options;
    const size = () => Math.max(1, limit() - OVERLAP);
    const onward = { after, records: this.#left, size, seen, onPage };
    for await (const walked of walk((...page) => this.#ahead.fetchPage(...page), onward)) {
      this.#returned.restart(walked.page);
      this.#left -= walked.offsets.length;
      yield walked;
      if (this.#isEnd(walked.page) || !seen.idsAreUnique) continue;
      const met = await this.#ahead.joining(walked.page, next);
      if (met !== undefined) return met;
    }
    return undefined;
  }
}

/** Pages of a walk up to one of the index, whose number is returned; undefined at the end of the list. */
type PagesUntil<R> = AsyncGenerator<WalkedPage<R>, number | undefined, undefined>;

/** Remembers the cursors of the pages that a walk has returned since the last one that was read in sequence. */
class ReturnedPages<R> {
  readonly #ahead: PagesAhead<R>;
  readonly #seen: Seen;
  #cursors: (string | null)[] = [];

  constructor(ahead: PagesAhead<R>, seen: Seen) {
    this.#ahead = ahead;
    this.#seen = seen;
  }

  /** Adds a page that is proved to continue the page before. */
  add({ after }: ReadPage<R>): void {
    this.#cursors.push(after);
  }

  /** Starts again with a page that was just read from the cursor of the page before. */
  restart({ after }: ReadPage<R>): void {
    this.#cursors = [after];
  }

  /**
   * Reads the last returned page again, to continue from there. It may have been read long ago: if its cursor is an
   * offset, and records before it were removed since, then records that were never returned have moved in front of
   * it. So if the page repeats no returned record, an earlier page is read instead.
   *
   * The first of these pages is used whatever it holds: a record that is removed between two pages read in turn is
   * lost once, as in any walk page by page, and not again at each page that was read ahead.
   *
   * @returns undefined if the service refuses all these cursors by now
   * @throws the failure of the page
   */
  async readEndAgain(): Promise<ReadPage<R> | undefined> {
    const cursors = this.#cursors;
    for (let back = 1; back < cursors.length; back *= 2) {
      const page = await this.#ahead.readAgain(cursors.at(-back)!);
      if (page && this.#repeats(page)) return page;
    }
    return this.#ahead.readAgain(cursors[0] ?? null);
  }

  /** Whether the page repeats two returned records, or its only record: one of several may have been moved there. */
  #repeats(page: ReadPage<R>): boolean {
    const repeated = this.#seen.repeatedBy(page);
    return (
      page.identities.areUnique && repeated > 0 && repeated >= Math.min(2, page.records.length)
    );
  }
}
