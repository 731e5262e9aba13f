import { LRUCache } from 'lru-cache';
import { identityHash } from './identities.ts';
import type { ReadPage } from './page.ts';

/** What a finished walk remembers of a list: where its pages began, and which records were in them. */
export interface PageIndex {
  /** In the order of the list. Never empty. */
  readonly pages: readonly IndexedPage[];
  /** The number of records of the list. */
  readonly records: number;
}

export interface IndexedPage {
  /** The cursor with which the page was requested; null: the start of the list. */
  readonly after: string | null;
  /** The hash of the record that this cursor was made from; null: the start of the list. */
  readonly behind: number | null;
  /** The number of records up to the start of the next page. The service may return more for this cursor. */
  readonly count: number;
  /** The hashes of these records; undefined if the list has too many of them. */
  readonly hashes: readonly number[] | undefined;
}

/** Where a record stood when the list was walked. */
interface IndexedPosition {
  /** The number of its page in `PageIndex.pages`. */
  readonly page: number;
  /** The offset of the record from the start of the page. */
  readonly offset: number;
}

/** Returns where records stood, as far as the index knows them. */
export function positionsIn(
  { pages }: { readonly pages: readonly Pick<IndexedPage, 'hashes'>[] },
  ids: Iterable<string>,
): ReadonlyMap<string, IndexedPosition> {
  const wanted = new Map(Array.from(ids, (id) => [identityHash(id), id]));
  const positions = new Map<string, IndexedPosition>();
  for (const [page, { hashes = [] }] of pages.entries()) {
    for (const [offset, hash] of hashes.entries()) {
      const id = wanted.get(hash);
      if (id === undefined) continue;
      positions.set(id, { page, offset });
      wanted.delete(hash);
    }
    if (wanted.size === 0) break;
  }
  return positions;
}

/** Builds the index of a walk of a whole list, page by page. */
export class IndexBuilder {
  readonly #closed: IndexedPage[] = [];
  #last: { page: ReadPage; behind: number | null } | undefined;
  #isUsable = true;

  /** Adds the next page of the walk, which may overlap with the page before. */
  add(page: ReadPage): void {
    const { hashes, areUnique } = page.identities;
    // Records without unique ids prove no join, so nobody could use the index.
    this.#isUsable &&= areUnique;
    if (!this.#isUsable) return;
    const last = this.#last;
    if (!last) {
      this.#last = { page, behind: null };
      return;
    }
    if (hashes.length === 0) return;
    const start = last.page.identities.hashes.indexOf(hashes[0]!);
    const count = start < 0 ? last.page.records.length : start;
    // Of two pages that begin with the same record, the later one has the fresher cursor.
    const behind = count === 0 ? last.behind : last.page.identities.hashes[count - 1]!;
    if (count > 0) this.#close(count);
    this.#last = { page, behind };
  }

  /**
   * @param limit the page limit of the list: small pages in a row are merged into one that leaves room for an overlap
   * @returns undefined if some records have no unique id
   */
  finish(limit: number): PageIndex | undefined {
    if (!this.#last || !this.#isUsable) return undefined;
    const { length } = this.#last.page.records;
    if (length > 0 || this.#closed.length === 0) this.#close(length);
    const pages = merged(this.#closed, limit - OVERLAP);
    return { pages, records: pages.reduce((sum, { count }) => sum + count, 0) };
  }

  #close(count: number): void {
    const { page, behind } = this.#last!;
    const hashes = page.identities.hashes.slice(0, count);
    this.#closed.push({ after: page.after, behind, count, hashes });
  }
}

/** The number of records that a page shares with the next one: see join.ts. */
export const OVERLAP = 2;

/** Merges pages in a row that have no more than `most` records together. */
function merged(pages: readonly IndexedPage[], most: number): IndexedPage[] {
  const result: IndexedPage[] = [];
  for (const page of pages) {
    const before = result.at(-1);
    if (!before || before.count + page.count > most) {
      result.push(page);
      continue;
    }
    const count = before.count + page.count;
    const hashes = [...before.hashes!, ...page.hashes!];
    result[result.length - 1] = { ...before, count, hashes };
  }
  return result;
}

/** The memory of a list, of a page and of 8 bytes of its cursor, in hashes of records. */
const LIST_COST = 50;
const PAGE_COST = 4;
const BYTES_OF_HASH = 8;
/** A cursor of usual length counts with its page. */
const USUAL_CURSOR = 256;

/**
 * Keeps the page indexes of all lists, by the name of the list with its filters. The least recently used is dropped
 * first.
 */
export class PageIndexes {
  #indexes: LRUCache<string, PageIndex> | undefined;
  readonly #maxIds: number;
  /** The token set that the indexes belong to. */
  #tokenSet: string | undefined;
  #epoch = 0;

  /** @param maxIds the most ids that all indexes together remember, as hashes; 0: no list has an index */
  constructor(maxIds: number) {
    this.#maxIds = maxIds;
    this.#indexes = maxIds === 0 ? undefined : new LRUCache({ maxSize: maxIds });
  }

  get(list: string): PageIndex | undefined {
    return this.#indexes?.get(list);
  }

  /**
   * Call it when a walk of a whole list begins. The returned function keeps the index of that walk, or drops the known
   * one if the walk has none. It does nothing if the indexes were cleared since the walk began.
   */
  begin(list: string): (index: PageIndex | undefined) => void {
    const epoch = this.#epoch;
    return (index) => {
      if (epoch !== this.#epoch) return;
      this.#indexes?.delete(list);
      if (!index) return;
      const kept = costOf(index) <= this.#maxIds ? index : withoutIds(index);
      // Larger ones are not kept at all.
      this.#indexes?.set(list, kept, { size: costOf(kept) });
    };
  }

  drop(list: string): void {
    this.#indexes?.delete(list);
  }

  /** Drops all indexes if they belong to another token set, whose lists may have other records. */
  useTokenSet(name: string): void {
    if (this.#tokenSet === name) return;
    // Without a name the first one was on its way: the first drain of a gateway begins before there are tokens.
    const isFirst = this.#tokenSet === undefined;
    this.#tokenSet = name;
    if (isFirst) return;
    this.#epoch += 1;
    this.#indexes?.clear();
  }
}

function costOf({ pages }: PageIndex): number {
  return pages.reduce(
    (sum, { after, hashes }) => sum + PAGE_COST + costOfCursor(after) + (hashes?.length ?? 0),
    LIST_COST,
  );
}

function costOfCursor(cursor: string | null): number {
  return Math.ceil(Math.max(0, (cursor?.length ?? 0) - USUAL_CURSOR) / BYTES_OF_HASH);
}

function withoutIds({ pages, records }: PageIndex): PageIndex {
  return { pages: pages.map((page) => ({ ...page, hashes: undefined })), records };
}
