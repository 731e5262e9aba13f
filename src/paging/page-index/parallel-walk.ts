import { mayBeRefusal, WALK_LEFT } from '../failures.ts';
import { identityHash } from '../identities.ts';
import {
  identitiesOf,
  overlappingSize,
  type FetchPage,
  type Identified,
  type Page,
} from '../page.ts';
import {
  stalledError,
  walk,
  walkedPage,
  type OnWalkEnd,
  type Progress,
  type WalkedPage,
  type WalkedPages,
} from '../walk.ts';
import { joinPages } from './join-pages.ts';
import { nextRecord, type IndexBuilder, type PageIndex } from './page-index.ts';
import { prefetchPages, type Pace, type PageRead, type Prefetch } from './prefetch-pages.ts';

export interface ParallelWalkOptions<R extends Identified> {
  readonly index: PageIndex;
  /** The page of the index to begin with, or a cursor in front of one. */
  readonly start: { readonly page: number } | { readonly after: string; readonly before: number };
  /** The page limit of the field. */
  readonly limit: number | undefined;
  /** Records wanted; undefined: all. The last page can have more. */
  readonly wanted: number | undefined;
  readonly pace: Pace;
  readonly signal: AbortSignal;
  readonly progress: Progress<R>;
  /** Makes the index of the next walk. */
  readonly builder: IndexBuilder;
  readonly onEnd: OnWalkEnd;
}

/** Pages of a gap that are read ahead of the consumer. A longer gap is read when the consumer comes to it. */
const MAX_GAP_AHEAD = 4;

/**
 * Walks a list that has an index: reads its pages at the same time, and proves by records that each continues the one
 * before (join-pages.ts). Where that cannot be proved, it reads on from the last proved page until it meets a later
 * page of the index.
 *
 * A list that stands still during the walk is given exactly, whatever happened to it since the index was made. Of one
 * that changes during the walk, no more is lost than by reading it page by page.
 */
