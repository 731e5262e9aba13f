import { mayBeRefusal, WALK_LEFT } from '../failures.ts';
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
import { Bridges, NO_BRIDGE } from './bridges.ts';
import { joinPages, type Join } from './join-pages.ts';
import type { IndexBuilder, PageIndex } from './page-index.ts';
import type { Pace, PageRead, Prefetch } from './prefetch-pages.ts';

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
  readonly builder: IndexBuilder | undefined;
  readonly onEnd: OnWalkEnd;
}

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
  const bridges = new Bridges(fetchPage, { index, limit, pace, signal });
  const { prefetch } = bridges;
  const given = createGivenPages(prefetch, progress, signal);
  let left = options.wanted ?? Number.POSITIVE_INFINITY;

  try {
    let page = 'page' in start ? start.page : start.before - 1;
    bridges.lookAhead('page' in start ? page : page + 1, left);
    let read =
      'page' in start ? await prefetch.mustRead(page) : await prefetch.mustReadFrom(start.after);
    let at: number | undefined;
    /** Whether `read` is that page of the index. */
    let isIndexed = 'page' in start;
    whole: for (;;) {
      yield give(read, at);
      if (left <= 0 || !read.page.hasNextPage) break;

      // Repeated ids prove no join, and the records that two pages share would be given twice.
      const bridge = !progress.idsAreUnique
        ? NO_BRIDGE
        : await (isIndexed ? bridges.from(page) : bridges.build(read, page + 1));
      const { gap, to } = bridge;
      for (const between of gap) {
        yield give(between);
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

  function give({ after, page }: PageRead<R>, at?: number): WalkedPage<R> {
    builder?.add(after, page, at);
    given.add(after);
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
        builder?.add(at, page);
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

function offsetOf(join: Join): number | undefined {
  return join.kind === 'joined' ? join.at : undefined;
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
