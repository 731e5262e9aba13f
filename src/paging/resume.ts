import { codedError } from '../errors.ts';
import type { Position } from './cursor.ts';
import {
  CursorRefusedError,
  idOf,
  placesOf,
  unlessRefused,
  type Place,
  type ReadPage,
} from './page.ts';
import { readPage } from './page-size.ts';
import { walkList, type PagedList, type WalkedPages } from './walk.ts';

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
 *     refused           after -> the record that `after` was made from is gone: `d` is looked for from the list's start
 *
 * If the record was the last one of its page, the service's own `end` leads behind it with one request, as for its other
 * clients.
 *
 * Cursors that are offsets lead too far once records in front of them were removed. A record that is still in its page
 * is found all the same; otherwise as many records are skipped as for other clients of the service.
 */

/**
 * Walks a list behind a record.
 *
 * @param position null: the start of the list
 * @param records the number of records needed; the last page can have more. Default: all
 * @throws CURSOR_INVALID if neither the record nor its former position is found; as `walkList`
 */
export async function* walkBehind<R>(
  list: PagedList<R>,
  position: Position | null,
  records?: number,
): WalkedPages<R> {
  if (!position) return yield* walkList(list, { after: null, records });
  const { page: start, offset: last } = await resumePlace(list, position, records ?? Infinity);
  const needed = records === undefined ? undefined : records + last + 1;
  for await (const walked of walkList(list, { after: start.after, start, records: needed })) {
    const { page, offsets } = walked;
    yield page === start ? { page, offsets: offsets.filter((offset) => offset > last) } : walked;
  }
}

/** Finds the place behind which the list is read on. Offset -1: from the start of the page. */
async function resumePlace<R>(
  list: PagedList<R>,
  position: Position,
  records: number,
): Promise<Place<R>> {
  const { end, offset, size } = position;
  if (end !== null && offset === size - 1) {
    const page = await unlessRefused(readPage(list, end, records));
    if (!(page instanceof CursorRefusedError)) return { page, offset: -1 };
  }
  const { own, place, refused } = await locate(list, position, records);
  return place ?? (own ? { page: own, offset: -1 } : fromStart(list, position, refused));
}

/** Where a record is, in the pages that were read for it. */
interface Located<R> {
  /** The page behind the cursor `after`; undefined if the service refuses this cursor. */
  readonly own: ReadPage<R> | undefined;
  /** Undefined if the record was not found. */
  readonly place: Place<R> | undefined;
  /** The records in front of it, from the start of its page on. */
  readonly before: readonly Place<R>[];
  readonly refused?: CursorRefusedError;
}

/**
 * Looks for a record in its page, from the start of the page to its former position, and in the page behind that.
 *
 * @param more the number of records needed behind it
 */
export async function locate<R>(
  list: PagedList<R>,
  position: Position,
  more: number,
): Promise<Located<R>> {
  const { offset } = position;
  const places: Place<R>[] = [];
  let own: ReadPage<R> | undefined;
  for (let after = position.after; ;) {
    const missing = offset + 1 - places.length;
    const page = await unlessRefused(
      readPage(list, after, missing > 0 ? missing + more : Infinity),
    );
    if (page instanceof CursorRefusedError) {
      return { own, place: undefined, before: [], refused: page };
    }
    own ??= page;
    places.push(...placesOf(page));
    const { hasNextPage, endCursor } = page;
    const isLast = !hasNextPage || endCursor === null || endCursor === after;
    if (places.length > offset || isLast) {
      const at = indexIn(places, position);
      if (at >= 0) return { own, place: places[at], before: places.slice(0, at) };
      if (missing <= 0 || isLast) return { own, place: undefined, before: [] };
    }
    after = endCursor;
  }
}

/** Tries the former position first: in some lists an id occurs twice, and some records have none. */
function indexIn(places: readonly Place[], { offset, id }: Position): number {
  const former = places[offset] && idOf(places[offset]);
  if (former !== undefined && (id === null || former === id)) return offset;
  if (id === null) return -1;
  const at = places.findIndex((place) => idOf(place) === id);
  // A record that fails in this selection has no id.
  return at < 0 && former === null ? offset : at;
}

/** The most pages in which a record is looked for: some seconds, as long as a client may have to wait. */
const MAX_PAGES = 20;

/** @throws CURSOR_INVALID */
async function fromStart<R>(
  list: PagedList<R>,
  { id }: Position,
  refused: CursorRefusedError | undefined,
): Promise<Place<R>> {
  let pages = 0;
  for await (const { page } of walkList(list, { after: null })) {
    const offset = id === null ? -1 : page.ids.indexOf(id);
    if (offset >= 0) return { page, offset };
    pages += 1;
    if (pages === MAX_PAGES) break;
  }
  throw cursorLost(refused?.cause);
}

export function cursorLost(cause?: unknown): Error {
  const said = cause instanceof Error ? ` The recruiting service answered: ${cause.message}` : '';
  return codedError(
    'CURSOR_INVALID',
    'The record of this cursor was not found: the list has changed, or the record fails with the selected fields. ' +
      `Omit the cursor to start anew.${said}`,
    { cause },
  );
}
