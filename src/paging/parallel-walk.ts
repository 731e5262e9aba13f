import { Slots } from '../queue.ts';
import { mayBeRefusal, OutageDetector, WALK_LEFT } from './failures.ts';
import { identityHash } from './identities.ts';
import { nextRecord, type IndexBuilder, type PageIndex } from './page-index.ts';
import {
  identitiesOf,
  overlappingSize,
  type FetchPage,
  type Identified,
  type Page,
  type PageRequest,
} from './page.ts';
import {
  stalledError,
  walk,
  walkedPage,
  type OnWalkEnd,
  type Progress,
  type WalkedPage,
  type WalkedPages,
} from './walk.ts';

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
 * A page inside the page before is skipped, and its `hasNextPage` is ignored. At a gap, the walk reads on from A's
 * fresh cursor until it meets a page of the index again; if it never does, it reads to the end like this (`readOn`).
 * Records without an id, or with one that occurs twice in a page, prove nothing: such lists are always read page by
 * page.
 */

/** How a page relates to one that was read from an earlier cursor. */
type Join =
  /** It continues the other page, in which its first record has this offset. */
  | { readonly kind: 'joined'; readonly at: number }
  /** All its records are in the other page. */
  | { readonly kind: 'inside' }
  /** Nothing proves that no record is between them. */
  | { readonly kind: 'apart' };

/** @param behind the hash of the record that the cursor of `next` was made from; null: the start of the list */
function joinPages<R extends Identified>(
  page: Page<R>,
  next: Page<R>,
  behind: number | null,
): Join {
  const { hashes, isJoinable } = identitiesOf(page);
  const { hashes: head, isJoinable: isNextJoinable } = identitiesOf(next);
  if (head.length === 0) return INSIDE;
  if (!isJoinable || !isNextJoinable) return APART;
  const at = hashes.indexOf(head[0]!);
  if (at < 0) return APART;
  const shared = hashes.length - at;
  for (let offset = 0; offset < Math.min(shared, head.length); offset += 1) {
    if (hashes[at + offset] !== head[offset]) return APART;
  }
  if (shared >= head.length) return INSIDE;
  return shared > 1 || (behind !== null && hashes.includes(behind))
    ? { kind: 'joined', at }
    : APART;
}

const INSIDE: Join = { kind: 'inside' };
const APART: Join = { kind: 'apart' };

export interface ParallelWalkOptions<R extends Identified> {
  readonly index: PageIndex;
  /** The page of the index to begin with, or a cursor before one. */
  readonly start: { readonly page: number } | { readonly after: string; readonly before: number };
  /** The page limit of the field. */
  readonly limit: number | undefined;
  /** Records needed; undefined: all. The last page can have more. */
  readonly records: number | undefined;
  readonly pace: Pace;
  readonly signal: AbortSignal;
  readonly progress: Progress<R>;
  /** Builds the index for the next walk. */
  readonly builder: IndexBuilder | undefined;
  readonly onEnd: OnWalkEnd;
}

/**
 * Walks a list that has an index: reads its pages at the same time, and proves by records that each continues the page
 * before. If that cannot be proved, it reads on from the last proved page until it meets a later page of the index.
 *
 * A list that does not change during the walk is returned exactly, whatever happened to it since the index was made. If
 * the list changes during the walk, no more records are lost than by reading it page by page.
 */
