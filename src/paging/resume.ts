import { codedError } from '../errors.ts';
import type { Position } from './cursor.ts';
import type { FetchPage, Identified, Page } from './page.ts';
import { walk, type WalkedPage, type WalkOptions } from './walk.ts';

/** A walk that begins right behind a record; null begins at the start of the list. */
export async function* walkBehind<R extends Identified>(
  fetchPage: FetchPage<R>,
  position: Position | null,
  options: Omit<WalkOptions, 'after'>,
): AsyncGenerator<WalkedPage<R>, void, undefined> {
  const start = position
    ? await upstreamCursorOf(fetchPage, position, options.signal)
    : { after: null };
  if (start !== 'end of list') yield* walk(fetchPage, { ...options, ...start });
}

/** Reading on for a record that others were inserted before; further than that, its place is lost. */
const MAX_PAGES_READ = 20;

/**
 * The upstream knows a cursor only for the last record of a page. Behind such a record there is nothing
 * to do; for one in the middle, its page is read again just so far that it is the last.
 */
export async function upstreamCursorOf<R extends Identified>(
  fetchPage: FetchPage<R>,
  position: Position,
  signal: AbortSignal,
): Promise<{ after: string | null } | 'end of list'> {
  const { end, size, place, identity } = position;
  if (place === size - 1 && end !== null) return { after: end };

  let after = position.after;
  let first = place + 1;
  let beyond: string | null | undefined;
  for (let read = 0; read < MAX_PAGES_READ; read += 1) {
    const page = await fetchPage({ after, first }, signal);
    const found = placeOf(page, identity, place);
    if (found === page.items.length - 1 && (found >= 0 || identity === null)) return behind(page);
    if (found >= 0) {
      // Records before it were removed, or it stood further on: read again, just up to it.
      first = found + 1;
      continue;
    }
    // Inserted records may have pushed it back, but not behind the first record that followed its page.
    beyond ??= await firstIdentityBehind(fetchPage, end, signal);
    const passed = page.items.some((record) => beyond && record.identity === beyond);
    if (passed || !page.hasNextPage || page.endCursor === null) break;
    after = page.endCursor;
    first = size;
  }
  // The record is gone. Its page again from the start: a record may come twice, but none is skipped.
  return { after: position.after };
}

async function firstIdentityBehind<R extends Identified>(
  fetchPage: FetchPage<R>,
  end: string | null,
  signal: AbortSignal,
): Promise<string | null> {
  if (end === null) return null;
  const page = await fetchPage({ after: end, first: 1 }, signal);
  return page.items[0]?.identity ?? null;
}

function placeOf<R extends Identified>(
  page: Page<R>,
  identity: string | null,
  place: number,
): number {
  if (identity === null) return Math.min(place, page.items.length - 1);
  // Its own place first: in some lists an id comes twice.
  if (page.items[place]?.identity === identity) return place;
  return page.items.findIndex((record) => record.identity === identity);
}

function behind<R>(page: Page<R>): { after: string } | 'end of list' {
  if (page.endCursor !== null) return { after: page.endCursor };
  if (!page.hasNextPage) return 'end of list';
  throw codedError(
    'DRAIN_STALLED',
    'The recruiting service gave no cursor to go on from. Try again later, or start without a cursor.',
  );
}
