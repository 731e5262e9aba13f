import { GraphQLError } from 'graphql';
import { cursorsThat, type CursorBehaviour, type CursorList } from './cursors.ts';

/** A list in the order of its sort keys, as it is at this moment. */
export interface PagedList<T> extends CursorList {
  readonly length: number;
  slice(start: number, end: number): T[];
}

export interface PageArguments {
  first?: number | null;
  after?: string | null;
}

export interface Page<T> {
  items: T[];
  pageInfo: { first: number; hasNextPage: boolean; endCursor: string | null };
}

/** @param limit the size of the largest page; the interface says that some lists have another one than 50 */
export function pageOf<T>(
  list: PagedList<T>,
  { first, after }: PageArguments,
  behaviour: CursorBehaviour,
  limit = 50,
): Page<T> {
  const cursors = cursorsThat(behaviour, list);
  const size = pageSize(first, limit);
  const start = after == null ? 0 : cursors.startAfter(after);
  const items = list.slice(start, start + size);
  const end = start + items.length;
  return {
    items,
    pageInfo: {
      first: size,
      hasNextPage: items.length > 0 && end < list.length,
      endCursor: items.length > 0 ? cursors.pointAt(end - 1) : null,
    },
  };
}

function pageSize(first: number | null | undefined, limit: number): number {
  if (first == null) return limit;
  if (first < 1) {
    throw new GraphQLError(`first must be from 1 to ${limit}, and it is ${first}.`);
  }
  return Math.min(first, limit);
}
