import { identityHash } from '../identity-set.ts';
import { overlappingSize, type Identified, type Page } from '../page.ts';
import { identitiesOf } from '../page-identities.ts';

/** Where one page of a list began when it was walked last. */
export interface IndexedPage {
  readonly after: string | null;
  /** Hash of the record that the cursor was made from; null at the start of the list. */
  readonly behind: number | null;
  /** How many records there are up to the next page's start. */
  readonly count: number;
  /** Hashes of those records; undefined beyond the bound. */
  readonly records: Float64Array | undefined;
}

/** What a walk leaves behind: where pages begin, so that the next walk can read them at the same time. */
export interface PageIndex {
  readonly pages: readonly IndexedPage[];
  /** Whether the walk came to the end of the list. */
  readonly complete: boolean;
}

/** Follows a walk, and makes the index of it. */
export interface IndexBuilder {
  /**
   * The next page of the walk.
   *
   * @param at the place of its first record in the page before, when it overlaps with that
   */
  add(after: string | null, page: Page<Identified>, at?: number): void;
  /** Undefined when the records cannot be told apart. */
  finish(options: { complete: boolean; limit: number | undefined }): PageIndex | undefined;
}

/** @param maxRecords beyond so many, records are no longer kept, only where pages begin */
export function createIndexBuilder(maxRecords: number): IndexBuilder {
  const pages: IndexedPage[] = [];
  let last: { after: string | null; behind: number | null; hashes: Float64Array } | undefined;
  let kept = 0;
  let isUsable = true;

  return {
    add: (after, page, at = last?.hashes.length ?? 0) => {
      const { items } = page;
      if (!isUsable) return;
      const { hashes, isJoinable } = identitiesOf(page);
      if (!isJoinable) {
        isUsable = false;
        pages.length = 0;
        return;
      }
      // Two pages that begin with the same record: the later cursor is the fresher one.
      const behind = last && at === 0 ? last.behind : (last?.hashes[at - 1] ?? null);
      if (last && at > 0) close(at);
      if (items.length > 0 || !last) last = { after, behind, hashes };
    },
    finish: ({ complete, limit }) => {
      if (!isUsable || !last) return undefined;
      if (last.hashes.length > 0 || pages.length === 0) close(last.hashes.length);
      return { pages: withoutSmallPages(pages, limit), complete };
    },
  };

  function close(count: number): void {
    const { after, behind, hashes } = last!;
    kept += count;
    const records = kept <= maxRecords ? hashes.slice(0, count) : undefined;
    pages.push({ after, behind, count, records });
  }
}

/** Pages that fit into one, with room for the overlap, become one. */
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
    const records =
      before.records && page.records && Float64Array.of(...before.records, ...page.records);
    merged[merged.length - 1] = { ...before, count: before.count + page.count, records };
  }
  return merged;
}

/**
 * Hash of the record right behind another; null when that was the last of the list, undefined when nobody knows.
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
    const place = records?.lastIndexOf(hash) ?? -1;
    if (place < 0) continue;
    if (place + 1 < records!.length) return records![place + 1];
    const following = pages[page + 1];
    return following ? following.records?.[0] : complete ? null : undefined;
  }
  return undefined;
}

/** The page that holds a record, by its hash; undefined when no page is known to. */
export function pageOf({ pages }: PageIndex, identity: string): number | undefined {
  const hash = identityHash(identity);
  const found = pages.findIndex(({ records }) => records?.includes(hash));
  return found < 0 ? undefined : found;
}
