import type { Clock } from '../clock.ts';
import { sizeOf, type Identified, type Page } from './page.ts';

/**
 * How many records lists have, remembered for a few seconds after they were counted. An index is no substitute: it may
 * be older, and each walk proves it anew.
 */
export interface Totals {
  of(list: string): number | undefined;
  counted(list: string, total: number): void;
}

const TOTAL_LASTS_MS = 5_000;

export function createTotals(clock: Clock): Totals {
  const totals = new Map<string, { total: number; until: number }>();
  return {
    of: (list) => {
      const known = totals.get(list);
      return known && known.until > clock.elapsed() ? known.total : undefined;
    },
    counted: (list, total) => {
      const now = clock.elapsed();
      for (const [name, { until }] of totals) if (until <= now) totals.delete(name);
      totals.set(list, { total, until: now + TOTAL_LASTS_MS });
    },
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
  readonly found: number;
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
    check: (list, { found, before, after }) => {
      // The count of a page or of another list, or one that ends at a limit of the service.
      if (found > Math.max(before, after)) set(list, 'refuted');
      const least = Math.min(before, after);
      return found < least && lists.get(list) === 'believed' ? least : undefined;
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
