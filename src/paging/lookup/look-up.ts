import type { FetchPage, Identified } from '../page.ts';
import { type PageIndex, placesIn, type KnownPlace, type Place } from '../page-index/page-index.ts';
import type { PageBudget } from '../page-budget.ts';
import { PageReader, type LookedUp, type LookupFailure } from './page-reader.ts';

/** A list that can only be paged through, in which records are looked for by their identities. */
export interface LookedUpList<R> {
  /** Pages with all that is wanted of the records. */
  readonly fetchPage: FetchPage<R>;
  /** Pages of which nothing but the identities is wanted. */
  readonly fetchIdentities: FetchPage<Identified>;
  /** Of the last walk, if there was one. */
  readonly index: PageIndex | undefined;
  /**
   * Walks the list, one walk for all who look for something.
   *
   * @param tried places where they were looked for already: who was met there by the last walk is gone from it
   */
  readonly search: (
    identities: readonly string[],
    tried: ReadonlyMap<string, Place>,
    seeking: Seeking,
  ) => Promise<Sought>;
  /** Told how many of them the index had a place for, and how many not. */
  readonly onPlaces?: (known: number, unknown: number) => void;
}

/** Who looks for something. */
export interface Seeking {
  /** Aborted when they leave. */
  readonly signal: AbortSignal;
  /** Pays for a walk, while it is waited for. */
  readonly pages: PageBudget;
}

/** Where records are; null: there is none. */
export type Sought = ReadonlyMap<string, Place | null | LookupFailure>;

/**
 * Finds records by their identities, with fresh values: those of one page cost one request, for as much of the
 * page as is needed. In turns: where the last walk met them; in the pages beside those; on the first and the
 * last page of the list; and by a walk.
 */
export async function lookUp<R extends Identified>(
  list: LookedUpList<R>,
  identities: readonly string[],
  seeking: Seeking,
): Promise<ReadonlyMap<string, LookedUp<R>>> {
  const { index, search } = list;
  const { signal } = seeking;
  const pages = new PageReader(list, identities, signal);
  const { missing } = pages;

  const met = placesIn(index?.pages ?? [], identities);
  list.onPlaces?.(met.size, identities.length - met.size);
  await pages.read(met);
  if (index && missing.size > 0) {
    await pages.readWhole(
      neighboursOf(
        index,
        [...missing].flatMap((each) => met.get(each) ?? []),
      ),
    );
  }
  if (index && missing.size > 0) {
    const ends = await lookAtEnds(list, index, missing, signal);
    await pages.read(ends.places);
    if (ends.isAll) return pages.found();
  }
  let tried: ReadonlyMap<string, Place> = met;
  for (let searches = 0; missing.size > 0 && searches < MAX_SEARCHES; searches += 1) {
    const gone = new Map([...tried].filter(([identity]) => missing.has(identity)));
    // After a walk, only who was met a moment ago and is gone from there is worth another.
    if (searches > 0 && gone.size === 0) break;
    tried = await readSought(pages, await search([...missing], gone, seeking));
  }
  for (const identity of tried.keys()) pages.failIfRefused(identity);
  return pages.found();
}

/** One for those whose places nobody knows, and one for those who were gone from them by the time they were read. */
const MAX_SEARCHES = 2;

/** @returns where they were looked for */
async function readSought<R extends Identified>(
  pages: PageReader<R>,
  sought: Sought,
): Promise<ReadonlyMap<string, Place>> {
  const places = new Map<string, Place>();
  for (const [identity, place] of sought) {
    if (place === null) continue;
    if ('error' in place) pages.fail(identity, place.error);
    else places.set(identity, place);
  }
  await pages.read(places);
  return places;
}

/** Their pages in full, and those on both sides. */
function neighboursOf({ pages }: PageIndex, met: readonly KnownPlace[]): (string | null)[] {
  const near = new Set(met.flatMap(({ page }) => [page - 1, page, page + 1]));
  return [...near].flatMap((page) => (pages[page] ? [pages[page].after] : []));
}

/** Pages that are read from the last known one on: so far may a list have grown since. */
const MAX_GROWN = 4;

/** What is new stands at the start of a list, or at its end; what it pushed on, behind the last known page. */
async function lookAtEnds(
  { fetchIdentities }: Pick<LookedUpList<unknown>, 'fetchIdentities'>,
  { pages, complete }: PageIndex,
  wanted: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<{ places: Map<string, Place>; isAll: boolean }> {
  const last = pages.at(-1)?.after ?? null;
  const places = new Map<string, Place>();
  let isAll = false;
  await Promise.all(
    [...new Set([null, last])].map(async (end) => {
      let after = end;
      try {
        for (let left = complete && end === last ? MAX_GROWN : 1; left > 0; left -= 1) {
          const page = await fetchIdentities({ after, first: undefined }, signal);
          if (after === null && !page.hasNextPage) isAll = true;
          for (const [place, { identity }] of page.items.entries()) {
            if (identity !== null && wanted.has(identity)) places.set(identity, { after, place });
          }
          if (!page.hasNextPage || page.endCursor === null) return;
          after = page.endCursor;
        }
      } catch (error) {
        // The walk will say what is wrong.
        if (signal.aborted) throw error;
      }
    }),
  );
  return { places, isAll };
}
