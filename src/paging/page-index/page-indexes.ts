import { identityHash } from '../identities.ts';
import { nextRecord, pageOf, type PageIndex } from './page-index.ts';
import type { Clock } from '../../clock.ts';

/** The page indexes of all lists, bounded together. */
export interface PageIndexes {
  /** The most records that all of them together remember. */
  readonly maxRecords: number;
  get(list: string): PageIndex | undefined;
  set(list: string, index: PageIndex): void;
  drop(list: string): void;
  /** The largest page that a field gives, once that is known. */
  limitOf(field: string): number | undefined;
  learnLimit(field: string, limit: number): void;
}

/** A page without its records still takes about as much room as this many of them. */
const PAGE_COST = 4;

/** Least recently used first out; before a list goes, it loses its records and keeps its cursors. */
export function createPageIndexes(maxRecords: number): PageIndexes {
  // A map keeps the order in which keys were set: the first one was used least recently.
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
  return pages.reduce((sum, { records }) => sum + PAGE_COST + (records?.length ?? 0), 0);
}

function withoutRecords({ pages, complete }: PageIndex): PageIndex {
  return { pages: pages.map((page) => ({ ...page, records: undefined })), complete };
}

/** How many records lists have, known for a few seconds after they were counted. */
export interface Totals {
  of(list: string): number | undefined;
  counted(list: string, total: number): void;
}

const KNOWN_FOR_MS = 5_000;

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
      totals.set(list, { total, until: now + KNOWN_FOR_MS });
    },
  };
}

/** What is remembered of a list, from the last time that it was walked. */
export interface ListMemory {
  /** The cursors of the pages that may hold a record, the likeliest first. */
  pagesWith(identity: string): readonly (string | null)[];
  /** Whether one record stood right behind another; null for the end of the list. Undefined: nobody knows. */
  isNext(identity: string, next: string | null): boolean | undefined;
}

export function memoryOf(indexes: PageIndexes, list: string): ListMemory {
  return {
    pagesWith: (identity) => {
      const index = indexes.get(list);
      const page = index && pageOf(index, identity);
      if (!index || page === undefined) return [];
      return [page, page - 1, page + 1]
        .filter((number) => index.pages[number])
        .map((number) => index.pages[number]!.after);
    },
    isNext: (identity, next) => {
      const index = indexes.get(list);
      const known = index && nextRecord(index, identity);
      if (known === undefined) return undefined;
      return known === (next === null ? null : identityHash(next));
    },
  };
}
