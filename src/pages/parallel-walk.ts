import { Slots } from '../queue.ts';
import type { Pace } from './pace.ts';
import { CursorRefusedError, ReadPage, type FetchPage } from './page.ts';
import { OVERLAP, type PageIndex } from './page-index.ts';
import { stalled, walk, WALK_LEFT, type Seen, type WalkedPage, type WalkedPages } from './walk.ts';

/*
 * How two pages are proved to join
 *
 * The upstream returns one cursor per page, so the first walk of a list reads one page after the other. It leaves a
 * page index: the cursor with which each page was requested. The next walk requests all these pages at the same time.
 * But records were inserted, removed and moved in between, and it is unknown what a cursor points at now: a record, an
 * offset in the list, or nothing. So a cursor proves nothing. Only records prove that page B continues page A.
 *
 * For that, pages overlap. The first walk requests two records less than the page limit; the next one requests the
 * limit, with the same cursors. With a limit of 6, in a list that did not change:
 *
 *     first walk          |a b c d|e f g h|i j k l|
 *     next walk, page A   |a b c d e f|
 *                page B           |e f g h i j|             e f = e f: B continues A
 *
 * Each page is an unbroken run of the list. If the end of A equals the start of B, record for record, and one of these
 * records was not moved while both were read, then no record is between the two runs. After changes:
 *
 *     x inserted          A |a b x c d e|   B |e f g h i j|   e: the overlap is one record
 *     b removed           A |a c d e f g|   B |e f g h i j|   e f g: B continues A
 *     x y z inserted      A |a x y z b c|   B |e f g h i j|   nothing shared: a gap (d is in it)
 *     e moved after B     A |a b c d f g|   B |e f g h i j|   A has no e: this looks like a gap
 *     b-d, h-l removed    A |a e f g|       B |e f g|         B is inside A
 *
 * Of two shared records, at least one was not moved, unless both were moved between the two reads. A single one may
 * mislead: if `e` is behind `b` when A is read, and behind `d` again when B is read, it joins |a x y z b e| to
 * |e f g h i j|, and `c d` are lost. So one shared record needs a witness: A must also hold the record that B's cursor
 * was made from (`d`). After one insert it does: thanks to the overlap of two, one insert causes no gap.
 *
 * A page inside the page before is skipped, and its `hasNextPage` is ignored. A gap is bridged with pages that are
 * proved in the same way: A is requested again without its last two records, and its new cursor leads to a page that
 * shares these two with A. Where that proves nothing either, the walk reads on in sequence (`readOn`) until it meets a
 * page of the index again; if it never does, it reads to the end like this. Records without an id, or with one that
 * occurs twice in a page, prove nothing: such lists are always read page by page.
 */

/** How a page relates to one that was read from an earlier cursor. */
type Join =
  /** It continues the other page. */
  | 'joined'
  /** All its records are in the other page. */
  | 'inside'
  /** Nothing proves that no record is between them. */
  | 'apart';

/** @param behind the hash of the record that the cursor of `next` was made from; null: the start of the list */
function joinPages(page: ReadPage, next: ReadPage, behind: number | null): Join {
  const { hashes, areUnique } = page.identities;
  const { hashes: head, areUnique: areNextUnique } = next.identities;
  if (head.length === 0) return 'inside';
  if (!areUnique || !areNextUnique) return 'apart';
  const at = hashes.indexOf(head[0]!);
  if (at < 0) return 'apart';
  const shared = hashes.length - at;
  for (let offset = 0; offset < Math.min(shared, head.length); offset += 1) {
    if (hashes[at + offset] !== head[offset]) return 'apart';
  }
  if (shared >= head.length) return 'inside';
  return shared > 1 || (behind !== null && hashes.includes(behind)) ? 'joined' : 'apart';
}