export async function* parallelWalk<R extends Identified>(
  fetchPage: FetchPage<R>,
  options: ParallelWalkOptions<R>,
): WalkedPages<R> {
  const { index, start, limit, pace, progress, builder } = options;
  let ended = false;
  const leaving = new AbortController();
  const signal = AbortSignal.any([options.signal, leaving.signal]);
  const bridges = new Bridges(fetchPage, { index, limit, pace, signal });
  const { prefetch } = bridges;
  const returnedPages = createReturnedPages(prefetch, progress, signal);
  let left = options.records ?? Number.POSITIVE_INFINITY;

  try {
    let page = 'page' in start ? start.page : start.before - 1;
    bridges.lookAhead('page' in start ? page : page + 1, left);
    let read =
      'page' in start ? await prefetch.mustRead(page) : await prefetch.mustReadFrom(start.after);
    let at: number | undefined;
    /** Whether `read` is page number `page` of the index. */
    let isIndexed = 'page' in start;
    whole: for (;;) {
      yield toWalkedPage(read, at);
      if (left <= 0 || !read.page.hasNextPage) break;

      // Repeated ids prove no join, and records that two pages share would be returned twice.
      const bridge = !progress.idsAreUnique
        ? NO_BRIDGE
        : await (isIndexed ? bridges.from(page) : bridges.build(read, page + 1));
      const { gap, to } = bridge;
      for (const between of gap) {
        yield toWalkedPage(between);
        if (left <= 0 || !between.page.hasNextPage) break whole;
      }
      const end = gap.at(-1) ?? read;
      const next = to === 'open' ? yield* readOn(end, page + 1) : { page: to, joinedTo: end.page };
      if (!next) break;
      page = next.page;
      bridges.lookAhead(page, left);
      read = (await prefetch.page(page))!;
      at = bridge.at ?? offsetOf(joinPages(next.joinedTo, read.page, index.pages[page]!.behind));
      isIndexed = true;
    }
    ended = true;
  } finally {
    leaving.abort(WALK_LEFT);
    options.onEnd(ended);
  }

  function toWalkedPage({ after, page }: PageRead<R>, at?: number): WalkedPage<R> {
    builder?.add(after, page, at);
    returnedPages.add(after);
    const records = progress.of(page);
    left -= records.length;
    return walkedPage(page, records, after);
  }

  /** Reads page by page from the last proved page, until one joins a page of the index. */
  async function* readOn(
    end: PageRead<R>,
    from: number,
  ): AsyncGenerator<WalkedPage<R>, { page: number; joinedTo: Page<R> } | undefined, undefined> {
    let last = end;
    const again = identitiesOf(end.page).isJoinable ? await returnedPages.readEndAgain() : end;
    // Records without an identity would be returned twice.
    if (again !== end && identitiesOf(again.page).isJoinable) {
      last = again;
      const walked = toWalkedPage(again, 0);
      if (walked.records.length > 0) yield walked;
    }
    if (left <= 0 || !last.page.hasNextPage) return undefined;
    const { endCursor: after } = last.page;
    if (after === null) throw stalledError();
    const onwards = { after, signal, ...(Number.isFinite(left) && { limit: left }) };
    const part = {
      progress,
      pageSize: () => overlappingSize(limit),
      onPage: (at: string | null, page: Page<R>) => {
        builder?.add(at, page);
        last = { after: at, page };
        returnedPages.restart(at);
      },
    };
    for await (const walked of walk(prefetch.fetchPage, onwards, part)) {
      left -= walked.records.length;
      yield walked;
      const met = progress.idsAreUnique && (await prefetch.joining(last.page, from));
      if (typeof met === 'number') return { page: met, joinedTo: last.page };
    }
    return undefined;
  }
}

function offsetOf(join: Join): number | undefined {
  return join.kind === 'joined' ? join.at : undefined;
}

/** The most pages to go back at a time: a walk that goes back too far returns no new record for too long. */
const MAX_STEP = 100;

/** Remembers the cursors of the pages that a walk has returned since the last one that was not read ahead. */
function createReturnedPages<R extends Identified>(
  { mustReadFrom }: Prefetch<R>,
  progress: Progress<R>,
  signal: AbortSignal,
) {
  const cursors: (string | null)[] = [];

  return {
    /** Adds a page that continues the page before. */
    add: (after: string | null) => void cursors.push(after),
    /** Starts again with a page that was just read from the cursor of the page before. */
    restart: (after: string | null) => void cursors.splice(0, cursors.length, after),
    /**
     * Reads the last returned page again, to continue from there. It may have been read long ago: if its cursor is an
     * offset, and records before it were removed since, then records that were never returned have moved in front of
     * it. So if the page repeats no returned record, an earlier page is read instead.
     *
     * The first of these pages is used whatever it holds: a record that is removed between two pages read in turn is
     * lost once, as in any walk page by page, and not again at each page that was read ahead.
     *
     * @throws the failure of the page
     */
    readEndAgain: async (): Promise<PageRead<R>> => {
      for (let back = 1; back < cursors.length; back += Math.min(back, MAX_STEP)) {
        const after = cursors.at(-back) ?? null;
        const read = await mustReadFrom(after).catch((error: unknown) => {
          if (mayBeRefusal(error, after, signal)) return undefined;
          throw error;
        });
        if (read && repeats(read.page)) return read;
      }
      return mustReadFrom(cursors[0] ?? null);
    },
  };

  /** Whether the page repeats two returned records, or its only record: one of several may have been moved there. */
  function repeats(page: Page<R>): boolean {
    const repeated = progress.repeatedBy(page);
    return (
      identitiesOf(page).isJoinable && repeated > 0 && repeated >= Math.min(2, page.items.length)
    );
  }
}

