import { identityHash } from '../identity-set.ts';
import { nextRecord, pageOf } from '../parallel/page-index.ts';
import type { PageIndexes } from '../parallel/page-indexes.ts';

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
