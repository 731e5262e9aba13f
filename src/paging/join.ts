import type { ReadPage } from './page.ts';

/*
 * How two pages are proved to join
 *
 * The upstream returns one cursor per page, so the first walk of a list reads one page after the other. It leaves a
 * page index: the cursor with which each page was requested. The next walk requests all these pages at the same time.
 * But records were inserted, removed and moved in between, and it is unknown what a cursor points at now: a record, an
 * offset in the list, or nothing. So a cursor proves nothing. Only records prove that page B continues page A.
 *
 * For that, pages overlap. The first walk requests two records less than the page limit; the next one requests the
 * limit, with the same cursors. With a limit of 6, in a list that did not change:
 *
 *     first walk          |a b c d|e f g h|i j k l|
 *     next walk, page A   |a b c d e f|
 *                page B           |e f g h i j|             e f = e f: B continues A
 *
 * Each page is an unbroken run of the list. If the end of A equals the start of B, record for record, and one of these
 * records was not moved while both were read, then no record is between the two runs. After changes:
 *
 *     x inserted          A |a b x c d e|   B |e f g h i j|   e: the overlap is one record
 *     b removed           A |a c d e f g|   B |e f g h i j|   e f g: B continues A
 *     x y z inserted      A |a x y z b c|   B |e f g h i j|   nothing shared: a gap (d is in it)
 *     e moved after B     A |a b c d f g|   B |e f g h i j|   A has no e: this looks like a gap
 *     b-d, h-l removed    A |a e f g|       B |e f g|         B is inside A
 *
 * Of two shared records, at least one was not moved, unless both were moved between the two reads. A single one may
 * mislead: if `e` is behind `b` when A is read, and behind `d` again when B is read, it joins |a x y z b e| to
 * |e f g h i j|, and `c d` are lost. So one shared record needs a witness: A must also hold the record that B's cursor
 * was made from (`d`). After one insert it does: thanks to the overlap of two, one insert causes no gap.
 *
 * A page inside the page before is skipped, and its `hasNextPage` is ignored. At a gap, the walk reads on in sequence
 * until it meets a page of the index again; if it never does, it reads to the end like this. Records without an id, or
 * with one that occurs twice in a page, prove nothing: such lists are always read page by page.
 */

/**
 * Whether a page is proved to continue one that was read from an earlier cursor: no record is between them, and it has
 * records that the other page has not.
 *
 * @param behind the hash of the record that the cursor of `next` was made from; undefined: the start of the list
 */
export function continues(next: ReadPage, page: ReadPage, behind: number | undefined): boolean {
  const { hashes, areUnique } = page.identities;
  const { hashes: head, areUnique: areNextUnique } = next.identities;
  if (!areUnique || !areNextUnique) return false;
  const at = hashes.indexOf(head[0]!);
  const shared = hashes.length - at;
  if (at < 0 || shared >= head.length) return false;
  for (let offset = 0; offset < shared; offset += 1) {
    if (hashes[at + offset] !== head[offset]) return false;
  }
  return shared > 1 || (behind !== undefined && hashes.includes(behind));
}
