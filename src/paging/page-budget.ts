import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';

/** Enough for 500 records, the default of CONNECTION_MAX, and for finding the page at which they begin. */
const MAX_PAGES_WITHOUT_DRAIN = 12;

/** From what pages are spent: the budget of one operation, or those of all that wait for the same pages. */
export interface Budget {
  /** The name of the caller. All operations with the same name share one minute. */
  readonly caller: string;
  /**
   * The same budget, for pages that are read only to count records or to find one. They do not need the scope `drain`,
   * which is about the records that an answer contains.
   */
  readonly forOverhead: Budget;
  /**
   * Spends pages that are about to be requested. Default: one.
   *
   * @param options `isCharged`: whether the caller was charged already: by another operation that waits for the same
   *   page, or when the page was read to find the records
   * @throws FORBIDDEN without the scope, RATE_LIMITED with `retryAfter` once the minute is used up,
   *   OPERATION_TOO_COMPLEX for more pages than a minute has
   */
  spend(pages?: number, options?: { readonly isCharged?: boolean }): void;
}

/** The pages that one operation may request. They also count against the minute of its caller. */
export class PageBudget implements Budget {
  readonly caller: string;
  readonly forOverhead: PageBudget;
  readonly #callers: CallerBudgets;
  #spent = 0;

  /** @param mayDrain whether the caller has the scope `drain` */
  constructor(callers: CallerBudgets, caller: string, mayDrain: boolean) {
    this.caller = caller;
    this.#callers = callers;
    this.forOverhead = mayDrain ? this : new PageBudget(callers, caller, true);
  }

  spend(pages = 1, { isCharged = false } = {}): void {
    if (this.forOverhead !== this) {
      if (this.#spent + pages > MAX_PAGES_WITHOUT_DRAIN) throw needsDrain();
      this.forOverhead.spend(pages, { isCharged });
    } else if (isCharged) return;
    else this.#callers.spend(this.caller, pages, this.#spent);
    // Refused pages do not count: the other fields of the operation are still answered.
    this.#spent += pages;
  }
}

const MINUTE_MS = 60_000;
/** The most callers that are remembered: each takes about 200 bytes, and every request may come from another one. */
const MAX_CALLERS = 10_000;

/**
 * Gives each caller the same number of pages per minute. They come back at a constant rate: a minute after the last
 * page was spent, all are available.
 */
export class CallerBudgets {
  readonly #perMinute: number;
  readonly #clock: Pick<Clock, 'elapsed'>;
  /**
   * When each caller has all its pages again, by `clock.elapsed()` times the pages per minute: integers, which lose no
   * fraction of a page.
   */
  readonly #full = new LRUCache<string, number>({ max: MAX_CALLERS });

  /** @param perMinute 0: no limit */
  constructor(perMinute: number, clock: Pick<Clock, 'elapsed'>) {
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  /**
   * @param spent pages that the same operation has spent already
   * @throws RATE_LIMITED with `retryAfter`, OPERATION_TOO_COMPLEX
   */
  spend(caller: string, pages = 1, spent = 0): void {
    if (this.#perMinute === 0) return;
    const cost = { pages: spent + pages, pagesPerMinute: this.#perMinute };
    if (pages > this.#perMinute) throw tooMany(pages, cost);
    const now = Math.floor(this.#clock.elapsed() * this.#perMinute);
    const full = Math.max(now, this.#full.get(caller) ?? 0) + pages * MINUTE_MS;
    const missing = full - now - this.#perMinute * MINUTE_MS;
    if (missing > 0) throw minuteSpent(missing, cost);
    this.#full.set(caller, full);
  }
}

function needsDrain(): Error {
  return codedError(
    'FORBIDDEN',
    `This operation returns records of more than ${MAX_PAGES_WITHOUT_DRAIN} pages of the recruiting service, for which the scope "drain" is required. ` +
      'Request fewer records at a time, or ask the operator of this gateway for the scope.',
    { extensions: { scope: 'drain' } },
  );
}

/** What an operation has used and needs next, and what its caller has: a client sees whether to ask for less. */
interface Cost {
  readonly pages: number;
  readonly pagesPerMinute: number;
}

function minuteSpent(missing: number, cost: Cost): Error {
  const { pagesPerMinute } = cost;
  const retryAfter = Math.ceil(missing / pagesPerMinute / 1000);
  return codedError(
    'RATE_LIMITED',
    `This caller has used its ${pagesPerMinute} pages a minute of the recruiting service. Try again in ${retryAfter} s, ` +
      'or have the operator raise PAGES_PER_MINUTE.',
    { extensions: { retryAfter, limit: 'PAGES_PER_MINUTE', ...cost } },
  );
}

function tooMany(pages: number, cost: Cost): Error {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `The operation costs at least ${pages} pages of the recruiting service in one request, and a caller has ${cost.pagesPerMinute} a minute. ` +
      'Request fewer records of each list, or have the operator raise PAGES_PER_MINUTE.',
    { extensions: { ...cost } },
  );
}
