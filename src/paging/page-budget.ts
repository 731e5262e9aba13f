import { refusal, type PagesRefused } from './failures.ts';
import type { Clock } from '../clock.ts';

/** Counts the upstream's pages that one operation costs, and charges them to its caller. */
export interface PageMeter {
  /** The one of the caller, for all operations. */
  readonly account: Account;
  /**
   * For pages that are about to be asked for.
   *
   * @param isCharged the caller's minute has paid for them already, by another operation that waits for the same
   * @throws PagesRefused
   */
  pay(pages: number, options?: { readonly isCharged: boolean }): void;
  /** Before work that is known to cost so much. @throws PagesRefused */
  afford(pages: number): void;
}

export interface Payer {
  /** The same name, the same minute. */
  readonly name: string;
  /** Whether an operation may cost more than a few pages. */
  readonly mayDrain: boolean;
}

/** 500 records, which is the largest `first` unless the operator allows more, and the way to where they begin. */
export const A_FEW_PAGES = 12;

export function createPageMeter(account: Account, mayDrain: boolean): PageMeter {
  let paid = 0;
  return {
    account,
    pay: (pages, { isCharged } = { isCharged: false }) => {
      paid += pages;
      check(paid);
      if (!isCharged) account.take(pages);
    },
    afford: (pages) => {
      check(paid + pages);
      account.check(pages);
    },
  };

  function check(pages: number): void {
    if (pages > A_FEW_PAGES && !mayDrain) throw needsDrain();
  }
}

/**
 * One payment for work that several wait for: of operations of one caller, one pays for all.
 *
 * @returns those that cannot pay, and why
 */
export function payTogether(
  meters: Iterable<PageMeter>,
  pages: number,
): ReadonlyMap<PageMeter, unknown> {
  const charged = new Set<string>();
  const refused = new Map<PageMeter, unknown>();
  for (const meter of meters) {
    try {
      meter.pay(pages, { isCharged: charged.has(meter.account.name) });
      charged.add(meter.account.name);
    } catch (error) {
      refused.set(meter, error);
    }
  }
  return refused;
}

function needsDrain(): PagesRefused {
  return refusal(
    'FORBIDDEN',
    `This operation costs more than ${A_FEW_PAGES} pages of the recruiting service, and this credential does not have the scope "drain", ` +
      'which that needs. Ask for less at a time; the operator of this gateway can give the scope.',
  );
}

/** What one caller may still have of the minute's pages. */
export interface Account {
  /** The same name, the same pages. */
  readonly name: string;
  /** @throws PagesRefused: RATE_LIMITED with `retryAfter`, or OPERATION_TOO_COMPLEX when no minute has so many */
  take(pages: number): void;
  /** Whether so many could be taken now. @throws as `take` */
  check(pages: number): void;
}

export interface Accounts {
  of(name: string): Account;
}

interface Bucket extends Omit<Account, 'name'> {
  readonly isFull: () => boolean;
}

const MINUTE_MS = 60_000;

/**
 * Each caller has so many pages, and they come back evenly: a minute after the last was taken all are there.
 *
 * @param perMinute 0: no limit
 */
export function createAccounts(perMinute: number, clock: Clock): Accounts {
  const buckets = new Map<string, Bucket>();
  let sweptAt = clock.elapsed();

  return {
    of: (name) => {
      sweep();
      // Looked up anew each time: an operation that lasts would go on with a bucket that nobody else has any more.
      return {
        name,
        take: (pages) => bucketOf(name)?.take(pages),
        check: (pages) => bucketOf(name)?.check(pages),
      };
    },
  };

  function bucketOf(name: string): Bucket | undefined {
    if (perMinute === 0) return undefined;
    const bucket = buckets.get(name) ?? createBucket(perMinute, clock);
    buckets.set(name, bucket);
    return bucket;
  }

  /** One that is full again says nothing that a new one would not: callers can be ever others. */
  function sweep(): void {
    if (clock.elapsed() - sweptAt < MINUTE_MS) return;
    sweptAt = clock.elapsed();
    for (const [name, bucket] of buckets) if (bucket.isFull()) buckets.delete(name);
  }
}

function createBucket(perMinute: number, clock: Clock): Bucket {
  // In pages times the milliseconds of a minute, so that no part of a page gets lost by rounding.
  const full = perMinute * MINUTE_MS;
  let level = full;
  let filledAt = clock.elapsed();

  return {
    isFull: () => levelNow() >= full,
    check,
    take: (pages) => {
      check(pages);
      level -= pages * MINUTE_MS;
    },
  };

  function levelNow(): number {
    const now = clock.elapsed();
    level = Math.min(full, level + (now - filledAt) * perMinute);
    filledAt = now;
    return level;
  }

  function check(pages: number): void {
    if (pages > perMinute) throw tooMany(pages, perMinute);
    const missing = pages * MINUTE_MS - levelNow();
    if (missing > 0) throw rateLimited(perMinute, Math.ceil(missing / perMinute / 1000));
  }
}

function rateLimited(perMinute: number, retryAfter: number) {
  return refusal(
    'RATE_LIMITED',
    `A caller may cost the recruiting service ${perMinute} pages a minute, and these are used up. Try again in ${retryAfter} s, ` +
      'or have the operator raise PAGES_PER_MINUTE.',
    { retryAfter },
  );
}

function tooMany(pages: number, perMinute: number) {
  return refusal(
    'OPERATION_TOO_COMPLEX',
    `This costs ${Math.ceil(pages)} pages of the recruiting service or more, and a caller may have ${perMinute} a minute. ` +
      'Ask for less at a time, or have the operator raise PAGES_PER_MINUTE.',
  );
}
