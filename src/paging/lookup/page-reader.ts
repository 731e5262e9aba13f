import PQueue from 'p-queue';
import { isOutage, mayBeRefusal, OutageDetector } from '../failures.ts';
import { PAGES_PER_OPERATION, type FetchPage, type Identified, type Page } from '../page.ts';
import type { PagePosition } from '../page-index/page-index.ts';

/** A record that was looked up; null: there is no such record. */
export type LookedUp<R> =
  | {
      readonly record: R;
      /** Of its page; given with one record of the page. */
      readonly unplacedErrors: readonly unknown[];
    }
  | LookupFailure
  | null;

/** It is unknown whether there is such a record. */
export interface LookupFailure {
  readonly error: unknown;
}

interface ReadList<R> {
  readonly fetchPage: FetchPage<R>;
  readonly fetchIdentities: FetchPage<Identified>;
}

/** Records that are requested one by one, because their pages fail as a whole. */
const MAX_ALONE = 500;
/** After so many of a page that fail before one is found, the failure is not due to single records. */
const MAX_FAILED_ALONE = 3;
/** After so many such pages, the failure is not due to single pages. */
const MAX_HOPELESS = 5;

/** Reads pages, and takes from each the records that are still missing. */
export class PageReader<R extends Identified> {
  readonly missing: Set<string>;
  readonly #list: ReadList<R>;
  readonly #signal: AbortSignal;
  readonly #found = new Map<string, LookedUp<R>>();
  readonly #refusals = new Map<string, unknown>();
  readonly #queue = new PQueue({ concurrency: PAGES_PER_OPERATION });
  readonly #detector = new OutageDetector();
  #alone = 0;
  #hopeless = 0;

  constructor(list: ReadList<R>, identities: readonly string[], signal: AbortSignal) {
    this.#list = list;
    this.#signal = signal;
    this.missing = new Set(identities);
  }

  /** Reads each page once, as far as its last expected record. A record that is not there stays missing. */
  async read(positions: ReadonlyMap<string, PagePosition>): Promise<void> {
    const byPage = Map.groupBy(positions, ([, { after }]) => after);
    await Promise.all(
      Array.from(byPage, async ([after, expected]) => {
        try {
          const page = await this.#queue.add(() => this.#readFrom(after, lastOf(expected) + 1));
          await this.#takeNulls(after, expected, page);
        } catch (error) {
          await this.#readOneByOne(expected, error);
        }
      }),
    );
  }

  /** Reads pages that may hold missing records, and what follows each of them: records are pushed out of it to there. */
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

  /** For a record that a walk met a moment ago: if its page was refused, that is why it is missing. */
  failIfRefused(identity: string): void {
    const refusal = this.#refusals.get(identity);
    if (refusal !== undefined) this.fail(identity, refusal);
  }

  /** All wanted records. Those still missing do not exist. */
  found(): ReadonlyMap<string, LookedUp<R>> {
    for (const identity of this.missing) this.#found.set(identity, null);
    this.missing.clear();
    return this.#found;
  }

  /** @returns the first page read */
  async #readFrom(start: string | null, needed: number | undefined): Promise<Page<R>> {
    const first = await this.#fetch(this.#list.fetchPage, { after: start, first: needed });
    let page = first;
    let left = needed;
    for (;;) {
      this.#take(page);
      // Pages can be shorter than they were when the record was met.
      if (left === undefined || page.items.length === 0 || page.items.length >= left) return first;
      const { hasNextPage, endCursor: after } = page;
      if (!hasNextPage || after === null) return first;
      left -= page.items.length;
      page = await this.#fetch(this.#list.fetchPage, { after, first: left });
    }
  }

  #take({ items, unplacedErrors = [] }: Page<R>): void {
    let left = unplacedErrors;
    for (const record of items) {
      if (record.identity === null || !this.missing.delete(record.identity)) continue;
      this.#found.set(record.identity, { record, unplacedErrors: left });
      left = [];
    }
  }

  /** Takes records that are null because something in them failed. They lack an id; a page of identities tells them apart. */
  async #takeNulls(
    after: string | null,
    expected: readonly [string, PagePosition][],
    { items }: Page<R>,
  ): Promise<void> {
    const nulls = expected.filter(
      ([identity, { offset }]) => this.missing.has(identity) && items[offset]?.identity === null,
    );
    if (nulls.length === 0) return;
    const request = { after, first: lastOf(nulls) + 1 };
    const named = await this.#queue.add(() => this.#fetch(this.#list.fetchIdentities, request));
    for (const [identity, { offset }] of nulls) {
      if (named.items[offset]?.identity !== identity || !this.missing.delete(identity)) continue;
      this.#found.set(identity, { record: items[offset]!, unplacedErrors: [] });
    }
  }

  /** Reads the expected records of a page that failed: one bad record can fail the whole page. */
  async #readOneByOne(expected: readonly [string, PagePosition][], error: unknown): Promise<void> {
    if (this.#signal.aborted) throw error;
    let failed = 0;
    let isHopeless = isOutage(error);
    let isRefused = false;
    for (const [identity, position] of expected) {
      if (!this.missing.has(identity)) continue;
      this.#refusals.set(identity, error);
      // All of them are read from the same cursor. They may be elsewhere, and stay missing.
      if (isRefused) continue;
      const isOver =
        this.#hopeless >= MAX_HOPELESS ||
        this.#alone >= MAX_ALONE ||
        this.#detector.outage !== undefined;
      if (isHopeless || isOver) {
        this.fail(identity, error);
        continue;
      }
      this.#alone += 1;
      const outcome = await this.#queue.add(() => this.#readAlone(identity, position));
      isRefused = outcome === 'refused';
      if (isRefused) continue;
      failed = outcome === 'found' ? Number.NEGATIVE_INFINITY : failed + 1;
      isHopeless = failed >= MAX_FAILED_ALONE;
      if (isHopeless) this.#hopeless += 1;
    }
  }

  /** @returns `refused` when the service refuses the cursor of the page */
  async #readAlone(
    identity: string,
    { after, offset }: PagePosition,
  ): Promise<'found' | 'failed' | 'refused'> {
    const { fetchPage, fetchIdentities } = this.#list;
    try {
      let before: Page<Identified>;
      try {
        before = await this.#fetch(fetchIdentities, { after, first: Math.max(offset, 1) });
      } catch (error) {
        if (mayBeRefusal(error, after, this.#signal)) return 'refused';
        throw error;
      }
      const from = offset === 0 ? after : before.endCursor;
      this.#take(await this.#fetch(fetchPage, { after: from, first: 1 }));
      return this.missing.has(identity) ? 'failed' : 'found';
    } catch (error) {
      if (this.#signal.aborted) throw error;
      this.fail(identity, error);
      return 'failed';
    }
  }

  async #fetch<T>(fetch: FetchPage<T>, request: Parameters<FetchPage<T>>[0]): Promise<Page<T>> {
    const { outage } = this.#detector;
    if (outage) throw outage.error;
    return this.#detector.count(fetch(request, this.#signal));
  }
}

function lastOf(expected: readonly [string, PagePosition][]): number {
  return Math.max(...expected.map(([, { offset }]) => offset));
}
