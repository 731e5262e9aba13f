import { codedError } from '../errors.ts';
import { identityHash } from './identities.ts';
import {
  causeOf,
  CursorRefusedError,
  idOf,
  PageFailedError,
  placesOf,
  type Place,
} from './page.ts';
import { positionsIn, type IndexedPage } from './page-index.ts';
import { readPage } from './page-size.ts';
import type { SharedWalks, WalkReader } from './shared-walk.ts';
import { walkInTurn, type WalkSlots, type WalkTurn } from './walk-slots.ts';
import { walkList, type PagedList } from './walk.ts';

/*
 * Records by their ids, in a list that can only be paged
 *
 * Each step is taken only for the ids that are still missing. Ids in one page share its request.
 *
 *     1  the page where the page index, or the last walk for a lookup, met the record
 *     2  the pages before and behind it: others may have been inserted or removed in front of the record
 *     3  the first and the last page: new records are usually inserted there
 *     4  a walk of the list, which all lookups in it share, until the ids are met
 *
 * An id that no page had when the whole list was walked does not exist for 30 seconds, unless a mutation was sent since. A
 * record that is not where it was met was moved or removed, so that walk is outdated, and the list is walked again.
 */

/** A list in which records are looked up. */
export interface LookUpList<R> extends PagedList<R> {
  /**
   * Returns the same list with only ids selected, for the walk that lookups share. Its requests end with the signal of
   * the readers, and spend from their budget.
   */
  readonly idsFor: (readers: WalkReader) => PagedList;
}

/** Who looks records up. The budget is for the pages of a walk while the lookup waits for it. */
interface LookUpCaller extends WalkReader, WalkTurn {}

/** The result for an id. With an error it is unknown whether the record exists. */
type LookedUp<R> = { readonly place: Place<R> } | Failure;

interface Failure {
  readonly error: unknown;
}

interface LookUpsOptions {
  /** The most records that one walk reads. */
  readonly maxRecords: number;
  readonly walks: SharedWalks;
  readonly slots: WalkSlots;
}

/** One walk for records of unknown position, and one for records that were moved after the walk had met them. */
const MAX_WALKS = 2;

/** Looks records up by their ids, and remembers the walks for them. */
export class LookUps {
  readonly #options: LookUpsOptions;
  /** By the names of their lists, the pages of the last walk for a lookup. */
  readonly #walked = new Map<string, IndexedPage[]>();

  constructor(options: LookUpsOptions) {
    this.#options = options;
  }

  /**
   * @param ids identities (`Type:id`)
   * @returns the ids that were found or failed. The others do not exist
   * @throws what `fetchPage` throws, other than CursorRefusedError and PageFailedError
   */
  async find<R>(
    list: LookUpList<R>,
    ids: readonly string[],
    caller: LookUpCaller,
  ): Promise<ReadonlyMap<string, LookedUp<R>>> {
    const lookUp = new LookUp(list, ids);
    const index = list.known.indexOf(list.name);
    const isComplete = list.known.isComplete(list.name);
    if (index) {
      await lookUp.readAround(index);
      await lookUp.read([index.at(-1)!, { after: null, hashes: [] }]);
    }
    await lookUp.readAround(this.#walked.get(list.name) ?? []);
    const { missing, results } = lookUp;
    let isOutdated = !isComplete || positionsIn(index!, missing).size > 0;
    // A second walk is only worth it for a record that the first one met, and that was moved since.
    for (let walk = 1; missing.size > 0 && isOutdated && walk <= MAX_WALKS; walk += 1) {
      isOutdated = await this.#walkFor(list, lookUp, caller, walk);
    }
    return results;
  }

  /**
   * Walks the list, together with other lookups, until all ids are met, and reads the records where they were met.
   *
   * @returns whether records that the walk met are still missing
   */
  async #walkFor<R>(
    list: LookUpList<R>,
    lookUp: LookUp<R>,
    caller: LookUpCaller,
    walk: number,
  ): Promise<boolean> {
    const { walks, slots, maxRecords } = this.#options;
    const begin = (readers: WalkReader) => {
      const ids = () => walkList(list.idsFor(readers), { after: null, readsAhead: false });
      return walkInTurn(slots, caller, ids, readers.signal);
    };
    const walked: IndexedPage[] = [];
    const unmet = new Set(Array.from(lookUp.missing, identityHash));
    let records = 0;
    let failure: Failure | undefined;
    try {
      const name = JSON.stringify([list.name, 'ids', walk]);
      for await (const { page, offsets } of walks.join(name, begin, caller)) {
        const { hashes } = page.identities;
        walked.push({ after: page.after, hashes });
        for (const hash of hashes) unmet.delete(hash);
        if (unmet.size === 0) break;
        records += offsets.length;
        if (records >= maxRecords && page.hasNextPage) throw tooLong(list.name, maxRecords);
      }
      this.#walked.set(list.name, walked);
    } catch (error) {
      caller.signal.throwIfAborted();
      failure = { error: causeOf(error) };
    }
    // Also behind a failure: some may be in front of it.
    await lookUp.readAround(walked, { isNew: true });
    if (failure) for (const id of lookUp.missing) lookUp.fail(id, failure.error);
    return positionsIn(walked, lookUp.missing).size > 0;
  }
}

