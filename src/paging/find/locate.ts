import type { Position } from '../cursor.ts';
import type { FetchPage, Identified, Page } from '../page.ts';
import {
  pagesNear,
  positionsIn,
  type PageIndex,
  type PagePosition,
} from '../page-index/page-index.ts';
import { readAsFar, readByTurns, readOnward, type ReadPage, type Way } from './find.ts';

/** A list, and what the last walk remembers of it. */
export interface IndexedList {
  /**
   * Fetches pages with nothing of the records but their identities: what a caller selects may fail for the very record
   * that is located, or for one beside it.
   */
  readonly fetchIdentities: FetchPage<Identified>;
  readonly index?: (() => PageIndex | undefined) | undefined;
}

/** A record at its position, in a page that was read just now. */
export interface Located extends PagePosition {
  readonly page: Page<Identified>;
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

/** Finds the record of a cursor, one page at a time: at its position, near it, and further away (see `find.ts`). */
export async function locate(
  { fetchIdentities, index }: IndexedList,
  position: Position,
  signal: AbortSignal,
): Promise<Located | Gone> {
  const { after, offset, identity } = position;
  const own = await readAsFar(fetchIdentities, { after, first: offset + 1 }, signal);
  const parts = 'pages' in own ? own.pages : [];
  const page = parts.at(-1)?.page;
  const atPosition = foundInParts(parts, identity, offset);
  if (atPosition) return atPosition;

  const refusal = 'error' in own ? own : undefined;
  const onward = parts.flatMap((part) => part.page.items.map((record) => record.identity));
  const isNear = { start: after === null, end: page?.hasNextPage === false };
  if (identity === null) return { refusal, onward, isNear };
  const [head] = onward;
  const pagesFrom = (start: string | null, maxPages: number) =>
    readOnward(fetchIdentities, { after: start, maxPages, signal });
  const foundOn = (ways: Way<Identified>[]) =>
    readByTurns(ways, 1, (read) => foundIn(read, identity));

  const known = index?.();
  const near = pagesNear(known, positionsIn(known?.pages ?? [], [identity]).values());
  const found =
    (await foundOn(near.map((start) => pagesFrom(start, 1)))) ??
    (await foundOn([fromPosition(), fromStart()]));
  return found ?? { refusal, onward, isNear };

  /** It was pushed back. */
  async function* fromPosition(): Way<Identified> {
    if (!page?.hasNextPage || page.endCursor === null) return;
    for await (const next of pagesFrom(page.endCursor, MAX_PAGES_EACH_WAY)) {
      yield next;
      onward.push(...next.page.items.map((record) => record.identity));
      isNear.end ||= !next.page.hasNextPage;
    }
  }

  /** It was pulled forward, or moved to the start. Ends where the other way begins. */
  async function* fromStart(): Way<Identified> {
    if (after === null) return;
    for await (const next of pagesFrom(null, MAX_PAGES_EACH_WAY)) {
      yield next;
      const meetsOther =
        head !== undefined && next.page.items.some((each) => each.identity === head);
      isNear.start ||= meetsOther || !next.page.hasNextPage;
      if (meetsOther) return;
    }
  }
}

/** @param offset from the start of the first part */
function foundInParts(
  parts: readonly ReadPage<Identified>[],
  identity: string | null,
  offset: number,
): Located | undefined {
  let own = offset;
  for (const { page } of parts.slice(0, -1)) own -= page.items.length;
  return parts
    .toReversed()
    .reduce<Located | undefined>(
      (found, part, index) => found ?? foundIn(part, identity, index === 0 ? own : -1),
      undefined,
    );
}

/** Its own offset comes first: in some lists an id occurs twice. A record without an id has only its offset. */
function foundIn(
  { page, after }: ReadPage<Identified>,
  identity: string | null,
  own = -1,
): Located | undefined {
  const { items } = page;
  let offset = Math.min(own, items.length - 1);
  if (identity !== null && items[own]?.identity !== identity)
    offset = items.findIndex((record) => record.identity === identity);
  return offset < 0 ? undefined : { page, after, offset };
}
