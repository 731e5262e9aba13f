import process from 'node:process';
import { codedError } from '../errors.ts';
import type { PageBounds, Position } from './cursor.ts';
import { WALK_LEFT } from './failures.ts';
import { identityHash, IdentitySet } from './identities.ts';
import {
  identitiesOf,
  PageRecords,
  sizeOf,
  type FetchPage,
  type Identified,
  type Page,
} from './page.ts';

/** A page of a walk. */
export interface WalkedPage<R> extends PageBounds {
  /** Its records that no earlier page had. */
  readonly records: PageRecords<R>;
  readonly hasNextPage: boolean;
  /** See `Page.total`. */
  readonly total?: number | undefined;
  readonly unplacedErrors?: readonly unknown[];
}

/** The pages of a walk, in order. */
export type WalkedPages<R> = AsyncGenerator<WalkedPage<R>, void, undefined>;

export interface WalkBounds {
  /** A cursor of the upstream; null: the start of the list. */
  readonly after: string | null;
  /** The walk stops after this number of records. Its last page can have more. */
  readonly limit?: number;
  /** The walk stops after this number of pages that had records. */
  readonly maxPages?: number;
  /** Aborting it ends the request in flight; no more are sent. */
  readonly signal: AbortSignal;
}

/** Options of a walk that is part of a longer one. */
interface PartOfWalk<R extends Identified> {
  /** Returns the number of records to request per page if there is no limit; undefined: the service chooses. */
  readonly pageSize?: () => number | undefined;
  readonly progress?: Progress<R>;
  /** Whether the next page is requested before the reader needs it. Default: true. */
  readonly readsAhead?: boolean;
  /** Called for each page before its records are yielded. */
  readonly onPage?: (after: string | null, page: Page<R>) => void;
  readonly onEnd?: OnWalkEnd;
}

/** @param ended false if the walk failed, or its reader left it */
export type OnWalkEnd = (ended: boolean) => void;

/**
 * Walks the pages of a list, one after the other. Unless `readsAhead` is false, the next page is requested as soon as
 * the cursor of this one is known, so one page is in flight while the consumer works, and never more than one.
 *
 * @throws DRAIN_STALLED after the last page, if the upstream claims a next page to which no cursor leads
 */
export async function* walk<R extends Identified>(
  fetchPage: FetchPage<R>,
  options: WalkBounds,
  part: PartOfWalk<R> = {},
): WalkedPages<R> {
  const { pageSize = () => undefined, progress = new Progress<R>(), readsAhead = true } = part;
  let ended = false;
  let ahead: AbortController | undefined;
  let aheadSignal = options.signal;
  const stalls = createStallDetector();
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  let pagesLeft = options.maxPages ?? Number.POSITIVE_INFINITY;
  let after = options.after;

  const request = (signal: AbortSignal) => {
    const page = fetchPage({ after, first: Number.isFinite(left) ? left : pageSize() }, signal);
    // It may fail while the consumer is busy with the page before, and nothing awaits it yet.
    page.catch(() => {});
    return page;
  };
  const requestBehind = ({ endCursor }: Page<R>) => {
    after = endCursor;
    if (!ahead) {
      ahead = new AbortController();
      aheadSignal = AbortSignal.any([options.signal, ahead.signal]);
    }
    requested = request(aheadSignal);
  };
  // A consumer that waits for the first page cannot leave, so this request does not need `ahead`.
  let requested = request(options.signal);
  try {
    for (;;) {
      const page = await requested;
      const at = after;
      // If only the cursor decides, the next page is requested before this one is examined.
      const isUnbounded = readsAhead && left === Infinity && pagesLeft === Infinity;
      const isEarly = isUnbounded && page.hasNextPage && stalls.isNew(page.endCursor);
      if (isEarly) {
        requestBehind(page);
        await whenWritten();
      }
      part.onPage?.(at, page);
      const records = progress.of(page);
      left -= records.length;
      if (records.length > 0) pagesLeft -= 1;
      const goesOn = page.hasNextPage && left > 0 && pagesLeft > 0;
      const isNewCursor = isUnbounded ? isEarly : goesOn && stalls.isNew(page.endCursor);
      // A repeated cursor ends the walk, unless a record is proved to be new.
      const leadsOn = goesOn && (isNewCursor || progress.isProved);
      const stalled = goesOn && stalls.hasStalled(page.endCursor, records.length, leadsOn);
      if (goesOn && !stalled && readsAhead && !isEarly) requestBehind(page);
      yield walkedPage(page, records, at);
      if (!goesOn) {
        ended = true;
        return;
      }
      if (stalled) throw stalledError();
      if (!readsAhead) requestBehind(page);
    }
  } finally {
    ahead?.abort(WALK_LEFT);
    part.onEnd?.(ended);
  }
}

