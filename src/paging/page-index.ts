import { LRUCache } from 'lru-cache';
import { identityHash } from './identities.ts';
import type { ReadPage } from './page.ts';

/** What a finished walk remembers of a list: where its pages began, and which records were in them. */
export interface PageIndex {
  /** In the order of the list. Never empty. */
  readonly pages: readonly IndexedPage[];
}

export interface IndexedPage {
  /** The cursor with which the page was requested; null: the start of the list. */
  readonly after: string | null;
  /** The hash of the record that this cursor was made from; null: the start of the list, or unknown. */
  readonly behind: number | null;
  /** The number of records up to the start of the next page. The service may return more for this cursor. */
  readonly count: number;
  /** The hashes of these records. */
  readonly hashes: readonly number[];
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
  for (const [page, { hashes }] of pages.entries()) {
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
    const start = last.page.identities.hashes.indexOf(hashes[0]!);
    const count = start < 0 ? last.page.records.length : start;
    // Of two pages that begin with the same record, the later one has the fresher cursor.
    if (count > 0) this.#close(count);
    this.#last = { page, behind: last.page.identities.hashes[count - 1] ?? null };
  }

  /** @returns undefined if some records have no unique id */
  finish(): PageIndex | undefined {
    if (!this.#last || !this.#isUsable) return undefined;
    this.#close(this.#last.page.records.length);
    return { pages: this.#closed };
  }

  #close(count: number): void {
    const { page, behind } = this.#last!;
    const hashes = page.identities.hashes.slice(0, count);
    this.#closed.push({ after: page.after, behind, count, hashes });
  }
}

/** The number of records that a page shares with the next one: see join.ts. */
export const OVERLAP = 2;

/** The memory of a list, and of a page, in hashes of records. */
const LIST_COST = 50;
const PAGE_COST = 4;

/**
 * Keeps the page indexes of all lists, by the name of the list with its filters. The least recently used is dropped
 * first, and one that is too large by itself is not kept.
 */
export class PageIndexes {
  readonly #indexes: LRUCache<string, PageIndex> | undefined;

  /** @param maxIds the most ids that all indexes together remember, as hashes; 0: no list has an index */
  constructor(maxIds: number) {
    this.#indexes = maxIds === 0 ? undefined : new LRUCache({ maxSize: maxIds });
  }

  get(list: string): PageIndex | undefined {
    return this.#indexes?.get(list);
  }

  /** Keeps the index of a walk of the whole list, or drops the known one if the walk has none. */
  keep(list: string, index: PageIndex | undefined): void {
    this.#indexes?.delete(list);
    if (index) this.#indexes?.set(list, index, { size: costOf(index) });
  }
}

function costOf({ pages }: PageIndex): number {
  return pages.reduce((sum, { hashes }) => sum + PAGE_COST + hashes.length, LIST_COST);
}
