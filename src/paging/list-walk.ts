import type { Position } from './cursor.ts';
import { mayBeOfRecords } from './failures.ts';
import {
  overlappingSize,
  sizeOf,
  type FetchPage,
  type Identified,
  type Page,
  type PageRequest,
} from './page.ts';
import { IndexBuilder, pageOf, recordsIn, type PageIndex, type PageIndexes } from './page-index.ts';
import { parallelWalk, type Pace, type ParallelWalkOptions } from './parallel-walk.ts';
import { walkBehind, type IndexedList } from './find.ts';
import type { ServiceCounts, Totals } from './counts.ts';
import { Progress, walk, type WalkedPages } from './walk.ts';

/** A list whose walks leave a page index. */
export interface WalkableList<R> extends Pick<IndexedList, 'fetchIdentities'> {
  readonly fetchPage: FetchPage<R>;
  /** Identifies the list with its filters. */
  readonly key: string;
  /** Identifies the upstream's field; all its lists have one page limit. */
  readonly field: string;
  readonly indexes: PageIndexes;
  readonly pace: Pace;
  /** The largest page that the service accepts with this selection; undefined: its page limit. */
  readonly sizeNow?: () => number | undefined;
  /**
   * Whether the list is below another record: it is probably short, and walked once. It is read in full pages, so its
   * first index has no overlaps, and the index is kept only if the list is long.
   */
  readonly isNested?: boolean;
  /** Set if each request must state a size; undefined: the service uses its page limit. */
  readonly pageSizes?: PageSizes | undefined;
  /** Called for each walk with whether it has an index, and so reads pages ahead. */
  readonly onIndex?: (hasIndex: boolean) => void;
  readonly counts?: ServiceCounts;
  /** Where to keep the total of a whole walk. */
  readonly totals?: Pick<Totals, 'begin'>;
  /** Called when a whole walk met fewer records than the service counted both at its beginning and at its end. */
  readonly onShort?: (walked: number, counted: number) => void;
}

export interface PageSizes {
  /** A size that every list should accept. */
  readonly usual: number;
  /** A size that is requested once to learn the limit: the service returns fewer records, or refuses it. */
  readonly largest: number;
}

export interface ListWalkOptions<R extends Identified> {
  /** The record behind which the walk begins; null: the start of the list. */
  readonly position: Position | null;
  /** Records needed; undefined: all. The last page can have more. */
  readonly limit?: number | undefined;
  /** Set if only the end of the walk is needed, so that it may begin as late as the index allows. */
  readonly tail?: Tail | undefined;
  /**
   * For a walk in parts, each of which begins behind the last page of the part before. Together they leave one index.
   * Without an index, a part requests each page only when it is needed.
   */
  readonly unfinished?: UnfinishedWalk<R> | undefined;
  readonly signal: AbortSignal;
}

/** The state that the parts of one walk share; empty before the first part. */
export interface UnfinishedWalk<R extends Identified> {
  progress?: Progress<R>;
  /** Undefined also if a part did not begin behind the part before. */
  builder?: IndexBuilder | undefined;
  /** Takes the number of records at the end. The age of the total counts from the first part. */
  onCounted?: ((total: number) => void) | undefined;
}

export interface Tail {
  /** The least number of records needed. */
  readonly records: number;
  /** The record at which they end; null: the end of the list. */
  readonly before: string | null;
}

/**
 * Walks a list: page by page the first time, several pages at the same time once the list has an index. A walk from
 * start to end leaves the index for the next walk.
 */
export function walkList<R extends Identified>(
  list: WalkableList<R>,
  options: ListWalkOptions<R>,
): WalkedPages<R> {
  const { position, signal } = options;
  const { fetchIdentities } = list;
  const fetchPage = learningLimit(list);
  const begin = (after: string | null) => walkFrom(after, { ...list, fetchPage }, options);
  const index = () => list.indexes.get(list.key);
  return walkBehind({ fetchIdentities, index }, position, begin, signal);
}

/** Learns the page limit from every page that was requested without a size, or has fewer records than its size. */
function learningLimit<R extends Identified>(list: WalkableList<R>): FetchPage<R> {
  const { fetchPage, field, indexes } = list;
  return async (request, signal) => {
    const page = await (request.first === undefined
      ? fetchLargest(list, request, signal)
      : fetchPage(request, signal));
    if (page.isPart) return page;
    const limit = page.limit ?? (page.hasNextPage ? sizeOf(page) : undefined);
    const isCut = request.first !== undefined && limit !== undefined && limit < request.first;
    if (limit !== undefined && limit > 0 && (request.first === undefined || isCut)) {
      indexes.learnLimit(field, limit);
    }
    return page;
  };
}

async function fetchLargest<R extends Identified>(
  { fetchPage, field, indexes, pageSizes }: WalkableList<R>,
  request: PageRequest,
  signal: AbortSignal,
): Promise<Page<R>> {
  if (!pageSizes) return fetchPage(request, signal);
  const limit = indexes.limitOf(field);
  if (limit !== undefined) return fetchPage({ ...request, first: limit }, signal);
  try {
    return await fetchPage({ ...request, first: pageSizes.largest }, signal);
  } catch (error) {
    if (!mayBeOfRecords(error, signal)) throw error;
    // Remembered, so that a list that fails for another reason is not requested twice each time.
    indexes.learnLimit(field, pageSizes.usual);
    return fetchPage({ ...request, first: pageSizes.usual }, signal);
  }
}