/**
 * Resolves when a request that was just made has been written: undici writes it in the next check phase of the event
 * loop, and all work until then would come before it. The next tick comes after all promises on the way to undici, so
 * this resolves behind it in the same phase.
 */
function whenWritten(): Promise<void> {
  return new Promise((resolve) => process.nextTick(() => setImmediate(resolve)));
}

export function walkedPage<R extends Identified>(
  page: Page<R>,
  records: PageRecords<R>,
  after: string | null,
): WalkedPage<R> {
  const { hasNextPage, endCursor, total, unplacedErrors = NO_ERRORS } = page;
  return { records, after, endCursor, size: sizeOf(page), hasNextPage, total, unplacedErrors };
}

const NO_ERRORS: readonly unknown[] = [];

/** Returns the position that the cursor of a record is made from. */
export function positionOf(
  { after, endCursor: end, size }: PageBounds,
  { identity, index: offset }: Identified,
): Position {
  return { after, end, size, offset, identity };
}

/** Distinguishes the records that a walk has not returned yet from those that it has. */
export class Progress<R extends Identified> {
  /**
   * Set until a second page comes. Most connections are one page, of which every record is new, so nothing is hashed.
   */
  #first: Page<R> | undefined;
  #seen: IdentitySet | undefined;
  #idsAreUnique = true;
  #isProved = false;
  #count = 0;

  /** The number of different records in all pages. */
  get count(): number {
    return this.#count;
  }

  /** False once an id occurred twice in one page: from then on no record is dropped. */
  get idsAreUnique(): boolean {
    return this.#first ? !identitiesOf(this.#first).hasRepeats : this.#idsAreUnique;
  }

  /** Whether a record of the latest page is proved to be new. Records without identities prove nothing. */
  get isProved(): boolean {
    if (!this.#first) return this.#isProved;
    const { hashes, hasRepeats } = identitiesOf(this.#first);
    return !hasRepeats && hashes.some(isKnown);
  }

  /** Returns the records of the page that no earlier page had. */
  of(page: Page<R>): PageRecords<R> {
    const records = this.#newOf(page);
    this.#count += records.length;
    return records;
  }

  #newOf(page: Page<R>): PageRecords<R> {
    if (!this.#seen && !this.#first) {
      this.#first = page;
      return new PageRecords(page, 0, sizeOf(page));
    }
    const seen = this.#seenBefore();
    const { hashes, hasRepeats } = identitiesOf(page);
    if (hasRepeats) this.#idsAreUnique = false;
    const areUnique = this.#idsAreUnique;
    // Most repeated records are at the start, which the page shares with the one before.
    let from = 0;
    let without: Set<number> | undefined;
    let isProved = false;
    for (let index = 0; index < hashes.length; index += 1) {
      const hash = hashes[index]!;
      const known = isKnown(hash);
      if (known && !seen.add(hash) && areUnique) {
        if (index === from) from += 1;
        else (without ??= new Set()).add(index);
      } else isProved ||= known;
    }
    this.#isProved = areUnique && isProved;
    return new PageRecords(page, from, hashes.length, without);
  }

  /** Returns how many records of the page were returned before. */
  repeatedBy(page: Page<R>): number {
    const seen = this.#seenBefore();
    return identitiesOf(page).hashes.filter((hash) => seen.has(hash)).length;
  }

  #seenBefore(): IdentitySet {
    if (this.#seen) return this.#seen;
    const seen = (this.#seen = new IdentitySet());
    if (!this.#first) return seen;
    const { hashes, hasRepeats } = identitiesOf(this.#first);
    for (const hash of hashes) if (isKnown(hash)) seen.add(hash);
    this.#idsAreUnique = !hasRepeats;
    this.#first = undefined;
    return seen;
  }
}

function isKnown(hash: number): boolean {
  return !Number.isNaN(hash);
}

/** After this number of pages in a row without a new record, the walk has stalled, whatever the cursors say. */
const MAX_BARREN_PAGES = 1_000;

/** Detects that no cursor leads on, in pages that are read one after the other. */
function createStallDetector() {
  let cursors: IdentitySet | undefined;
  let barrenPages = 0;
  return {
    isNew: (cursor: string | null): boolean => {
      cursors ??= new IdentitySet();
      return cursor !== null && cursors.add(identityHash(cursor));
    },
    hasStalled: (endCursor: string | null, newRecords: number, leadsOn: boolean): boolean => {
      barrenPages = newRecords === 0 ? barrenPages + 1 : 0;
      return endCursor === null || !leadsOn || barrenPages >= MAX_BARREN_PAGES;
    },
  };
}

export function stalledError() {
  return codedError(
    'DRAIN_STALLED',
    'The recruiting service says that the list has a next page, but its cursor does not lead there. ' +
      'Try again later; if the error persists, report it to the support of the service.',
  );
}
