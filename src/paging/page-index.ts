import { LRUCache } from 'lru-cache';
import { identityHash } from './identities.ts';
import type { ReadPage } from './page.ts';

/**
 * What a finished walk remembers of a list: where its pages began, and which records were in them. In the order of the
 * list, never empty.
 */
export type PageIndex = readonly IndexedPage[];

export interface IndexedPage {
  /** The cursor with which the page was requested; null: the start of the list. */
  readonly after: string | null;
  /** The hash of the record that this cursor was made from; null: the start of the list, or unknown. */
  readonly behind: number | null;
  /**
   * The hashes of its records up to the start of the next page. The service may return more records for this cursor.
   */
  readonly hashes: readonly number[];
}

/** Returns where records stood when the list was walked, as far as these pages know them. */
export function positionsIn(
  pages: readonly Pick<IndexedPage, 'hashes'>[],
  ids: Iterable<string>,
): ReadonlyMap<string, { readonly page: number; readonly offset: number }> {
  const wanted = new Map(Array.from(ids, (id) => [identityHash(id), id]));
  const positions = new Map<string, { page: number; offset: number }>();
  for (const [page, { hashes }] of pages.entries()) {
    if (wanted.size === 0) break;
    for (const [offset, hash] of hashes.entries()) {
      const id = wanted.get(hash);
      if (id === undefined) continue;
      positions.set(id, { page, offset });
      wanted.delete(hash);
    }
  }
  return positions;
}

/** Builds the index of a walk of a whole list, page by page. */
export class IndexBuilder {
  readonly #pages: IndexedPage[] = [];
  #isUsable = true;

  /** Adds the next page of the walk, which may overlap with the page before. */
  add({ after, identities: { hashes, areUnique } }: ReadPage): void {
    // Records without unique ids prove no join, so nobody could use the index.
    this.#isUsable &&= areUnique;
    if (!this.#isUsable) return;
    const last = this.#pages.pop();
    if (last) {
      const start = last.hashes.indexOf(hashes[0]!);
      const own = start < 0 ? last.hashes : last.hashes.slice(0, start);
      // Of two pages that begin with the same record, the later one has the fresher cursor.
      if (own.length > 0) this.#pages.push({ ...last, hashes: own });
    }
    const behind = this.#pages.at(-1)?.hashes.at(-1) ?? null;
    this.#pages.push({ after, behind, hashes });
  }

  /** @returns undefined if some records have no unique id */
  finish(): PageIndex | undefined {
    return this.#isUsable && this.#pages.length > 0 ? this.#pages : undefined;
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

function costOf(pages: PageIndex): number {
  return pages.reduce((sum, { hashes }) => sum + PAGE_COST + hashes.length, LIST_COST);
}
