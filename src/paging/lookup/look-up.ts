import { codedError } from '../../errors.ts';
import type { PageBudget } from '../page-budget.ts';
import type { FetchPage, Identified } from '../page.ts';
import {
  pagesNear,
  positionsIn,
  type PageIndex,
  type PagePosition,
} from '../page-index/page-index.ts';
import { readOnward } from '../position/locate.ts';
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
 * Finds records by their identities, with fresh values. The records of one page cost one request, for as much of the
 * page as is needed. Reads in turn: the positions in the page index; the pages near them; the first and the last page
 * of the list; and the positions that a walk finds, with the pages that follow these. A record that was met on the way
 * and not read is a failure, not null. `locate` finds the record of a cursor, and says why it is another.
 */
export async function lookUp<R extends Identified>(
  list: LookupList<R>,
  identities: readonly string[],
  options: LookupOptions,
): Promise<ReadonlyMap<string, LookedUp<R>>> {
  const { index, walkFor } = list;
  const { signal } = options;
  const pages = new PageReader(list, identities, signal);
  const { missing } = pages;

  const indexed = positionsIn(index?.pages ?? [], identities);
  list.onPositions?.(indexed.size, identities.length - indexed.size);
  await pages.read(indexed);
  if (index && missing.size > 0) {
    const numbers = Array.from(missing).flatMap((each) => indexed.get(each)?.page ?? []);
    await pages.readWhole(pagesNear(index, numbers));
  }
  let tried: ReadonlyMap<string, PagePosition> = indexed;
  /** Records that were there a moment ago. */
  const met = new Set<string>();
  if (index && missing.size > 0) {
    const ends = await readEnds(list, index, missing, signal);
    await readAround(pages, ends.positions);
    for (const identity of ends.positions.keys()) met.add(identity);
    if (ends.isAll && ![...missing].some((identity) => met.has(identity))) return pages.found();
    tried = new Map([...ends.positions, ...indexed]);
  }
  for (let walks = 0; missing.size > 0 && walks < MAX_WALKS; walks += 1) {
    const gone = new Map([...tried].filter(([identity]) => missing.has(identity)));
    // After a walk, only a record that it met a moment ago, and that is gone from there, is worth another.
    if (walks > 0 && gone.size === 0) break;
    tried = await readFound(pages, await walkFor([...missing], gone, options));
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

/** @returns the positions that were read */
async function readFound<R extends Identified>(
  pages: PageReader<R>,
  found: FoundPositions,
): Promise<ReadonlyMap<string, PagePosition>> {
  const positions = new Map<string, PagePosition>();
  for (const [identity, position] of found) {
    if (position === null) continue;
    if ('error' in position) pages.fail(identity, position.error);
    else positions.set(identity, position);
  }
  await readAround(pages, positions);
  return positions;
}

/**
 * Reads records at positions where they were met a moment ago. The list may have changed since, in front of them:
 * those that are not there are looked for in the whole page, and in the one that follows it.
 */
async function readAround<R extends Identified>(
  pages: PageReader<R>,
  positions: ReadonlyMap<string, PagePosition>,
): Promise<void> {
  await pages.read(positions);
  const gone = [...positions].filter(([identity]) => pages.missing.has(identity));
  await pages.readWhole(gone.map(([, { after }]) => after));
}

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
  { pages, complete }: PageIndex,
  wanted: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<{ positions: Map<string, PagePosition>; isAll: boolean }> {
  const last = pages.at(-1)?.after ?? null;
  const positions = new Map<string, PagePosition>();
  let isAll = false;
  await Promise.all(
    [...new Set([null, last])].map(async (end) => {
      const bounds = { after: end, maxPages: complete && end === last ? MAX_GROWN : 1, signal };
      try {
        for await (const { page, after } of readOnward(fetchIdentities, bounds)) {
          if (after === null && !page.hasNextPage) isAll = true;
          for (const [offset, { identity }] of page.items.entries()) {
            if (identity !== null && wanted.has(identity))
              positions.set(identity, { after, offset });
          }
        }
      } catch (error) {
        // The walk will fail as well, with its own error.
        if (signal.aborted) throw error;
      }
    }),
  );
  return { positions, isAll };
}
