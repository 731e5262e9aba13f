import { identityHash } from './identities.ts';

/** One page as the upstream gives it: forward only, one opaque cursor. */
export interface Page<R> {
  readonly items: readonly R[];
  readonly hasNextPage: boolean;
  /** Points at the last element of the page. */
  readonly endCursor: string | null;
  /** The page size that was really used, where the upstream tells it. */
  readonly limit?: number | undefined;
  /** What came with the page and belongs to none of its records, for whoever reads it. */
  readonly beside?: readonly unknown[];
  /** The hashes of the identities, where whoever read the page has made them already; NaN for a record without one. */
  readonly hashes?: Float64Array;
}

export interface PageRequest {
  /** Records wanted. Undefined: as many as the node gives. Above the node's limit, the limit is given. */
  readonly first: number | undefined;
  /** A cursor that the upstream gave, or null for the start of the list. */
  readonly after: string | null;
}

/** Pages of one operation in flight. An operation that needs thousands of them leaves room for the others. */
export const PAGES_PER_OPERATION = 8;

export type FetchPage<R> = (request: PageRequest, signal: AbortSignal) => Promise<Page<R>>;

/** Records of a page that the next one repeats. */
const OVERLAP = 2;
/** Smaller pages are not worth it: too much of them would be overlap. */
const SMALLEST_LIMIT = 10;

/**
 * The size of a page that, read again at the limit, overlaps with the next one. With two records in common a
 * record that moves meanwhile proves nothing false, and one that was inserted still leaves an overlap.
 *
 * @returns undefined when no limit is known, or it leaves no room
 */
export function overlappingSize(limit: number | undefined): number | undefined {
  return limit !== undefined && limit >= SMALLEST_LIMIT ? limit - OVERLAP : undefined;
}

/** A record that can be told from others. Null: it cannot, since it has no id. */
export interface Identified {
  readonly identity: string | null;
}

/** What tells the records of a page from others, hashed; made once for each page. */
export interface PageIdentities {
  /** One for each record; NaN for one without an identity. */
  readonly hashes: Float64Array;
  /** Whether an identity comes twice. */
  readonly hasRepeats: boolean;
  /** Whether every record can be told from the others, so that something can be proved by them. */
  readonly isJoinable: boolean;
}

export function identitiesOf(page: Page<Identified>): PageIdentities {
  const known = identities.get(page);
  if (known) return known;
  const { items } = page;
  const hashes =
    page.hashes ??
    Float64Array.from(items, ({ identity }) => (identity === null ? NaN : identityHash(identity)));
  // In order, equal ones stand next to each other, and NaN behind all others.
  const sorted = hashes.toSorted();
  let hasRepeats = false;
  for (let at = 1; at < sorted.length; at += 1) hasRepeats ||= sorted[at] === sorted[at - 1];
  const hasUnknown = Number.isNaN(sorted.at(-1));
  const made = { hashes, hasRepeats, isJoinable: !hasRepeats && !hasUnknown };
  identities.set(page, made);
  return made;
}

/** Each page is looked at several times, and from both sides. */
const identities = new WeakMap<Page<Identified>, PageIdentities>();
