import { codedError } from '../errors.ts';
import type { Position } from './cursor.ts';
import { identityHash } from './identities.ts';
import { walkList, type PagedList, type WalkedPages } from './walk.ts';
import { positionsIn, type PageIndex } from './page-index.ts';
import { CursorRefusedError, ReadPage, unlessRefused } from './page.ts';

/*
 * How a list is read on behind the record of a cursor, while the list changes and whatever the length of its pages
 *
 * The service's cursors lead behind the last record of a page, and nowhere else. So the page of the record is requested
 * again from its start, `after`, and everything up to the record is dropped. Here the record is `d`:
 *
 *     as it was         after -> a b c d e f -> end
 *     longer now        after -> a b c d e f g h        records 0 to 3 are dropped
 *     shorter now       after -> a b -> c d -> e f      read on until the former position of `d` is passed
 *     pushed back       after -> x a b -> c d e         and a page further
 *     gone              after -> a b c e f              nothing is dropped: `a` to `c` repeat, and nothing is skipped
 *
 * If the record was the last one of its page, the service's own `end` leads behind it with one request, as for its other
 * clients. Only if the page index shows that another record should follow is the page read again.
 *
 * Where cursors are offsets, `after` leads too far once records in front of the page were removed. `d` may then be in
 * front of its page, so it is looked for from the start of the list.
 */

/**
 * Walks a list behind a record.
 *
 * @param position null: the start of the list
 * @param records the number of records needed; the last page can have more. Default: all
 * @throws CURSOR_INVALID if the record is gone, and where it stood is unknown; as `walkList`
 */
export async function* walkBehind<R>(
  list: PagedList<R>,
  position: Position | null,
  records?: number,
): WalkedPages<R> {
  if (!position) return yield* walkList(list, { after: null, records });
  const { page: start, dropped } = await startBehind(list, position, records ?? Infinity);
  const needed = records === undefined ? undefined : records + dropped;
  for await (const walked of walkList(list, { after: start.after, start, records: needed })) {
    const { page, offsets } = walked;
    const isStart = page === start;
    yield isStart ? { page, offsets: offsets.filter((offset) => offset >= dropped) } : walked;
  }
}

/** A page whose records follow a position, except the first `dropped` ones. */
interface Start<R> {
  readonly page: ReadPage<R>;
  readonly dropped: number;
}

async function startBehind<R>(
  list: PagedList<R>,
  position: Position,
  records: number,
): Promise<Start<R>> {
  const behind = await behindEnd(list, position, records);
  if (behind && mayFollow(list.indexes.get(list.name), position, behind))
    return { page: behind, dropped: 0 };
  const located = await locate(list, position, behind ? 0 : records);
  const { read, offset, refused } = located;
  const page = read.at(-1);
  // A cursor that is refused is no offset, so the other one leads to the right place.
  const isConfirmed = refused || (page?.endCursor === position.end && offset === position.size - 1);
  if (behind && isConfirmed) return { page: behind, dropped: 0 };
  return page && offset !== undefined
    ? { page, dropped: offset + 1 }
    : behindGone(list, position, located);
}

/** Reads behind the page of a record, if it was the last one there and the service accepts the cursor. */
async function behindEnd<R>(
  list: PagedList<R>,
  { end, offset, size }: Position,
  records: number,
): Promise<ReadPage<R> | undefined> {
  if (end === null || offset < size - 1) return undefined;
  const behind = await unlessRefused(readPage(list, end, records));
  return behind instanceof CursorRefusedError ? undefined : behind;
}

/** Whether a page may follow a record: false if another record followed it when the list was walked. */
function mayFollow(index: PageIndex | undefined, { id }: Position, behind: ReadPage): boolean {
  const [next] = behind.ids;
  if (!index || id === null || next === null || (next === undefined && behind.hasNextPage))
    return true;
  const known = positionsIn(index, [id]).get(id);
  if (!known) return true;
  const rest = index.pages[known.page]!.hashes.slice(known.offset + 1);
  const following = index.pages[known.page + 1];
  const expected = rest[0] ?? (following ? following.hashes[0] : END);
  return expected === undefined || expected === (next === undefined ? END : identityHash(next));
}

/** Never the hash of an identity. */
const END = 0;

/** The pages that were read for a record, one behind the other from the start of its page on. */
interface Located<R> {
  readonly read: readonly ReadPage<R>[];
  /** The offset of the record in the last of these pages; undefined if it was not found. */
  readonly offset?: number;
  /** Set if the service refused the cursor of a page. */
  readonly refused?: CursorRefusedError;
}

/**
 * Looks for a record in its page, from the start of the page to its former position, and as far behind that as a page
 * reaches.
 *
 * @param more the number of records needed behind it
 */