/** The pages that lead from one page to the next page of the index. */
interface Bridge<R> {
  /** The pages in between, which are not in the index. */
  readonly gap: readonly PageRead<R>[];
  /** The page of the index that continues behind them; `open` if none was met yet. */
  readonly to: number | 'open';
  /** Without a gap: the offset of that page's first record in this one. */
  readonly at?: number;
}

const NO_BRIDGE: Bridge<never> = { gap: [], to: 'open' };

/** The most pages of a gap that are read ahead of the consumer. A longer gap is read when the consumer reaches it. */
const MAX_GAP_AHEAD = 4;

/**
 * Reads the pages of an index ahead, and finds what leads from each to the next. A page is joined to the next one as
 * soon as both were read. If they do not join, the pages between them are read at once, not when the consumer needs
 * them.
 */
class Bridges<R extends Identified> {
  readonly prefetch: Prefetch<R>;
  readonly #index: PageIndex;
  /** The pages that the next one is proved to continue, with the offset of its first record in them. */
  readonly #joined = new Map<number, number>();
  readonly #built = new Map<number, Promise<Bridge<R>>>();
  #passed = 0;
  #lookedAt = 0;

  constructor(fetchPage: FetchPage<R>, options: Omit<PrefetchOptions, 'onSettled'>) {
    this.#index = options.index;
    const onSettled = (page: number) => {
      this.#join(page - 1);
      this.#join(page);
    };
    this.prefetch = prefetchPages(fetchPage, { ...options, onSettled });
  }

