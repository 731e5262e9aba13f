/*
 * How two pages are proved to join
 *
 * The upstream gives one cursor a page, so the first walk of a list reads one page after the other. It leaves a page
 * index: the cursor with which each page was requested. The next walk requests all these pages at the same time. But
 * records came, went and moved in between, and what a cursor points at by now is unknown: a record, an offset in the
 * list, or nothing. So a cursor proves nothing. That page B continues page A is proved by records.
 *
 * For that, pages overlap. The first walk requests two records less than the page limit; the next one requests the
 * limit, with the same cursors. Drawn with a limit of 6, in a list that stood still:
 *
 *     first walk          |a b c d|e f g h|i j k l|
 *     next walk, page A   |a b c d e f|
 *                page B           |e f g h i j|             e f = e f: B continues A
 *
 * Each page is an unbroken run of the list. If the end of A is the start of B, record for record, and one of these
 * records stood still while both were read, then no record lies between the two runs. After other changes:
 *
 *     x inserted          A |a b x c d e|   B |e f g h i j|   e: the overlap is one record
 *     b removed           A |a c d e f g|   B |e f g h i j|   e f g: B continues A
 *     x y z inserted      A |a x y z b c|   B |e f g h i j|   nothing shared: a gap (d is in it)
 *     e moved after B     A |a b c d f g|   B |e f g h i j|   A has no e: a gap, as far as anyone can tell
 *     b-d, h-l removed    A |a e f g|       B |e f g|         all of B is inside of A
 *
 * Of two shared records, one stood still, unless both were moved in that very moment. A single one may lie: if `e`
 * stands behind `b` while A is read, and behind `d` again when B is read, it joins |a x y z b e| to |e f g h i j|,
 * and `c d` are lost. So one shared record needs a witness: A must also hold the record that B's cursor was made
 * from (`d`). After one insert it does, and the overlap of two is why one insert costs no gap.
 *
 * A page inside of the one before is skipped, with what it said of `hasNextPage`. At a gap, the walk reads on from
 * A's own fresh cursor until it meets a page of the index again; if it never does, it reads to the end that way
 * (parallel-walk.ts). Records without an id, or with one that occurs twice in a page, prove nothing: such lists are
 * always read one page after the other.
 */
import { identitiesOf, type Identified, type Page } from '../page.ts';

/** How a page lies to one that was read before it, from an earlier cursor. */
export type Join =
  /** It continues the other page, in which its first record has this offset. */
  | { readonly kind: 'joined'; readonly at: number }
  /** All its records are in the other page. */
  | { readonly kind: 'inside' }
  /** Nothing proves that no record lies between them. */
  | { readonly kind: 'apart' };

/** @param behind hash of the record that the cursor of `next` was made from; null: the start of the list */
export function joinPages<R extends Identified>(
  page: Page<R>,
  next: Page<R>,
  behind: number | null,
): Join {
  const [one, other] = [identitiesOf(page), identitiesOf(next)];
  if (other.hashes.length === 0) return INSIDE;
  if (!one.isJoinable || !other.isJoinable) return APART;
  const [hashes, head] = [one.hashes, other.hashes];
  const at = hashes.indexOf(head[0]!);
  if (at < 0) return APART;
  const shared = hashes.length - at;
  for (let offset = 0; offset < Math.min(shared, head.length); offset += 1) {
    if (hashes[at + offset] !== head[offset]) return APART;
  }
  if (shared >= head.length) return INSIDE;
  return shared > 1 || (behind !== null && hashes.includes(behind))
    ? { kind: 'joined', at }
    : APART;
}

const INSIDE: Join = { kind: 'inside' };
const APART: Join = { kind: 'apart' };
