import { codedError } from '../../errors.ts';
import type { Position } from '../place/cursor.ts';
import { locate, type SearchedList } from '../place/locate.ts';
import type { Identified } from '../page.ts';
import { placeLost } from '../place/place-lost.ts';
import { firstBehind, mayHaveSlid } from '../place/resume.ts';

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
  list: SearchedList<R>,
  before: Position,
  signal: AbortSignal,
): Promise<Border<R>> {
  const found = await locate(list, before, signal);
  // Its page up to the end then: a record may come twice, but none is skipped.
  if (!('page' in found)) {
    const behind = await firstBehind(list.fetchPage, before.end, signal);
    if (behind === undefined) throw placeLost(found.refusal?.error);
    if (behind === null || !mayHaveSlid(before, found, behind)) {
      return { record: behind, hasNextPage: behind !== null };
    }
    // Where its page ends further to the front than it did, only the end of the list is late enough.
    if (!found.isNear.end) throw placeLost();
    return { record: null, hasNextPage: false };
  }
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
