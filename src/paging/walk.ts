import { codedError } from '../errors.ts';
import { identityHash, IdentitySet } from './identities.ts';
import { ReadPage, type FetchPage } from './page.ts';

/** A page of a walk. */
export interface WalkedPage<R = unknown> {
  /** The page as it was read, which may repeat records of the pages before it. */
  readonly page: ReadPage<R>;
  /** The offsets in the page, ascending, of the records that no earlier page of the walk had. */
  readonly offsets: readonly number[];
}

/** The pages of a walk, in order. A reader that leaves ends the requests in flight, and no more are sent. */
export type WalkedPages<R = unknown> = AsyncGenerator<WalkedPage<R>, void, undefined>;

interface WalkOptions<R> {
  /** A cursor of the service; null: the start of the list. */
  readonly after: string | null;
  /** The page behind that cursor, if it was read already. */
  readonly start?: ReadPage<R> | undefined;
  /** The number of records needed; the last page can have more. Default: all. */
  readonly records?: number | undefined;
  /** Returns the number of records to request, unless fewer are needed. */
  readonly size: () => number;
  /** Whether the next page is requested before the reader needs it. Default: true. */
  readonly readsAhead?: boolean | undefined;
  /** The records of earlier pages, if this is a part of a longer walk. */
  readonly seen?: Seen;
  /** Called for each page before it is yielded. */
  readonly onPage?: ((page: ReadPage<R>) => void) | undefined;
}

/**
 * Walks the pages of a list one after the other. Unless told otherwise, the next page is requested as soon as the cursor
 * of this one is known, so one page is in flight while the reader works, and never more.
 *
 * @throws DRAIN_STALLED after the last page, if the service claims a next page to which no cursor leads; the errors of
 *   `fetchPage`
 */
export async function* walk<R>(fetchPage: FetchPage<R>, options: WalkOptions<R>): WalkedPages<R> {
  const { seen = new Seen(), size, readsAhead = true, onPage } = options;
  const leaving = new AbortController();
  const stalls = new Stalls(options.after);
  let left = options.records ?? Infinity;

  const request = async (after: string | null, signal?: AbortSignal) =>
    new ReadPage(after, await fetchPage(after, Math.min(size(), left), signal));
  // The reader waits for this page, so it cannot leave before the page is there.
  let next = options.start ? Promise.resolve(options.start) : request(options.after);
  try {
    for (;;) {
      const page = await next;
      onPage?.(page);
      const walked = seen.take(page);
      left -= walked.offsets.length;
      const goesOn = page.hasNextPage && left > 0;
      const isStalled = goesOn && stalls.isStalled(walked, seen);
      if (goesOn && !isStalled && readsAhead) {
        next = request(page.endCursor, leaving.signal);
        // It may fail while the reader works, and nothing awaits it yet.
        next.catch(() => {});
      }
      yield walked;
      if (isStalled) throw stalled();
      if (!goesOn) return;
      if (!readsAhead) next = request(page.endCursor);
    }
  } finally {
    leaving.abort(WALK_LEFT);
  }
}

/**
 * The abort reason of pages that no reader needs any more. Created once: a new error with its stack would cost more
 * than the page that it ends.
 */
export const WALK_LEFT = new DOMException('This walk has no reader left.', 'AbortError');

/** The records that a walk has returned so far. */
export class Seen {
  readonly #hashes = new IdentitySet();
  #idsAreUnique = true;
  #count = 0;

  /** The number of records returned. */
  get count(): number {
    return this.#count;
  }

  /** False once an id occurred twice in one page: from then on no record is dropped, and no page proves a join. */
  get idsAreUnique(): boolean {
    return this.#idsAreUnique;
  }

  /** Takes the next page: drops the records that earlier pages had, which is what happens when a list moves. */
  take<R>(page: ReadPage<R>): WalkedPage<R> {
    const { hashes, hasRepeats } = page.identities;
    if (hasRepeats) this.#idsAreUnique = false;
    const offsets: number[] = [];
    hashes.forEach((hash, offset) => {
      const isNew = Number.isNaN(hash) || this.#hashes.add(hash);
      if (isNew || !this.#idsAreUnique) offsets.push(offset);
    });
    this.#count += offsets.length;
    return { page, offsets };
  }

  /** Returns how many records of a page were returned before. */
  repeatedBy(page: ReadPage): number {
    return page.identities.hashes.filter((hash) => this.#hashes.has(hash)).length;
  }
}

/** After this number of pages in a row without a new record, a walk has stalled, whatever the cursors are. */
const MAX_BARREN_PAGES = 1_000;

/** Detects that no cursor leads on, in pages that are read one after the other. */
class Stalls {
  readonly #cursors = new IdentitySet();
  #barrenPages = 0;

  constructor(after: string | null) {
    if (after !== null) this.#cursors.add(identityHash(after));
  }

  /** Empty pages with a moving cursor are no stall. A known cursor is one, unless a record is proved to be new. */
  isStalled({ page, offsets }: WalkedPage, seen: Seen): boolean {
    this.#barrenPages = offsets.length === 0 ? this.#barrenPages + 1 : 0;
    if (page.endCursor === null || this.#barrenPages >= MAX_BARREN_PAGES) return true;
    if (this.#cursors.add(identityHash(page.endCursor))) return false;
    return !seen.idsAreUnique || offsets.every((offset) => page.ids[offset] === null);
  }
}

export function stalled(): Error {
  return codedError(
    'DRAIN_STALLED',
    'The recruiting service says that the list has a next page, but its cursor does not lead there. ' +
      'Try again later; if the error persists, report it to the support of the service.',
  );
}
