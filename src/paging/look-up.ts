import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import { Slots } from '../queue.ts';
import type { Position } from './cursor.ts';
import type { UnfinishedWalk } from './list-walk.ts';
import { SharedWalk, type WalkReaders } from './shared-walk.ts';
import { isOutage, OutageDetector, WALK_LEFT } from './failures.ts';
import { readAsFar, readByTurns, readOnward } from './find.ts';
import { identityHash } from './identities.ts';
import type { PageBudget } from './page-budget.ts';
import {
  costOfCursor,
  isSamePosition,
  pagesNear,
  positionsIn,
  type IndexedPage,
  type PageIndex,
  type PagePosition,
} from './page-index.ts';
import { PAGES_PER_OPERATION, type FetchPage, type Identified, type Page } from './page.ts';
import type { WalkedPage, WalkedPages } from './walk.ts';

/** A list that can only be read page by page, and in which records are found by their ids. */
export interface LookupList<R> {
  /** Fetches pages with everything that is selected of the records. */
  readonly fetchPage: FetchPage<R>;
  /** Fetches pages of identities only. */
  readonly fetchIdentities: FetchPage<Identified>;
  /** The part that does not depend on the caller: a walk that several lookups share keeps it. */
  readonly shared: SharedList;
  readonly walks: LookupWalks;
  /** Called with the number of records whose positions the index has, and the number of the others. */
  readonly onPositions?: (known: number, unknown: number) => void;
}

interface LookupOptions {
  readonly signal: AbortSignal;
  /** The budget for the pages of a walk while the lookup waits for it. */
  readonly pages: PageBudget;
}

/** The positions of records; null: the record does not exist. */
type FoundPositions = ReadonlyMap<string, PagePosition | null | LookupFailure>;

/**
 * Finds records by their ids, with fresh values: at their positions, near them, and further away (see `find.ts`). The
 * records of one page cost one request, for as much of the page as needed. A record that a walk met but that could not
 * be read is a failure, not null.
 */
export async function lookUp<R extends Identified>(
  list: LookupList<R>,
  identities: readonly string[],
  options: LookupOptions,
): Promise<ReadonlyMap<string, LookedUp<R>>> {
  const index = list.shared.index();
  const pages = new PageReader(list, identities, options.signal);
  const { missing } = pages;

  const indexed = positionsIn(index?.pages ?? [], identities);
  list.onPositions?.(indexed.size, identities.length - indexed.size);
  await pages.readAround(indexed, (gone) => pagesNear(index, gone));

  let tried: ReadonlyMap<string, PagePosition> = indexed;
  /** Records that were in the list a moment ago. */
  const met = new Set<string>();
  if (index?.complete && missing.size > 0) {
    const ends = await readEnds(list, index, missing, options.signal);
    await pages.readAround(ends.positions);
    for (const identity of ends.positions.keys()) met.add(identity);
    if (ends.isAll && ![...missing].some((identity) => met.has(identity))) return pages.results();
    tried = new Map([...ends.positions, ...indexed]);
  }
  for (let walks = 0; missing.size > 0 && walks < MAX_WALKS; walks += 1) {
    const gone = new Map([...tried].filter(([identity]) => missing.has(identity)));
    // After a walk, only a record that it met a moment ago and that is gone from there is worth another walk.
    if (walks > 0 && gone.size === 0) break;
    const walked = new Map<string, PagePosition>();
    const positions = await list.walks.find(list.shared, [...missing], gone, options);
    for (const [identity, position] of positions) {
      if (position && 'error' in position) pages.fail(identity, position.error);
      else if (position) walked.set(identity, position);
    }
    await pages.readAround(walked);
    tried = walked;
  }
  for (const identity of tried.keys()) met.add(identity);
  for (const identity of met) {
    pages.failIfRefused(identity);
    pages.fail(identity, keepsMoving());
  }
  return pages.results();
}

/** One walk for records of unknown position, and one for records that were gone from their positions. */
const MAX_WALKS = 2;

/** Seconds until the list has probably stopped changing. */
const REST_SECONDS = 1;

