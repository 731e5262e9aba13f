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
}

export interface PageRequest {
  /** Records wanted. Undefined: as many as the node gives. Above the node's limit, the limit is given. */
  readonly first: number | undefined;
  /** A cursor that the upstream gave, or null for the start of the list. */
  readonly after: string | null;
}

export type FetchPage<R> = (request: PageRequest, signal: AbortSignal) => Promise<Page<R>>;

/** A page size that leaves room for an overlap; undefined when no size is known, or none is small enough. */
export function smallerBy(overlap: number, limit: number | undefined): number | undefined {
  return limit !== undefined && limit > overlap ? limit - overlap : undefined;
}

/** A record that can be told from others. Null: it cannot, since it has no id. */
export interface Identified {
  readonly identity: string | null;
}
