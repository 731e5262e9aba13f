import type { Clock } from '../../clock.ts';
import { costOfCursor, type PageIndex } from './page-index.ts';

/** The page indexes of all lists, bounded together. */
export interface PageIndexes {
  /** Records that all indexes together remember at most. */
  readonly maxRecords: number;
  get(list: string): PageIndex | undefined;
  set(list: string, index: PageIndex): void;
  drop(list: string): void;
  /** The page limit of a field, once it is known. */
  limitOf(field: string): number | undefined;
  learnLimit(field: string, limit: number): void;
}

/** The memory of a page without its records, in records: see `costOfCursor`. */
const PAGE_COST = 4;
/** The memory of the index of a list without its pages. */
const LIST_COST = 50;

/** Drops what was least recently used; before a list is dropped, it loses its records and keeps its cursors. */
export function createPageIndexes(maxRecords: number): PageIndexes {
  // A map keeps the order in which keys were set, so the first list was used least recently.
  const indexes = new Map<string, PageIndex>();
  const limits = new Map<string, number>();
  let cost = 0;

  const drop = (list: string) => {
    const index = indexes.get(list);
    if (!index) return;
    cost -= costOf(index);
    indexes.delete(list);
  };
  const put = (list: string, index: PageIndex) => {
    drop(list);
    indexes.set(list, index);
    cost += costOf(index);
  };

  return {
    maxRecords,
    drop,
    get: (list) => {
      const index = indexes.get(list);
      if (index) put(list, index);
      return index;
    },
    set: (list, index) => {
      put(list, index);
      for (const [other, its] of Array.from(indexes)) {
        if (cost <= maxRecords) return;
        if (!its.pages.some(({ records }) => records)) continue;
        cost -= costOf(its);
        indexes.set(other, withoutRecords(its));
        cost += costOf(indexes.get(other)!);
      }
      for (const other of Array.from(indexes.keys())) {
        if (cost <= maxRecords) return;
        drop(other);
      }
    },
    limitOf: (field) => limits.get(field),
    learnLimit: (field, limit) => limits.set(field, limit),
  };
}

function costOf({ pages }: PageIndex): number {
  return pages.reduce(
    (sum, { after, records }) => sum + PAGE_COST + costOfCursor(after) + (records?.length ?? 0),
    LIST_COST,
  );
}

function withoutRecords({ pages, complete }: PageIndex): PageIndex {
  return { pages: pages.map((page) => ({ ...page, records: undefined })), complete };
}

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
