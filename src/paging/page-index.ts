import type { Position } from './cursor.ts';
import { identityHash } from './identities.ts';
import { identitiesOf, overlappingSize, type Identified, type Page } from './page.ts';

/** What a walk remembers of a list: where its pages began, and which records were in them. */
export interface PageIndex {
  readonly pages: readonly IndexedPage[];
  /** Whether the walk reached the end of the list. */
  readonly complete: boolean;
}

export interface IndexedPage {
  readonly after: string | null;
  /** The hash of the record that the cursor was made from; null at the start of the list. */
  readonly behind: number | null;
  /** The number of records up to the start of the next page. */
  readonly count: number;
  /** The hashes of those records; undefined if too many records are already remembered. */
  readonly records: readonly number[] | undefined;
}

/**
 * The memory of a cursor, as the number of record hashes that take the same memory. A cursor of usual length counts
 * with its page.
 */
export function costOfCursor(cursor: string | null): number {
  return Math.ceil(Math.max(0, (cursor?.length ?? 0) - USUAL_CURSOR) / BYTES_OF_HASH);
}

const USUAL_CURSOR = 256;
const BYTES_OF_HASH = 8;

/** Builds the index of a walk, page by page. */
export class IndexBuilder {
  readonly #maxRecords: number;
  readonly #pages: IndexedPage[] = [];
  #last: { after: string | null; behind: number | null; hashes: readonly number[] } | undefined;
  #end: string | null | undefined;
  #kept = 0;
  #costOfCursors = 0;
  #isUsable = true;

  /** @param maxRecords above this number, only the cursors of pages are kept; without room for those, nothing */
  constructor(maxRecords: number) {
    this.#maxRecords = maxRecords;
  }

  /** The cursor at the end of the last page; undefined before the first page. */
  get end(): string | null | undefined {
    return this.#end;
  }

