import { identityHash } from './identities.ts';

/** A record of a page. */
export interface Identified {
  /** `Type:id`, which tells it from other records. Null: it has no id. */
  readonly identity: string | null;
  /** In the page as delivered, from 0. */
  readonly index: number;
}

/** One page as the upstream gives it: forward only, with one opaque cursor. */
export interface Page<R> {
  readonly items: readonly R[];
  readonly hasNextPage: boolean;
  /** Points at the last record of the page. */
  readonly endCursor: string | null;
  /** The page size that was really used, where the upstream tells it. */
  readonly limit?: number | undefined;
  /** Errors that came with the page and belong to none of its records. */
  readonly unplacedErrors?: readonly unknown[];
  /** Where the page's reader made them: see `identitiesOf`. */
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
 * that is moved meanwhile proves nothing false, and one that was inserted still leaves an overlap.
 *
 * @returns undefined when the limit is unknown, or leaves no room
 */
export function overlappingSize(limit: number | undefined): number | undefined {
  return limit !== undefined && limit >= SMALLEST_LIMIT ? limit - OVERLAP : undefined;
}

/** The identities of a page's records, hashed. */
export interface PageIdentities {
  /** One for each record; NaN for a record without an identity. */
  readonly hashes: Float64Array;
  /** Whether an identity occurs twice. */
  readonly hasRepeats: boolean;
  /** Whether every record can be told from the others, so that the page can prove a join. */
  readonly isJoinable: boolean;
}

export function identitiesOf({ identities, items }: Page<Identified>): PageIdentities {
  if (identities) return identities;
  return identitiesFrom(
    Float64Array.from(items, ({ identity }) => (identity === null ? NaN : identityHash(identity))),
  );
}

export function identitiesFrom(hashes: Float64Array): PageIdentities {
  // Sorted, equal hashes are neighbours, and NaN comes last.
  const sorted = hashes.toSorted();
  let hasRepeats = false;
  for (let at = 1; at < sorted.length; at += 1) hasRepeats ||= sorted[at] === sorted[at - 1];
  const hasUnknown = Number.isNaN(sorted.at(-1));
  return { hashes, hasRepeats, isJoinable: !hasRepeats && !hasUnknown };
}
