/**
 * How a record is found again in a list that is read forward only, page by page, and that changes meanwhile.
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
import { mayBeRefusal } from '../failures.ts';
import type { FetchPage, Page, PageRequest } from '../page.ts';
import type { WalkBounds } from '../walk.ts';

/** A page, and the cursor with which it was read. */
export interface ReadPage<R> {
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

/** Reads a page of each way in turn, so many at a time, until all ways end or `find` returns a result. */
export async function readByTurns<R, T>(
  ways: readonly Way<R>[],
  atATime: number,
  find: (read: ReadPage<R>) => T | undefined,
): Promise<T | undefined> {
  const waiting = [...ways];
  let found: T | undefined;
  const readOn = async () => {
    for (let way = waiting.shift(); way && found === undefined; way = waiting.shift()) {
      const { done, value } = await way.next();
      if (done) continue;
      found ??= find(value);
      waiting.push(way);
    }
  };
  await Promise.all(Array.from({ length: atATime }, readOn));
  return found;
}
