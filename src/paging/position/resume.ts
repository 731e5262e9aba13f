import { codedError } from '../../errors.ts';
import type { Position } from '../cursor.ts';
import { locate, type Gone, type Located, type SearchedList } from './locate.ts';
import type { FetchPage, Identified, Page } from '../page.ts';
import { mayBeRefusal, placeLost } from '../failures.ts';
import type { WalkedPage } from '../walk.ts';

type Pages<R> = AsyncGenerator<WalkedPage<R>, void, undefined>;
type Begin<R> = (after: string | null) => Pages<R>;

/**
 * Begins a walk right behind a record; null begins at the start of the list.
 *
 * Of the last record of its page the upstream gave a cursor of its own. That is gone on from at once, for it
 * is how clients page on, and a look at where the record is now would double what each page costs. So there,
 * a service whose cursors name positions skips what it skips for its own callers, unless the list's index
 * knows better.
 */
export async function* walkBehind<R extends Identified>(
  list: SearchedList<R>,
  position: Position | null,
  begin: Begin<R>,
  signal: AbortSignal,
): Pages<R> {
  if (!position) return yield* begin(null);
  const { end, place, size } = position;
  let start: Start | undefined;
  if (place === size - 1 && end !== null) start = { after: end, isOwn: true };
  let failure: unknown;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    start ??= await cursorBehind(list, position, signal);
    if (start === undefined) return;
    let hasBegun = false;
    let isRight = true;
    try {
      for await (const page of begin(start.after)) {
        isRight = hasBegun || !start.isOwn || (await isThere(list, position, page, signal));
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
      // The very cursor again, and fresh: what failed is not due to it.
      if (start?.after === refused) throw error;
      continue;
    }
    start = undefined;
  }
  throw failure ?? placeLost();
}

/** A record can be removed or moved just when its place was found. */
const MAX_ATTEMPTS = 5;

/** Whether the list's index, if there is one, leaves no doubt that the page follows the record, or a look does. */
async function isThere<R extends Identified>(
  list: SearchedList<R>,
  position: Position,
  { records, hasNextPage }: WalkedPage<R>,
  signal: AbortSignal,
): Promise<boolean> {
  const { identity, after, end } = position;
  const next = records[0]?.record.identity ?? null;
  if (identity === null || (next === null && hasNextPage)) return true;
  if (list.memory?.isNext(identity, next) !== false) return true;
  const found = await locate(list, position, signal);
  // Who refuses the one cursor and takes the other names records with them, and this one is there.
  if (!('page' in found)) return found.refusal !== undefined;
  return found.after === after && isLast(found) && found.page.endCursor === end;
}

interface Start {
  readonly after: string | null;
  /** The cursor of ours carried it, and nothing was looked up. */
  readonly isOwn: boolean;
}

/**
 * The upstream knows a cursor only for the last record of a page. For one in the middle, its page is read
 * again just so far that it is the last.
 *
 * @returns undefined at the end of the list
 */
async function cursorBehind<R extends Identified>(
  list: SearchedList<R>,
  position: Position,
  signal: AbortSignal,
): Promise<Start | undefined> {
  let sought = position;
  for (let look = 0; look < MAX_ATTEMPTS; look += 1) {
    const found = await locate(list, sought, signal);
    if (!('page' in found)) {
      // Just now it was in the page that this cursor leads to.
      if (sought !== position) break;
      return { after: await cursorOfGone(list, position, found, signal), isOwn: false };
    }
    if (isLast(found)) return behindPage(found.page);
    // It is not the last of its page any more: the page again, just up to it.
    sought = { ...position, after: found.after, place: found.place };
  }
  return { after: sought.after, isOwn: false };
}

/**
 * The record is gone. Its page again from the start then: a record may come twice, but none is skipped. Where
 * its page begins further on than it did, only the start of the list is early enough.
 *
 * @throws CURSOR_INVALID when the page is refused, or the start of the list is far away
 */
async function cursorOfGone<R extends Identified>(
  { fetchPage }: SearchedList<R>,
  position: Position,
  gone: Gone,
  signal: AbortSignal,
): Promise<string | null> {
  if (gone.refusal) throw placeLost(gone.refusal.error);
  if (position.after === null) return null;
  const behind = await firstBehind(fetchPage, position.end, signal);
  if (!mayHaveSlid(position, gone, behind)) return position.after;
  if (!gone.isNear.start) throw placeLost();
  return null;
}

/**
 * A page that keeps its size though a record of it is gone is one between two positions of the list, whatever
 * stands there now; or another record came into it, which cannot be told apart.
 *
 * @param behind what `firstBehind` says of the page
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
export async function firstBehind<R extends Identified>(
  fetchPage: FetchPage<R>,
  end: string | null,
  signal: AbortSignal,
): Promise<string | null | undefined> {
  if (end === null) return null;
  const page = await fetchPage({ after: end, first: 1 }, signal).catch((error: unknown) => {
    if (mayBeRefusal(error, end, signal)) return undefined;
    throw error;
  });
  return page && (page.items[0]?.identity ?? null);
}

function isLast<R>({ page, place }: Located<R>): boolean {
  return place === page.items.length - 1;
}

function behindPage<R>(page: Page<R>): Start | undefined {
  if (page.endCursor !== null) return { after: page.endCursor, isOwn: false };
  if (!page.hasNextPage) return undefined;
  throw codedError(
    'DRAIN_STALLED',
    'The recruiting service gave no cursor to go on from. Try again later, or start without a cursor.',
  );
}
