import PQueue from 'p-queue';
import { isOutage, mayBeOutage } from '../failures.ts';
import { PAGES_PER_OPERATION, type FetchPage, type Identified, type Page } from '../page.ts';
import type { Place } from '../page-index/page-index.ts';

/** What is found of one record; null: there is none. */
export type LookedUp<R> =
  | {
      readonly record: R;
      /** What came with its page and belongs to no record; given with one record of the page. */
      readonly beside: readonly unknown[];
    }
  | LookupFailure
  | null;

/** Nobody can tell whether there is such a record. */
export interface LookupFailure {
  readonly error: unknown;
}

interface ReadList<R> {
  readonly fetchPage: FetchPage<R>;
  readonly fetchIdentities: FetchPage<Identified>;
}

/** Pages that fail in a row before no further one is asked for: the service is probably down. */
const MAX_FAILURES = 3;
/** Records of pages that cannot be had as a whole which are asked for one by one. */
const MAX_ALONE = 500;
/** Of one page, so many of them that fail before one is there: then it is no matter of one record. */
const MAX_FAILED_ALONE = 3;
/** Of such pages, so many: then it is no matter of one page. */
const MAX_HOPELESS = 5;

/** Reads pages, and takes from each whatever is still missing. */
export class PageReader<R extends Identified> {
  readonly missing: Set<string>;
  readonly #list: ReadList<R>;
  readonly #signal: AbortSignal;
  readonly #found = new Map<string, LookedUp<R>>();
  readonly #refusals = new Map<string, unknown>();
  readonly #queue = new PQueue({ concurrency: PAGES_PER_OPERATION });
  #failures = 0;
  #failure: unknown;
  #alone = 0;
  #hopeless = 0;

  constructor(list: ReadList<R>, identities: readonly string[], signal: AbortSignal) {
    this.#list = list;
    this.#signal = signal;
    this.missing = new Set(identities);
  }

  /** Each page once, as far as its last wanted record. Who is not met there stays missing. */
  async read(places: ReadonlyMap<string, Place>): Promise<void> {
    const byPage = Map.groupBy(places, ([, { after }]) => after);
    await Promise.all(
      Array.from(byPage, async ([after, expected]) => {
        try {
          const page = await this.#queue.add(() => this.#readFrom(after, lastOf(expected) + 1));
          await this.#takeUnnamed(after, expected, page);
        } catch (error) {
          await this.#without(expected, error);
        }
      }),
    );
  }

  /** Pages that may have what is missing, and what follows right behind each: there is what was pushed out of it. */
  async readWhole(pages: readonly (string | null)[]): Promise<void> {
    await Promise.all(
      [...new Set(pages)].map(async (after) => {
        try {
          const page = await this.#queue.add(() => this.#readFrom(after, undefined));
          const { hasNextPage, endCursor } = page;
          if (this.missing.size === 0 || !hasNextPage || endCursor === null) return;
          await this.#queue.add(() => this.#readFrom(endCursor, undefined));
        } catch (error) {
          if (this.#signal.aborted) throw error;
        }
      }),
    );
  }

  fail(identity: string, error: unknown): void {
    if (this.missing.delete(identity)) this.#found.set(identity, { error });
  }

  /** For a record that was met by a walk a moment ago. */
  failIfRefused(identity: string): void {
    const refusal = this.#refusals.get(identity);
    if (refusal !== undefined) this.fail(identity, refusal);
  }

  /** Of all that were wanted; who is still missing is not there. */
  found(): ReadonlyMap<string, LookedUp<R>> {
    for (const identity of this.missing) this.#found.set(identity, null);
    this.missing.clear();
    return this.#found;
  }

  /** @returns the first page read */
  async #readFrom(start: string | null, needed: number | undefined): Promise<Page<R>> {
    const first = await this.#ask(this.#list.fetchPage, { after: start, first: needed });
    let page = first;
    let left = needed;
    for (;;) {
      this.#take(page);
      // Pages can be shorter than they were when the record was met.
      if (left === undefined || page.items.length === 0 || page.items.length >= left) return first;
      const { hasNextPage, endCursor: after } = page;
      if (!hasNextPage || after === null) return first;
      left -= page.items.length;
      page = await this.#ask(this.#list.fetchPage, { after, first: left });
    }
  }

  #take({ items, beside = [] }: Page<R>): void {
    let left = beside;
    for (const record of items) {
      if (record.identity === null || !this.missing.delete(record.identity)) continue;
      this.#found.set(record.identity, { record, beside: left });
      left = [];
    }
  }

  /** A record that came as a null, since something in it failed, came without its id: the identities alone tell whose it is. */
  async #takeUnnamed(
    after: string | null,
    expected: readonly [string, Place][],
    { items }: Page<R>,
  ): Promise<void> {
    const unnamed = expected.filter(
      ([identity, { place }]) => this.missing.has(identity) && items[place]?.identity === null,
    );
    if (unnamed.length === 0) return;
    const request = { after, first: lastOf(unnamed) + 1 };
    const named = await this.#queue.add(() => this.#ask(this.#list.fetchIdentities, request));
    for (const [identity, { place }] of unnamed) {
      if (named.items[place]?.identity !== identity || !this.missing.delete(identity)) continue;
      this.#found.set(identity, { record: items[place]!, beside: [] });
    }
  }

  /** A page that cannot be had as a whole: one record can take all the others with it. */
  async #without(expected: readonly [string, Place][], error: unknown): Promise<void> {
    if (this.#signal.aborted) throw error;
    let failed = 0;
    let isHopeless = isOutage(error);
    for (const [identity, place] of expected) {
      if (!this.missing.has(identity)) continue;
      this.#refusals.set(identity, error);
      const isOver = this.#hopeless >= MAX_HOPELESS || this.#alone >= MAX_ALONE || this.#isDown;
      if (isHopeless || isOver) {
        this.fail(identity, error);
        continue;
      }
      this.#alone += 1;
      const isThere = await this.#queue.add(() => this.#readAlone(identity, place));
      failed = isThere ? Number.NEGATIVE_INFINITY : failed + 1;
      isHopeless = failed >= MAX_FAILED_ALONE;
      if (isHopeless) this.#hopeless += 1;
    }
  }

  /** @returns whether it is there */
  async #readAlone(identity: string, { after, place }: Place): Promise<boolean> {
    const { fetchPage, fetchIdentities } = this.#list;
    try {
      let before: Page<Identified>;
      try {
        before = await this.#ask(fetchIdentities, { after, first: Math.max(place, 1) });
      } catch (error) {
        if (!isOutage(error)) return false; // Its cursor is refused: it may be found elsewhere.
        throw error;
      }
      const from = place === 0 ? after : before.endCursor;
      this.#take(await this.#ask(fetchPage, { after: from, first: 1 }));
      return !this.missing.has(identity);
    } catch (error) {
      if (this.#signal.aborted) throw error;
      this.fail(identity, error);
      return false;
    }
  }

  get #isDown(): boolean {
    return this.#failures >= MAX_FAILURES;
  }

  async #ask<T>(fetch: FetchPage<T>, request: Parameters<FetchPage<T>>[0]): Promise<Page<T>> {
    if (this.#isDown) throw this.#failure;
    try {
      const page = await fetch(request, this.#signal);
      this.#failures = 0;
      return page;
    } catch (error) {
      this.#failures = mayBeOutage(error) ? this.#failures + 1 : 0;
      this.#failure = error;
      throw error;
    }
  }
}

function lastOf(expected: readonly [string, Place][]): number {
  return Math.max(...expected.map(([, { place }]) => place));
}