export interface ParallelWalkOptions<R> {
  readonly index: PageIndex;
  /** A cursor of the service, of the index or not; null: the start of the list. */
  readonly after: string | null;
  /** The page behind that cursor, if it was just read. */
  readonly start?: ReadPage<R> | undefined;
  /** The number of records needed; the last page can have more. */
  readonly records: number;
  /** Returns the largest page that the service gives. */
  readonly limit: () => number;
  readonly pace: Pace;
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
export async function* walkInParallel<R>(
  fetchPage: FetchPage<R>,
  options: ParallelWalkOptions<R>,
): WalkedPages<R> {
  const { index, limit, seen, onPage } = options;
  const leaving = new AbortController();
  const ahead = new PagesAhead(fetchPage, options, leaving.signal);
  const returned = new ReturnedPages(ahead, seen);
  let left = options.records;

  const size = () => Math.max(1, limit() - OVERLAP);
  const take = (page: ReadPage<R>): WalkedPage<R> => {
    onPage?.(page);
    returned.add(page);
    const walked = seen.take(page);
    left -= walked.offsets.length;
    return walked;
  };
  const isEnd = (page: ReadPage<R>) => left <= 0 || !page.hasNextPage;

  try {
    let number = yield* begin();
    while (number !== undefined) {
      let page: ReadPage<R> = (await ahead.read(number))!;
      ahead.lookAhead(number, left);
      yield take(page);
      if (isEnd(page)) return;
      // Once ids repeat, records that two pages share would be returned twice.
      const link: Link<R> = seen.idsAreUnique ? await ahead.link(number) : { between: [] };
      for (page of link.between) {
        yield take(page);
        if (isEnd(page)) return;
      }
      number = link.to ?? (yield* readOnBehind(page, number + 1));
    }
  } finally {
    leaving.abort(WALK_LEFT);
  }

  /** Returns the number of the first page of the index that the walk has met, and that was read. */
  async function* begin(): PagesUntil<R> {
    const { after, start } = options;
    const number = index.pages.findIndex((page) => page.after === after);
    const next = number < 0 ? -1 : number + 1;
    if (start) {
      yield take(start);
      returned.restart(start);
      if (isEnd(start)) return undefined;
      const met = await ahead.joining(start, next);
      if (met !== undefined) return met;
      if (start.endCursor === null) throw stalled();
      return yield* readOn(start.endCursor, next);
    }
    if (number < 0) return yield* readOn(after, next);
    await ahead.mustRead(number);
    return number;
  }

  /** Reads on behind a page that was read long ago perhaps, so it is read again. See `readOn`. */
  async function* readOnBehind(page: ReadPage<R>, next: number): PagesUntil<R> {
    const again = page.identities.areUnique ? await returned.readEndAgain() : undefined;
    // Records without an id would be returned twice.
    const isUsable = again?.identities.areUnique;
    if (isUsable) {
      const walked = take(again);
      if (walked.offsets.length > 0) yield walked;
    }
    const last = isUsable ? again : page;
    if (isEnd(last)) return undefined;
    if (last.endCursor === null) throw stalled();
    return yield* readOn(last.endCursor, next);
  }

  /**
   * Reads page by page until one joins a page of the index.
   *
   * @param next the page of the index that may join first; -1: unknown
   * @returns the number of the page that joined
   */
  async function* readOn(after: string | null, next: number): PagesUntil<R> {
    const onward = { after, records: left, size, seen, onPage };
    for await (const walked of walk((...page) => ahead.fetchPage(...page), onward)) {
      returned.restart(walked.page);
      left -= walked.offsets.length;
      yield walked;
      if (isEnd(walked.page) || !seen.idsAreUnique) continue;
      const met = await ahead.joining(walked.page, next);
      if (met !== undefined) return met;
    }
    return undefined;
  }
}

/** Pages of a walk up to one of the index, whose number is returned; undefined at the end of the list. */
type PagesUntil<R> = AsyncGenerator<WalkedPage<R>, number | undefined, undefined>;

/** The most pages to go back at a time: a walk that goes back too far returns no new record for too long. */
const MAX_STEP = 100;

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
    for (let back = 1; back < cursors.length; back += Math.min(back, MAX_STEP)) {
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

/** What leads from one page of the index to a later one. */
interface Link<R> {
  /** Pages that are not in the index; each is proved to continue the one before. */
  readonly between: readonly ReadPage<R>[];
  /** The page of the index that continues the last of them; undefined if none is known. */
  readonly to?: number;
}

/** Pages requested ahead of the reader, for each page that may be in flight. */
const AHEAD = 2;
/** The most bytes of pages ahead of the reader, once the size of a page is known. */
const MAX_BYTES_AHEAD = 16 * 1024 * 1024;
/** The most pages of a gap that are read ahead of the reader. A longer gap is read when the reader reaches it. */
const MAX_BETWEEN = 4;
/** The most pages of the index that are compared with one page. */
const MAX_CANDIDATES = 4;
/** Pages that may fail in a row before none are read ahead: the service is probably down. */
const MAX_FAILURES = 3;
/** How many more pages may be apart than joined: beyond that, pages do not overlap, and reading ahead is no use. */
const MAX_APART = 4;

/** Reads the pages of an index ahead of the reader, and finds what leads from each to the next. */
class PagesAhead<R> {
  readonly #fetchPage: FetchPage<R>;
  readonly #index: PageIndex;
  readonly #limit: () => number;
  readonly #pace: Pace;
  readonly #left: AbortSignal;
  readonly #slots: Slots;
  readonly #reads = new Map<number, Promise<ReadPage<R> | undefined>>();
  readonly #links = new Map<number, Promise<Link<R>>>();
  /** The pages of the index by the hashes of the records before and at their start. */
  readonly #starts = new Map<number, number[]>();
  #passed = 0;
  #failures = 0;
  #joined = 0;
  #apart = 0;
  #largest = 1;

  constructor(
    fetchPage: FetchPage<R>,
    { index, limit, pace }: ParallelWalkOptions<R>,
    left: AbortSignal,
  ) {
    this.#fetchPage = fetchPage;
    this.#index = index;
    this.#limit = limit;
    this.#pace = pace;
    this.#left = left;
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
    const ahead = Math.min(AHEAD * this.#pace.limit, Math.ceil(MAX_BYTES_AHEAD / this.#largest));
    const end = Math.min(pages.length, from + ahead);
    let before = 0;
    for (let number = from; number < end && before < records; number += 1) {
      void this.read(number);
      if (number > from) void this.link(number - 1);
      // It is read in full, so that it overlaps with the next one.
      if (before + this.#limit() >= records) break;
      before += pages[number]!.count;
    }
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
  fetchPage(after: string | null, first: number, left = this.#left): Promise<ReadPage<R>> {
    return this.#request(after, first, { left });
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
    const likely = page.identities.hashes.flatMap((hash) => this.#starts.get(hash) ?? []);
    const later = likely.filter((number) => number > next).toSorted((a, b) => a - b);
    const candidates = new Set([next, ...later.slice(0, MAX_CANDIDATES - 1)]);
    for (const number of candidates) {
      const indexed = this.#index.pages[number];
      if (this.#isHopeless) return undefined;
      if (!indexed) continue;
      const read = await this.read(number);
      const join = read && joinPages(page, read, indexed.behind);
      if (join === 'joined') return number;
      if (join === 'inside' && candidates.size < MAX_CANDIDATES) candidates.add(number + 1);
    }
    return undefined;
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
    { isUrgent = true, isAhead = false, left = this.#left } = {},
  ): Promise<ReadPage<R>> {
    const read = async () => {
      left.throwIfAborted();
      if (isAhead && this.#failures >= MAX_FAILURES) throw LEFT_OUT;
      try {
        const page = new ReadPage(after, await this.#fetchPage(after, first, left));
        this.#failures = 0;
        this.#largest = Math.max(this.#largest, page.bytes);
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
