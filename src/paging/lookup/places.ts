import { identityHash } from '../identity-set.ts';
import type { IndexedPage } from '../parallel/page-index.ts';

/** Where a record was met: in the page that begins behind this cursor, so many records from its start. */
export interface Place {
  readonly after: string | null;
  readonly place: number;
}

/** A page whose records are known; those of an index are. */
export type KnownPage = Pick<IndexedPage, 'after' | 'records'>;

export interface KnownPlace extends Place {
  /** The number of its page. */
  readonly page: number;
}

export function isSamePlace(one: Place | undefined, other: Place | undefined): boolean {
  return one !== undefined && one.after === other?.after && one.place === other.place;
}

/** The places of those records that are known; each is looked for among their hashes. */
export function placesIn(
  pages: readonly KnownPage[],
  identities: readonly string[],
): Map<string, KnownPlace> {
  return identities.length <= FEW ? oneByOne(pages, identities) : allTogether(pages, identities);
}

/** From so many on, looking at every hash once costs less than looking for each. */
const FEW = 16;

function oneByOne(pages: readonly KnownPage[], identities: readonly string[]) {
  const places = new Map<string, KnownPlace>();
  for (const identity of identities) {
    const hash = identityHash(identity);
    for (const [page, { after, records }] of pages.entries()) {
      const place = records?.indexOf(hash) ?? -1;
      if (place < 0) continue;
      places.set(identity, { after, place, page });
      break;
    }
  }
  return places;
}

function allTogether(pages: readonly KnownPage[], identities: readonly string[]) {
  const places = new Map<string, KnownPlace>();
  const wanted = new Map(identities.map((identity) => [identityHash(identity), identity]));
  for (const [page, { after, records }] of pages.entries()) {
    if (!records) continue;
    for (const [place, hash] of records.entries()) {
      const identity = wanted.get(hash);
      if (identity === undefined || places.has(identity)) continue;
      places.set(identity, { after, place, page });
    }
  }
  return places;
}
