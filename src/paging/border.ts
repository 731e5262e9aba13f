import { codedError } from '../errors.ts';
import type { Position } from './cursor.ts';
import type { FetchPage, Identified } from './page.ts';
import { locate } from './resume.ts';

/** What `before` comes to in the list as it is now. */
export interface Border<R> {
  /** The record that ends the stretch; null: the end of the list does. */
  readonly record: string | null;
  readonly hasNextPage: boolean;
  /** What stands right in front of it in its page. */
  readonly edges?: readonly { readonly record: R; readonly position: Position }[];
  /** Whether that begins at the start of the list. */
  readonly isStart?: boolean;
}

export async function borderAt<R extends Identified>(
  fetchPage: FetchPage<R>,
  before: Position,
  signal: AbortSignal,
): Promise<Border<R>> {
  const found = await locate(fetchPage, before, signal);
  // Its page up to the end then: a record may come twice, but none is skipped.
  if ('behind' in found) return { record: found.behind, hasNextPage: found.behind !== null };
  const { page, after, place } = found;
  const { items, endCursor: end } = page;
  const edges = items.slice(0, place).map((record, index) => ({
    record,
    position: { after, end, size: items.length, place: index, identity: record.identity },
  }));
  return { record: before.identity, hasNextPage: true, edges, isStart: after === null };
}

export function noIdentities() {
  return codedError(
    'BAD_USER_INPUT',
    'The records of this list have no id, so that the place of `before` cannot be found again in other pages. Page forward, with `first` and `after`.',
  );
}
