import type { Clock } from '../clock.ts';
import { refusal, type PagesRefused } from './failures.ts';

export interface BudgetOwner {
  readonly name: string;
  /** Whether the records of one answer may come from more than MAX_PAGES_WITHOUT_DRAIN pages. */
  readonly mayDrain: boolean;
}

/** Enough for 500 records, the default of CONNECTION_MAX, and for finding the page at which they begin. */
const MAX_PAGES_WITHOUT_DRAIN = 12;

/** The upstream pages that one operation may use. They also count against the minute of its caller. */
export class PageBudget {
  /** The name of the caller. All operations with the same name share one minute. */
  readonly owner: string;
  /**
   * The same budget, for pages that are read only to count records or to find one. They are charged to the caller's
   * minute, but do not need the scope `drain`, which is about the records that an answer contains.
   */
  readonly forOverhead: PageBudget;
  readonly #callers: CallerBudgets;
  #spent = 0;

  constructor(callers: CallerBudgets, { name, mayDrain }: BudgetOwner) {
    this.owner = name;
    this.#callers = callers;
    this.forOverhead = mayDrain ? this : new PageBudget(callers, { name, mayDrain: true });
  }

  /**
   * Spends pages that are about to be requested.
   *
   * @param isCharged whether the caller's minute was charged already: by another operation that waits for the same
   *   pages, or when the pages were read to find the records
   * @throws PagesRefused
   */
  spend(pages: number, { isCharged = false } = {}): void {
    if (this.forOverhead !== this) {
      this.#checkScope(pages);
      this.forOverhead.spend(pages, { isCharged });
    } else if (isCharged) return;
    else this.#callers.spend(this.owner, pages, this.#spent);
    // Refused pages do not count: the other fields of the operation are still answered.
    this.#spent += pages;
  }

  /** Checks without spending; for work that is known to cost at least this number of pages. @throws PagesRefused */
  check(pages: number): void {
    if (this.forOverhead === this) return this.#callers.check(this.owner, pages, this.#spent);
    this.#checkScope(pages);
    this.forOverhead.check(pages);
  }

  #checkScope(pages: number): void {
    if (this.#spent + pages > MAX_PAGES_WITHOUT_DRAIN) throw needsDrain();
  }
}

/**
 * Spends pages that several operations wait for. Each operation spends them, but each caller's minute is charged once.
 *
 * @returns the budgets that cannot afford the pages, each with its error
 */
export function spendTogether(
  budgets: readonly PageBudget[],
  pages: number,
): ReadonlyMap<PageBudget, unknown> {
  // Most walks have one reader, and this is called for each page.
  const charged = budgets.length > 1 ? new Set<string>() : undefined;
  let refused: Map<PageBudget, unknown> | undefined;
  for (const budget of budgets) {
    try {
      budget.spend(pages, charged && { isCharged: charged.has(budget.owner) });
      charged?.add(budget.owner);
    } catch (error) {
      refused ??= new Map();
      refused.set(budget, error);
    }
  }
  return refused ?? NONE;
}

const NONE: ReadonlyMap<PageBudget, unknown> = new Map();

type Bucket = ReturnType<typeof createBucket>;

const MINUTE_MS = 60_000;

export type CallerBudgets = ReturnType<typeof createCallerBudgets>;

/**
 * Gives each caller the same number of pages per minute. They are refilled at a constant rate: a minute after the last
 * page was spent, all are available.
 *
 * @param perMinute 0: no limit
 */
export function createCallerBudgets(perMinute: number, clock: Clock) {
  const buckets = new Map<string, Bucket>();
  let sweepAt = SWEEP_ABOVE;

  return {
    /**
     * @param before pages that the same operation has already spent
     * @throws PagesRefused: RATE_LIMITED with `retryAfter`, or OPERATION_TOO_COMPLEX for more pages than a whole minute
     *   has
     */
    spend: (caller: string, pages: number, before = 0): void =>
      bucketOf(caller)?.spend(pages, before),
    /** Checks without spending. @throws as `spend` */
    check: (caller: string, pages: number, before = 0): void =>
      bucketOf(caller)?.check(pages, before),
  };

  function bucketOf(name: string): Bucket | undefined {
    if (perMinute === 0) return undefined;
    let bucket = buckets.get(name);
    if (!bucket) {
      sweep();
      bucket = createBucket(perMinute, clock);
      buckets.set(name, bucket);
    }
    return bucket;
  }

  /** Removes full buckets, which equal new ones: every request may come from another caller. */
  function sweep(): void {
    if (buckets.size < sweepAt) return;
    for (const [name, bucket] of buckets) if (bucket.isFull()) buckets.delete(name);
    sweepAt = Math.max(SWEEP_ABOVE, 2 * buckets.size);
  }
}

/** Buckets are swept when there are more than this many. Each takes about 650 bytes. */
const SWEEP_ABOVE = 1_000;

function createBucket(perMinute: number, clock: Clock) {
  // Pages times the milliseconds of a minute: integers, so that rounding does not lose fractions of a page.
  const full = perMinute * MINUTE_MS;
  let level = full;
  let levelAt = clock.elapsed();

  return {
    isFull: () => levelOf(clock.elapsed()) >= full,
    check: (pages: number, before: number) => void check(pages, before, clock.elapsed()),
    spend: (pages: number, before: number): void => {
      const now = clock.elapsed();
      level = check(pages, before, now) - pages * MINUTE_MS;
      levelAt = now;
    },
  };

  function levelOf(time: number): number {
    return Math.min(full, level + (time - levelAt) * perMinute);
  }

  /** Returns the level. @throws PagesRefused */
  function check(pages: number, before: number, now: number): number {
    if (pages > perMinute) throw tooManyPages(costOf(pages, before));
    const available = levelOf(now);
    const missing = pages * MINUTE_MS - available;
    if (missing > 0) {
      throw minuteSpent(costOf(pages, before), Math.ceil(missing / perMinute / 1000));
    }
    return available;
  }

  function costOf(pages: number, before: number): Cost {
    return { pages: Math.ceil(before + pages), pagesPerMinute: perMinute };
  }
}

function needsDrain(): PagesRefused {
  return refusal(
    'FORBIDDEN',
    `This operation returns records of more than ${MAX_PAGES_WITHOUT_DRAIN} pages of the recruiting service, for which the scope "drain" is required. ` +
      'Request fewer records at a time, or ask the operator of this gateway for the scope.',
    { scope: 'drain' },
  );
}

interface Cost {
  /** The number of pages with which the operation gets beyond this point. */
  readonly pages: number;
  readonly pagesPerMinute: number;
}

function minuteSpent(cost: Cost, retryAfter: number) {
  return refusal(
    'RATE_LIMITED',
    `This caller has used its ${cost.pagesPerMinute} pages a minute of the recruiting service. Try again in ${retryAfter} s, ` +
      'or have the operator raise PAGES_PER_MINUTE.',
    { retryAfter, ...cost },
  );
}

function tooManyPages(cost: Cost) {
  return refusal(
    'OPERATION_TOO_COMPLEX',
    `This operation costs at least ${cost.pages} pages of the recruiting service, and a caller may use ${cost.pagesPerMinute} a minute. ` +
      'Request fewer records at a time, or have the operator raise PAGES_PER_MINUTE.',
    { ...cost },
  );
}
