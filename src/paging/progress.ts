import { codedError } from '../errors.ts';
import { IdentitySet } from './identity-set.ts';
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
    of: ({ items }) => {
      if (idsAreUnique && hasRepeatedIdentity(items)) idsAreUnique = false;
      const records = items
        .map((record, place) => ({ record, place }))
        .filter(({ record }) => {
          const isNew = record.identity === null || seen.add(record.identity);
          return isNew || !idsAreUnique;
        });
      const isProved = idsAreUnique && records.some(({ record }) => record.identity !== null);
      return { records, isProved };
    },
    repeatedBy: ({ items }) =>
      items.filter(({ identity }) => identity !== null && seen.has(identity)).length,
  };
}

/** So many pages in a row without a new record are no list, whatever their cursors say. */
const MAX_BARREN_PAGES = 1_000;

/** Follows pages that are read one after the other, and says when there is no way on from one. */
export function createStallWatch<R>() {
  const cursors = new IdentitySet();
  let barrenPages = 0;
  return {
    hasStalled({ endCursor }: Page<R>, { records, isProved }: NewRecords<R>): boolean {
      barrenPages = records.length === 0 ? barrenPages + 1 : 0;
      const cursorStands = endCursor === null || !cursors.add(endCursor);
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

function hasRepeatedIdentity(items: readonly Identified[]): boolean {
  const identities = items.flatMap(({ identity }) => identity ?? []);
  return new Set(identities).size < identities.length;
}
