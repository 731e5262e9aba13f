import { codedError } from '../errors.ts';
import type { Position } from './cursor.ts';
import { cursorLost, mayBeRefusal } from './failures.ts';
import { identityHash } from './identities.ts';
import {
  nextRecord,
  pagesNear,
  positionsIn,
  type PageIndex,
  type PagePosition,
} from './page-index.ts';
import type { FetchPage, Identified, Page, PageRequest } from './page.ts';
import type { WalkBounds, WalkedPage, WalkedPages } from './walk.ts';

/**
 * How a record is found again in a list that changes, and that can only be read forward, page by page.
 *
 * What is known of the record is its position: behind which cursor it stood, at which offset. Since then others were
 * inserted or removed in front of it, or it was moved, or it is gone. So the likeliest page is read first, and each step
 * is only for what is still missing. Here `f` is wanted:
 *
 *   page index           |a b c d|e f g h|i j k l|m n o p|
 *   1 at its position            |e f|                       its page, as far as the record
 *   2 near it            |a b c d|e f g h|i j k l|           the pages around it, whole
 *   3 further away       |a b c d →   |g h i j → |m n o p →  ways, which are pages in a row: from the start of the list,
 *                                                            from the position, or from the last page on
 *
 * Two functions take these steps:
 *
 *                        `locate`                            `lookUp`
 *   finds                the record of one cursor            many records, by their ids
 *   returns              its page, or what is there instead  their values
 *   selects              identities alone                    what the caller wants of the records
 *   1 its position       from the cursor                     from the page index
 *   3 further away       20 pages on from its position, and  both ends of the list; then a walk of the list, which all
 *                        20 from the start                   lookups share: where it met the record, 1 and 2 again
 *   pages at a time      1, to send as few as possible       8
 *   if a page fails      the error is thrown, unless the     only its records fail: see `PageReader`
 *                        service refused the cursor
 *
 * They are two functions because step 1 differs. `locate` needs the page as it is, and in it the record at the offset of
 * the cursor, since in some lists an id occurs twice. `lookUp` needs the record alone, so where its page fails, it reads
 * that record without the others.
 */

/** A page, and the cursor with which it was read. */
interface ReadPage<R> {
  readonly page: Page<R>;
  readonly after: string | null;
}

/** @param mayFail whether an error is returned instead of thrown: by default, if it may be a refusal of the cursor */
export async function readPage<R>(
  fetchPage: FetchPage<R>,
  request: PageRequest,
  signal: AbortSignal,
  mayFail = (error: unknown) => mayBeRefusal(error, request.after, signal),
): Promise<ReadPage<R> | { readonly error: unknown }> {
  try {
    return { page: await fetchPage(request, signal), after: request.after };
  } catch (error) {
    if (mayFail(error)) return { error };
    throw error;
  }
}

/**
 * Reads as many records as requested from a cursor on: in several pages, where the service accepts no page of that size.
 *
 * @param mayFail as for `readPage`
 */
export async function readAsFar<R>(
  fetchPage: FetchPage<R>,
  { after, first = 0 }: PageRequest,
  signal: AbortSignal,
  mayFail?: (error: unknown) => boolean,
): Promise<{ readonly pages: readonly ReadPage<R>[] } | { readonly error: unknown }> {
  const pages: ReadPage<R>[] = [];
  let from = after;
  for (let left = first; ;) {
    const read = await readPage(fetchPage, { after: from, first: left }, signal, mayFail);
    if ('error' in read) return read;
    pages.push(read);
    const { isPart, items, hasNextPage, endCursor } = read.page;
    left -= items.length;
    if (!isPart || left <= 0 || items.length === 0 || !hasNextPage) return { pages };
    if (endCursor === null || endCursor === from) return { pages };
    from = endCursor;
  }
}

/** Pages in a row. */
export type Way<R> = AsyncGenerator<ReadPage<R>, void, undefined>;

/** Reads each page only when it is wanted: unlike `walk`, it requests no page ahead. Ends at a page that may fail. */
export async function* readOnward<R>(
  fetchPage: FetchPage<R>,
  { after: start, maxPages, signal }: Required<Omit<WalkBounds, 'limit'>>,
  mayFail?: (error: unknown) => boolean,
): Way<R> {
  let after = start;
  for (let read = 0; read < maxPages; read += 1) {
    const next = await readPage(fetchPage, { after, first: undefined }, signal, mayFail);
    if ('error' in next) return;
    yield next;
    const { hasNextPage, endCursor } = next.page;
    if (!hasNextPage || endCursor === null || endCursor === after) return;
    after = endCursor;
  }
}