/**
 * The error of a record that was met, but was not at its position when that was read: it was removed, or pushed far
 * away.
 */
function keepsMoving() {
  return codedError(
    'RATE_LIMITED',
    'The record was found, but the list changed each time before its values could be read. ' +
      `Try again in ${REST_SECONDS} second.`,
    { extensions: { retryAfter: REST_SECONDS } },
  );
}

/** The most pages read from the last known one on. A list that has grown by more is walked. */
const MAX_GROWN = 4;

/**
 * Reads the first page of the list, and the last ones: new records are inserted at the start or the end of a list, and
 * push others behind the last known page.
 */
async function readEnds(
  { fetchIdentities }: Pick<LookupList<unknown>, 'fetchIdentities'>,
  { pages }: PageIndex,
  identities: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<{ positions: Map<string, PagePosition>; isAll: boolean }> {
  const last = pages.at(-1)?.after ?? null;
  const runs = Array.from(new Set([null, last]), (after) => {
    const maxPages = after === last ? MAX_GROWN : 1;
    // If this fails, the walk fails too, and reports its own error.
    return readOnward(fetchIdentities, { after, maxPages, signal }, () => !signal.aborted);
  });
  const positions = new Map<string, PagePosition>();
  let isAll = false;
  await readByTurns(runs, PAGES_PER_OPERATION, ({ page, after }) => {
    isAll ||= after === null && !page.hasNextPage;
    for (const { identity, index: offset } of page.items) {
      if (identity !== null && identities.has(identity)) positions.set(identity, { after, offset });
    }
    return undefined;
  });
  return { positions, isAll };
}

/** The result of looking a record up; null: it does not exist. */
export type LookedUp<R> =
  | {
      readonly record: R;
      /** The unplaced errors of its page; set for only one record of the page. */
      readonly unplacedErrors: readonly unknown[];
    }
  | LookupFailure
  | null;

/** It is unknown whether the record exists. */
interface LookupFailure {
  readonly error: unknown;
}

interface ReadList<R> {
  readonly fetchPage: FetchPage<R>;
  readonly fetchIdentities: FetchPage<Identified>;
}

/** The most records requested one by one because their pages fail as a whole. */
const MAX_ALONE = 500;
/** If this many records of a page fail before one is found, single records are not the cause. */
const MAX_FAILED_ALONE = 3;
/** If this many pages fail like that, single pages are not the cause. */
const MAX_HOPELESS = 5;

/** Reads pages, and takes from each the records that are still missing. */
export class PageReader<R extends Identified> {
  readonly missing: Set<string>;
  readonly #list: ReadList<R>;
  readonly #signal: AbortSignal;
  readonly #results = new Map<string, LookedUp<R>>();
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

  /** Reads records at their positions; then the pages near those that are gone: by default the same pages, in full. */
  async readAround<P extends PagePosition>(
    positions: ReadonlyMap<string, P>,
    near: (gone: readonly P[]) => readonly (string | null)[] = (gone) =>
      gone.map(({ after }) => after),
  ): Promise<void> {
    await this.#readAt(positions);
    const gone = Array.from(this.missing).flatMap((identity) => positions.get(identity) ?? []);
    const pages = new Set(near(gone));
    // Records may have been pushed from a page to the next.
    const bounds = { maxPages: 2, signal: this.#signal };
    const runs = Array.from(pages, (after) =>
      readOnward(this.#list.fetchPage, { after, ...bounds }, () => !bounds.signal.aborted),
    );
    await readByTurns(runs, PAGES_PER_OPERATION, ({ page }) => {
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
    if (this.missing.delete(identity)) this.#results.set(identity, { error });
  }

  /** Fails a record that a walk met a moment ago if its page was refused: that is why it is missing. */
  failIfRefused(identity: string): void {
    const refusal = this.#refusals.get(identity);
    if (refusal !== undefined) this.fail(identity, refusal);
  }

  /** Returns all requested records. Those still missing do not exist. */
  results(): ReadonlyMap<string, LookedUp<R>> {
    for (const identity of this.missing) this.#results.set(identity, null);
    this.missing.clear();
    return this.#results;
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
      // Pages can be shorter than when the record was met.
      if (left <= 0 || items.length === 0 || !hasNextPage || after === null) return read;
      page = await fetchPage({ after, first: left }, this.#signal);
      read = [...read, ...page.items];
    }
  }

  #take({ items, unplacedErrors = [] }: Page<R>): void {
    let left = unplacedErrors;
    for (const record of items) {
      if (record.identity === null || !this.missing.delete(record.identity)) continue;
      this.#results.set(record.identity, { record, unplacedErrors: left });
      left = [];
    }
  }

  /**
   * Takes records that are null because something in them failed. They have no id, so a page of identities identifies
   * them.
   */
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
    const identified = 'pages' in read ? read.pages.flatMap(({ page }) => page.items) : [];
    for (const [identity, { offset }] of nulls) {
      if (identified[offset]?.identity !== identity || !this.missing.delete(identity)) continue;
      this.#results.set(identity, { record: items[offset]!, unplacedErrors: [] });
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
      const isEnough =
        this.#hopeless >= MAX_HOPELESS ||
        this.#alone >= MAX_ALONE ||
        this.#detector.outage !== undefined;
      if (isHopeless || isEnough) {
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

  /** @returns `refused` if the service refuses the cursor of the page */
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

  /** Stops requesting pages once the service is probably down. */
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

/** A list whose walks are shared by lookups. */
export interface SharedList {
  readonly key: string;
  /** The list's name in messages. */
  readonly name: string;
  /** Returns the index that the last whole walk left. */
  readonly index: () => PageIndex | undefined;
  /** @param unfinished set if the walk is part of a longer one: see `ListWalkOptions` */
  readonly begin: (
    position: Position | null,
    readers: WalkReaders,
    unfinished?: UnfinishedWalk<Identified>,
  ) => WalkedPages<Identified>;
}

type LookupWalks = ReturnType<typeof createLookupWalks>;

/**
 * The time between two walks of a list for unknown ids, however many ids are requested. Until then, a record that the
 * last walk did not meet is reported as missing.
 */
export const WALK_AGAIN_AFTER_MS = 30_000;

interface LookupWalkLimits {
  readonly clock: Clock;
  /** The most records that one walk reads. */
  readonly maxItems: number;
  /** The most records whose positions a walk remembers. */
  readonly maxRecords: number;
}

/** Keeps the walks that lookups share: at most one walk of each list at a time, and not too often. */
export function createLookupWalks(limits: LookupWalkLimits) {
  let walks = new Map<string, LookupWalk>();
  return {
    /**
     * Joins the current walk of the list, or begins one.
     *
     * @param tried positions at which the records were no longer found
     */
    find: async (
      list: SharedList,
      identities: readonly string[],
      tried: ReadonlyMap<string, PagePosition>,
      options: LookupOptions,
    ): Promise<FoundPositions> => {
      options.signal.throwIfAborted();
      let walk = walks.get(list.key);
      if (!walk || isOver(walk) || isOutdated(list, walk, tried)) {
        // Callers choose the directives of their operations, and so the number of lists.
        for (const [key, other] of walks) if (isOver(other)) walks.delete(key);
        walk = new LookupWalk(limits);
        walks.set(list.key, walk);
      }
      return walk.end === undefined
        ? walk.find(list, identities, options)
        : walk.known(list, identities);
    },
    /** Lookups from now on use no earlier walk: the lists may have changed. */
    separate: (): void => {
      walks = new Map();
    },
  };
}

function isOver({ end, failsFor, age }: LookupWalk): boolean {
  const again = end === 'failed' ? failsFor : WALK_AGAIN_AFTER_MS;
  return age >= Math.min(again, WALK_AGAIN_AFTER_MS);
}

/**
 * A record that is no longer where the walk met it was moved or removed since, so the walk's positions are outdated.
 * Lookups of unknown ids alone cannot cause another walk.
 */
function isOutdated(
  list: SharedList,
  walk: LookupWalk,
  tried: ReadonlyMap<string, PagePosition>,
): boolean {
  if (walk.end === 'too long' || tried.size === 0) return false;
  const met = walk.met(list, [...tried.keys()]);
  return [...tried].some(([identity, position]) => isSamePosition(met.get(identity), position));
}

/**
 * One walk of a list for all lookups. Each lookup reads it until it has met its records. The walk stops when no lookup
 * reads it, and the next lookup continues behind its last page. The walk remembers where each record of the earlier
 * pages stood.
 */
class LookupWalk {
  /** How the walk ended; undefined while more pages can follow. */
  end: 'whole' | 'too long' | 'failed' | undefined;
  readonly #limits: LookupWalkLimits;
  readonly #begun: number;
  #unfinished: UnfinishedWalk<Identified> = {};
  /** Set while lookups read it. */
  #walk: SharedWalk<Identified> | undefined;
  /** The previous part, if its last request may still be in flight. */
  #left: SharedWalk<Identified> | undefined;
  /** The position of the last record of the last page. */
  #last: Position | null = null;
  #ended = 0;
  #failure: unknown;
  #isTooLong = false;
  #passed: Pick<IndexedPage, 'after' | 'records'>[] = [];
  #passedRecords = 0;
  /** The memory of the remembered pages with long cursors, in records: see `costOfCursor`. */
  #passedCost = 0;

  constructor(limits: LookupWalkLimits) {
    this.#limits = limits;
    this.#begun = limits.clock.elapsed();
  }

  /**
   * The age of the oldest position, ms: 0 while lookups wait for pages. An unfinished walk is as old as its beginning,
   * however often lookups continued it.
   */
  get age(): number {
    if (this.#walk) return 0;
    return this.#limits.clock.elapsed() - (this.end ? this.#ended : this.#begun);
  }

  /** How long other lookups get the same failure, ms: as long as the walk took to fail. */
  get failsFor(): number {
    return this.end === 'failed' && this.#passed.length > 0 ? this.#ended - this.#begun : 0;
  }

  /** Reads on until all records are met, or the walk ends. @throws the abort reason of the signal */
  async find(
    list: SharedList,
    identities: readonly string[],
    { signal, pages: budget }: LookupOptions,
  ): Promise<FoundPositions> {
    // Its last page may still arrive, and then the walk continues behind that page.
    if (this.#left) await this.#left.left;
    const positions = new Map<string, PagePosition | null | LookupFailure>(
      positionsIn(this.#passed, identities),
    );
    const left = new Set(identities.filter((identity) => !positions.has(identity)));
    if (left.size === 0) return positions;
    const isLate = !this.#remembersPassed;
    let verdict: null | LookupFailure = null;
    try {
      this.#walk ??= this.#goOn(list);
      for await (const page of this.#walk.read({ budget, signal })) {
        meet(page, left, positions);
        // Whether a page is the last needs no further request.
        if (left.size === 0 && page.hasNextPage) return positions;
      }
      if (this.#isTooLong) verdict = this.#tooLong(list);
      else if (isLate) verdict = this.#notRemembered(list, WALK_AGAIN_AFTER_MS);
    } catch (error) {
      if (signal.aborted) throw error;
      verdict = { error };
    }
    for (const identity of left) positions.set(identity, verdict);
    return positions;
  }

  /** Returns what the ended walk knows of records, until the list may be walked again. */
  known(list: SharedList, identities: readonly string[]): FoundPositions {
    const positions = this.met(list, identities);
    return new Map(
      identities.map((identity) => [identity, positions.get(identity) ?? this.#verdict(list)]),
    );
  }

  /** Returns where it met records, from its memory or from the index that it left. */
  met(list: SharedList, identities: readonly string[]): ReadonlyMap<string, PagePosition> {
    const hasLeftIndex = this.end === 'whole' || this.end === 'too long';
    const indexed = hasLeftIndex ? (list.index()?.pages ?? []) : [];
    return new Map<string, PagePosition>([
      ...positionsIn(indexed, identities),
      ...positionsIn(this.#passed, identities),
    ]);
  }

  /** Continues behind the last page that was read. */
  #goOn(list: SharedList): SharedWalk<Identified> {
    return new SharedWalk({
      // A reader that is too slow for the others continues alone, from its own position.
      begin: (position, readers) =>
        this.#upToMaximum(() =>
          position
            ? list.begin(position, readers)
            : list.begin(this.#last, readers, this.#unfinished),
        ),
      joinAt: 'current',
      onPage: (page) => this.#remember(page),
      onEnd: (failure) => this.#onEnd(list, failure),
    });
  }

  async *#upToMaximum(begin: () => WalkedPages<Identified>): WalkedPages<Identified> {
    if (this.#isTooLong) return;
    for await (const page of begin()) {
      yield page;
      if (this.#isTooLong) return;
    }
  }

  /** Remembers a page for lookups that join later. */
  #remember({ after, endCursor, records, size, hasNextPage }: WalkedPage<Identified>): void {
    const last = records.list.at(-1);
    const identity = last?.index === size - 1 ? last.identity : null;
    this.#last = { after, end: endCursor, size, offset: size - 1, identity };
    this.#passedRecords += records.length;
    this.#isTooLong = hasNextPage && this.#passedRecords >= this.#limits.maxItems;
    this.#passedCost += records.length + costOfCursor(after);
    if (!this.#remembersPassed) return;
    const hashes = Array<number>(size).fill(0);
    for (const { identity: id, index } of records)
      if (id !== null) hashes[index] = identityHash(id);
    this.#passed.push({ after, records: hashes });
  }

  #onEnd(list: SharedList, failure: { readonly error: unknown } | undefined): void {
    if (failure?.error === WALK_LEFT) this.#left = this.#walk;
    this.#walk = undefined;
    if (failure?.error === WALK_LEFT) return;
    this.end = failure ? 'failed' : this.#isTooLong ? 'too long' : 'whole';
    this.#failure = failure?.error;
    this.#unfinished = {};
    // The index remembers the same. If some records of a list have no ids, it has no index.
    if (this.#isTooLong || (this.end === 'whole' && isIndexed(list))) this.#passed = [];
    this.#ended = this.#limits.clock.elapsed();
  }

  #verdict(list: SharedList): null | LookupFailure {
    if (this.end === 'failed') return { error: this.#failure };
    if (this.end === 'too long') return this.#tooLong(list);
    const remembersAll = this.#passed.length > 0 && this.#remembersPassed;
    if (remembersAll || isIndexed(list)) return null;
    return this.#notRemembered(list, WALK_AGAIN_AFTER_MS - this.age);
  }

  get #remembersPassed(): boolean {
    return this.#passedCost <= this.#limits.maxRecords;
  }

  #tooLong({ name }: SharedList): LookupFailure {
    const { maxItems: max } = this.#limits;
    const error = codedError(
      'DRAIN_LIMIT_EXCEEDED',
      `The record is not among the first ${max} of ${name}, and a lookup reads no further. ` +
        'Page through the list instead, or have the operator raise DRAIN_MAX_ITEMS.',
      { extensions: { max } },
    );
    return { error };
  }

  #notRemembered({ name }: SharedList, waitMs: number): LookupFailure {
    const retryAfter = Math.ceil(waitMs / 1000);
    const error = codedError(
      'RATE_LIMITED',
      `A lookup by id has to walk all of ${name}, because the gateway does not remember the position of every record, ` +
        `and it does so once in ${WALK_AGAIN_AFTER_MS / 1000} seconds. Try again in ${retryAfter} seconds, ` +
        'or have the operator raise INDEX_MAX_IDS.',
      { extensions: { retryAfter } },
    );
    return { error };
  }
}

/** Whether the index knows the position of every record. */
function isIndexed({ index }: SharedList): boolean {
  const { pages = [], complete = false } = index() ?? {};
  return complete && pages.every(({ records }) => records);
}

/** Moves the records of a page from the remaining records to the positions. */
function meet(
  { after, records }: WalkedPage<Identified>,
  left: Set<string>,
  positions: Map<string, PagePosition | null | LookupFailure>,
): void {
  for (const { identity, index: offset } of records) {
    if (identity !== null && left.delete(identity)) positions.set(identity, { after, offset });
  }
}