export async function* parallelWalk<R extends Identified>(
  fetchPage: FetchPage<R>,
  options: ParallelWalkOptions<R>,
): WalkedPages<R> {
  const { index, start, limit, pace, progress, builder } = options;
  let ended = false;
  const leaving = new AbortController();
  const signal = AbortSignal.any([options.signal, leaving.signal]);
  const prefetch = prefetchPages(fetchPage, {
    index,
    limit,
    pace,
    signal,
    onSettled: (page) => {
      meetNext(page - 1);
      meetNext(page);
    },
  });
  const given = createGivenPages(prefetch, progress, signal);
  /** The pages of the index that the next one is proved to continue, with the offset of its first record in them. */
  const joined = new Map<number, number>();
  const bridges = new Map<number, Promise<Bridge<R>>>();
  let left = options.wanted ?? Number.POSITIVE_INFINITY;

  /** What leads on from a page of the index. */
  const bridgeFrom = (page: number) => {
    const known = bridges.get(page);
    if (known) return known;
    const begun = prefetch
      .page(page)
      .then((read) => (read ? buildBridge(read, page + 1, prefetch, index) : NO_BRIDGE));
    bridges.set(page, begun);
    return begun;
  };
  let passed = 0;
  let bridged = 0;
  const lookAhead = (page: number) => {
    for (; passed < page; passed += 1) {
      bridges.delete(passed);
      joined.delete(passed);
    }
    const end = prefetch.lookAhead(page, left);
    bridged = Math.max(bridged, page);
    while (bridged < end) {
      bridged += 1;
      meetNext(bridged - 1);
    }
  };

  /**
   * Joins a page to the next one as soon as both were read. If they do not join, what leads on from the page is read
   * now, not when the consumer needs it.
   */
  function meetNext(page: number): void {
    if (page < passed || page >= bridged) return;
    const read = prefetch.settled(page);
    if (!read || read === 'pending') return;
    if (page + 1 < index.pages.length) {
      void prefetch.page(page + 1);
      const next = prefetch.settled(page + 1);
      if (next === 'pending') return;
      const join = next && joinPages(read.page, next.page, index.pages[page + 1]!.behind);
      if (join?.kind === 'joined') {
        joined.set(page, join.at);
        return;
      }
    }
    void bridgeFrom(page);
  }

  try {
    let page = 'page' in start ? start.page : start.before - 1;
    lookAhead('page' in start ? page : page + 1);
    let read =
      'page' in start ? await prefetch.mustRead(page) : await prefetch.mustReadFrom(start.after);
    let bridge =
      'page' in start ? () => bridgeFrom(page) : () => buildBridge(read, page + 1, prefetch, index);
    let at: number | undefined;
    /** Whether `read` is that page of the index. */
    let isIndexed = 'page' in start;
    whole: for (;;) {
      yield give(read, at);
      if (left <= 0 || !read.page.hasNextPage) break;

      // Repeated ids prove no join, and the records that two pages share would be given twice.
      if (progress.idsAreUnique && isIndexed && page + 1 < index.pages.length) {
        const next = await prefetch.page(page + 1);
        at = joined.get(page);
        if (next && at !== undefined) {
          page += 1;
          lookAhead(page);
          read = next;
          continue;
        }
      }
      const { gap, to } = progress.idsAreUnique ? await bridge() : NO_BRIDGE;
      for (const between of gap) {
        yield give(between);
        if (left <= 0 || !between.page.hasNextPage) break whole;
      }
      const end = gap.at(-1) ?? read;
      const next = to === 'open' ? yield* readOn(end, page + 1) : { page: to, joinedTo: end.page };
      if (!next) break;
      page = next.page;
      lookAhead(page);
      read = (await prefetch.page(page))!;
      const join = joinPages(next.joinedTo, read.page, index.pages[page]!.behind);
      at = join.kind === 'joined' ? join.at : undefined;
      bridge = () => bridgeFrom(page);
      isIndexed = true;
    }
    ended = true;
  } finally {
    leaving.abort(WALK_LEFT);
    options.onEnd(ended);
  }

  function give({ after, page }: PageRead<R>, at?: number): WalkedPage<R> {
    builder.add(after, page, at);
    given.add(after);
    const { records } = progress.of(page);
    left -= records.length;
    return walkedPage(page, records, after);
  }

  /** Reads page by page from the last proved page, until one joins a page of the index. */
  async function* readOn(
    end: PageRead<R>,
    from: number,
  ): AsyncGenerator<WalkedPage<R>, { page: number; joinedTo: Page<R> } | undefined, undefined> {
    let last = end;
    const again = identitiesOf(end.page).isJoinable ? await given.readEndAgain() : end;
    // Records without an identity would be given twice.
    if (again !== end && identitiesOf(again.page).isJoinable) {
      last = again;
      const walked = give(again, 0);
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
        builder.add(at, page);
        last = { after: at, page };
        given.restart(at);
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

interface Bridge<R> {
  /** Pages in between that are not in the index. */
  readonly gap: readonly PageRead<R>[];
  /** The page of the index that continues behind them; `open` if none was met yet. */
  readonly to: number | 'open';
}

const NO_BRIDGE = { gap: [], to: 'open' } as const;

async function buildBridge<R extends Identified>(
  from: PageRead<R>,
  next: number,
  prefetch: Prefetch<R>,
  index: PageIndex,
): Promise<Bridge<R>> {
  const gap: PageRead<R>[] = [];
  let last = from;
  for (;;) {
    const met = await prefetch.joining(last.page, next);
    if (met !== undefined) return { gap, to: met };
    const { hasNextPage, endCursor } = last.page;
    if (!hasNextPage || endCursor === null || gap.length >= MAX_GAP_AHEAD) break;
    if (next >= index.pages.length) break;
    const read = await prefetch.readFrom(endCursor);
    if (!read || !(await isBehind(last, read))) break;
    gap.push(read);
    last = read;
  }
  return { gap, to: 'open' };

  /**
   * Whether no record was lost between the two pages, which were read one after the other: a cursor that names an
   * offset skips a record when one in front of it is removed meanwhile.
   */
  async function isBehind(page: PageRead<R>, read: PageRead<R>): Promise<boolean> {
    const [end, start] = [page.page.items.at(-1)?.identity, read.page.items[0]?.identity];
    if (!end || !start || !identitiesOf(read.page).isJoinable) return false;
    if (nextRecord(index, end, next - 2, next) === identityHash(start)) return true;
    const again = await prefetch.readFrom(page.after);
    return again !== undefined && isSame(again.page, page.page);
  }
}

function isSame(page: Page<Identified>, other: Page<Identified>): boolean {
  return (
    page.items.length === other.items.length &&
    page.items.every(({ identity }, offset) => identity === other.items[offset]!.identity)
  );
}

/** The pages that a walk has given, from the last one on that was not read ahead. */
interface GivenPages<R> {
  /** A page was given that continues the one before. */
  add(after: string | null): void;
  /** A page was given that was read just now, from the cursor of the one before. */
  restart(after: string | null): void;
  /**
   * Reads the last given page again, to continue from there. It may have been read long ago: if its cursor names an
   * offset, and records in front of that were removed since, then records that were never given have moved in front
   * of it. So when the page repeats no given record, an earlier one is read instead.
   *
   * The first of the given pages is used whatever it holds: a record that is removed between two pages read in turn
   * is lost once, as in any walk page by page, and not once more at each page that was read ahead.
   *
   * @throws the failure of the page
   */
  readEndAgain(): Promise<PageRead<R>>;
}

/** The most pages to go back at a time: a walk that goes back too far gives no new record for too long. */
const MAX_STEP = 100;

function createGivenPages<R extends Identified>(
  { mustReadFrom }: Pick<Prefetch<R>, 'mustReadFrom'>,
  progress: Progress<R>,
  signal: AbortSignal,
): GivenPages<R> {
  const cursors: (string | null)[] = [];

  return {
    add: (after) => cursors.push(after),
    restart: (after) => cursors.splice(0, cursors.length, after),
    readEndAgain: async () => {
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

  /** Whether the page repeats two given records, or its only one: one of several may have been moved there. */
  function repeats(page: Page<R>): boolean {
    const repeated = progress.repeatedBy(page);
    return (
      identitiesOf(page).isJoinable && repeated > 0 && repeated >= Math.min(2, page.items.length)
    );
  }
}
