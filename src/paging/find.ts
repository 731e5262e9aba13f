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
 * The position of the record is known: the cursor and the offset at which it stood. Since then others may have been
 * inserted or removed before it, or it was moved, or it is gone. So the likeliest page is read first, and each step is
 * taken only for records that are still missing. Here `f` is looked up:
 *
 *   page index           |a b c d|e f g h|i j k l|m n o p|
 *   1 at its position            |e f|                       its page, up to the record
 *   2 near it            |a b c d|e f g h|i j k l|           the pages around it, in full
 *   3 further away       |a b c d →   |g h i j → |m n o p →  runs of consecutive pages: from the start of the list,
 *                                                            from the position, or from the last page on
 *
 * Two functions take these steps:
 *
 *                        `locate`                            `lookUp`
 *   finds                the record of one cursor            many records, by their ids
 *   returns              its page, or the records there      their values
 *   selects              only identities                     the fields that the caller selects
 *   1 its position       from the cursor                     from the page index
 *   3 further away       20 pages on from its position, and  both ends of the list; then a walk of the list, which all
 *                        20 from the start                   lookups share: where it met the record, 1 and 2 again
 *   pages at a time      1, for the fewest requests          8
 *   if a page fails      the error is thrown, unless the     only its records fail: see `PageReader`
 *                        service refused the cursor
 *
 * They are two functions because step 1 differs. `locate` needs the page as it is, and in it the record at the offset of
 * the cursor, since in some lists an id occurs twice. `lookUp` needs only the record, so if its page fails, it reads
 * that record without the others.
 */

/** A page, and the cursor with which it was read. */
interface ReadPage<R> {
  readonly page: Page<R>;
  readonly after: string | null;
}

/**
 * @param mayFail whether to return an error instead of throwing it; by default, if it may be a refusal of the cursor
 */
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
 * Reads as many records as requested from a cursor on: in several pages if the service does not accept a page of that
 * size.
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

/** Consecutive pages. */
export type PageRun<R> = AsyncGenerator<ReadPage<R>, void, undefined>;

/**
 * Reads each page only when the caller needs it; unlike `walk`, it requests no page ahead. Ends at a page that may
 * fail.
 */