function walkFrom<R extends Identified>(
  after: string | null,
  list: WalkableList<R>,
  { position, limit: records, tail, unfinished, signal }: ListWalkOptions<R>,
): WalkedPages<R> {
  const { key, field, indexes, pace, isNested = false, onIndex } = list;
  const counted = countedPages(list);
  const { fetchPage } = counted;
  const index = indexes.get(key);
  const sizeNow = list.sizeNow?.();
  const limitNow = () => leastOf(indexes.limitOf(field), list.sizeNow?.());
  const limit = limitNow();
  const { progress, builder, onCounted } = partOf(unfinished, after, list);
  const isSmall = records !== undefined && records < (limit ?? Number.POSITIVE_INFINITY);
  const isKnown =
    index !== undefined &&
    overlappingSize(limit) !== undefined &&
    (sizeNow === undefined || index.pages.every(({ count }) => count <= limit!));
  const late = isKnown && tail && after === null ? lateStart(index, tail) : undefined;
  const start = late ?? (isKnown && !isSmall ? startOf(index, after, position) : undefined);
  // A walk of a few records, or from the middle of the list, learns too little for an index.
  const leavesIndex = builder !== undefined && records === undefined && !late;
  const onEnd = (ended: boolean) => {
    if (!leavesIndex) return;
    if (ended) {
      counted.check(progress.count);
      // Nested lists of one page are counted with their parents, and there may be very many of them.
      if (!isNested || counted.hasSeveral()) onCounted?.(progress.count);
    }
    const left = builder.finish({ complete: ended, limit: limitNow() });
    if (!ended && !reachesFurther(left, indexes.get(key))) return;
    const isWorthIt = left && (!isNested || left.pages.length >= LONG_NESTED);
    if (isWorthIt) indexes.set(key, left);
    else indexes.drop(key);
  };
  onIndex?.(start !== undefined);
  if (index && start) {
    const options = { index, start, limit, records, pace, signal, progress, builder, onEnd };
    return parallelWalk(fetchPage, options satisfies ParallelWalkOptions<R>);
  }
  const part = {
    progress,
    readsAhead: unfinished === undefined,
    pageSize: () => (leavesIndex && !isNested ? overlappingSize(limitNow()) : undefined),
    ...(leavesIndex && { onPage: (at: string | null, page: Page<R>) => builder.add(at, page) }),
    onEnd,
  };
  return walk(fetchPage, { after, signal, ...(records !== undefined && { limit: records }) }, part);
}

/**
 * Begins a walk, or a part that continues what earlier parts have noted. They may have noted a page that they never
 * yielded, because it did not follow, or because no reader waited for it any more. So a part continues only from the
 * end of the page that was noted last; otherwise its records could be mistaken for repeated ones.
 */
function partOf<R extends Identified>(
  unfinished: UnfinishedWalk<R> = {},
  after: string | null,
  { key, indexes, totals }: WalkableList<R>,
) {
  if (after === null) {
    unfinished.builder = new IndexBuilder(indexes.maxRecords);
    unfinished.onCounted = totals?.begin(key);
  } else if (unfinished.builder?.end !== after) unfinished.builder = undefined;
  else return unfinished as Required<UnfinishedWalk<R>>;
  const progress = (unfinished.progress = new Progress<R>());
  return { progress, builder: unfinished.builder, onCounted: unfinished.onCounted };
}

/** Whether this index covers more of the list: a partial index is better than none, or than a shorter one. */
function reachesFurther(left: PageIndex | undefined, known: PageIndex | undefined): boolean {
  if (!left || known?.complete) return false;
  return !known || recordsIn(left) > recordsIn(known);
}

/** Notes the counts that come with the pages of one walk, and checks the walk against them. */
function countedPages<R extends Identified>({ fetchPage, key, counts, onShort }: WalkableList<R>) {
  let before: number | undefined;
  let after: number | undefined;
  let pages = 0;
  return {
    hasSeveral: () => pages > 1,
    fetchPage: async (request: PageRequest, signal: AbortSignal) => {
      const page = await fetchPage(request, signal);
      counts?.note(key, page);
      pages += 1;
      before ??= page.total;
      after = page.total;
      return page;
    },
    check: (walked: number) => {
      if (before === undefined || after === undefined) return;
      const counted = counts?.check(key, { walked, before, after });
      if (counted !== undefined) onShort?.(walked, counted);
    },
  };
}

function leastOf(limit: number | undefined, size: number | undefined): number | undefined {
  const least = Math.min(limit ?? Infinity, size ?? Infinity);
  return least === Infinity ? undefined : least;
}

/** The number of pages from which the index of a nested list is kept. */
const LONG_NESTED = 4;

/** Returns the page at which to begin for the end of a list; undefined if that is the first page. */
function lateStart({ pages, complete }: PageIndex, { records, before }: Tail) {
  let page = before === null ? pages.length : (pageOf({ pages, complete }, before) ?? 0);
  if (before === null && !complete) return undefined;
  // The page of the record itself does not count, and the last page may have lost records since.
  let sure = 0;
  while (page > 0 && sure < records) {
    page -= 1;
    sure += pages[page]!.count;
  }
  return page > 0 ? { page } : undefined;
}

/** Returns where a parallel walk begins; undefined if the index does not know, or has no later page. */
function startOf(index: PageIndex, after: string | null, position: Position | null) {
  const { pages } = index;
  const page = pages.findIndex((each) => each.after === after);
  if (page >= 0) return pages.length - page > 1 ? { page } : undefined;
  if (after === null || !position?.identity) return undefined;
  const holder = pageOf(index, position.identity);
  if (holder === undefined || pages.length - holder < 2) return undefined;
  return { after, before: holder + 1 };
}
