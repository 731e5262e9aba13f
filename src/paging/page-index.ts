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

/**
 * Makes the index of a walk of a whole list.
 *
 * @param read its pages, which may overlap
 * @returns undefined if some records have no unique id: they prove no join, so nobody could use the index
 */
export function indexOf(
  read: readonly Pick<ReadPage, 'after' | 'identities'>[],
): PageIndex | undefined {
  if (!read.every(({ identities }) => identities.areUnique)) return undefined;
  const pages = read.map(({ after, identities: { hashes } }, number) => {
    const next = read[number + 1]?.identities.hashes[0];
    const end = next === undefined ? -1 : hashes.indexOf(next);
    return { after, hashes: end < 0 ? hashes : hashes.slice(0, end) };
  });
  // Of two pages that begin with the same record, the later one has the fresher cursor.
  return pages.filter(({ hashes }, number) => hashes.length > 0 || number === pages.length - 1);
}

/** The number of records that a page shares with the next one: see join.ts. */
export const OVERLAP = 2;
