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
  /**
   * The hashes of its records up to the start of the next page. The service may return more records for this cursor.
   */
  readonly hashes: readonly number[];
}

/** Returns where records stood when the list was walked, as far as these pages know them. */
export function positionsIn(
  pages: readonly IndexedPage[],
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

/** Returns the hash of the record that the cursor of a page was made from; undefined: the start of the list. */
export function hashBehind(index: PageIndex, page: number): number | undefined {
  return index[page - 1]?.hashes.at(-1);
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
    this.#pages.push({ after, hashes });
  }

  /** @returns undefined if some records have no unique id */
  finish(): PageIndex | undefined {
    return this.#isUsable && this.#pages.length > 0 ? this.#pages : undefined;
  }
}

/** The number of records that a page shares with the next one: see join.ts. */
export const OVERLAP = 2;
