import type { Clock } from '../../clock.ts';
import { codedError } from '../../errors.ts';
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
import type { WalkedPage } from '../walk.ts';
import { SharedWalk, type BeginWalk } from './shared-walk.ts';

/** A list whose walks lookups share. */
export interface SharedList {
  readonly key: string;
  /** The list's name in messages. */
  readonly name: string;
  /** What the last whole walk left. */
  readonly index: () => PageIndex | undefined;
  readonly begin: BeginWalk<Identified>;
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
  /** Lookups from now on use no walk from before: the list may be another one. */
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
      if (!walk || isOver(walk) || isOutdated(walk, tried)) {
        // Lookups may still wait for pages of the old one.
        walk?.retire();
        retireOver();
        walk = new LookupWalk(list, limits);
        walks.set(list.key, walk);
      }
      return walk.end === undefined ? walk.find(identities, options) : walk.known(identities);
    },
    separate: () => {
      for (const walk of walks.values()) walk.retire();
      walks = new Map();
    },
  };

  /** Callers choose the directives of their operations, and so how many lists there are. */
  function retireOver(): void {
    for (const [key, walk] of walks) {
      if (!isOver(walk)) continue;
      walk.retire();
      walks.delete(key);
    }
  }
}

function isOver({ end, failsFor, age }: LookupWalk): boolean {
  const again = end === 'failed' ? failsFor : WALK_AGAIN_AFTER_MS;
  return age >= Math.min(again, WALK_AGAIN_AFTER_MS);
}

/**
 * A record that is no longer where the walk met it was moved or removed since, so the walk's positions are wrong.
 * Lookups of unknown ids alone cannot cause another walk this way.
 */
function isOutdated(walk: LookupWalk, tried: ReadonlyMap<string, PagePosition>): boolean {
  if (walk.end === 'too long' || tried.size === 0) return false;
  const met = walk.met([...tried.keys()]);
  return [...tried].some(([identity, position]) => isSamePosition(met.get(identity), position));
}

/**
 * One walk of a list for all lookups. Each of them reads it until it has met its records. Without lookups the walk
 * rests, and the next lookup reads on from there; of the pages before, the walk remembers where each record stood.
 */
class LookupWalk {
  /** How the walk ended; undefined while it has not. */
  end: 'whole' | 'too long' | 'failed' | undefined;
  readonly #list: SharedList;
  readonly #limits: LookupWalkLimits;
  readonly #walk: SharedWalk<Identified>;
  readonly #begun: number;
  #restingSince: number | undefined;
  #failure: unknown;
  #isTooLong = false;
  #passed: Pick<IndexedPage, 'after' | 'records'>[] = [];
  #passedRecords = 0;

