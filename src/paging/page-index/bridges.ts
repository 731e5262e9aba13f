import { identityHash } from '../identities.ts';
import { identitiesOf, type FetchPage, type Identified, type Page } from '../page.ts';
import { joinPages } from './join-pages.ts';
import { nextRecord, type PageIndex } from './page-index.ts';
import {
  prefetchPages,
  type PageRead,
  type Prefetch,
  type PrefetchOptions,
} from './prefetch-pages.ts';

/** What leads on from a page. */
export interface Bridge<R> {
  /** Pages in between that are not in the index. */
  readonly gap: readonly PageRead<R>[];
  /** The page of the index that continues behind them; `open` if none was met yet. */
  readonly to: number | 'open';
  /** Where there is no gap: the offset of that page's first record in this one. */
  readonly at?: number;
}

export const NO_BRIDGE: Bridge<never> = { gap: [], to: 'open' };

/** Pages of a gap that are read ahead of the consumer. A longer gap is read when the consumer comes to it. */
const MAX_GAP_AHEAD = 4;

/**
 * Reads the pages of an index ahead, and finds what leads from each to the next. A page is joined to the next one as
 * soon as both were read. If they do not join, the pages between them are read then, not when the consumer needs them.
 */
export class Bridges<R extends Identified> {
  readonly prefetch: Prefetch<R>;
  readonly #index: PageIndex;
  /** The pages that the next one is proved to continue, with the offset of its first record in them. */
  readonly #joined = new Map<number, number>();
  readonly #built = new Map<number, Promise<Bridge<R>>>();
  #passed = 0;
  #lookedAt = 0;

  constructor(fetchPage: FetchPage<R>, options: Omit<PrefetchOptions, 'onSettled'>) {
    this.#index = options.index;
    const onSettled = (page: number) => {
      this.#join(page - 1);
      this.#join(page);
    };
    this.prefetch = prefetchPages(fetchPage, { ...options, onSettled });
  }

  /** Requests this page and those behind it, as `Prefetch.lookAhead` does. Those in front of it are forgotten. */
  lookAhead(page: number, wanted: number): void {
    for (; this.#passed < page; this.#passed += 1) {
      this.#built.delete(this.#passed);
      this.#joined.delete(this.#passed);
    }
    const end = this.prefetch.lookAhead(page, wanted);
    for (let next = Math.max(this.#lookedAt, page); next < end; next += 1) {
      this.#lookedAt = next + 1;
      this.#join(next);
    }
  }

  /** What leads on from a page of the index. */
  async from(page: number): Promise<Bridge<R>> {
    if (page + 1 < this.#index.pages.length) await this.prefetch.page(page + 1);
    const at = this.#joined.get(page);
    return at === undefined ? this.#build(page) : { gap: [], to: page + 1, at };
  }

  /** Reads what leads on from a page that is not in the index. @param next the page of the index behind it */
  async build(from: PageRead<R>, next: number): Promise<Bridge<R>> {
    const { prefetch } = this;
    const gap: PageRead<R>[] = [];
    let last = from;
    for (;;) {
      const met = await prefetch.joining(last.page, next);
      if (met !== undefined) return { gap, to: met };
      const { hasNextPage, endCursor } = last.page;
      if (!hasNextPage || endCursor === null || gap.length >= MAX_GAP_AHEAD) break;
      if (next >= this.#index.pages.length) break;
      const read = await prefetch.readFrom(endCursor);
      if (!read || !(await this.#isBehind(last, read, next))) break;
      gap.push(read);
      last = read;
    }
    return { gap, to: 'open' };
  }

  #join(page: number): void {
    if (page < this.#passed || page >= this.#lookedAt) return;
    const { prefetch } = this;
    const read = prefetch.settled(page);
    if (!read || read === 'pending') return;
    const indexed = this.#index.pages[page + 1];
    if (indexed) {
      void prefetch.page(page + 1);
      const next = prefetch.settled(page + 1);
      if (next === 'pending') return;
      const join = next && joinPages(read.page, next.page, indexed.behind);
      if (join?.kind === 'joined') {
        this.#joined.set(page, join.at);
        return;
      }
    }
    void this.#build(page);
  }

  #build(page: number): Promise<Bridge<R>> {
    const known = this.#built.get(page);
    if (known) return known;
    const built = this.prefetch
      .page(page)
      .then((read) => (read ? this.build(read, page + 1) : NO_BRIDGE));
    this.#built.set(page, built);
    return built;
  }

  /**
   * Whether no record was lost between the two pages, which were read one after the other: a cursor that names an
   * offset skips a record when one in front of it is removed meanwhile.
   */
  async #isBehind(page: PageRead<R>, read: PageRead<R>, next: number): Promise<boolean> {
    const [end, start] = [page.page.items.at(-1)?.identity, read.page.items[0]?.identity];
    if (!end || !start || !identitiesOf(read.page).isJoinable) return false;
    if (nextRecord(this.#index, end, next - 2, next) === identityHash(start)) return true;
    const again = await this.prefetch.readFrom(page.after);
    return again !== undefined && isSame(again.page, page.page);
  }
}

function isSame(page: Page<Identified>, other: Page<Identified>): boolean {
  return (
    page.items.length === other.items.length &&
    page.items.every(({ identity }, offset) => identity === other.items[offset]!.identity)
  );
}
