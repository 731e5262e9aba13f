import type { Identities } from './identities.ts';

/*
 * A page of a list, and how it is fetched
 *
 * Paging knows neither GraphQL nor HTTP. Whoever pages a list brings one function, `FetchPage`. Abort, budget and priority
 * are bound into it; records are passed on as they came.
 */

/** A page as the service returns it: forward only, with one opaque cursor. */
export interface Page<R = unknown> {
  /**
   * All of its records, which are identified by their offsets in the page. Nothing of them is read here, so their errors
   * have to travel in it.
   */
  readonly records: R;
  /** The identity of each record (`Type:id`), at the same index. Null: the record has none. */
  readonly ids: readonly (string | null)[];
  readonly hasNextPage: boolean;
  /** Leads behind the last record of the page, when the page was read. Null: it leads nowhere. */
  readonly endCursor: string | null;
  /**
   * The limit that the service used: what it reports, otherwise `first` of the request. Never the number of records:
   * a service may return more of them (a least page, a size rounded up) or fewer (hidden records).
   */
  readonly size: number;
  /** The number of records of the whole list, if the page says it. */
  readonly count?: number;
}

/**
 * Fetches one page.
 *
 * @param after a cursor of the service; null: the start of the list
 * @param first the number of records to request. The service may use another limit, and return more or fewer
 * @throws SizeRefusedError, CursorRefusedError, PageFailedError. Anything else ends the walk as it is: an abort, or a
 *   budget that does not allow the page
 */
export type FetchPage<R = unknown> = (after: string | null, first: number) => Promise<Page<R>>;

/**
 * The abort reason of pages that no reader needs any more. Created once: a new error with its stack would cost more
 * than the page that it ends.
 */
export const WALK_LEFT = new DOMException('This walk has no reader left.', 'AbortError');

/** The service refuses a page of this many records, and may accept a smaller one. `cause` is the service's error. */
export class SizeRefusedError extends Error {}

/** The service refuses the cursor: its record is gone, or it is not a cursor of this list. */
export class CursorRefusedError extends Error {}

/** Returns the error if the service refuses the cursor. @throws every other error */
export async function unlessRefused<T>(reading: Promise<T>): Promise<T | CursorRefusedError> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof CursorRefusedError) return error;
    throw error;
  }
}

/** The page could not be read, and reading it again now would not help. `cause` says why. */
export class PageFailedError extends Error {}

/** Returns what a caller is told of a page that could not be read: the error of the service, which is the cause. */
export function causeOf(error: unknown): unknown {
  const isOfPage = error instanceof PageFailedError || error instanceof CursorRefusedError;
  return isOfPage ? (error.cause ?? error) : error;
}

/** A page that was read. */
export interface ReadPage<R = unknown> extends Page<R> {
  /** The cursor that it was requested with; null: the start of the list. */
  readonly after: string | null;
  readonly identities: Identities;
}

/** A record in a page that was read. */
export interface Place<R = unknown> {
  readonly page: ReadPage<R>;
  readonly offset: number;
}

export function placesOf<R>(page: ReadPage<R>): Place<R>[] {
  return page.ids.map((_, offset) => ({ page, offset }));
}

export function idOf({ page, offset }: Place): string | null {
  return page.ids[offset]!;
}