/** Reads a page of each way in turn, `atATime` at once, until all ways end or `find` returns a result. */
export async function readByTurns<R, T>(
  ways: readonly Way<R>[],
  atATime: number,
  find: (read: ReadPage<R>) => T | undefined,
): Promise<T | undefined> {
  const waiting = [...ways];
  let result: T | undefined;
  const readOn = async () => {
    for (let way = waiting.shift(); way && result === undefined; way = waiting.shift()) {
      const { done, value } = await way.next();
      if (done) continue;
      result ??= find(value);
      waiting.push(way);
    }
  };
  await Promise.all(Array.from({ length: atATime }, readOn));
  return result;
}

/** A list, and what the last walk remembers of it. */
export interface IndexedList {
  /**
   * Fetches pages of which only the identities of records are requested: what a caller selects may fail for the record
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

/** Finds the record of a cursor, one page at a time: at its position, near it, and further away (see above). */
export async function locate(
  { fetchIdentities, index }: IndexedList,
  position: Position,
  signal: AbortSignal,
): Promise<Located | Gone> {
  const { after, offset, identity } = position;
  const upTo = await readAsFar(fetchIdentities, { after, first: offset + 1 }, signal);
  const parts = 'pages' in upTo ? upTo.pages : [];
  const page = parts.at(-1)?.page;
  const atPosition = foundInParts(parts, identity, offset);
  if (atPosition) return atPosition;

  const refusal = 'error' in upTo ? upTo : undefined;
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
  const located =
    (await foundOn(near.map((start) => pagesFrom(start, 1)))) ??
    (await foundOn([fromPosition(), fromStart()]));
  return located ?? { refusal, onward, isNear };

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
  let inLast = offset;
  for (const { page } of parts.slice(0, -1)) inLast -= page.items.length;
  return parts
    .toReversed()
    .reduce<Located | undefined>(
      (located, part, index) => located ?? foundIn(part, identity, index === 0 ? inLast : -1),
      undefined,
    );
}

/** The expected offset comes first: in some lists an id occurs twice. A record without an id has only its offset. */
function foundIn(
  { page, after }: ReadPage<Identified>,
  identity: string | null,
  expected = -1,
): Located | undefined {
  const { items } = page;
  let offset = Math.min(expected, items.length - 1);
  if (identity !== null && items[expected]?.identity !== identity)
    offset = items.findIndex((record) => record.identity === identity);
  return offset < 0 ? undefined : { page, after, offset };
}

type Begin<R> = (after: string | null) => WalkedPages<R>;

/**
 * Begins a walk right behind a record; null begins at the start of the list.
 *
 * For the last record of a page, the upstream gave a cursor of its own. The walk uses it at once: clients page on this
 * way, and locating the record first would double the cost of each page. So a service whose cursors name offsets
 * skips here the same records that it skips for its own callers, unless the page index tells otherwise.
 */
export function walkBehind<R extends Identified>(
  list: IndexedList,
  position: Position | null,
  begin: Begin<R>,
  signal: AbortSignal,
): WalkedPages<R> {
  return position ? walkBehindRecord(list, position, begin, signal) : begin(null);
}

async function* walkBehindRecord<R extends Identified>(
  list: IndexedList,
  position: Position,
  begin: Begin<R>,
  signal: AbortSignal,
): WalkedPages<R> {
  const { end, offset, size } = position;
  let start: Start | undefined;
  if (offset === size - 1 && end !== null) start = { after: end, isOwn: true };
  let failure: unknown;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    start ??= await cursorBehind(list, position, signal);
    if (start === undefined) return;
    let hasBegun = false;
    let isRight = true;
    try {
      for await (const page of begin(start.after)) {
        isRight = hasBegun || !start.isOwn || (await followsRecord(list, position, page, signal));
        if (!isRight) break;
        hasBegun = true;
        yield page;
      }
      if (isRight) return;
    } catch (error) {
      if (hasBegun || !mayBeRefusal(error, start.after, signal)) throw error;
      failure = error;
      const refused = start.after;
      start = await cursorBehind(list, position, signal);
      // The same cursor was read again, so it is not the cause of the failure.
      if (start?.after === refused) throw error;
      continue;
    }
    start = undefined;
  }
  throw failure ?? cursorLost();
}

