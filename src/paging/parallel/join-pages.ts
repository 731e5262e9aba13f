import { identityHash } from '../identity-set.ts';
import type { Identified, Page } from '../page.ts';

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
  const first = next.items[0]?.identity;
  if (first === undefined) return INSIDE;
  if (!isJoinable(page) || !isJoinable(next)) return APART;
  const at = page.items.findIndex(({ identity }) => identity === first);
  if (at < 0) return APART;
  const shared = page.items.slice(at);
  if (!agree(shared, next.items)) return APART;
  if (shared.length >= next.items.length) return INSIDE;
  return shared.length > 1 || has(page, behind) ? { kind: 'joined', at } : APART;
}

/** Whether every record can be told from the others, so that something can be proved by them. */
export function isJoinable(page: Page<Identified>): boolean {
  const known = joinable.get(page);
  if (known !== undefined) return known;
  const { items } = page;
  const identities = new Set(items.map(({ identity }) => identity));
  const verdict = identities.size === items.length && !identities.has(null);
  joinable.set(page, verdict);
  return verdict;
}

/** Each page is looked at from both sides. */
const joinable = new WeakMap<Page<Identified>, boolean>();

const INSIDE: Join = { kind: 'inside' };
const APART: Join = { kind: 'apart' };

function agree(shared: readonly Identified[], head: readonly Identified[]): boolean {
  const length = Math.min(shared.length, head.length);
  for (let place = 0; place < length; place += 1) {
    if (shared[place]!.identity !== head[place]!.identity) return false;
  }
  return true;
}

function has({ items }: Page<Identified>, hash: number | null): boolean {
  return hash !== null && items.some(({ identity }) => identityHash(identity ?? '') === hash);
}
