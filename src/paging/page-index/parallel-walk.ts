import {
  overlappingSize,
  type FetchPage,
  type Identified,
  type Page,
  identitiesOf,
} from '../page.ts';
import { identityHash } from '../identities.ts';
import { nextRecord, type IndexBuilder, type PageIndex } from './page-index.ts';
import { joinPages } from './join-pages.ts';
import { prefetchPages, type PageRead, type Prefetch, type Pace } from './prefetch-pages.ts';
import { stalledError, type Progress, walk, walkedPage, type WalkedPage } from '../walk.ts';
import { mayBeRefusal, WALK_LEFT } from '../failures.ts';

export interface ParallelWalkOptions<R> {
  readonly index: PageIndex;
  /** Where to begin: a page of the index, or a cursor that lies before one. */
  readonly start: { readonly page: number } | { readonly after: string; readonly before: number };
  /** The largest page that the node gives. */
  readonly limit: number | undefined;
  /** Records wanted; the last page can bring more. */
  readonly wanted: number | undefined;
  readonly pace: Pace;
  readonly signal: AbortSignal;
  readonly progress: Progress<R>;
  /** Makes the index of the next walk. */
  readonly builder: IndexBuilder;
}

/** How far ahead of the consumer a gap is filled; a longer one is read when its turn has come. */
const MAX_GAP_AHEAD = 4;

/**
 * Walks a list whose pages were seen before: reads them at the same time, from where they began then, and
 * proves by records that each goes on where the one before ends. Where that cannot be proved, the list is
 * read on from the last page that was, until it meets a later one.
 *
 * A list that stands still meanwhile is given exactly, whatever happened to it since the index was made.
 * In one that changes, no more is lost than by reading it page by page.
 */
export async function* parallelWalk<R extends Identified>(
  fetchPage: FetchPage<R>,
  options: ParallelWalkOptions<R>,
): AsyncGenerator<WalkedPage<R>, void, undefined> {
  const { index, start, limit, pace, progress, builder } = options;
  const leaving = new AbortController();
  const signal = AbortSignal.any([options.signal, leaving.signal]);
  const prefetch = prefetchPages(fetchPage, { index, limit, pace, signal });
  const trail = createTrail(prefetch, progress, signal);
  const bridges = new Map<number, Promise<Bridge<R>>>();
  let left = options.wanted ?? Number.POSITIVE_INFINITY;

  /** What leads on from a page of the index; begun as soon as that page has come, not when its turn is. */
  const bridgeFrom = (page: number) => {
    const known = bridges.get(page);
    if (known) return known;
    const begun = prefetch
      .page(page)
      .then((read) => (read ? buildBridge(read, page + 1, prefetch, index) : NO_BRIDGE));
    bridges.set(page, begun);
    return begun;
  };
  const lookAhead = (page: number) => {
    for (const passed of bridges.keys()) if (passed < page) bridges.delete(passed);
    for (const each of prefetch.lookAhead(page, left)) void bridgeFrom(each);
  };

  try {
    let page = 'page' in start ? start.page : start.before - 1;
    lookAhead('page' in start ? page : page + 1);
    let read =
      'page' in start ? await prefetch.mustRead(page) : await prefetch.mustReadFrom(start.after);
    let bridge = 'page' in start ? bridgeFrom(page) : buildBridge(read, page + 1, prefetch, index);
    let at: number | undefined;
    for (;;) {
      const walked = give(read, at);
      yield walked;
      if (left <= 0 || !read.page.hasNextPage) return;

      // Where ids repeat, nothing proves a join, and what two pages share would be given twice.
      const { gap, to } = progress.idsAreUnique ? await bridge : NO_BRIDGE;
      for (const between of gap) {
        yield give(between);
        if (left <= 0 || !between.page.hasNextPage) return;
      }
      const end = gap.at(-1) ?? read;
      const next = to === 'open' ? yield* readOn(end, page + 1) : { page: to, joinedTo: end.page };
      if (!next) return;
      page = next.page;
      lookAhead(page);
      read = (await prefetch.page(page))!;
      const join = joinPages(next.joinedTo, read.page, index.pages[page]!.behind);
      at = join.kind === 'joined' ? join.at : undefined;
      bridge = bridgeFrom(page);
    }
  } finally {
    leaving.abort(WALK_LEFT);
  }

  function give({ after, page }: PageRead<R>, at?: number): WalkedPage<R> {
    builder.add(after, page, at);
    trail.add(after);
    const { records } = progress.of(page);
    left -= records.length;
    return walkedPage(page, records, after);
  }

  /** Page by page from the last one that is proved, until a page of the index is met. */
  async function* readOn(
    end: PageRead<R>,
    from: number,
  ): AsyncGenerator<WalkedPage<R>, { page: number; joinedTo: Page<R> } | undefined, undefined> {
    let last = end;
    const again = identitiesOf(end.page).isJoinable ? await trail.readEndAgain() : end;
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
        trail.begin(at);
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
  /** Pages that no index knew. */
  readonly gap: readonly PageRead<R>[];
  /** The page of the index that goes on behind them; `open` when none was met yet. */
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
   * Whether nothing went between the two while the first was read and then the second: a cursor that names
   * a position skips a record when one before it is removed meanwhile.
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
    page.items.every(({ identity }, place) => identity === other.items[place]!.identity)
  );
}

/** The pages that a walk gave, from the last one on that was read when its turn came. */
export interface Trail<R> {
  /** A page was given that goes on where the one before ends. */
  add(after: string | null): void;
  /** A page was given that was read just now, from the cursor of the one before. */
  begin(after: string | null): void;
  /**
   * Reads the end of the trail once more, to go on from there. It may have been read long ago; where its cursor
   * names a position and records before that were removed since, records that nobody gave have moved in front
   * of it. So when the page repeats nothing, an earlier one is read instead.
   *
   * At the latest the first of the trail, and that is gone on from whatever it holds: what is removed between
   * two pages read in turn is lost once, as in any walk page by page, and not once more at each page that was
   * read ahead.
   *
   * @throws why it could not be read
   */
  readEndAgain(): Promise<PageRead<R>>;
}

/** Pages to go further back at a time, at most: a walk that goes too far back brings nothing new for too long. */
const MAX_STEP = 100;

export function createTrail<R extends Identified>(
  { mustReadFrom }: Pick<Prefetch<R>, 'mustReadFrom'>,
  progress: Progress<R>,
  signal: AbortSignal,
): Trail<R> {
  const cursors: (string | null)[] = [];

  return {
    add: (after) => cursors.push(after),
    begin: (after) => cursors.splice(0, cursors.length, after),
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

  /** Two records, where there are two: one alone may have been moved there. */
  function repeats(page: Page<R>): boolean {
    const repeated = progress.repeatedBy(page);
    return (
      identitiesOf(page).isJoinable && repeated > 0 && repeated >= Math.min(2, page.items.length)
    );
  }
}
