import type { Clock } from '../clock.ts';
import type { PageLedger, PageReport } from '../page-ledger.ts';
import { refusal, type PagesRefused } from './failures.ts';

export interface BudgetOwner {
  readonly name: string;
  /** Whether the records of one answer may come from more than a few pages. */
  readonly mayDrain: boolean;
}

/** Enough for 500 records, the default of CONNECTION_MAX, and for finding the page at which they begin. */
const A_FEW_PAGES = 12;

/** The upstream's pages that one operation may use. What it spends counts against its caller's minute as well. */
export class PageBudget {
  /** The name of the caller. All operations of one name share one minute. */
  readonly owner: string;
  /**
   * The same budget, for pages that are only read to count records or to find one. They are charged to the caller's
   * minute, but the scope `drain` is about the records that an answer contains.
   */
  readonly forSearch: PageBudget;
  readonly #callers: CallerBudgets;
  #spent = 0;

  constructor(callers: CallerBudgets, { name, mayDrain }: BudgetOwner) {
    this.owner = name;
    this.#callers = callers;
    this.forSearch = mayDrain ? this : new PageBudget(callers, { name, mayDrain: true });
  }

  /**
   * Spends pages that are about to be requested.
   *
   * @param isCharged the caller's minute was charged already: by another operation that waits for the same pages, or
   *   when the pages were read to find the records
   * @throws PagesRefused
   */
  spend(pages: number, { isCharged = false } = {}): void {
    if (this.forSearch !== this) {
      this.#checkScope(pages);
      this.forSearch.spend(pages, { isCharged });
    } else if (isCharged) return;
    else this.#callers.spend(this.owner, pages, this.#spent);
    // Not what was refused: the other fields of the operation are still answered.
    this.#spent += pages;
  }

  /** Spends nothing; for work that is known to cost at least this number of pages. @throws PagesRefused */
  check(pages: number): void {
    if (this.forSearch === this) return this.#callers.check(this.owner, pages, this.#spent);
    this.#checkScope(pages);
    this.forSearch.check(pages);
  }

  #checkScope(pages: number): void {
    if (this.#spent + pages > A_FEW_PAGES) throw needsDrain();
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
 * Gives each caller the same number of pages. They come back evenly: a minute after the last was spent, all are there.
 *
 * @param perMinute 0: no limit
 * @param ledger undefined: the pages are those of this process
 */
export function createCallerBudgets(perMinute: number, clock: Clock, ledger?: PageLedger) {
  const buckets = new Map<string, Bucket>();
  let sweepAt = FEW_BUCKETS;
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
     * @param before pages that the same operation has spent
     * @throws PagesRefused: RATE_LIMITED with `retryAfter`, or OPERATION_TOO_COMPLEX for more than a whole minute has
     */
    spend: (caller: string, pages: number, before = 0): void => {
      bucketOf(caller)?.spend(pages, before);
      reports?.add(caller, pages);
    },
    /** Spends nothing. @throws as `spend` */
    check: (caller: string, pages: number, before = 0): void =>
      bucketOf(caller)?.check(pages, before),
    /** Takes the reports of other processes: this process is their ledger. */
    take: async ({ spent, ago }: PageReport): Promise<number[]> =>
      spent.map(({ caller, pages }) => {
        reports?.add(caller, pages, ago);
        return bucketOf(caller)?.take(pages, ago) ?? Infinity;
      }),
    /** Reports what was not reported yet. */
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
    sweepAt = Math.max(FEW_BUCKETS, 2 * buckets.size);
  }
}

/** Buckets that may be full before they are removed. Each takes about 650 bytes. */
const FEW_BUCKETS = 1_000;

function createBucket(perMinute: number, clock: Clock) {
  // Pages times the milliseconds of a minute: whole numbers, so that rounding loses no part of a page.
  const full = perMinute * MINUTE_MS;
  let level = full;
  // A new bucket was always full: pages may be taken from it in the past.
  let levelAt = -Infinity;

  return {
    isFull: () => levelOf(clock.elapsed()) >= full,
    check: (pages: number, before: number) => void check(pages, before, clock.elapsed()),
    spend: (pages: number, before: number): void => {
      const now = clock.elapsed();
      level = check(pages, before, now) - pages * MINUTE_MS;
      levelAt = now;
    },
    /** Takes pages that were spent `ago` ms ago, even if they exceed the level, and returns how many are left. */
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

  /** Returns the level. */
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
    `This operation returns records of more than ${A_FEW_PAGES} pages of the recruiting service, for which the scope "drain" is required. ` +
      'Request fewer records at a time, or ask the operator of this gateway for the scope.',
    { scope: 'drain' },
  );
}

interface Cost {
  /** That the operation needs to get beyond this point. */
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
 *      learns:      4,480 left  <──  4,500, less those 20  ────┘
 *
 * Each process has a bucket of its own for a caller, and decides by it alone: no request waits for the ledger. What was
 * spent is reported soon after. The answer says how many pages are left when those of all other processes are counted,
 * and lowers the bucket to that. All buckets refill at the same rate, so one shows less than the caller has only by what
 * refills while a report travels: nobody is refused pages that are there. It may show more, until the next report. What a
 * caller spends then is counted all the same: the ledger goes below zero, and the caller waits until it has refilled.
 *
 * One report is under way at a time, for all callers together. There is a second between two of them, unless a caller
 * has spent a twentieth of its minute since the last one. So a caller can exceed its minute by about a twentieth in each
 * process, and by what it spends there while a report is under way.
 *
 * While the ledger fails, the buckets go on without it. Pages whose report failed are not reported again, because they
 * may have been counted.
 */

interface PageReportsParts {
  readonly ledger: PageLedger;
  readonly perMinute: number;
  readonly clock: Clock;
  readonly learn: (caller: string, known: KnownPages) => void;
}

/** What the ledger knew of a caller. */
interface KnownPages {
  readonly left: number;
  /** The report was sent then, by `clock.elapsed()`; the answer may be from later. */
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
  /** When the first of them were spent. */
  let since = Infinity;
  let reporting: Promise<void> | undefined;
  let nextAt = 0;
  let isHurried = false;
  /** Of the pause before the next report. */
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
    /** Reports what is left to be reported, unless that takes too long. */
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
      // Whoever has the ledger logs why.
      hasFailed = true;
      isHurried = false;
    }
    nextAt = clock.elapsed() + (hasFailed ? PAUSE_AFTER_FAILURE_MS : PAUSE_MS);
  }
}
