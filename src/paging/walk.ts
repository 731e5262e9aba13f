import { codedError } from '../errors.ts';
import type { Position } from './cursor.ts';
import { IdentitySet } from './identity-set.ts';
import type { FetchPage, Identified, Page } from './page.ts';

/** A page of a walk: its records that no earlier page had, each with its place in the page as delivered. */
export interface WalkedPage<R> {
  readonly records: readonly { readonly record: R; readonly place: number }[];
  /** The cursor that the page was asked with. */
  readonly after: string | null;
  readonly endCursor: string | null;
  /** Elements of the page as delivered. */
  readonly size: number;
  readonly hasNextPage: boolean;
  readonly beside?: readonly unknown[];
}

export interface WalkOptions {
  /** A cursor of the upstream; null walks from the start. */
  readonly after: string | null;
  /** Stop after this many records. The last page can bring more than that. */
  readonly limit?: number;
  /** Stop after this many pages that brought records. */
  readonly maxPages?: number;
  /** Aborting ends the request in flight, and no further one is sent. */
  readonly signal: AbortSignal;
}

/** So many pages in a row without a new record are no list, whatever their cursors say. */
const MAX_BARREN_PAGES = 1_000;

/** Made once: a new one, with its stack, costs more than the page it ends. */
const LEFT = new DOMException('The walk was left.', 'AbortError');

/**
 * Walks the pages of a list, one after the other. The next page is asked for as soon as the cursor of
 * this one is known, so one page is under way while the consumer works, and never more than one.
 *
 * @throws DRAIN_STALLED when there is said to be a next page and no way to it, after giving what came
 */
export async function* walk<R extends Identified>(
  fetchPage: FetchPage<R>,
  options: WalkOptions,
): AsyncGenerator<WalkedPage<R>, void, undefined> {
  const leaving = new AbortController();
  const signal = AbortSignal.any([options.signal, leaving.signal]);
  const progress = createProgress<R>();
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  let pagesLeft = options.maxPages ?? Number.POSITIVE_INFINITY;
  let after = options.after;

  const ask = () => {
    const page = fetchPage({ after, first: Number.isFinite(left) ? left : undefined }, signal);
    // It may fail while the consumer is still busy with the page before, when nobody awaits it yet.
    page.catch(() => {});
    return page;
  };
  let asked = ask();
  try {
    for (;;) {
      const page = await asked;
      const { records, stalled } = progress.of(page);
      const walked = { ...page, records, after, size: page.items.length };
      left -= records.length;
      if (records.length > 0) pagesLeft -= 1;
      const goesOn = page.hasNextPage && left > 0 && pagesLeft > 0;
      if (goesOn && !stalled) {
        after = page.endCursor;
        asked = ask();
      }
      yield walked;
      if (!goesOn) return;
      if (stalled) throw stalledError();
    }
  } finally {
    leaving.abort(LEFT);
  }
}

/** The records of a page, each with the position that its cursor is made from. */
export function positionsOf<R extends Identified>(page: WalkedPage<R>) {
  const { records, after, endCursor: end, size } = page;
  return records.map(({ record, place }) => ({
    record,
    position: { after, end, size, place, identity: record.identity } satisfies Position,
  }));
}

/** Tells new records from those that an earlier page delivered, and a walk that gets on from one that does not. */
function createProgress<R extends Identified>() {
  const seen = new IdentitySet();
  const cursors = new IdentitySet();
  let idsAreUnique = true;
  let barrenPages = 0;

  return {
    of(page: Page<R>) {
      if (idsAreUnique && hasRepeatedIdentity(page.items)) idsAreUnique = false;
      const records = page.items
        .map((record, place) => ({ record, place }))
        .filter(({ record }) => {
          const isNew = record.identity === null || seen.add(record.identity);
          return isNew || !idsAreUnique;
        });
      // Without identities "new" is unknown; then a cursor that comes again is enough to stop.
      const provedNew = idsAreUnique && records.some(({ record }) => record.identity !== null);
      barrenPages = records.length === 0 ? barrenPages + 1 : 0;
      const cursorStands = page.endCursor === null || !cursors.add(page.endCursor);
      const stalled =
        page.endCursor === null || (cursorStands && !provedNew) || barrenPages >= MAX_BARREN_PAGES;
      return { records, stalled };
    },
  };
}

function hasRepeatedIdentity(items: readonly Identified[]): boolean {
  const identities = items.flatMap(({ identity }) => identity ?? []);
  return new Set(identities).size < identities.length;
}

function stalledError() {
  return codedError(
    'DRAIN_STALLED',
    'The recruiting service says that there is a next page, but its cursor leads nowhere new. ' +
      'The list cannot be read to its end now; try again later, and report it to the service if it stays.',
  );
}
