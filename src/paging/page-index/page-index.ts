import { identityHash } from '../identities.ts';
import { overlappingSize, type Identified, type Page, identitiesOf } from '../page.ts';
import type { Position } from '../cursor.ts';

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

/** Where a record was met: in the page that begins behind this cursor, so many records from its start. */
export interface Place {
  readonly after: string | null;
  readonly place: number;
}

/** A page whose records are known; those of an index are. */
export type KnownPage = Pick<IndexedPage, 'after' | 'records'>;

export interface KnownPlace extends Place {
  /** The number of its page. */
  readonly page: number;
}

export function isSamePlace(one: Place | undefined, other: Place | undefined): boolean {
  return one !== undefined && one.after === other?.after && one.place === other.place;
}

/** The places of those records that are known; each is looked for among their hashes. */
export function placesIn(
  pages: readonly KnownPage[],
  identities: readonly string[],
): Map<string, KnownPlace> {
  return identities.length <= FEW ? oneByOne(pages, identities) : allTogether(pages, identities);
}

/** From so many on, looking at every hash once costs less than looking for each. */
const FEW = 16;

function oneByOne(pages: readonly KnownPage[], identities: readonly string[]) {
  const places = new Map<string, KnownPlace>();
  for (const identity of identities) {
    const hash = identityHash(identity);
    for (const [page, { after, records }] of pages.entries()) {
      const place = records?.indexOf(hash) ?? -1;
      if (place < 0) continue;
      places.set(identity, { after, place, page });
      break;
    }
  }
  return places;
}

function allTogether(pages: readonly KnownPage[], identities: readonly string[]) {
  const places = new Map<string, KnownPlace>();
  const wanted = new Map(identities.map((identity) => [identityHash(identity), identity]));
  for (const [page, { after, records }] of pages.entries()) {
    if (!records) continue;
    for (const [place, hash] of records.entries()) {
      const identity = wanted.get(hash);
      if (identity === undefined || places.has(identity)) continue;
      places.set(identity, { after, place, page });
    }
  }
  return places;
}

/** Pages that a walk is going to read at least, as far as the last one of the list tells; 0 where nothing does. */
export function pagesKnown(
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