/** A record can be moved or removed just after it was located. */
const MAX_ATTEMPTS = 5;

/** Whether the page follows the record, as the page index says; where it does not say so, the record is located. */
async function followsRecord(
  list: IndexedList,
  position: Position,
  { records, hasNextPage }: WalkedPage<Identified>,
  signal: AbortSignal,
): Promise<boolean> {
  const { identity, after, end } = position;
  const [record] = records;
  const next = record?.identity ?? null;
  if (identity === null || (next === null && hasNextPage)) return true;
  const index = list.index?.();
  const known = index && nextRecord(index, identity);
  if (known === undefined || known === (next === null ? null : identityHash(next))) return true;
  const located = await locate(list, position, signal);
  // A service that refuses one of the two cursors names records with them, so the other is right.
  if (!('page' in located)) return located.refusal !== undefined;
  return located.after === after && isLast(located) && located.page.endCursor === end;
}

interface Start {
  readonly after: string | null;
  /** It comes from the client's cursor; the record was not located. */
  readonly isOwn: boolean;
}

/**
 * Finds the upstream's cursor of a record. There is one only for the last record of a page, so for any other record
 * its page is read again, just as far as the record.
 *
 * @returns undefined at the end of the list
 */
async function cursorBehind(
  list: IndexedList,
  position: Position,
  signal: AbortSignal,
): Promise<Start | undefined> {
  let expected = position;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const located = await locate(list, expected, signal);
    if (!('page' in located)) {
      // A moment ago it was in the page of this cursor.
      if (expected !== position) break;
      return { after: await cursorOfGone(list, position, located, signal), isOwn: false };
    }
    if (isLast(located)) return behindPage(located.page);
    // It is no longer the last record of what was read.
    expected = { ...position, after: located.after, offset: located.offset };
  }
  return { after: expected.after, isOwn: false };
}

/**
 * Finds a cursor to go on from when the record is gone: the start of its page, so that records may come twice, but
 * none is skipped. Where the page begins further on than it did, only the start of the list is early enough.
 *
 * @throws CURSOR_INVALID when the page is refused, or the start of the list is far away
 */
async function cursorOfGone(
  { fetchIdentities }: IndexedList,
  position: Position,
  gone: Gone,
  signal: AbortSignal,
): Promise<string | null> {
  if (gone.refusal) throw cursorLost(gone.refusal.error);
  if (position.after === null) return null;
  const behind = await firstBehind(fetchIdentities, position.end, signal);
  if (!mayHaveSlid(position, gone, behind)) return position.after;
  if (!gone.isNear.start) throw cursorLost();
  return null;
}

/**
 * Whether the page of a record that is gone may lie between other records than it did. If it kept its size, its
 * cursors name offsets in the list, or another record was inserted into it; the two cannot be told apart.
 *
 * @param behind what `firstBehind` returned for the page
 */
export function mayHaveSlid(
  { size, identity }: Position,
  { onward }: Gone,
  behind: string | null | undefined,
): boolean {
  if (identity === null || behind === undefined) return false;
  return behind === null ? onward.length <= size : onward.indexOf(behind) === size;
}

/** The record right behind a cursor; null when there is none, undefined when the cursor is refused. */
export async function firstBehind(
  fetchIdentities: FetchPage<Identified>,
  end: string | null,
  signal: AbortSignal,
): Promise<string | null | undefined> {
  if (end === null) return null;
  const behind = await readPage(fetchIdentities, { after: end, first: 1 }, signal);
  return 'error' in behind ? undefined : (behind.page.items[0]?.identity ?? null);
}

function isLast({ page, offset }: Located): boolean {
  return offset === page.items.length - 1;
}

function behindPage(page: Page<Identified>): Start | undefined {
  if (page.endCursor !== null) return { after: page.endCursor, isOwn: false };
  if (!page.hasNextPage) return undefined;
  throw codedError(
    'DRAIN_STALLED',
    'The recruiting service returned no cursor to continue from. Try again later, or start without a cursor.',
  );
}
