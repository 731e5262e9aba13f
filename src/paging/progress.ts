import { codedError } from '../errors.ts';
import { identityHash, IdentitySet } from './identity-set.ts';
import { identitiesOf } from './page-identities.ts';
import type { Identified, Page } from './page.ts';

/** Tells the records that a walk has not given yet from those that it has. */
export interface Progress<R> {
  of(page: Page<R>): NewRecords<R>;
  /** How many of its records were given before. */
  repeatedBy(page: Page<R>): number;
  /** False once an id came twice in one page: then nothing is dropped any more. */
  readonly idsAreUnique: boolean;
}

export interface NewRecords<R> {
  readonly records: readonly { readonly record: R; readonly place: number }[];
  /** Whether it is sure that there is something new. Without identities nobody can tell. */
  readonly isProved: boolean;
}

export function createProgress<R extends Identified>(): Progress<R> {
  const seen = new IdentitySet();
  let idsAreUnique = true;

  return {
    get idsAreUnique() {
      return idsAreUnique;
    },
    of: (page) => {
      const { items } = page;
      const { hashes, hasRepeats } = identitiesOf(page);
      if (hasRepeats) idsAreUnique = false;
      const records: { record: R; place: number }[] = [];
      let isProved = false;
      for (let place = 0; place < hashes.length; place += 1) {
        const hash = hashes[place]!;
        const isKnown = !Number.isNaN(hash);
        if (isKnown && !seen.add(hash) && idsAreUnique) continue;
        isProved ||= isKnown;
        records.push({ record: items[place]!, place });
      }
      return { records, isProved: idsAreUnique && isProved };
    },
    repeatedBy: (page) => identitiesOf(page).hashes.filter((hash) => seen.has(hash)).length,
  };
}

/** So many pages in a row without a new record are no list, whatever their cursors say. */
const MAX_BARREN_PAGES = 1_000;

/** Follows pages that are read one after the other, and says when there is no way on from one. */
export function createStallWatch<R>() {
  let cursors: IdentitySet | undefined;
  let barrenPages = 0;
  return {
    hasStalled({ endCursor }: Page<R>, { records, isProved }: NewRecords<R>): boolean {
      barrenPages = records.length === 0 ? barrenPages + 1 : 0;
      cursors ??= new IdentitySet();
      const cursorStands = endCursor === null || !cursors.add(identityHash(endCursor));
      // A cursor that comes again is enough to stop, where it is not sure that anything else was new.
      return endCursor === null || (cursorStands && !isProved) || barrenPages >= MAX_BARREN_PAGES;
    },
  };
}

export function stalledError() {
  return codedError(
    'DRAIN_STALLED',
    'The recruiting service says that there is a next page, but its cursor leads nowhere new. ' +
      'The list cannot be read to its end now; try again later, and report it to the service if it stays.',
  );
}
