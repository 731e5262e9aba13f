import type { Position } from '../cursor.ts';
import { codedError } from '../../errors.ts';
import { cursorLost, mayBeRefusal } from '../failures.ts';
import { identityHash } from '../identities.ts';
import type { FetchPage, Identified, Page } from '../page.ts';
import { nextRecord } from '../page-index/page-index.ts';
import type { WalkedPage, WalkedPages } from '../walk.ts';
import { readPage } from './find.ts';
import { locate, type Gone, type IndexedList, type Located } from './locate.ts';

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
  const found = await locate(list, position, signal);
  // A service that refuses one of the two cursors names records with them, so the other is right.
  if (!('page' in found)) return found.refusal !== undefined;
  return found.after === after && isLast(found) && found.page.endCursor === end;
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
    const found = await locate(list, expected, signal);
    if (!('page' in found)) {
      // A moment ago it was in the page of this cursor.
      if (expected !== position) break;
      return { after: await cursorOfGone(list, position, found, signal), isOwn: false };
    }
    if (isLast(found)) return behindPage(found.page);
    // It is no longer the last record of what was read.
    expected = { ...position, after: found.after, offset: found.offset };
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