  constructor(list: SharedList, limits: LookupWalkLimits) {
    this.#list = list;
    this.#limits = limits;
    this.#begun = limits.clock.elapsed();
    this.#walk = new SharedWalk({
      begin: (position, readers) => this.#upToMaximum(list.begin(position, readers)),
      whenLeft: 'rest',
      onPage: (page) => this.#remember(page),
      onEnd: (failure) => this.#onEnd(failure),
    });
  }

  /**
   * How old the oldest position may be, ms: 0 while lookups wait for pages. Half-way, a walk is as old as its begin,
   * however often a lookup made it go on.
   */
  get age(): number {
    if (this.#restingSince === undefined) return 0;
    return this.#limits.clock.elapsed() - (this.end ? this.#restingSince : this.#begun);
  }

  /** For how long other lookups get its failure as well, ms: as long as the walk took to fail. */
  get failsFor(): number {
    return this.end === 'failed' && this.#passed.length > 0 ? this.#restingSince! - this.#begun : 0;
  }

  /** Reads on until all records are met, or the walk ends. @throws the reason of the signal */
  async find(
    identities: readonly string[],
    { signal, pages: budget }: LookupOptions,
  ): Promise<FoundPositions> {
    const positions = new Map<string, PagePosition | null | LookupFailure>(
      positionsIn(this.#passed, identities),
    );
    const left = new Set(identities.filter((identity) => !positions.has(identity)));
    if (left.size === 0) return positions;
    const isLate = !this.#remembersPassed;
    this.#restingSince = undefined;
    let verdict: null | LookupFailure = null;
    try {
      for await (const page of this.#walk.read({ budget, signal })) {
        meet(page, left, positions);
        if (left.size === 0) return positions;
      }
      if (this.#isTooLong) verdict = this.#tooLong();
      else if (isLate) verdict = this.#notRemembered(WALK_AGAIN_AFTER_MS);
    } catch (error) {
      if (signal.aborted) throw error;
      verdict = { error };
    } finally {
      if (!this.#walk.hasReaders) this.#restingSince ??= this.#limits.clock.elapsed();
    }
    for (const identity of left) positions.set(identity, verdict);
    return positions;
  }

  /** What the ended walk says of records, until the list may be walked again. */
  known(identities: readonly string[]): FoundPositions {
    const positions = this.met(identities);
    return new Map(
      identities.map((identity) => [identity, positions.get(identity) ?? this.#verdict()]),
    );
  }

  /** Where it met records, as far as it remembers that itself, or in the index that it left. */
  met(identities: readonly string[]): ReadonlyMap<string, PagePosition> {
    const hasLeftIndex = this.end === 'whole' || this.end === 'too long';
    const indexed = hasLeftIndex ? (this.#list.index()?.pages ?? []) : [];
    return new Map<string, PagePosition>([
      ...positionsIn(indexed, identities),
      ...positionsIn(this.#passed, identities),
    ]);
  }

  /** No further lookup joins: the walk ends when the last one that waits has left. */
  retire(): void {
    this.#walk.retire();
  }

  async *#upToMaximum(pages: ReturnType<BeginWalk<Identified>>): ReturnType<BeginWalk<Identified>> {
    let walked = 0;
    for await (const page of pages) {
      yield page;
      walked += page.records.length;
      this.#isTooLong = walked >= this.#limits.maxItems && page.hasNextPage;
      if (this.#isTooLong) return;
    }
  }

  /** Remembers a page for lookups that join later. */
  #remember({ after, records, size }: WalkedPage<Identified>): void {
    this.#passedRecords += records.length + costOfCursor(after);
    if (!this.#remembersPassed) return;
    const hashes = Array<number>(size).fill(0);
    for (const { identity, index } of records) {
      if (identity !== null) hashes[index] = identityHash(identity);
    }
    this.#passed.push({ after, records: hashes });
  }

  #onEnd(failure: { readonly error: unknown } | undefined): void {
    this.end = failure ? 'failed' : this.#isTooLong ? 'too long' : 'whole';
    this.#failure = failure?.error;
    // The index remembers the same. A list whose records do not all have ids has none.
    if (this.#isTooLong || (this.end === 'whole' && this.#isIndexed)) this.#passed = [];
    this.#restingSince ??= this.#limits.clock.elapsed();
  }

  #verdict(): null | LookupFailure {
    if (this.end === 'failed') return { error: this.#failure };
    if (this.end === 'too long') return this.#tooLong();
    const remembersAll = this.#passed.length > 0 && this.#remembersPassed;
    if (remembersAll || this.#isIndexed) return null;
    return this.#notRemembered(WALK_AGAIN_AFTER_MS - this.age);
  }

  get #remembersPassed(): boolean {
    return this.#passedRecords <= this.#limits.maxRecords;
  }

  /** Whether the index knows the position of every record. */
  get #isIndexed(): boolean {
    const { pages = [], complete = false } = this.#list.index() ?? {};
    return complete && pages.every(({ records }) => records);
  }

  #tooLong(): LookupFailure {
    const { maxItems: max } = this.#limits;
    const error = codedError(
      'DRAIN_LIMIT_EXCEEDED',
      `The record is not among the first ${max} of ${this.#list.name}, and a lookup reads no further. ` +
        'Page through the list instead, or have the operator raise DRAIN_MAX_ITEMS.',
      { extensions: { max } },
    );
    return { error };
  }

  #notRemembered(waitMs: number): LookupFailure {
    const retryAfter = Math.ceil(waitMs / 1000);
    const error = codedError(
      'RATE_LIMITED',
      `A lookup by id has to walk all of ${this.#list.name}, because the gateway does not remember the position of every record, ` +
        `and it does so once in ${WALK_AGAIN_AFTER_MS / 1000} seconds. Try again in ${retryAfter} seconds, ` +
        'or have the operator raise INDEX_MAX_IDS.',
      { extensions: { retryAfter } },
    );
    return { error };
  }
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