  /** Requests this page and those behind it, like `Prefetch.lookAhead`. Forgets those before it. */
  lookAhead(page: number, records: number): void {
    for (; this.#passed < page; this.#passed += 1) {
      this.#built.delete(this.#passed);
      this.#joined.delete(this.#passed);
    }
    const end = this.prefetch.lookAhead(page, records);
    for (let next = Math.max(this.#lookedAt, page); next < end; next += 1) {
      this.#lookedAt = next + 1;
      this.#join(next);
    }
  }

  /** Returns what leads on from a page of the index. */
  async from(page: number): Promise<Bridge<R>> {
    if (page + 1 < this.#index.pages.length) await this.prefetch.page(page + 1);
    const at = this.#joined.get(page);
    return at === undefined ? this.#build(page) : { gap: [], to: page + 1, at };
  }

  /** Reads what leads on from a page that is not in the index. @param next the page of the index behind it */
  async build(from: PageRead<R>, next: number): Promise<Bridge<R>> {
    const { prefetch } = this;
    const gap: PageRead<R>[] = [];
    let last = from;
    for (;;) {
      const met = await prefetch.joining(last.page, next);
      if (met !== undefined) return { gap, to: met };
      const { hasNextPage, endCursor } = last.page;
      if (!hasNextPage || endCursor === null || gap.length >= MAX_GAP_AHEAD) break;
      if (next >= this.#index.pages.length) break;
      const read = await prefetch.readFrom(endCursor);
      if (!read || !(await this.#isBehind(last, read, next))) break;
      gap.push(read);
      last = read;
    }
    return { gap, to: 'open' };
  }

  #join(page: number): void {
    if (page < this.#passed || page >= this.#lookedAt) return;
    const { prefetch } = this;
    const read = prefetch.settled(page);
    if (!read || read === 'pending') return;
    const indexed = this.#index.pages[page + 1];
    if (indexed) {
      void prefetch.page(page + 1);
      const next = prefetch.settled(page + 1);
      if (next === 'pending') return;
      const join = next && joinPages(read.page, next.page, indexed.behind);
      if (join?.kind === 'joined') {
        this.#joined.set(page, join.at);
        return;
      }
    }
    void this.#build(page);
  }

  #build(page: number): Promise<Bridge<R>> {
    const known = this.#built.get(page);
    if (known) return known;
    const built = this.prefetch
      .page(page)
      .then((read) => (read ? this.build(read, page + 1) : NO_BRIDGE));
    this.#built.set(page, built);
    return built;
  }

  /**
   * Whether no record was lost between the two pages, which were read one after the other: a cursor that is an offset
   * skips a record if one before it is removed in between.
   */
  async #isBehind(page: PageRead<R>, read: PageRead<R>, next: number): Promise<boolean> {
    const [end, start] = [page.page.items.at(-1)?.identity, read.page.items[0]?.identity];
    if (!end || !start || !identitiesOf(read.page).isJoinable) return false;
    if (nextRecord(this.#index, end, next - 2, next) === identityHash(start)) return true;
    const again = await this.prefetch.readFrom(page.after);
    return again !== undefined && isSame(again.page, page.page);
  }
}

function isSame(page: Page<Identified>, other: Page<Identified>): boolean {
  return (
    page.items.length === other.items.length &&
    page.items.every(({ identity }, offset) => identity === other.items[offset]!.identity)
  );
}

/** A page that was read in this walk. */
interface PageRead<R> {
  readonly after: string | null;
  readonly page: Page<R>;
}

interface PrefetchOptions {
  index: PageIndex;
  limit: number | undefined;
  pace: Pace;
  signal: AbortSignal;
  /** Called when a page was read, or could not be read. */
  onSettled: (number: number) => void;
}

/** Pages requested ahead of the consumer, for each page that may be in flight. */
const AHEAD = 2;
/** The most bytes of pages that are read ahead, once their size is known. At least one page is read ahead. */
const MAX_BYTES_AHEAD = 16 * 1024 * 1024;

type Prefetch<R extends Identified> = ReturnType<typeof prefetchPages<R>>;

/** Reads the pages of an index ahead. Each is requested once. */
export function prefetchPages<R extends Identified>(
  fetchPage: FetchPage<R>,
  { index: { pages }, limit, pace, signal, onSettled }: PrefetchOptions,
) {
  const slots = new Slots(() => pace.limit);
  const requested = new Map<number, Promise<PageRead<R> | undefined>>();
  const settled = new Map<number, PageRead<R> | undefined>();
  const detector = new OutageDetector();
  let forgotten = 0;
  let lookedAt = 0;
  let largest = 1;

  return {
    page,
    /** Returns the page once it was read; undefined if it could not be read, `pending` before that. */
    settled: (number: number) => (settled.has(number) ? settled.get(number) : 'pending'),
    /**
     * Requests this page and those behind it, as far as a walk may be ahead. Forgets those before it.
     *
     * @param records the number needed
     * @returns the page before which the walk will probably not end
     */
    lookAhead: (from: number, records: number): number => {
      for (; forgotten < from; forgotten += 1) forget(forgotten);
      const ahead = Math.min(AHEAD * pace.limit, Math.ceil(MAX_BYTES_AHEAD / largest));
      const most = Math.min(pages.length, from + ahead);
      let end = from;
      let before = 0;
      let expected = 0;
      for (; end < most && expected < records; end += 1) {
        if (end >= lookedAt) void page(end);
        const { count } = pages[end]!;
        // It is read in full, so that it overlaps with the next one.
        expected = before + Math.max(count, limit ?? 0);
        before += count;
      }
      lookedAt = Math.max(lookedAt, end);
      return expected < records ? end : end - 1;
    },
    /** Returns the first page of the index, from `next` on, that continues `last`; undefined if none does. */
    joining: async (last: Page<R>, next: number): Promise<number | undefined> => {
      for (let number = next; number < pages.length; number += 1) {
        const read = await page(number);
        if (!read) continue;
        const join = joinPages(last, read.page, pages[number]!.behind);
        if (join.kind === 'joined') return number;
        if (join.kind === 'apart') return laterJoining(last, number);
      }
      return undefined;
    },
    /** Reads a page that is not in the index. Returns undefined if it cannot be read. */
    readFrom: (after: string | null): Promise<PageRead<R> | undefined> =>
      send({ after, first: undefined }, { isUrgent: true, isAhead: true }).catch(() => undefined),
    /** @throws the failure of the page */
    mustRead: async (number: number) => (await page(number)) ?? mustReadFrom(pages[number]!.after),
    mustReadFrom,
    /** For the parts that are walked page by page. */
    fetchPage: (async (request, ofPage) =>
      (await send(request, { isUrgent: true, ofPage })).page) satisfies FetchPage<R>,
  };

  /** Returns undefined if the page cannot be read: the service may refuse its cursor by now. */
  function page(number: number): Promise<PageRead<R> | undefined> {
    const known = requested.get(number);
    if (known) return known;
    const { after, count } = pages[number]!;
    // The next page begins further on than this one can reach. A smaller page overlaps with the page after it.
    const first = limit !== undefined && count >= limit ? overlappingSize(limit) : undefined;
    const settle = (read?: PageRead<R>) => {
      largest = Math.max(largest, read?.page.memory ?? 0);
      if (!requested.has(number)) return read;
      settled.set(number, read);
      onSettled(number);
      return read;
    };
    const read = send({ after, first }, { isAhead: true }).then(settle, () => settle());
    requested.set(number, read);
    return read;
  }

  function forget(number: number): void {
    requested.delete(number);
    settled.delete(number);
  }

  /** If records were moved, a page in between may not join. A later page that has arrived may continue this one. */
  function laterJoining(last: Page<R>, from: number): number | undefined {
    for (const [number, read] of settled) {
      if (!read || number <= from) continue;
      if (joinPages(last, read.page, pages[number]!.behind).kind === 'joined') return number;
    }
    return undefined;
  }

  /** @throws the failure of the page */
  function mustReadFrom(after: string | null): Promise<PageRead<R>> {
    return send({ after, first: undefined }, { isUrgent: true });
  }

  /**
   * @param isUrgent sent before other pages ahead: the consumer waits for this one
   * @param isAhead the consumer may never need the page, so it is left out while the service is down
   */
  function send(
    request: PageRequest,
    { isUrgent = false, isAhead = false, ofPage = signal },
  ): Promise<PageRead<R>> {
    const read = async () => {
      ofPage.throwIfAborted();
      if (isAhead && detector.outage) throw LEFT_OUT;
      return { after: request.after, page: await detector.count(fetchPage(request, ofPage)) };
    };
    return slots.run(read, { isUrgent });
  }
}

/** Created once: a new error with its stack would cost more than the page it stands for. */
const LEFT_OUT = new Error('The service is probably down.');

export type Pace = ReturnType<typeof createPace>;

/**
 * Limits how many pages of one walk are in flight. Halves the limit on 429 or 5xx, and raises it by one for every
 * `limit` pages that arrive without such an answer. Requests that were in flight when it was halved do not halve it
 * again.
 *
 * @param max the configured number of pages in flight per drain
 */
export function createPace(max: number) {
  let limit = max;
  let halvings = 0;
  let arrivals = 0;
  return {
    get limit() {
      return limit;
    },
    /** Called when a page is requested. */
    begin: () => {
      const begunAfter = halvings;
      let isPressed = false;
      return {
        /** Called when the upstream answers 429 or 5xx. */
        pressed: () => {
          isPressed = true;
          if (begunAfter !== halvings) return;
          limit = Math.max(1, Math.floor(limit / 2));
          halvings += 1;
          arrivals = 0;
        },
        /** Called when the page has arrived. */
        arrived: () => {
          if (isPressed || limit >= max) return;
          arrivals += 1;
          if (arrivals < limit) return;
          limit += 1;
          arrivals = 0;
        },
      };
    },
  };
}
