import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { hashIds } from './identities.ts';
import { PageFailedError, SizeRefusedError, type FetchPage, type ReadPage } from './page.ts';

/** The page limit of the service, according to its documentation. Some lists have another one. */
const USUAL_LIMIT = 50;
/** How long a reduced size is kept before a larger one is tried. */
const TRY_LARGER_MS = 10 * 60_000;
/** The most lists and selections whose sizes are kept: callers may send any number of them. */
const MAX_SIZES = 1_000;

/** The largest page that the service gives of one list with one selection. */
export class PageSize {
  readonly #clock: Pick<Clock, 'elapsed'>;
  readonly #usual: number;
  #size: number;
  #since = 0;

  /** @param usual the size to begin with */
  constructor(clock: Pick<Clock, 'elapsed'>, usual = USUAL_LIMIT) {
    this.#clock = clock;
    this.#usual = usual;
    this.#size = usual;
  }

  /** The number of records to request for a full page. */
  get limit(): number {
    const isOld = this.#size < this.#usual && this.#clock.elapsed() - this.#since >= TRY_LARGER_MS;
    if (isOld) this.#set(Math.min(this.#usual, 2 * this.#size));
    return this.#size;
  }

  /** Call it if the service gives no more records in a page. */
  reduce(size: number): void {
    if (size < this.#size) this.#set(size);
  }

  #set(size: number): void {
    this.#size = size;
    this.#since = this.#clock.elapsed();
  }
}

/**
 * Reads a page of so many records, or as many as the service gives: half as many where it refuses a size as too big.
 * Learns the size also from pages that the service cut.
 *
 * @throws as `fetchPage`, except SizeRefusedError: a single record that is refused is a PageFailedError
 */
export async function readPage<R>(
  { fetchPage, size }: { readonly fetchPage: FetchPage<R>; readonly size: PageSize },
  after: string | null,
  records = Infinity,
): Promise<ReadPage<R>> {
  for (let first = Math.max(1, Math.min(records, size.limit)); ; first = Math.floor(first / 2)) {
    try {
      const page = await fetchPage(after, first);
      if (page.size > 0 && page.size < first) size.reduce(page.size);
      return { ...page, after, identities: hashIds(page.ids) };
    } catch (error) {
      if (!(error instanceof SizeRefusedError)) throw error;
      if (first === 1) throw new PageFailedError(error.message, { cause: error.cause });
      size.reduce(Math.floor(first / 2));
    }
  }
}

/** Keeps the page sizes by what the service's refusals depend on: the list and the selection. */
export function pageSizes(clock: Pick<Clock, 'elapsed'>) {
  const sizes = new LRUCache<string, PageSize>({ max: MAX_SIZES });
  return (name: string, usual: number | undefined): PageSize => {
    const size = sizes.get(name) ?? new PageSize(clock, usual);
    sizes.set(name, size);
    return size;
  };
}