  /**
   * Adds the next page of the walk.
   *
   * @param at the offset of its first record in the page before, if the two overlap
   */
  add(
    after: string | null,
    page: Page<Identified>,
    at: number = this.#last?.hashes.length ?? 0,
  ): void {
    this.#end = page.endCursor;
    if (!this.#isUsable) return;
    const { hashes, isJoinable } = identitiesOf(page);
    this.#costOfCursors += costOfCursor(after);
    if (!isJoinable || this.#costOfCursors > this.#maxRecords) {
      this.#isUsable = false;
      this.#pages.length = 0;
      this.#last = undefined;
      return;
    }
    const last = this.#last;
    // Of two pages that begin with the same record, the later one has the fresher cursor.
    const behind = last && at === 0 ? last.behind : (last?.hashes[at - 1] ?? null);
    if (last && at > 0) {
      this.#pages.push(this.#closed(at));
      this.#kept += at;
    }
    if (hashes.length > 0 || !last) this.#last = { after, behind, hashes };
  }

  /**
   * Returns the index of the pages so far; undefined if some records have no unique id, or the cursors are too long.
   */
  finish({
    complete,
    limit,
  }: {
    complete: boolean;
    limit: number | undefined;
  }): PageIndex | undefined {
    if (!this.#last) return undefined;
    const pages = this.#pages;
    const { length } = this.#last.hashes;
    const all = length > 0 || pages.length === 0 ? [...pages, this.#closed(length)] : pages;
    return { pages: withoutSmallPages(all, limit), complete };
  }

  #closed(count: number): IndexedPage {
    const { after, behind, hashes } = this.#last!;
    const records = this.#kept + count <= this.#maxRecords ? hashes.slice(0, count) : undefined;
    return { after, behind, count, records };
  }
}

/** Merges consecutive pages that fit into one page with room for the overlap. */
function withoutSmallPages(
  pages: readonly IndexedPage[],
  limit: number | undefined,
): readonly IndexedPage[] {
  const merged: IndexedPage[] = [];
  for (const page of pages) {
    const before = merged.at(-1);
    if (!before || !limit || before.count + page.count > (overlappingSize(limit) ?? 0)) {
      merged.push(page);
      continue;
    }
    const records = before.records && page.records && [...before.records, ...page.records];
    merged[merged.length - 1] = { ...before, count: before.count + page.count, records };
  }
  return merged;
}

/** The position of a record: this offset from the start of the page behind this cursor. */
export type PagePosition = Pick<Position, 'after' | 'offset'>;

interface IndexedPosition extends PagePosition {
  /** The number of the page in the index. */
  readonly page: number;
}

export function isSamePosition(a: PagePosition | undefined, b: PagePosition | undefined): boolean {
  return a !== undefined && a.after === b?.after && a.offset === b.offset;
}

/** Returns the positions of records in pages that were walked, as far as the pages remember them. */
export function positionsIn(
  pages: readonly Pick<IndexedPage, 'after' | 'records'>[],
  identities: readonly string[],
): Map<string, IndexedPosition> {
  return identities.length <= MAX_SCANNED_SINGLY
    ? oneByOne(pages, identities)
    : allTogether(pages, identities);
}

/** For more records than this, comparing every hash once costs less than scanning the pages for each record. */
const MAX_SCANNED_SINGLY = 16;

function oneByOne(
  pages: Parameters<typeof positionsIn>[0],
  identities: readonly string[],
): Map<string, IndexedPosition> {
  const positions = new Map<string, IndexedPosition>();
  for (const identity of identities) {
    const hash = identityHash(identity);
    for (const [page, { after, records }] of pages.entries()) {
      const offset = records?.indexOf(hash) ?? -1;
      if (offset < 0) continue;
      positions.set(identity, { after, offset, page });
      break;
    }
  }
  return positions;
}

function allTogether(
  pages: Parameters<typeof positionsIn>[0],
  identities: readonly string[],
): Map<string, IndexedPosition> {
  const positions = new Map<string, IndexedPosition>();
  const byHash = new Map(identities.map((identity) => [identityHash(identity), identity]));
  for (const [page, { after, records }] of pages.entries()) {
    if (!records) continue;
    for (const [offset, hash] of records.entries()) {
      const identity = byHash.get(hash);
      if (identity === undefined || positions.has(identity)) continue;
      positions.set(identity, { after, offset, page });
    }
  }
  return positions;
}

/** Returns the number of records in the pages of an index. */
export function recordsIn({ pages }: PageIndex): number {
  return pages.reduce((sum, { count }) => sum + count, 0);
}

/** Returns the number of the page that holds a record. */
export function pageOf({ pages }: PageIndex, identity: string): number | undefined {
  return positionsIn(pages, [identity]).get(identity)?.page;
}

/**
 * Returns the cursors of the pages that probably hold records that stood at these positions: the same pages, then those
 * before and behind them, into which a few inserts or removals may have pushed the records.
 */
export function pagesNear(
  index: PageIndex | undefined,
  positions: Iterable<IndexedPosition>,
): readonly (string | null)[] {
  const pages = index?.pages ?? [];
  const near = new Set(Array.from(positions).flatMap(({ page }) => [page, page - 1, page + 1]));
  return Array.from(near).flatMap((page) => (pages[page] ? [pages[page].after] : []));
}

/**
 * Returns the hash of the record right behind another; null if that was the last of the list, undefined if it is
 * unknown.
 *
 * @param from the pages to look in
 */
export function nextRecord(
  { pages, complete }: PageIndex,
  record: string,
  from = 0,
  to = pages.length - 1,
): number | null | undefined {
  const hash = identityHash(record);
  for (let page = Math.max(0, from); page <= Math.min(to, pages.length - 1); page += 1) {
    const { records } = pages[page]!;
    const offset = records?.lastIndexOf(hash) ?? -1;
    if (offset < 0) continue;
    if (offset + 1 < records!.length) return records![offset + 1];
    const following = pages[page + 1];
    return following ? following.records?.[0] : complete ? null : undefined;
  }
  return undefined;
}

/** Returns the least number of pages that a walk reads according to the index; 0 if the index does not show it. */
export function pagesToWalk(
  index: PageIndex | undefined,
  {
    position,
    limit,
    tail,
  }: { position: Position | null; limit: number | undefined; tail?: unknown },
): number {
  if (!index || tail) return 0;
  const start =
    position === null
      ? 0
      : position.identity === null
        ? undefined
        : pageOf(index, position.identity);
  if (start === undefined) return 0;
  let pages = 0;
  let records = 0;
  for (const { count } of index.pages.slice(start)) {
    if (limit !== undefined && records >= limit) break;
    pages += 1;
    records += count;
  }
  return pages;
}

export type PageIndexes = ReturnType<typeof createPageIndexes>;

/** The memory of a page without its records, in records: see `costOfCursor`. */
const PAGE_COST = 4;
/** The memory of the index of a list without its pages, in records. */
const LIST_COST = 50;

/**
 * Keeps the page indexes of all lists. The least recently used is dropped first: a list loses its records, and then its
 * cursors too.
 *
 * @param maxRecords the most records that all indexes together remember
 */
export function createPageIndexes(maxRecords: number) {
  // A map keeps the order in which keys were set, so the first list is the least recently used.
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
    get: (list: string): PageIndex | undefined => {
      const index = indexes.get(list);
      if (index) put(list, index);
      return index;
    },
    set: (list: string, index: PageIndex): void => {
      put(list, index);
      for (const [other, otherIndex] of Array.from(indexes)) {
        if (cost <= maxRecords) return;
        if (!otherIndex.pages.some(({ records }) => records)) continue;
        cost -= costOf(otherIndex);
        indexes.set(other, withoutRecords(otherIndex));
        cost += costOf(indexes.get(other)!);
      }
      for (const other of Array.from(indexes.keys())) {
        if (cost <= maxRecords) return;
        drop(other);
      }
    },
    /** Returns the page limit of a field; undefined while it is unknown. */
    limitOf: (field: string) => limits.get(field),
    learnLimit: (field: string, limit: number) => void limits.set(field, limit),
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
