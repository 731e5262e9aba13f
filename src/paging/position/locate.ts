import type { Position } from '../cursor.ts';
import type { ListMemory } from '../page-index/page-indexes.ts';
import type { FetchPage, Identified, Page, PageRequest } from '../page.ts';
import { mayBeRefusal } from '../failures.ts';

/** A list that records are looked for in. */
export interface SearchedList<R> {
  readonly fetchPage: FetchPage<R>;
  readonly memory?: ListMemory | undefined;
}

/** A record of a page that was read anew. */
export interface Located<R> {
  readonly page: Page<R>;
  /** The cursor that the page was asked with. */
  readonly after: string | null;
  /** Its place in the page. */
  readonly place: number;
}

/** The record was not found any more. */
export interface Gone {
  /** Why its page cannot be read, if it cannot. */
  readonly refusal: { readonly error: unknown } | undefined;
  /** The records from the start of its page on, as far as they were read. */
  readonly onward: readonly (string | null)[];
  /** Whether the list was read from its start up to that page, and onward from it to its end. */
  readonly isNear: { readonly start: boolean; readonly end: boolean };
}

/**
 * How far a record is looked for from the start of the list, and again onward from its page. Together that is
 * as much as a client may have to wait for in one request: some seconds. Further off, a record counts as gone.
 */
const MAX_PAGES_EACH_WAY = 20;

/**
 * Finds a record: where it stood; where the list's index says; or, since it may have been pushed back, pulled
 * forward or moved, onward from there and from the start of the list, in turns.
 */
export async function locate<R extends Identified>(
  { fetchPage, memory }: SearchedList<R>,
  { after, place, identity }: Position,
  signal: AbortSignal,
): Promise<Located<R> | Gone> {
  const own = await pageAt(fetchPage, { after, first: place + 1 }, signal);
  const refusal = 'error' in own ? own : undefined;
  const page = 'error' in own ? undefined : own;
  const inPlace = page ? placeOf(page, identity, place) : -1;
  if (page && inPlace >= 0) return { page, after, place: inPlace };

  const onward = page?.items.map((record) => record.identity) ?? [];
  const isNear = { start: after === null, end: page !== undefined && !page.hasNextPage };
  if (identity === null) return { refusal, onward, isNear };
  for (const at of memory?.pagesWith(identity) ?? []) {
    const likely = await pageAt(fetchPage, { after: at, first: undefined }, signal);
    const found = 'error' in likely ? -1 : placeOf(likely, identity);
    if (!('error' in likely) && found >= 0) return { page: likely, after: at, place: found };
  }

  const [head] = onward;
  const ways = [
    ...(page?.hasNextPage && page.endCursor !== null
      ? [{ isOnward: true, pages: pagesFrom(fetchPage, page.endCursor, signal) }]
      : []),
    ...(after === null ? [] : [{ isOnward: false, pages: pagesFrom(fetchPage, null, signal) }]),
  ];
  for (let way = ways.shift(); way; way = ways.shift()) {
    const { done, value: next } = await way.pages.next();
    if (done) {
      if (next === 'end of list') isNear[way.isOnward ? 'end' : 'start'] = true;
      continue;
    }
    const found = placeOf(next.page, identity);
    if (found >= 0) return { ...next, place: found };
    const identities = next.page.items.map((record) => record.identity);
    // From there on, it is the onward way's.
    const meets = !way.isOnward && head !== undefined && identities.includes(head);
    if (way.isOnward) onward.push(...identities);
    if (meets) isNear.start = true;
    else ways.push(way);
  }
  return { refusal, onward, isNear };
}

async function* pagesFrom<R>(
  fetchPage: FetchPage<R>,
  start: string | null,
  signal: AbortSignal,
): AsyncGenerator<Omit<Located<R>, 'place'>, 'end of list' | 'bound'> {
  let after = start;
  for (let read = 0; read < MAX_PAGES_EACH_WAY; read += 1) {
    const page = await pageAt(fetchPage, { after, first: undefined }, signal);
    // Its record went just now, or nobody can read on from there.
    if ('error' in page) return 'bound';
    yield { page, after };
    if (!page.hasNextPage) return 'end of list';
    if (page.endCursor === null || page.endCursor === after) return 'bound';
    after = page.endCursor;
  }
  return 'bound';
}

async function pageAt<R>(
  fetchPage: FetchPage<R>,
  request: PageRequest,
  signal: AbortSignal,
): Promise<Page<R> | { error: unknown }> {
  try {
    return await fetchPage(request, signal);
  } catch (error) {
    if (mayBeRefusal(error, request.after, signal)) return { error };
    throw error;
  }
}

function placeOf<R extends Identified>(
  page: Page<R>,
  identity: string | null,
  place?: number,
): number {
  if (identity === null) return Math.min(place ?? -1, page.items.length - 1);
  // Its own place first: in some lists an id comes twice.
  if (place !== undefined && page.items[place]?.identity === identity) return place;
  return page.items.findIndex((record) => record.identity === identity);
}
