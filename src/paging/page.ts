import { identityHash, IdentitySet } from './identities.ts';

/** A record of a page. */
export interface Identified {
  /** `Type:id`, unique among all records. Null: the record has no id. */
  readonly identity: string | null;
  /** Its index in the page as delivered, from 0. */
  readonly index: number;
}

/** A page as the upstream returns it: forward only, with one opaque cursor. */
export interface Page<R> {
  /** A page of bytes creates these objects when they are first read. */
  readonly items: readonly R[];
  readonly hasNextPage: boolean;
  /** Identifies the last record of the page. */
  readonly endCursor: string | null;
  /** The page size that was used, if the upstream reports it. */
  readonly limit?: number | undefined;
  /**
   * Whether it has fewer records than requested because the service refuses that many with this selection. Then its
   * size says nothing about the service's page limit.
   */
  readonly isPart?: boolean | undefined;
  /** The unplaced errors of the page: they belong to none of its records. */
  readonly unplacedErrors?: readonly unknown[];
  /** The number of records in all pages, according to the service. */
  readonly total?: number | undefined;
  /** The number of its records, if the page knows it without creating them. */
  readonly count?: number;
  /** The memory that it takes, in bytes, if the page knows it. */
  readonly memory?: number;
  /**
   * Set if the page provides them itself, instead of `identitiesOf`. A page of bytes creates them when they are first
   * read.
   */
  readonly identities?: PageIdentities;
}

export interface PageRequest {
  /** Records to request; undefined: as many as the service chooses. The service returns no more than its page limit. */
  readonly first: number | undefined;
  /** A cursor of the upstream; null: the start of the list. */
  readonly after: string | null;
}

export type FetchPage<R> = (request: PageRequest, signal: AbortSignal) => Promise<Page<R>>;

/** The most pages of one operation in flight. An operation that needs thousands of pages leaves room for the others. */
export const PAGES_PER_OPERATION = 8;

/** The number of records of a page that the next page repeats. */
const OVERLAP = 2;
/** Smaller pages would consist mostly of overlap. */
const SMALLEST_LIMIT = 10;

/**
 * Returns the size of a page that, read again at the limit, overlaps with the next page. With two records in common, a
 * record that is moved between the two reads proves nothing false, and an inserted record still leaves an overlap.
 *
 * @returns undefined if the limit is unknown, or leaves no room
 */
export function overlappingSize(limit: number | undefined): number | undefined {
  return limit !== undefined && limit >= SMALLEST_LIMIT ? limit - OVERLAP : undefined;
}

/** The hashed identities of a page's records. */
export interface PageIdentities {
  /** One hash for each record; NaN for a record without an identity. */
  readonly hashes: readonly number[];
  /** Whether an identity occurs twice. */
  readonly hasRepeats: boolean;
  /** Whether every record has a unique identity, so that the page can prove a join. */
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

/** @param scratch an empty set, which is empty again afterwards; it is used only for small pages, to stay small */
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

/** Returns the number of records of the page. */
export function sizeOf(page: Page<Identified>): number {
  return page.count ?? page.items.length;
}

/**
 * Records of one page, in its order. A drain writes them as one piece of bytes, without creating an object for each.
 */
export class PageRecords<R> implements Iterable<R> {
  readonly page: Page<R>;
  /** The index of the first record in the page. */
  readonly from: number;
  /** The index behind the last record. */
  readonly to: number;
  /** The indexes of records in between that are left out. */
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

  /** Returns the records between two indexes, like `slice` of an array. */
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
