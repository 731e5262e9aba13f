import { identityHash, IdentitySet } from './identities.ts';

/** A record of a page. */
export interface Identified {
  /** `Type:id`, which tells it from other records. Null: it has no id. */
  readonly identity: string | null;
  /** In the page as delivered, from 0. */
  readonly index: number;
}

/** One page as the upstream gives it: forward only, with one opaque cursor. */
export interface Page<R> {
  /** Pages of bytes make these objects when they are read for the first time. */
  readonly items: readonly R[];
  readonly hasNextPage: boolean;
  /** Points at the last record of the page. */
  readonly endCursor: string | null;
  /** The page size that was really used, where the upstream tells it. */
  readonly limit?: number | undefined;
  /**
   * Whether it has fewer records than were requested because the service refuses so many for what is selected of them.
   * Then its size tells nothing about the service's page limit.
   */
  readonly isPart?: boolean | undefined;
  /** Errors that came with the page and belong to none of its records. */
  readonly unplacedErrors?: readonly unknown[];
  /** How many records the service says that all pages have. */
  readonly total?: number | undefined;
  /** How many records it has, where the page knows it without making them. */
  readonly count?: number;
  /** The memory that it takes, in bytes, where the page knows it. */
  readonly memory?: number;
  /** Where the page makes them itself: see `identitiesOf`. A page of bytes does so on first use. */
  readonly identities?: PageIdentities;
}

export interface PageRequest {
  /** Records wanted; undefined: as many as the service gives. Above its page limit, the service gives the limit. */
  readonly first: number | undefined;
  /** A cursor of the upstream, or null for the start of the list. */
  readonly after: string | null;
}

export type FetchPage<R> = (request: PageRequest, signal: AbortSignal) => Promise<Page<R>>;

/** Pages of one operation in flight. An operation that needs thousands of them leaves room for the others. */
export const PAGES_PER_OPERATION = 8;

/** Records of a page that the next one repeats. */
const OVERLAP = 2;
/** Smaller pages would consist of overlap for the greater part. */
const SMALLEST_LIMIT = 10;

/**
 * The size of a page that, read again at the limit, overlaps with the next one. With two records in common, a record
 * that is moved between the two readings proves nothing false, and one that was inserted still leaves an overlap.
 *
 * @returns undefined when the limit is unknown, or leaves no room
 */
export function overlappingSize(limit: number | undefined): number | undefined {
  return limit !== undefined && limit >= SMALLEST_LIMIT ? limit - OVERLAP : undefined;
}

/** The identities of a page's records, hashed. */
export interface PageIdentities {
  /** One for each record; NaN for a record without an identity. */
  readonly hashes: readonly number[];
  /** Whether an identity occurs twice. */
  readonly hasRepeats: boolean;
  /** Whether every record can be told from the others, so that the page can prove a join. */
  readonly isJoinable: boolean;
}

export function identitiesOf(page: Page<Identified>): PageIdentities {
  return (
    page.identities ??
    identitiesFrom(
      page.items.map(({ identity }) => (identity === null ? NaN : identityHash(identity))),
    )
  );
}

/** @param scratch an empty set, which is empty again afterwards; it is used for small pages only, to stay small */
export function identitiesFrom(hashes: readonly number[], scratch?: IdentitySet): PageIdentities {
  const seen = scratch && hashes.length <= SMALL ? scratch : new IdentitySet();
  let hasRepeats = false;
  let hasUnknown = false;
  for (let at = 0; at < hashes.length; at += 1) {
    const hash = hashes[at]!;
    if (Number.isNaN(hash)) hasUnknown = true;
    else if (!seen.add(hash)) hasRepeats = true;
  }
  scratch?.clear();
  return { hashes, hasRepeats, isJoinable: !hasRepeats && !hasUnknown };
}

const SMALL = 1_000;

/** How many records the page has. */
export function sizeOf(page: Page<Identified>): number {
  return page.count ?? page.items.length;
}

/** Records of one page, in its order. A drain writes them as one piece of bytes, without an object for each. */
export class PageRecords<R> implements Iterable<R> {
  readonly page: Page<R>;
  /** In the page, from 0. */
  readonly from: number;
  /** Behind the last one. */
  readonly to: number;
  /** Records in between that are left out. */
  readonly without: ReadonlySet<number> | undefined;

  constructor(page: Page<R>, from: number, to: number, without?: ReadonlySet<number>) {
    this.page = page;
    this.from = from;
    this.to = to;
    this.without = without;
  }

  get length(): number {
    return this.to - this.from - (this.without?.size ?? 0);
  }

  get list(): readonly R[] {
    const { page, from, to, without } = this;
    const all = to - from === page.items.length ? page.items : page.items.slice(from, to);
    return without ? all.filter((_, offset) => !without.has(from + offset)) : all;
  }

  /** Returns the first `count` records; all of them if there are fewer. */
  first(count: number): PageRecords<R> {
    return this.slice(0, count);
  }

  /** Those between two indexes, as `slice` of an array. */
  slice(start: number, end = this.length): PageRecords<R> {
    if (start === 0 && end >= this.length) return this;
    const { page, from, without } = this;
    const to = Math.min(end, this.length);
    if (!without) return new PageRecords(page, from + start, from + Math.max(start, to));
    const kept: number[] = [];
    for (let index = from; index < this.to; index += 1) if (!without.has(index)) kept.push(index);
    const [begin = from, last = begin - 1] = start < to ? [kept[start], kept[to - 1]] : [];
    const inside = [...without].filter((index) => index >= begin && index <= last);
    return new PageRecords(page, begin, last + 1, new Set(inside));
  }

  [Symbol.iterator](): Iterator<R> {
    return this.list[Symbol.iterator]();
  }
}