export async function locate<R>(
  list: PagedList<R>,
  position: Position,
  more: number,
): Promise<Located<R>> {
  const { offset } = position;
  const read: ReadPage<R>[] = [];
  let count = 0;
  let past = 0;
  for (let after = position.after; ;) {
    const records = count > offset ? Infinity : offset + 1 - count + more;
    const page = await unlessRefused(readPage(list, after, records));
    if (page instanceof CursorRefusedError) return { read, refused: page };
    read.push(page);
    count += page.ids.length;
    const next = nextCursor(page);
    const located = count > offset || next === undefined ? recordIn(read, position) : undefined;
    if (count > offset) past += 1;
    // Beyond its own page too: see `behindPage`.
    const isFar = count > Math.max(offset + list.size.limit, position.size) || past > MAX_PAGES;
    if (located || isFar || next === undefined) return located ?? { read };
    after = next;
  }
}

/** Tries the former position first: in some lists an id occurs twice, and some records have none. */
function recordIn<R>(
  read: readonly ReadPage<R>[],
  { offset, id }: Position,
): Located<R> | undefined {
  let expected = offset;
  let at = 0;
  while (at < read.length && expected >= read[at]!.ids.length) expected -= read[at++]!.ids.length;
  if (at < read.length && (id === null || read[at]!.ids[expected] === id))
    return { read: read.slice(0, at + 1), offset: expected };
  if (id === null) return undefined;
  const holder = read.findIndex(({ ids }) => ids.includes(id));
  if (holder >= 0) {
    return { read: read.slice(0, holder + 1), offset: read[holder]!.ids.indexOf(id) };
  }
  // A record that fails in this selection has no id.
  const isUnidentified = at < read.length && read[at]!.ids[expected] === null;
  return isUnidentified ? { read: read.slice(0, at + 1), offset: expected } : undefined;
}

/**
 * Continues from the start of the page of a record that is gone. If that may be too far, the record is looked for from
 * the start of the list; and if it is not there, that is where the list continues.
 */
async function behindGone<R>(
  list: PagedList<R>,
  position: Position,
  { read, refused }: Located<R>,
): Promise<Start<R>> {
  const [own] = read;
  if (own && (own.after === null || !(await behindPage(list, position, read)).mayHaveSlid))
    return { page: own, dropped: 0 };
  const head = own?.ids[0] ?? null;
  let start: ReadPage<R> | undefined;
  let after: string | null | undefined = null;
  for (let pages = 0; pages < MAX_PAGES && after !== undefined; pages += 1) {
    const page: ReadPage<R> = await readPage(list, after, Infinity);
    start ??= page;
    const offset = position.id === null ? -1 : page.ids.indexOf(position.id);
    if (offset >= 0) return { page, dropped: offset + 1 };
    const meetsOwn = head !== null && page.ids.includes(head);
    if (own && (meetsOwn || !page.hasNextPage)) return { page: start, dropped: 0 };
    after = nextCursor(page);
  }
  throw cursorLost(refused?.cause);
}

/**
 * The most pages read behind the former position of a record, and from the start of the list: some seconds, as long as a
 * client may have to wait.
 */
const MAX_PAGES = 20;

/** The end of a page whose record is gone. */
interface PageEnd {
  /** The id of the record behind the page; null at the end of the list, undefined if that is unknown. */
  readonly next: string | null | undefined;
  /**
   * Whether the page may now be between other records. If as many records as before are between its two cursors
   * although one of them is gone, the cursors are offsets, or another record was inserted; the two cases look the same.
   */
  readonly mayHaveSlid: boolean;
}

/** @param read the pages from the start of the record's page on */
export async function behindPage<R>(
  list: PagedList<R>,
  { end, size }: Position,
  read: readonly ReadPage<R>[],
): Promise<PageEnd> {
  const ids = read.flatMap((page) => page.ids);
  const behind = end === null ? undefined : await unlessRefused(readPage(list, end, 1));
  if (behind instanceof CursorRefusedError) return { next: undefined, mayHaveSlid: false };
  const next = behind?.ids[0] ?? null;
  const between = next === null ? -1 : ids.indexOf(next);
  return { next, mayHaveSlid: between < 0 ? ids.length <= size : between === size };
}

async function readPage<R>(
  { fetchPage, size }: PagedList<R>,
  after: string | null,
  records: number,
): Promise<ReadPage<R>> {
  const first = Math.min(size.limit, Math.max(1, records));
  return new ReadPage(after, await size.fetching(fetchPage)(after, first));
}

/** Returns the cursor behind a page; undefined if the list ends there, or the cursor leads nowhere. */
function nextCursor({ after, hasNextPage, endCursor }: ReadPage): string | undefined {
  return hasNextPage && endCursor !== null && endCursor !== after ? endCursor : undefined;
}

export function cursorLost(cause?: unknown): Error {
  const said = cause instanceof Error ? ` The recruiting service answered: ${cause.message}` : '';
  return codedError(
    'CURSOR_INVALID',
    'The list has changed since this cursor was issued: its record was not found, and its former position is unknown. ' +
      `Omit the cursor to start anew.${said}`,
    { cause },
  );
}
