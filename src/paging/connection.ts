import { codedError } from '../errors.ts';
import { decodeCursor, type Position } from './cursor.ts';
import { positionsIn } from './page-index.ts';
import { causeOf, CursorRefusedError, idOf, unlessRefused, type Place } from './page.ts';
import { readPage } from './page-size.ts';
import { cursorLost, locate, walkBehind } from './resume.ts';
import { walkList, type PagedList, type WalkedPages } from './walk.ts';

/*
 * Relay's cursor connections specification, over a list that is paged forward only
 *
 *     first, after     the page of the cursor, and the pages behind it
 *     last, before     the page of the cursor, if it holds enough; else the pages in front of it that the page index
 *                      knows; else the list is walked from its start, for example the first time for `last` alone
 *     after + before   from `after` on, until the record of `before` comes
 */

/** Arguments of a connection. Null counts as absent: Relay sends the variables of the other direction as null. */
export interface ConnectionArguments {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
}

/** A list whose connections are read. */
export interface ConnectedList<R> extends PagedList<R> {
  /** Begins a walk of the whole list when a slot for it is free. */
  readonly inTurn: <T>(begin: () => WalkedPages<T>) => WalkedPages<T>;
}

/** What a connection returns of its list. */
export interface Window<R> {
  readonly places: readonly Place<R>[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

/**
 * Reads a connection.
 *
 * @throws CURSOR_INVALID; DRAIN_STALLED; what `fetchPage` throws
 */
export async function readConnection<R>(
  list: ConnectedList<R>,
  { last, ...others }: WindowArguments,
): Promise<Window<R>> {
  try {
    return last === undefined
      ? await readForward(list, others)
      : await readBackward(list, { last, ...others });
  } catch (error) {
    throw causeOf(error);
  }
}

/**
 * Checks the arguments, also of a connection that is not read.
 *
 * @param list its name in cursors @param max the most records of one connection
 * @returns `first` or `last`; neither: a page
 * @throws BAD_USER_INPUT, CURSOR_INVALID
 */
export function checkedArguments(list: string, max: number, args: ConnectionArguments) {
  const first = checkedCount('first', args.first, max);
  const last = checkedCount('last', args.last, max);
  // The specification only discourages both.
  if (first !== undefined && last !== undefined) {
    throw codedError(
      'BAD_USER_INPUT',
      '`first` and `last` cannot be given together: use `first` with `after` to page forward, `last` with `before` to page backward.',
    );
  }
  const after = decodeCursor(list, args.after);
  const before = decodeCursor(list, args.before);
  return { first, last, after, before };
}

type WindowArguments = ReturnType<typeof checkedArguments>;

/**
 * Reads the `first` records behind a position, over as many pages as that takes.
 *
 * The record of `before` ends them if it comes. If it does not exist any more, it ends nothing: section 4.4 of the
 * specification, ApplyCursorsToEdges. `hasPreviousPage` is true whenever there is an `after`: its own record precedes
 * the others.
 */
async function readForward<R>(
  list: ConnectedList<R>,
  { first, after, before }: Omit<WindowArguments, 'last'>,
): Promise<Window<R>> {
  if (before?.id === null) throw cursorLost();
  const hasPreviousPage = after !== null;
  // If `before` ends them, only one record more shows whether another follows.
  const needed = (first ?? list.size.limit) + (before ? 1 : 0);
  const places: Place<R>[] = [];
  let hasNextPage = false;
  for await (const { page, offsets } of walkBehind(list, after, Math.max(1, needed))) {
    // By now, the page limit is known.
    const count = first ?? list.size.limit;
    for (const offset of offsets) {
      if (before && page.ids[offset] === before.id)
        return { places, hasNextPage: first === undefined, hasPreviousPage };
      if (places.length === count) return { places, hasNextPage: true, hasPreviousPage };
      places.push({ page, offset });
    }
    hasNextPage = page.hasNextPage;
  }
  hasNextPage ||= first === undefined && before !== null;
  return { places, hasNextPage, hasPreviousPage };
}

/** Reads the `last` records in front of a position. Both flags are exact. @throws CURSOR_INVALID */
async function readBackward<R>(
  list: ConnectedList<R>,
  { last, after, before }: Omit<WindowArguments, 'first'> & { readonly last: number },
): Promise<Window<R>> {
  const show = (places: readonly Place<R>[], hasNextPage = before !== null) => ({
    places: last === 0 ? [] : places.slice(-last),
    hasNextPage,
    hasPreviousPage: places.length > last,
  });
  const isStart = before?.after === null;
  if (before && !after && (isStart || before.offset > last)) {
    const { place, before: places } = await locate(list, before, 0);
    // Its own page holds them all, and shows whether there are more.
    if (place && (isStart || places.length > last)) return show(places);
  }
  if (before?.id === null) throw cursorLost();
  const walk = () => walkBehind(list, after);
  const upTo = async (border: string | null) => {
    const known = after ? undefined : await readKnown(list, border, last);
    return known ?? lastOf(list.inTurn(walk), border, last + 1);
  };
  const { places, isMet } = await upTo(before?.id ?? null);
  // A record that is not behind `after` ends nothing: section 4.4, ApplyCursorsToEdges.
  if (isMet || after) return show(places);
  const border = await borderOfGone(list, before!);
  return show((await upTo(border)).places, border !== null);
}

/**
 * Returns the record in front of which the edges end if that of `before` was removed: the first one behind its page, so
 * that records repeat, and none is skipped.
 *
 * @returns its id; null: the end of the list
 * @throws CURSOR_INVALID if the record is there, but fails with the selected fields, or the service refuses a cursor
 */
async function borderOfGone<R>(list: ConnectedList<R>, before: Position): Promise<string | null> {
  const { place, refused } = await locate(list, before, 0);
  if (place || refused) throw cursorLost(refused?.cause);
  if (before.end === null) return null;
  const behind = await unlessRefused(readPage(list, before.end, 1));
  if (behind instanceof CursorRefusedError) throw cursorLost(behind.cause);
  return behind.ids[0] ?? null;
}

/** Records in front of a border: one more than needed, if there are as many. */
interface Run<R> {
  readonly places: readonly Place<R>[];
  /** False if the list ended in front of the border. */
  readonly isMet: boolean;
}

/**
 * Reads only the pages in front of a border that the index knows.
 *
 * @param border the id of a record; null: the end of the list
 * @returns undefined if they are not enough
 */
async function readKnown<R>(
  list: ConnectedList<R>,
  border: string | null,
  last: number,
): Promise<Run<R> | undefined> {
  const index = list.known.indexOf(list.name);
  if (!index) return undefined;
  const end = { page: index.length, offset: 0 };
  const at = border === null ? end : positionsIn(index, [border]).get(border);
  if (!at) return undefined;
  let { page, offset: records } = at;
  while (page > 0 && records <= last) records += index[(page -= 1)]!.hashes.length;
  const after = index[page]?.after ?? null;
  // With the border.
  const needed = border === null ? undefined : records + 1;
  const walk = walkList(list, { after, records: needed });
  const run = await unlessRefused(lastOf(walk, border, last + 1));
  if (run instanceof CursorRefusedError || !run.isMet) return undefined;
  return run.places.length > last || after === null ? run : undefined;
}

/** Returns the last records in front of a border, or of the whole walk. */
async function lastOf<R>(
  pages: WalkedPages<R>,
  border: string | null,
  count: number,
): Promise<Run<R>> {
  let places: Place<R>[] = [];
  for await (const { page, offsets } of pages) {
    const added = offsets.map((offset) => ({ page, offset }));
    const met = border === null ? -1 : added.findIndex((place) => idOf(place) === border);
    // Only these are kept, so that a long list does not stay in memory.
    places = [...places, ...(met < 0 ? added : added.slice(0, met))].slice(-count);
    if (met >= 0) return { places, isMet: true };
  }
  return { places, isMet: border === null };
}

/** @throws BAD_USER_INPUT */
function checkedCount(
  name: string,
  count: number | null | undefined,
  max: number,
): number | undefined {
  if (count === null || count === undefined) return undefined;
  if (count < 0) {
    throw codedError('BAD_USER_INPUT', `\`${name}\` must not be negative, but it is ${count}.`);
  }
  if (count > max) {
    throw codedError(
      'BAD_USER_INPUT',
      `\`${name}\` is at most ${max}, but it is ${count}. Request the rest in further pages.`,
    );
  }
  return count;
}
