import type { Position } from '../cursor.ts';
import { mayBeRefusal } from '../failures.ts';
import type { FetchPage, Identified, Page, PageRequest } from '../page.ts';
import { pageOf, pagesNear, type PageIndex, type PagePosition } from '../page-index/page-index.ts';
import type { WalkBounds } from '../walk.ts';

/** A list, and what the last walk remembers of it. */
export interface IndexedList<R> {
  readonly fetchPage: FetchPage<R>;
  readonly index?: (() => PageIndex | undefined) | undefined;
}

/** A record at its position, in a page that was read just now. */
export interface Located<R> extends PagePosition {
  readonly page: Page<R>;
}

/** The record was not found. */
export interface Gone {
  /** Why its page cannot be read, if it cannot. */
  readonly refusal: { readonly error: unknown } | undefined;
  /** The records from the start of its page on, as far as they were read. */
  readonly onward: readonly (string | null)[];
  /** Whether the list was read from its start up to that page, and onward from it to its end. */
  readonly isNear: { readonly start: boolean; readonly end: boolean };
}

/**
 * Pages read from the start of the list, and again onward from the record's page. Together they take some seconds,
 * which is as long as a client may have to wait in one request. A record further away counts as gone.
 */
const MAX_PAGES_EACH_WAY = 20;

/**
 * Finds the record of a cursor: at its position; near the page that the page index remembers; or, since it may have
 * been pushed back, pulled forward or moved, onward from its position and from the start of the list, by turns.
 *
 * A lookup by id (`lookUp`) begins with the same two steps and is another function. It takes records out of pages,
 * many at once, and reads what may hold them at the same time; one record that fails must not fail the others. This
 * needs the page around its one record, or what stood around it (`Gone`), and sends as few requests as it can, one
 * after the other. And its last step is a walk of the whole list that all lookups share and that is not repeated for a
 * while: a page of a connection would cost the whole list, for each combination of filters.
 */
export async function locate<R extends Identified>(
  { fetchPage, index }: IndexedList<R>,
  { after, offset, identity }: Position,
  signal: AbortSignal,
): Promise<Located<R> | Gone> {
  const own = await pageAt(fetchPage, { after, first: offset + 1 }, signal);
  const refusal = 'error' in own ? own : undefined;
  const page = 'error' in own ? undefined : own;
  const ownOffset = page ? offsetOf(page, identity, offset) : -1;
  if (page && ownOffset >= 0) return { page, after, offset: ownOffset };

  const onward = page?.items.map((record) => record.identity) ?? [];
  const isNear = { start: after === null, end: page !== undefined && !page.hasNextPage };
  if (identity === null) return { refusal, onward, isNear };
  for (const at of likelyPages(index?.(), identity)) {
    const likely = await pageAt(fetchPage, { after: at, first: undefined }, signal);
    const found = 'error' in likely ? -1 : offsetOf(likely, identity);
    if (!('error' in likely) && found >= 0) return { page: likely, after: at, offset: found };
  }

  const [head] = onward;
  const pagesFrom = (start: string | null) =>
    readOnward(fetchPage, { after: start, maxPages: MAX_PAGES_EACH_WAY, signal });
  const ways = [
    ...(page?.hasNextPage && page.endCursor !== null
      ? [{ isOnward: true, pages: pagesFrom(page.endCursor) }]
      : []),
    ...(after === null ? [] : [{ isOnward: false, pages: pagesFrom(null) }]),
  ];
  for (let way = ways.shift(); way; way = ways.shift()) {
    const { done, value: next } = await way.pages.next();
    if (done) {
      if (next === 'end of list') isNear[way.isOnward ? 'end' : 'start'] = true;
      continue;
    }
    const found = offsetOf(next.page, identity);
    if (found >= 0) return { ...next, offset: found };
    const identities = next.page.items.map((record) => record.identity);
    // From there on, the onward way reads the list.
    const meets = !way.isOnward && head !== undefined && identities.includes(head);
    if (way.isOnward) onward.push(...identities);
    if (meets) isNear.start = true;
    else ways.push(way);
  }
  return { refusal, onward, isNear };
}

function likelyPages(index: PageIndex | undefined, identity: string): readonly (string | null)[] {
  const page = index && pageOf(index, identity);
  return index && page !== undefined ? pagesNear(index, [page]) : [];
}

/**
 * Reads pages one after the other, each only when it is wanted: unlike `walk`, it requests no page ahead.
 *
 * @returns why there are no more
 */
export async function* readOnward<R>(
  fetchPage: FetchPage<R>,
  { after: start, maxPages, signal }: Required<Omit<WalkBounds, 'limit'>>,
): AsyncGenerator<Omit<Located<R>, 'offset'>, 'end of list' | 'bound'> {
  let after = start;
  for (let read = 0; read < maxPages; read += 1) {
    const page = await pageAt(fetchPage, { after, first: undefined }, signal);
    // The record of this cursor was removed just now, or the service cannot read on from there.
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

function offsetOf<R extends Identified>(
  page: Page<R>,
  identity: string | null,
  offset?: number,
): number {
  if (identity === null) return Math.min(offset ?? -1, page.items.length - 1);
  // Its own offset first: in some lists an id occurs twice.
  if (offset !== undefined && page.items[offset]?.identity === identity) return offset;
  return page.items.findIndex((record) => record.identity === identity);
}
