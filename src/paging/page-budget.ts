import type { Clock } from '../clock.ts';
import type { PageLedger, PageReport } from '../page-ledger.ts';
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
 * @param ledger undefined: only the pages of this process count
 */
export function createCallerBudgets(perMinute: number, clock: Clock, ledger?: PageLedger) {
  const buckets = new Map<string, Bucket>();
  let sweepAt = SWEEP_ABOVE;
  const reports =
    ledger && perMinute > 0
      ? createPageReports({
          ledger,
          perMinute,
          clock,
          learn: (name, known) => bucketOf(name)?.learn(known),
        })
      : undefined;

  return {
    /**
     * @param before pages that the same operation has already spent
     * @throws PagesRefused: RATE_LIMITED with `retryAfter`, or OPERATION_TOO_COMPLEX for more pages than a whole minute
     *   has
     */
    spend: (caller: string, pages: number, before = 0): void => {
      bucketOf(caller)?.spend(pages, before);
      reports?.add(caller, pages);
    },
    /** Checks without spending. @throws as `spend` */
    check: (caller: string, pages: number, before = 0): void =>
      bucketOf(caller)?.check(pages, before),
    /** Takes the reports of other processes: this process is their ledger. */
    take: async ({ spent, ago }: PageReport): Promise<number[]> =>
      spent.map(({ caller, pages }) => {
        reports?.add(caller, pages, ago);
        return bucketOf(caller)?.take(pages, ago) ?? Infinity;
      }),
    /** Reports the pages that were not reported yet. */
    close: async () => reports?.close(),
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
  // A new bucket was always full, so pages that were spent in the past can be taken from it.
  let levelAt = -Infinity;

  return {
    isFull: () => levelOf(clock.elapsed()) >= full,
    check: (pages: number, before: number) => void check(pages, before, clock.elapsed()),
    spend: (pages: number, before: number): void => {
      const now = clock.elapsed();
      level = check(pages, before, now) - pages * MINUTE_MS;
      levelAt = now;
    },
    /** Takes pages that were spent `ago` ms ago, even if they exceed the level. Returns the number left. */
    take: (pages: number, ago: number) => {
      const now = clock.elapsed();
      level = levelOf(now - ago) - pages * MINUTE_MS;
      levelAt = now - ago;
      return levelOf(now) / MINUTE_MS;
    },
    learn: ({ left, at, spentSince }: KnownPages): void => {
      const now = clock.elapsed();
      const known = Math.ceil((left - spentSince) * MINUTE_MS) + (now - at) * perMinute;
      level = Math.min(levelOf(now), known);
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

/*
 * How processes share the minute of a caller
 *
 *      process: 5,000 left                                 ledger: 4,800 left, because others reported 200 pages
 *      spends 300:  4,700 left  ──  take 300  ───────────>  4,500 left
 *      spends 20:   4,680 left                                 │
 *      learns:      4,480 left  <──  4,500, minus the 20   ────┘
 *
 * Each process keeps a bucket for each caller and decides by that bucket alone: no request waits for the ledger. Spent
 * pages are reported soon after. The answer contains the number of pages left, counting those of all processes, and the
 * bucket is lowered to it. All buckets refill at the same rate, so a bucket is lower than the true level only by the
 * refill during a report: callers are not refused pages that they have. A bucket may be higher until the next report.
 * Pages spent from the difference still count: the ledger goes below zero, and the caller waits until it has refilled.
 *
 * Only one report is in flight at a time, for all callers together. There is a second between two reports, unless a
 * caller has spent a twentieth of its minute since the last one. So a caller can exceed its minute by about a twentieth
 * in each process, and by the pages that it spends there during a report.
 *
 * While the ledger fails, the buckets continue without it. Pages whose report failed are not reported again, because
 * they may have been counted.
 */

interface PageReportsParts {
  readonly ledger: PageLedger;
  readonly perMinute: number;
  readonly clock: Clock;
  readonly learn: (caller: string, known: KnownPages) => void;
}

/** What the ledger knew about a caller. */
interface KnownPages {
  readonly left: number;
  /** When the report was sent, by `clock.elapsed()`; the answer may be later. */
  readonly at: number;
  /** Pages that were spent here after that. */
  readonly spentSince: number;
}

const PAUSE_MS = 1_000;
const PAUSE_AFTER_FAILURE_MS = 5_000;
const LAST_REPORT_MS = 1_000;

function createPageReports({ ledger, perMinute, clock, learn }: PageReportsParts) {
  const enough = Math.ceil(perMinute / 20);
  let unreported = new Map<string, number>();
  /** When the first of them were spent, by `clock.elapsed()`. */
  let since = Infinity;
  let reporting: Promise<void> | undefined;
  let nextAt = 0;
  let isHurried = false;
  /** Ends the pause before the next report. */
  let pausing: AbortController | undefined;
  let hasFailed = false;
  let isClosing = false;

  return {
    /**
     * Reports these pages soon.
     *
     * @param ago ms since they were spent
     */
    add: (caller: string, pages: number, ago = 0): void => {
      since = Math.min(since, clock.elapsed() - ago);
      const sum = (unreported.get(caller) ?? 0) + pages;
      unreported.set(caller, sum);
      reporting ??= reportAll();
      if (sum >= enough && !hasFailed) hurry();
    },
    /** Reports the remaining pages, unless that takes too long. */
    close: async (): Promise<void> => {
      isClosing = true;
      pausing?.abort();
      if (reporting) await Promise.race([reporting, clock.sleep(LAST_REPORT_MS)]);
    },
  };

  function hurry(): void {
    isHurried = true;
    pausing?.abort();
  }

  async function reportAll(): Promise<void> {
    while (unreported.size > 0) {
      await pause();
      await report();
    }
    reporting = undefined;
  }

  async function pause(): Promise<void> {
    const ms = nextAt - clock.elapsed();
    if (ms <= 0 || isHurried || isClosing) return;
    pausing = new AbortController();
    await clock.sleep(ms, pausing.signal).catch(() => {});
  }

  async function report(): Promise<void> {
    const at = clock.elapsed();
    const spent = Array.from(unreported, ([caller, pages]) => ({ caller, pages }));
    const ago = at - since;
    unreported = new Map();
    since = Infinity;
    isHurried = false;
    try {
      const left = await ledger.take({ spent, ago });
      spent.forEach(({ caller }, index) =>
        learn(caller, { left: left[index]!, at, spentSince: unreported.get(caller) ?? 0 }),
      );
      hasFailed = false;
    } catch {
      // The process with the ledger logs the reason.
      hasFailed = true;
      isHurried = false;
    }
    nextAt = clock.elapsed() + (hasFailed ? PAUSE_AFTER_FAILURE_MS : PAUSE_MS);
  }
}
