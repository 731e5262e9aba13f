import type { Clock } from '../clock.ts';
import { WALK_LEFT } from './failures.ts';
import { sizeOf, type Identified, type Page } from './page.ts';

/*
 * How old a total may be
 *
 *      0                 TOTAL_COUNT_SECONDS                twice that
 *      ├────────────────────────┼────────────────────────────────┼──────────────────────────>
 *      answered from memory     answered from memory, and        counted before it is answered
 *                               counted again in the background
 *
 * The age of a total is the time since its walk began: a record that came after that may be missing in it. Each walk of
 * a whole list renews the total, whatever the walk was for. A count in the background begins only when a total is asked
 * for, and ends when nobody has asked for it for TOTAL_COUNT_SECONDS. If it fails, the total stays as it is.
 */

/** How many records lists have, kept for some time after they were counted. */
export interface Totals {
  of(list: string): KnownTotal | undefined;
  /** To be called when a walk of a whole list begins. @returns takes the number of records at its end */
  begin(list: string): (total: number) => void;
  /**
   * Counts a list in the background, unless that was begun already, has just failed, or too many other lists are being
   * counted.
   *
   * @param walk the whole list, page by page; it calls `begin`
   */
  countAgain(list: string, walk: (signal: AbortSignal) => AsyncIterable<unknown>): void;
  /** Ends the counts in the background, and begins no further one. */
  end(): void;
}

interface KnownTotal {
  readonly total: number;
  /** ms */
  readonly age: number;
  /** Whether it is old enough to be counted again. */
  readonly isOld: boolean;
}

interface KeptTotal {
  readonly total: number;
  /** When its walk began. */
  readonly since: number;
  askedAt: number;
}

/** Totals that are kept: callers may send any number of filters, and there is a nested list for each parent. */
const MAX_TOTALS = 10_000;
/** Lists that are counted in the background at the same time. */
const MAX_COUNTING = 2;
const RETRY_MS = 10_000;

/** @param seconds how long a total is answered from memory only; 0: it is always counted */
export function createTotals(clock: Clock, seconds: number): Totals {
  const lasts = seconds * 1000;
  // A map keeps the order in which keys were set, so the first list was used least recently.
  const totals = new Map<string, KeptTotal>();
  const counting = new Set<string>();
  /** When a count that failed may be repeated. */
  const failed = new Map<string, number>();
  const ending = new AbortController();

  const keep = (list: string, kept: KeptTotal) => {
    totals.delete(list);
    totals.set(list, kept);
    const [oldest] = totals.size > MAX_TOTALS ? totals.keys() : [];
    if (oldest !== undefined) totals.delete(oldest);
  };
  const count = async (list: string, walk: Parameters<Totals['countAgain']>[1]) => {
    try {
      for await (const _ of walk(ending.signal)) {
        const { askedAt } = totals.get(list) ?? {};
        if (askedAt === undefined || clock.elapsed() - askedAt > lasts) return;
      }
      failed.delete(list);
    } catch {
      // Whoever needs the total when it is too old gets the error of a count of their own.
      failed.set(list, clock.elapsed() + RETRY_MS);
    } finally {
      counting.delete(list);
    }
  };

  return {
    of: (list) => {
      const kept = totals.get(list);
      if (!kept) return undefined;
      const now = clock.elapsed();
      const age = now - kept.since;
      if (age >= 2 * lasts) {
        totals.delete(list);
        return undefined;
      }
      kept.askedAt = now;
      keep(list, kept);
      return { total: kept.total, age, isOld: age >= lasts };
    },
    begin: (list) => {
      const since = clock.elapsed();
      return (total) => {
        const known = totals.get(list);
        if (lasts === 0 || (known && known.since > since)) return;
        keep(list, { total, since, askedAt: known?.askedAt ?? since });
      };
    },
    countAgain: (list, walk) => {
      if (ending.signal.aborted || counting.has(list) || counting.size >= MAX_COUNTING) return;
      const now = clock.elapsed();
      for (const [other, until] of failed) if (until <= now) failed.delete(other);
      if (failed.has(list)) return;
      counting.add(list);
      void count(list, walk);
    },
    end: () => ending.abort(WALK_LEFT),
  };
}

/**
 * What is known of the counts that the service gives with its pages. A count may be that of its own page, or of another
 * list, so it is believed for a list with its filters once a page with a next one had fewer records than it, until a
 * finished walk contradicts it.
 */
export interface ServiceCounts {
  /** Looks at the count of any page of a list. @param list its key, with its filters */
  note(list: string, page: Page<Identified>): void;
  isBelieved(list: string): boolean;
  /** Whether the count of this list proved to be something else. */
  isRefuted(list: string): boolean;
  /**
   * Compares a finished walk with the counts of its first and its last page.
   *
   * @returns how many records the service counted if the walk found fewer; otherwise undefined
   */
  check(list: string, walk: CountedWalk): number | undefined;
}

interface CountedWalk {
  readonly walked: number;
  readonly before: number;
  readonly after: number;
}

/** Lists whose counts are remembered: callers may send any number of filters. */
const MAX_LISTS = 1_000;

export function createServiceCounts(): ServiceCounts {
  // A map keeps the order in which keys were set, so the first list was used least recently.
  const lists = new Map<string, 'believed' | 'refuted'>();
  const set = (list: string, what: 'believed' | 'refuted') => {
    lists.delete(list);
    lists.set(list, what);
    const [oldest] = lists.size > MAX_LISTS ? lists.keys() : [];
    if (oldest !== undefined) lists.delete(oldest);
  };
  return {
    note: (list, page) => {
      const { total, hasNextPage } = page;
      if (total === undefined || !hasNextPage || lists.has(list)) return;
      set(list, total > sizeOf(page) ? 'believed' : 'refuted');
    },
    isBelieved: (list) => lists.get(list) === 'believed',
    isRefuted: (list) => lists.get(list) === 'refuted',
    check: (list, { walked, before, after }) => {
      // The count of a page or of another list, or one that ends at a limit of the service.
      if (walked > Math.max(before, after)) set(list, 'refuted');
      const least = Math.min(before, after);
      return walked < least && lists.get(list) === 'believed' ? least : undefined;
    },
  };
}

/**
 * The number of records of a list, from its first page; undefined if the page does not tell.
 *
 * @param page the first one, noted before
 */
export function totalFrom(
  counts: ServiceCounts,
  list: string,
  page: Page<Identified>,
): number | undefined {
  const { total, hasNextPage } = page;
  if (hasNextPage) return counts.isBelieved(list) ? total : undefined;
  return total === sizeOf(page) ? total : undefined;
}
