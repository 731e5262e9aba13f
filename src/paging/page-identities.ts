import { identityHash } from './identity-set.ts';
import type { Identified, Page } from './page.ts';

/** What tells the records of a page from others, hashed; made once for each page. */
export interface PageIdentities {
  /** One for each record; NaN for one without an identity. */
  readonly hashes: Float64Array;
  /** Whether an identity comes twice. */
  readonly hasRepeats: boolean;
  /** Whether every record can be told from the others, so that something can be proved by them. */
  readonly isJoinable: boolean;
}

export function identitiesOf(page: Page<Identified>): PageIdentities {
  const known = identities.get(page);
  if (known) return known;
  const { items } = page;
  const hashes =
    page.hashes ??
    Float64Array.from(items, ({ identity }) => (identity === null ? NaN : identityHash(identity)));
  // In order, equal ones stand next to each other, and NaN behind all others.
  const sorted = hashes.toSorted();
  let hasRepeats = false;
  for (let at = 1; at < sorted.length; at += 1) hasRepeats ||= sorted[at] === sorted[at - 1];
  const hasUnknown = Number.isNaN(sorted.at(-1));
  const made = { hashes, hasRepeats, isJoinable: !hasRepeats && !hasUnknown };
  identities.set(page, made);
  return made;
}

/** Each page is looked at several times, and from both sides. */
const identities = new WeakMap<Page<Identified>, PageIdentities>();
