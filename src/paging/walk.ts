import type { Position } from './cursor.ts';
import { type FetchPage, type Identified, type Page, identitiesOf } from './page.ts';
import { codedError } from '../errors.ts';
import { WALK_LEFT } from './failures.ts';
import { identityHash, IdentitySet } from './identities.ts';

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

/** What a longer walk, of which this is a part, has to say. */
export interface PartOfWalk<R> {
  /** How many records to ask for, when any number is wanted. Undefined: as many as the node gives. */
  readonly pageSize?: () => number | undefined;
  readonly progress?: Progress<R>;
  /** Told of each page before its records are given. */
  readonly onPage?: (after: string | null, page: Page<R>) => void;
}

/**
 * Walks the pages of a list, one after the other. The next page is asked for as soon as the cursor of
 * this one is known, so one page is under way while the consumer works, and never more than one.
 *
 * @throws DRAIN_STALLED when there is said to be a next page and no way to it, after giving what came
 */
export async function* walk<R extends Identified>(
  fetchPage: FetchPage<R>,
  options: WalkOptions,
  { pageSize = () => undefined, progress = createProgress<R>(), onPage }: PartOfWalk<R> = {},
): AsyncGenerator<WalkedPage<R>, void, undefined> {
  let ahead: AbortController | undefined;
  let aheadSignal = options.signal;
  const stalls = createStallWatch<R>();
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  let pagesLeft = options.maxPages ?? Number.POSITIVE_INFINITY;
  let after = options.after;

  const ask = (signal: AbortSignal) => {
    const page = fetchPage({ after, first: Number.isFinite(left) ? left : pageSize() }, signal);
    // It may fail while the consumer is still busy with the page before, when nobody awaits it yet.
    page.catch(() => {});
    return page;
  };
  // The first page is under way only while it is waited for: leaving cannot come in between.
  let asked = ask(options.signal);
  try {
    for (;;) {
      const page = await asked;
      onPage?.(after, page);
      const found = progress.of(page);
      const { records } = found;
      const walked = walkedPage(page, records, after);
      left -= records.length;
      if (records.length > 0) pagesLeft -= 1;
      const goesOn = page.hasNextPage && left > 0 && pagesLeft > 0;
      const stalled = goesOn && stalls.hasStalled(page, found);
      if (goesOn && !stalled) {
        after = page.endCursor;
        if (!ahead) {
          ahead = new AbortController();
          aheadSignal = AbortSignal.any([options.signal, ahead.signal]);
        }
        asked = ask(aheadSignal);
      }
      yield walked;
      if (!goesOn) return;
      if (stalled) throw stalledError();
    }
  } finally {
    ahead?.abort(WALK_LEFT);
  }
}

export function walkedPage<R>(
  { hasNextPage, endCursor, items, beside }: Page<R>,
  records: WalkedPage<R>['records'],
  after: string | null,
): WalkedPage<R> {
  return { records, after, endCursor, size: items.length, hasNextPage, ...(beside && { beside }) };
}

/** The records of a page, each with the position that its cursor is made from. */
export function positionsOf<R extends Identified>(
  page: WalkedPage<R>,
  records = page.records,
): { readonly record: R; readonly position: Position }[] {
  return records.map((one) => ({ record: one.record, position: positionOf(page, one) }));
}

export function positionOf<R extends Identified>(
  { after, endCursor: end, size }: WalkedPage<R>,
  { record, place }: WalkedPage<R>['records'][number],
): Position {
  return { after, end, size, place, identity: record.identity };
}

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
