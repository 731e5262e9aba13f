import type { FetchPage, ReadPage } from './page.ts';
import { IndexBuilder, OVERLAP, type PageIndex, type PageIndexes } from './page-index.ts';
import type { PageSize } from './page-size.ts';
import { walkInParallel } from './parallel-walk.ts';
import type { Totals } from './totals.ts';
import { Seen, walk, type WalkedPages } from './walk.ts';

/** A list of the service, with its filters and one selection. */
export interface PagedList<R = unknown> {
  /** Names the list with its filters, whatever is selected: one index serves all selections. */
  readonly name: string;
  /** Already bound to the caller: abort, budget, priority. */
  readonly fetchPage: FetchPage<R>;
  readonly indexes: PageIndexes;
  readonly size: PageSize;
  /** The most pages in flight for one walk. */
  readonly concurrency: number;
  /** Where to keep the number of records of a whole walk. */
  readonly totals?: Pick<Totals, 'begin'>;
}

export interface ListWalkOptions<R = unknown> {
  /** A cursor of the service; null: the start of the list. */
  readonly after: string | null;
  /** The page behind that cursor, if it was read already. */
  readonly start?: ReadPage<R> | undefined;
  /** The number of records needed; the last page can have more. Default: all. */
  readonly records?: number | undefined;
  /** Whether pages are requested before the reader needs them, where the list has no index. Default: true. */
  readonly readsAhead?: boolean;
}

/**
 * Walks a list: one page after the other the first time, several at the same time once the list has an index. A walk of
 * the whole list leaves the index for the next one.
 *
 * @throws DRAIN_STALLED; CursorRefusedError or PageFailedError of a page that the walk cannot do without; what else
 *   `fetchPage` throws
 */
export async function* walkList<R>(
  list: PagedList<R>,
  { after, start, records, readsAhead }: ListWalkOptions<R>,
): WalkedPages<R> {
  const { name, indexes, concurrency } = list;
  const fetchPage = list.size.fetching(list.fetchPage);
  const limit = () => list.size.limit;
  // A part of a list is too little for an index or a total.
  const isWhole = after === null && !start && records === undefined;
  const builder = isWhole ? new IndexBuilder() : undefined;
  const keepTotal = isWhole ? list.totals?.begin(name) : undefined;
  const onPage = builder && ((page: ReadPage<R>) => builder.add(page));
  const seen = new Seen();

  const index = indexes.get(name);
  if (index && canReadAhead(index, limit(), records)) {
    const part = { after, start, records: records ?? Infinity };
    yield* walkInParallel(fetchPage, { ...part, index, limit, concurrency, seen, onPage });
  } else {
    const size = () => (isWhole ? overlapping(limit()) : limit());
    yield* walk(fetchPage, { after, start, records, size, readsAhead, seen, onPage });
  }
  // Not reached if the walk fails or its reader leaves.
  if (builder) indexes.keep(name, builder.finish());
  keepTotal?.(seen.count);
}

/** Smaller pages would consist mostly of overlap, so they are read one after the other. */
const SMALLEST_LIMIT = 10;

function overlapping(limit: number): number {
  return limit < SMALLEST_LIMIT ? limit : limit - OVERLAP;
}

function canReadAhead({ pages }: PageIndex, limit: number, records = Infinity): boolean {
  if (limit < SMALLEST_LIMIT || pages.length < 2 || records <= limit) return false;
  // Pages that begin a full page apart do not overlap: the limit is smaller now, or the service rounds it up. Those that
  // begin less than half a page apart are of a selection with small pages: all records would be read several times.
  const usable = pages.filter(({ count }) => count < limit && 2 * count >= limit);
  return usable.length >= pages.length / 2;
}
