import { codedError } from '../../errors.ts';
import type { PageBudget } from '../page-budget.ts';
import { PAGES_PER_OPERATION, type FetchPage, type Identified } from '../page.ts';
import {
  pagesNear,
  positionsIn,
  type PageIndex,
  type PagePosition,
} from '../page-index/page-index.ts';
import { readByTurns, readOnward } from './find.ts';
import { PageReader, type LookedUp, type LookupFailure } from './page-reader.ts';

/** A list that can only be read in pages, in which records are found by their ids. */
export interface LookupList<R> {
  /** Fetches pages with all that is selected of the records. */
  readonly fetchPage: FetchPage<R>;
  /** Fetches pages with nothing but the identities. */
  readonly fetchIdentities: FetchPage<Identified>;
  /** Of the last walk, if there was one. */
  readonly index: PageIndex | undefined;
  /**
   * Finds records by a walk of the list, one for all lookups.
   *
   * @param tried positions of the last walk at which the records were not found any more
   */
  readonly walkFor: (
    identities: readonly string[],
    tried: ReadonlyMap<string, PagePosition>,
    options: LookupOptions,
  ) => Promise<FoundPositions>;
  /** Called with how many of the records the index has positions of, and of how many it has none. */
  readonly onPositions?: (known: number, unknown: number) => void;
}

export interface LookupOptions {
  readonly signal: AbortSignal;
  /** Spends for the pages of a walk while the lookup waits for it. */
  readonly pages: PageBudget;
}

/** Where records are; null: there is no such record. */
export type FoundPositions = ReadonlyMap<string, PagePosition | null | LookupFailure>;

/**
 * Finds records by their ids, with fresh values: at their positions, near them, and further away (see `find.ts`). The
 * records of one page cost one request, for as much of the page as is needed. A record that was met on the way and not
 * read is a failure, not null.
 */
export async function lookUp<R extends Identified>(
  list: LookupList<R>,
  identities: readonly string[],
  options: LookupOptions,
): Promise<ReadonlyMap<string, LookedUp<R>>> {
  const { index, walkFor } = list;
  const pages = new PageReader(list, identities, options.signal);
  const { missing } = pages;

  const indexed = positionsIn(index?.pages ?? [], identities);
  list.onPositions?.(indexed.size, identities.length - indexed.size);
  await pages.readAround(indexed, (gone) => pagesNear(index, gone));

  let tried: ReadonlyMap<string, PagePosition> = indexed;
  /** Records that were there a moment ago. */
  const met = new Set<string>();
  if (index?.complete && missing.size > 0) {
    const ends = await readEnds(list, index, missing, options.signal);
    await pages.readAround(ends.positions);
    for (const identity of ends.positions.keys()) met.add(identity);
    if (ends.isAll && ![...missing].some((identity) => met.has(identity))) return pages.found();
    tried = new Map([...ends.positions, ...indexed]);
  }
  for (let walks = 0; missing.size > 0 && walks < MAX_WALKS; walks += 1) {
    const gone = new Map([...tried].filter(([identity]) => missing.has(identity)));
    // After a walk, only a record that it met a moment ago, and that is gone from there, is worth another.
    if (walks > 0 && gone.size === 0) break;
    const walked = new Map<string, PagePosition>();
    for (const [identity, position] of await walkFor([...missing], gone, options)) {
      if (position && 'error' in position) pages.fail(identity, position.error);
      else if (position) walked.set(identity, position);
    }
    await pages.readAround(walked);
    tried = walked;
  }
  for (const identity of tried.keys()) met.add(identity);
  for (const identity of met) {
    pages.failIfRefused(identity);
    pages.fail(identity, keepsMoving());
  }
  return pages.found();
}

/** One for records of unknown position, and one for records that were gone from their positions when these were read. */
const MAX_WALKS = 2;

/** Seconds until the list has probably stopped changing. */
const REST_SECONDS = 1;

/** For a record that was met, but not at its position when that was read: it was removed, or pushed far away. */
function keepsMoving() {
  return codedError(
    'RATE_LIMITED',
    'The record was found, but the list changed each time before its values could be read. ' +
      `Try again in ${REST_SECONDS} second.`,
    { extensions: { retryAfter: REST_SECONDS } },
  );
}

/** Pages that are read from the last known one on. A list that has grown by more is walked. */
const MAX_GROWN = 4;

/**
 * Reads the first page of the list, and the last ones: new records are inserted at the start of a list or at its end,
 * and push others behind the last known page.
 */
async function readEnds(
  { fetchIdentities }: Pick<LookupList<unknown>, 'fetchIdentities'>,
  { pages }: PageIndex,
  wanted: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<{ positions: Map<string, PagePosition>; isAll: boolean }> {
  const last = pages.at(-1)?.after ?? null;
  const ways = Array.from(new Set([null, last]), (after) => {
    const maxPages = after === last ? MAX_GROWN : 1;
    // If it fails, so will the walk, with its own error.
    return readOnward(fetchIdentities, { after, maxPages, signal }, () => !signal.aborted);
  });
  const positions = new Map<string, PagePosition>();
  let isAll = false;
  await readByTurns(ways, PAGES_PER_OPERATION, ({ page, after }) => {
    isAll ||= after === null && !page.hasNextPage;
    for (const { identity, index: offset } of page.items) {
      if (identity !== null && wanted.has(identity)) positions.set(identity, { after, offset });
    }
    return undefined;
  });
  return { positions, isAll };
}