/** The ids of one lookup, and the pages that are read for those that are still missing. */
class LookUp<R> {
  readonly missing: Set<string>;
  readonly results = new Map<string, LookedUp<R>>();
  readonly #list: PagedList<R>;
  /** By the cursors of the pages, what was read behind them, and why no more could be. */
  readonly #read = new Map<string | null, { readonly places: Place<R>[]; failure?: Failure }>();

  constructor(list: PagedList<R>, ids: readonly string[]) {
    this.#list = list;
    this.missing = new Set(ids);
  }

  fail(id: string, error: unknown): void {
    if (this.missing.delete(id)) this.results.set(id, { error });
  }

  /**
   * Reads the pages in which records were met, and those next to them for records that are not there any more. Records
   * fail whose own page fails.
   *
   * @param options `isNew`: they were met just now, so a record without an id at the same place is the same one, which
   *   fails with these fields
   */
  async readAround(pages: readonly IndexedPage[], { isNew = false } = {}): Promise<void> {
    if (isNew) this.#read.clear();
    const met = positionsIn(pages, this.missing);
    const pagesAt = (steps: readonly number[]) =>
      [...met]
        .filter(([id]) => this.missing.has(id))
        .flatMap(([, { page }]) => steps.map((step) => pages[page + step]))
        .filter((page) => page !== undefined);
    await this.read(pagesAt([0]));
    await this.read(pagesAt([-1, 1]));
    for (const [id, { page, offset }] of met) {
      const { places, failure } = this.#read.get(pages[page]!.after) ?? {};
      if (failure) this.fail(id, failure.error);
      const place = places?.[offset];
      if (isNew && place && idOf(place) === null && this.missing.delete(id)) {
        this.results.set(id, { place });
      }
    }
  }

  /** Reads these pages if ids are missing. */
  async read(pages: readonly IndexedPage[]): Promise<void> {
    if (this.missing.size === 0) return;
    await Promise.all(pages.map((page) => this.#readPage(page)));
  }

  /**
   * Reads, once, what was a page of so many records when only ids were selected. Of the selection of the lookup the
   * service may give smaller pages, so this may take several. A cursor that leads nowhere, or is refused, is no failure:
   * other pages may have the ids.
   */
  async #readPage({ after: start, hashes }: IndexedPage): Promise<void> {
    if (this.#read.has(start)) return;
    const read: { places: Place<R>[]; failure?: Failure } = { places: [] };
    this.#read.set(start, read);
    try {
      for (let after = start; ;) {
        const page = await readPage(this.#list, after);
        for (const place of placesOf(page)) {
          read.places.push(place);
          const id = idOf(place);
          if (id !== null && this.missing.delete(id)) this.results.set(id, { place });
        }
        if (!page.hasNextPage || page.endCursor === null || page.endCursor === after) return;
        if (read.places.length >= hashes.length || this.missing.size === 0) return;
        after = page.endCursor;
      }
    } catch (error) {
      if (error instanceof CursorRefusedError) return;
      if (!(error instanceof PageFailedError)) throw error;
      read.failure = { error: causeOf(error) };
    }
  }
}

function tooLong(list: string, max: number): Error {
  return codedError(
    'DRAIN_LIMIT_EXCEEDED',
    `The record is not among the first ${max} of ${list}, and a lookup reads no further. ` +
      'Page through the list instead, or have the operator raise DRAIN_MAX_ITEMS.',
    { extensions: { max } },
  );
}
