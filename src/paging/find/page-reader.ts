import { Slots } from '../../queue.ts';
import { isOutage, OutageDetector } from '../failures.ts';
import { PAGES_PER_OPERATION, type FetchPage, type Identified, type Page } from '../page.ts';
import type { PagePosition } from '../page-index/page-index.ts';
import { readAsFar, readByTurns, readOnward } from './find.ts';

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
  readonly #slots = new Slots(() => PAGES_PER_OPERATION);
  readonly #detector = new OutageDetector();
  #alone = 0;
  #hopeless = 0;

  constructor(list: ReadList<R>, identities: readonly string[], signal: AbortSignal) {
    this.#list = {
      fetchPage: this.#unlessDown(list.fetchPage),
      fetchIdentities: this.#unlessDown(list.fetchIdentities),
    };
    this.#signal = signal;
    this.missing = new Set(identities);
  }

  /** Reads records at their positions; then the pages near those that are gone, by default the same pages, whole. */
  async readAround<P extends PagePosition>(
    positions: ReadonlyMap<string, P>,
    near: (gone: readonly P[]) => readonly (string | null)[] = (gone) =>
      gone.map(({ after }) => after),
  ): Promise<void> {
    await this.#readAt(positions);
    const gone = Array.from(this.missing).flatMap((identity) => positions.get(identity) ?? []);
    const pages = new Set(near(gone));
    // Records are pushed out of a page to the one behind it.
    const bounds = { maxPages: 2, signal: this.#signal };
    const ways = Array.from(pages, (after) =>
      readOnward(this.#list.fetchPage, { after, ...bounds }, () => !bounds.signal.aborted),
    );
    await readByTurns(ways, PAGES_PER_OPERATION, ({ page }) => {
      this.#take(page);
      return this.missing.size === 0 || undefined;
    });
  }

  /** Reads each page once, as far as its last expected record. A record that is not there stays missing. */
  async #readAt(positions: ReadonlyMap<string, PagePosition>): Promise<void> {
    const byPage = Map.groupBy(positions, ([, { after }]) => after);
    await Promise.all(
      Array.from(byPage, async ([after, expected]) => {
        try {
          const page = await this.#slots.run(() => this.#readFrom(after, lastOf(expected) + 1));
          await this.#takeNulls(after, expected, page);
        } catch (error) {
          await this.#readOneByOne(expected, error);
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

  /** @returns the records that were read */
  async #readFrom(start: string | null, needed: number): Promise<readonly R[]> {
    const { fetchPage } = this.#list;
    let page = await fetchPage({ after: start, first: needed }, this.#signal);
    let read = page.items;
    for (let left = needed; ;) {
      this.#take(page);
      const { items, hasNextPage, endCursor: after } = page;
      left -= items.length;
      // Pages can be shorter than they were when the record was met.
      if (left <= 0 || items.length === 0 || !hasNextPage || after === null) return read;
      page = await fetchPage({ after, first: left }, this.#signal);
      read = [...read, ...page.items];
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
    items: readonly R[],
  ): Promise<void> {
    const nulls = expected.filter(
      ([identity, { offset }]) => this.missing.has(identity) && items[offset]?.identity === null,
    );
    if (nulls.length === 0) return;
    const request = { after, first: lastOf(nulls) + 1 };
    const read = await this.#slots.run(() =>
      readAsFar(this.#list.fetchIdentities, request, this.#signal, () => false),
    );
    const named = 'pages' in read ? read.pages.flatMap(({ page }) => page.items) : [];
    for (const [identity, { offset }] of nulls) {
      if (named[offset]?.identity !== identity || !this.missing.delete(identity)) continue;
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
      const outcome = await this.#slots.run(() => this.#readAlone(identity, position));
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
      const request = { after, first: Math.max(offset, 1) };
      const before = await readAsFar(fetchIdentities, request, this.#signal);
      if ('error' in before) return 'refused';
      const from = offset === 0 ? after : before.pages.at(-1)!.page.endCursor;
      this.#take(await fetchPage({ after: from, first: 1 }, this.#signal));
      return this.missing.has(identity) ? 'failed' : 'found';
    } catch (error) {
      if (this.#signal.aborted) throw error;
      this.fail(identity, error);
      return 'failed';
    }
  }

  /** Requests no further page once the service is probably down. */
  #unlessDown<T>(fetchPage: FetchPage<T>): FetchPage<T> {
    return async (request, signal) => {
      const { outage } = this.#detector;
      if (outage) throw outage.error;
      return this.#detector.count(fetchPage(request, signal));
    };
  }
}

function lastOf(expected: readonly [string, PagePosition][]): number {
  return Math.max(...expected.map(([, { offset }]) => offset));
}