export async function* readOnward<R>(
  fetchPage: FetchPage<R>,
  { after: start, maxPages, signal }: Required<Omit<WalkBounds, 'limit'>>,
  mayFail?: (error: unknown) => boolean,
): PageRun<R> {
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

/** Reads a page of each run in turn, `atATime` at once, until all runs end or `find` returns a result. */
export async function readByTurns<R, T>(
  runs: readonly PageRun<R>[],
  atATime: number,
  find: (read: ReadPage<R>) => T | undefined,
): Promise<T | undefined> {
  const waiting = [...runs];
  let result: T | undefined;
  const readOn = async () => {
    for (let run = waiting.shift(); run && result === undefined; run = waiting.shift()) {
      const { done, value } = await run.next();
      if (done) continue;
      result ??= find(value);
      waiting.push(run);
    }
  };
  await Promise.all(Array.from({ length: atATime }, readOn));
  return result;
}

/** A list with the page index that the last walk left. */
export interface IndexedList {
  /**
   * Fetches pages of identities only: other selected fields may fail for the record that is located, or for a
   * neighbour.
   */
  readonly fetchIdentities: FetchPage<Identified>;
  readonly index?: (() => PageIndex | undefined) | undefined;
}

/** A record at its position, in a page that was just read. */
export interface Located extends PagePosition {
  readonly page: Page<Identified>;
}

/** The result for a record that was not found. */
export interface Gone {
  /** Why its page cannot be read; undefined if it was read. */
  readonly refusal: { readonly error: unknown } | undefined;
  /** The records from the start of its page on, as far as they were read. */
  readonly onward: readonly (string | null)[];
  /** Whether the list was read from its start to that page (`start`), and from that page to its end (`end`). */
  readonly isNear: { readonly start: boolean; readonly end: boolean };
}

/**
 * The most pages read from the start of the list, and again onward from the record's page. Together they take some
 * seconds, as long as a client may have to wait in one request. A record further away counts as gone.
 */
const MAX_PAGES_PER_RUN = 20;

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
  const foundOn = (runs: PageRun<Identified>[]) =>
    readByTurns(runs, 1, (read) => foundIn(read, identity));

  const known = index?.();
  const near = pagesNear(known, positionsIn(known?.pages ?? [], [identity]).values());
  const located =
    (await foundOn(near.map((start) => pagesFrom(start, 1)))) ??
    (await foundOn([fromPosition(), fromStart()]));
  return located ?? { refusal, onward, isNear };

  /** Finds a record that was pushed back. */
  async function* fromPosition(): PageRun<Identified> {
    if (!page?.hasNextPage || page.endCursor === null) return;
    for await (const next of pagesFrom(page.endCursor, MAX_PAGES_PER_RUN)) {
      yield next;
      onward.push(...next.page.items.map((record) => record.identity));
      isNear.end ||= !next.page.hasNextPage;
    }
  }

  /** Finds a record that was pulled forward, or moved to the start. Ends where the other run begins. */
  async function* fromStart(): PageRun<Identified> {
    if (after === null) return;
    for await (const next of pagesFrom(null, MAX_PAGES_PER_RUN)) {
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

/** Tries the expected offset first: in some lists an id occurs twice. A record without an id has only its offset. */
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
 * Begins a walk right behind a record, or at the start of the list for null.
 *
 * For the last record of a page, the upstream's own cursor is known. The walk uses it at once: clients page like this,
 * and locating the record first would double the cost of each page. So a service whose cursors are offsets skips the
 * same records here as for its other clients, unless the page index shows that it did.
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
  if (offset === size - 1 && end !== null) start = { after: end, isFromClient: true };
  let failure: unknown;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    start ??= await cursorBehind(list, position, signal);
    if (start === undefined) return;
    let hasBegun = false;
    let isRight = true;
    try {
      for await (const page of begin(start.after)) {
        isRight =
          hasBegun || !start.isFromClient || (await followsRecord(list, position, page, signal));
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

/**
 * Whether the page follows the record, according to the page index; if the index does not show it, the record is
 * located.
 */
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
  // If the service refuses one of the two cursors, its cursors identify records, so the other is right.
  if (!('page' in located)) return located.refusal !== undefined;
  return located.after === after && isLast(located) && located.page.endCursor === end;
}

interface Start {
  readonly after: string | null;
  /** Whether it comes from the client's cursor, so that the record was not located. */
  readonly isFromClient: boolean;
}

/**
 * Finds the upstream's cursor of a record. Only the last record of a page has one, so for any other record its page is
 * read again, only as far as the record.
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
      // It was in the page of this cursor a moment ago.
      if (expected !== position) break;
      return { after: await cursorOfGone(list, position, located, signal), isFromClient: false };
    }
    if (isLast(located)) return behindPage(located.page);
    // It is no longer the last record that was read.
    expected = { ...position, after: located.after, offset: located.offset };
  }
  return { after: expected.after, isFromClient: false };
}

/**
 * Finds a cursor from which to continue when the record is gone: the start of its page, so that records may repeat, but
 * none is skipped. If the page now begins later in the list, only the start of the list is early enough.
 *
 * @throws CURSOR_INVALID if the page is refused, or the start of the list is far away
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
 * Whether the page of a record that is gone may now be between other records. If it kept its size, its cursors are
 * offsets, or another record was inserted into it; the two cases look the same.
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

/** Returns the record right behind a cursor; null at the end of the list, undefined if the cursor is refused. */
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
  if (page.endCursor !== null) return { after: page.endCursor, isFromClient: false };
  if (!page.hasNextPage) return undefined;
  throw codedError(
    'DRAIN_STALLED',
    'The recruiting service returned no cursor to continue from. Try again later, or start without a cursor.',
  );
}
