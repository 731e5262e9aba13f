import type { Pace } from './pace.ts';
import type { FetchPage, ReadPage } from './page.ts';
import { IndexBuilder, OVERLAP, type PageIndexes } from './page-index.ts';
import type { PageSize } from './page-size.ts';
import { walk, type WalkedPages } from './walk.ts';

/** A list of the service, with its filters and one selection. */
export interface PagedList<R = unknown> {
  /** Names the list with its filters, whatever is selected: one index serves all selections. */
  readonly name: string;
  /** Already bound to the caller: abort, budget, priority. */
  readonly fetchPage: FetchPage<R>;
  readonly indexes: PageIndexes;
  readonly size: PageSize;
  readonly pace: Pace;
}

export interface ListWalkOptions<R = unknown> {
  /** A cursor of the service; null: the start of the list. */
  readonly after: string | null;
  /** The page behind that cursor, if it was read already. */
  readonly start?: ReadPage<R> | undefined;
  /** The number of records needed; the last page can have more. Default: all. */
  readonly records?: number | undefined;
}

/**
 * Walks a list: one page after the other the first time, several at the same time once the list has an index. A walk of
 * the whole list leaves the index for the next one.
 *
 * @throws DRAIN_STALLED; CursorRefusedError or PageFailedError of a page that the walk cannot do without; what else
 *   `fetchPage` throws
 */
export function walkList<R>(list: PagedList<R>, options: ListWalkOptions<R>): WalkedPages<R> {
  const { after, start, records } = options;
  const size = () => (records === undefined ? overlapping(list.size.limit) : list.size.limit);
  const fetchPage = list.size.fetching(list.fetchPage);
  if (after !== null || start || records !== undefined)
    return walk(fetchPage, { after, start, records, size });
  return indexing(list, (onPage) => walk(fetchPage, { after, size, onPage }));
}

/** Smaller pages would consist mostly of overlap, so they are read one after the other. */
const SMALLEST_LIMIT = 10;

function overlapping(limit: number): number {
  return limit < SMALLEST_LIMIT ? limit : limit - OVERLAP;
}

async function* indexing<R>(
  list: PagedList<R>,
  begin: (onPage: (page: ReadPage<R>) => void) => WalkedPages<R>,
): WalkedPages<R> {
  const keep = list.indexes.begin(list.name);
  const builder = new IndexBuilder();
  yield* begin((page) => builder.add(page));
  keep(builder.finish(list.size.limit));
}
