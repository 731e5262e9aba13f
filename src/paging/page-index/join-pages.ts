import { identitiesOf, type Identified, type Page } from '../page.ts';

/** What two pages that were read on their own have to do with each other. */
export type Join =
  /** `next` goes on where `page` ends; its first record is the one at this place of `page`. */
  | { readonly kind: 'joined'; readonly at: number }
  /** All that `next` has is in `page` already. */
  | { readonly kind: 'inside' }
  /** Nothing proves that no record lies between them. */
  | { readonly kind: 'apart' };

/**
 * Proves by records that one page goes on where another ends: the end of the first has to be the start of
 * the second, record for record. What their cursors say proves nothing: one may name a position.
 *
 * Any record of the overlap that stood still while the two were read is proof enough. An overlap of a single
 * record, which may have been moved in just that time, needs the record that the second page's cursor was
 * made from as another witness.
 *
 * @param behind hash of the record that the cursor of `next` was made from
 */
export function joinPages<R extends Identified>(
  page: Page<R>,
  next: Page<R>,
  behind: number | null,
): Join {
  if (next.items.length === 0) return INSIDE;
  const [one, other] = [identitiesOf(page), identitiesOf(next)];
  if (!one.isJoinable || !other.isJoinable) return APART;
  const [hashes, head] = [one.hashes, other.hashes];
  const at = hashes.indexOf(head[0]!);
  if (at < 0) return APART;
  const shared = hashes.length - at;
  for (let place = 0; place < Math.min(shared, head.length); place += 1) {
    if (hashes[at + place] !== head[place]) return APART;
  }
  if (shared >= head.length) return INSIDE;
  return shared > 1 || (behind !== null && hashes.includes(behind))
    ? { kind: 'joined', at }
    : APART;
}

const INSIDE: Join = { kind: 'inside' };
const APART: Join = { kind: 'apart' };
