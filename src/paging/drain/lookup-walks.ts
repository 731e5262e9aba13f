import type { Clock } from '../../clock.ts';
import { codedError } from '../../errors.ts';
import type { Position } from '../cursor.ts';
import { WALK_LEFT } from '../failures.ts';
import type { FoundPositions, LookupOptions } from '../find/look-up.ts';
import type { LookupFailure } from '../find/page-reader.ts';
import { identityHash } from '../identities.ts';
import type { Identified } from '../page.ts';
import {
  costOfCursor,
  isSamePosition,
  positionsIn,
  type IndexedPage,
  type PageIndex,
  type PagePosition,
} from '../page-index/page-index.ts';
import type { WalkedPage, WalkedPages } from '../walk.ts';
import type { UnfinishedWalk } from './list-walk.ts';
import { SharedWalk, type WalkReaders } from './shared-walk.ts';

/** A list whose walks lookups share. */
export interface SharedList {
  readonly key: string;
  /** The list's name in messages. */
  readonly name: string;
  /** What the last whole walk left. */
  readonly index: () => PageIndex | undefined;
  /** @param unfinished there if the walk is part of a longer one: see `ListWalkOptions` */
  readonly begin: (
    position: Position | null,
    readers: WalkReaders,
    unfinished?: UnfinishedWalk<Identified>,
  ) => WalkedPages<Identified>;
}

/** The walks that lookups share: at most one of each list at a time, and not too often. */
export interface LookupWalks {
  /**
   * Joins the walk of the list that is under way, or begins one.
   *
   * @param tried positions at which the records were not found any more
   */
  find(
    list: SharedList,
    identities: readonly string[],
    tried: ReadonlyMap<string, PagePosition>,
    options: LookupOptions,
  ): Promise<FoundPositions>;
  /** Lookups from now on use no walk from before: the lists may be others. */
  separate(): void;
}

/**
 * The time from one walk of a list for unknown ids to the next, however many are requested. For this time, a record
 * that the last walk did not meet is reported as missing.
 */
export const WALK_AGAIN_AFTER_MS = 30_000;

export interface LookupWalkLimits {
  readonly clock: Clock;
  /** Records that one walk reads at most. */
  readonly maxItems: number;
  /** Records whose positions a walk remembers. */
  readonly maxRecords: number;
}

export function createLookupWalks(limits: LookupWalkLimits): LookupWalks {
  let walks = new Map<string, LookupWalk>();
  return {
    find: async (list, identities, tried, options) => {
      options.signal.throwIfAborted();
      let walk = walks.get(list.key);
      if (!walk || isOver(walk) || isOutdated(list, walk, tried)) {
        // Callers choose the directives of their operations, and so how many lists there are.
        for (const [key, other] of walks) if (isOver(other)) walks.delete(key);
        walk = new LookupWalk(limits);
        walks.set(list.key, walk);
      }
      return walk.end === undefined
        ? walk.find(list, identities, options)
        : walk.known(list, identities);
    },
    separate: () => {
      walks = new Map();
    },
  };
}

function isOver({ end, failsFor, age }: LookupWalk): boolean {
  const again = end === 'failed' ? failsFor : WALK_AGAIN_AFTER_MS;
  return age >= Math.min(again, WALK_AGAIN_AFTER_MS);
}

/**
 * A record that is no longer where the walk met it was moved or removed since, so the walk's positions are wrong.
 * Lookups of unknown ids alone cannot cause another walk this way.
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
 * One walk of a list for all lookups. Each of them reads it until it has met its records. It ends when no lookup reads
 * it, and the next lookup begins another behind its last page; of the pages before, it remembers where each record stood.
 */
class LookupWalk {
  /** How the walk ended; undefined while it has not met all records. */
  end: 'whole' | 'too long' | 'failed' | undefined;
  readonly #limits: LookupWalkLimits;
  readonly #begun: number;
  readonly #unfinished: UnfinishedWalk<Identified> = {};
  /** There while lookups read it. */
  #walk: SharedWalk<Identified> | undefined;
  /** The last record of the last page. */
  #last: Position | null = null;
  #ended = 0;
  #failure: unknown;
  #isTooLong = false;
  #passed: Pick<IndexedPage, 'after' | 'records'>[] = [];
  #passedRecords = 0;
  /** With the memory of long cursors, in records. */
  #passedCost = 0;

  constructor(limits: LookupWalkLimits) {
    this.#limits = limits;
    this.#begun = limits.clock.elapsed();
  }

  /**
   * How old the oldest position may be, ms: 0 while lookups wait for pages. Half-way, a walk is as old as its begin,
   * however often a lookup made it go on.
   */
  get age(): number {
    if (this.#walk) return 0;
    return this.#limits.clock.elapsed() - (this.end ? this.#ended : this.#begun);
  }

  /** For how long other lookups get its failure as well, ms: as long as the walk took to fail. */
  get failsFor(): number {
    return this.end === 'failed' && this.#passed.length > 0 ? this.#ended - this.#begun : 0;
  }

  /** Reads on until all records are met, or the walk ends. @throws the reason of the signal */
  async find(
    list: SharedList,
    identities: readonly string[],
    { signal, pages: budget }: LookupOptions,
  ): Promise<FoundPositions> {
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
        // The end of the list needs no request.
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

  /** What the ended walk says of records, until the list may be walked again. */
  known(list: SharedList, identities: readonly string[]): FoundPositions {
    const positions = this.met(list, identities);
    return new Map(
      identities.map((identity) => [identity, positions.get(identity) ?? this.#verdict(list)]),
    );
  }

  /** Where it met records, as far as it remembers that itself, or in the index that it left. */
  met(list: SharedList, identities: readonly string[]): ReadonlyMap<string, PagePosition> {
    const hasLeftIndex = this.end === 'whole' || this.end === 'too long';
    const indexed = hasLeftIndex ? (list.index()?.pages ?? []) : [];
    return new Map<string, PagePosition>([
      ...positionsIn(indexed, identities),
      ...positionsIn(this.#passed, identities),
    ]);
  }

  /** Goes on behind the last page that was read. */
  #goOn(list: SharedList): SharedWalk<Identified> {
    return new SharedWalk({
      // A reader that is too slow for the others reads on alone, from a position of its own.
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
    this.#walk = undefined;
    if (failure?.error === WALK_LEFT) return;
    this.end = failure ? 'failed' : this.#isTooLong ? 'too long' : 'whole';
    this.#failure = failure?.error;
    // The index remembers the same. A list whose records do not all have ids has none.
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

/** Moves the records of a page from those that are left to their positions. */
function meet(
  { after, records }: WalkedPage<Identified>,
  left: Set<string>,
  positions: Map<string, PagePosition | null | LookupFailure>,
): void {
  for (const { identity, index: offset } of records) {
    if (identity !== null && left.delete(identity)) positions.set(identity, { after, offset });
  }
}
