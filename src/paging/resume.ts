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
  const { signal } = options;
  const start = position ? await upstreamCursorOf(fetchPage, position, signal) : { after: null };
  if (start === 'end of list') return;
  const begin = (after: string | null) => walk(fetchPage, { ...options, after });
  yield* orFromItsPage(begin, start.after, position, signal);
}

/**
 * The cursor of a record that is gone may be refused. Then its page again from the start: a record may come
 * twice, but none is skipped.
 */
export async function* orFromItsPage<R>(
  begin: (after: string | null) => AsyncGenerator<WalkedPage<R>, void, undefined>,
  after: string | null,
  position: Position | null,
  signal: AbortSignal,
): AsyncGenerator<WalkedPage<R>, void, undefined> {
  let hasBegun = false;
  try {
    for await (const page of begin(after)) {
      hasBegun = true;
      yield page;
    }
  } catch (error) {
    if (hasBegun || signal.aborted || !position || after === position.after) throw error;
    const page = begin(position.after);
    const first = await page.next().catch(() => {
      throw error;
    });
    if (!first.done) yield first.value;
    yield* page;
  }
}

/** A record of a page that was read anew. */
export interface Located<R> {
  readonly page: Page<R>;
  /** The cursor that the page was asked with. */
  readonly after: string | null;
  /** Its place in the page. */
  readonly place: number;
}

/** The record is not there any more. */
export interface Gone {
  /** Of the first record behind the page that it stood in; null when there is none. */
  readonly behind: string | null;
}

/** Reading on for a record that others were inserted before; further than that, its place is lost. */
const MAX_PAGES_READ = 20;

/** Finds a record where it stood, or further on if others were inserted before it. */
export async function locate<R extends Identified>(
  fetchPage: FetchPage<R>,
  { after: start, end, place, identity }: Position,
  signal: AbortSignal,
): Promise<Located<R> | Gone> {
  let after = start;
  let first: number | undefined = place + 1;
  let behind: string | null | undefined;
  for (let read = 0; read < MAX_PAGES_READ; read += 1) {
    const page = await fetchPage({ after, first }, signal);
    const found = placeOf(page, identity, place);
    if (found >= 0) return { page, after, place: found };
    // Inserted records may have pushed it back, but not behind the first record that followed its page.
    behind ??= await firstIdentityBehind(fetchPage, end, signal);
    const passed = page.items.some((record) => behind && record.identity === behind);
    if (passed || !page.hasNextPage || page.endCursor === null) break;
    after = page.endCursor;
    first = undefined;
  }
  return { behind: behind ?? null };
}

/** Removed or inserted meanwhile, a record may have to be looked for again. */
const MAX_LOOKS = 5;

/**
 * The upstream knows a cursor only for the last record of a page. Behind such a record there is nothing
 * to do; for one in the middle, its page is read again just so far that it is the last.
 */
export async function upstreamCursorOf<R extends Identified>(
  fetchPage: FetchPage<R>,
  position: Position,
  signal: AbortSignal,
): Promise<{ after: string | null } | 'end of list'> {
  const { end, size, place } = position;
  if (place === size - 1 && end !== null) return { after: end };
  let sought = position;
  for (let look = 0; look < MAX_LOOKS; look += 1) {
    const found = await locate(fetchPage, sought, signal);
    if ('behind' in found) break;
    if (found.place === found.page.items.length - 1) return behindPage(found.page);
    // It is not the last of its page any more: the page again, just up to it.
    sought = { ...position, after: found.after, place: found.place };
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

function behindPage<R>(page: Page<R>): { after: string } | 'end of list' {
  if (page.endCursor !== null) return { after: page.endCursor };
  if (!page.hasNextPage) return 'end of list';
  throw codedError(
    'DRAIN_STALLED',
    'The recruiting service gave no cursor to go on from. Try again later, or start without a cursor.',
  );
}
