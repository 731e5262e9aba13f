import type { Clock } from '../clock.ts';
import { codedError, codeOf } from '../errors.ts';
import { identityHash } from './identities.ts';
import { walkList, type PagedList } from './walk.ts';
import { positionsIn, type IndexedPage } from './page-index.ts';
import { causeOf, CursorRefusedError, PageFailedError } from './page.ts';
import { SharedWalks, type ReaderOptions, type WalkReaders } from './shared-walk.ts';
import { walkInTurn, type WalkSlots, type WalkTurn } from './walk-slots.ts';

/*
 * Records by their ids, in a list that can only be paged
 *
 * Each step is taken only for the ids that are still missing. Ids in one page share its request.
 *
 *     1  the page where the page index, or the last walk for a lookup, met the record
 *     2  the pages before and behind it: others may have been inserted or removed in front of the record
 *     3  the first and the last page: new records are usually inserted there
 *     4  a walk of the list
 *
 * All lookups in a list share one walk in 30 seconds, however many unknown ids are requested. It stops when nobody
 * waits for it, and the next lookup continues it. Until the next walk, an id that the walk did not meet does not exist;
 * unless a mutation was sent since.
 */

/** A list in which records are looked up. */
export interface LookUpList<R> extends PagedList<R> {
  /**
   * Returns the same list with only ids selected, for the walk that lookups share. Its requests end with the signal of
   * the readers, who spend for each of them.
   */
  readonly idsFor: (readers: WalkReaders) => PagedList;
}

/** Who looks records up. The budget is for the pages of a walk while the lookup waits for it. */
interface LookUpCaller
  extends Pick<ReaderOptions, 'budget' | 'signal'>, Pick<WalkTurn, 'caller' | 'operation'> {}

/** The result for an id. With an error it is unknown whether the record exists. */
type LookedUp<R> = { readonly record: R } | { readonly error: unknown };

interface LookUpsOptions {
  readonly clock: Pick<Clock, 'elapsed'>;
  /** The most records that one walk reads. */
  readonly maxRecords: number;
  readonly slots: WalkSlots;
}

/** The time between two walks of a list for unknown ids. */
export const WALK_AGAIN_MS = 30_000;

/** One walk for records of unknown position, and one for records that were moved after the walk had met them. */
const MAX_WALKS = 2;

/** Looks records up by their ids, and keeps the walks that lookups share. */
export class LookUps {
  readonly #options: LookUpsOptions;
  /** By the names of their lists. */
  readonly #walks = new Map<string, LookUpWalk>();

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
    const reader = new PageReader(list, ids);
    const index = list.indexes.get(list.name);
    await reader.readAround(index?.pages ?? this.#walks.get(list.name)?.pages ?? []);
    if (index && reader.missing.size > 0)
      await reader.read([{ after: null }, { after: index.pages.at(-1)?.after ?? null }]);
    await this.#walkFor(list, reader, caller);
    return reader.results;
  }

  /** Walks for missing ids. A second walk is only worth it for a record that the first one met, and that was moved. */
  async #walkFor<R>(
    list: LookUpList<R>,
    reader: PageReader<R>,
    caller: LookUpCaller,
  ): Promise<void> {
    const { missing } = reader;
    let moved: ReadonlySet<string> = missing;
    for (let walks = 0; moved.size > 0 && walks < MAX_WALKS; walks += 1) {
      const walk = this.#walkOf(list.name);
      try {
        await walk.find(list, missing, caller);
      } catch (error) {
        caller.signal.throwIfAborted();
        // Some may be in front of the failure.
        await reader.readAround(walk.pages);
        for (const id of missing) reader.fail(id, error);
        return;
      }
      const met = positionsIn(walk, missing);
      await reader.readAround(walk.pages);
      for (const [id, { page, offset }] of met)
        reader.takeUnidentified(id, walk.pages[page]!.after, offset);
      moved = new Set([...met.keys()].filter((id) => missing.has(id)));
      if (moved.size > 0) walk.end();
    }
  }

  /** Call it when a mutation is sent: records that were missing may exist from now on. */
  forget(): void {
    for (const walk of this.#walks.values()) walk.end();
  }

  #walkOf(name: string): LookUpWalk {
    const known = this.#walks.get(name);
    if (known && !known.isOld) return known;
    const walk = new LookUpWalk(this.#options);
    this.#walks.set(name, walk);
    return walk;
  }
}

/** Reads pages, and takes the records from them that are still missing. */
class PageReader<R> {
  readonly missing: Set<string>;
  readonly results = new Map<string, LookedUp<R>>();
  readonly #list: PagedList<R>;
  /** By the cursors of the pages, what was read behind them. */
  readonly #read = new Map<string | null, (readonly [id: string | null, record: R])[]>();

  constructor(list: PagedList<R>, ids: readonly string[]) {
    this.#list = list;
    this.missing = new Set(ids);
  }

  fail(id: string, error: unknown): void {
    if (this.missing.delete(id)) this.results.set(id, { error });
  }

  /** Takes the record at the place where one was met just now, if it has no id: it is the same one, which fails. */
  takeUnidentified(id: string, start: string | null, offset: number): void {
    const [known, record] = this.#read.get(start)?.[offset] ?? [];
    if (known === null && this.missing.delete(id)) this.results.set(id, { record: record! });
  }

  /**
   * Reads the pages in which records were met, and those next to them for records that are not there any more. Records
   * fail whose own page fails.
   */
  async readAround(pages: readonly WalkedFor[]): Promise<void> {
    this.#read.clear();
    const met = positionsIn({ pages }, this.missing);
    const pagesAt = (steps: readonly number[]) =>
      [...met]
        .filter(([id]) => this.missing.has(id))
        .flatMap(([, { page }]) => steps.map((step) => pages[page + step]))
        .filter((page) => page !== undefined);
    const failures = await this.read(pagesAt([0]));
    await this.read(pagesAt([-1, 1]));
    for (const [id, { page }] of met) {
      const failure = failures.get(pages[page]!.after);
      if (failure) this.fail(id, failure.error);
    }
  }

  /** Reads these pages, each once. @returns the failures by the cursors of their pages */
  async read(pages: readonly (Pick<WalkedFor, 'after'> & Partial<WalkedFor>)[]) {
    const failures = new Map<string | null, { readonly error: unknown }>();
    const unread = new Map(
      pages.filter(({ after }) => !this.#read.has(after)).map((page) => [page.after, page]),
    );
    await Promise.all(
      Array.from(unread.values(), async ({ after, hashes }) => {
        try {
          await this.#readPage(after, hashes?.length ?? 0);
        } catch (error) {
          // Its records may be in other pages.
          if (error instanceof CursorRefusedError) return;
          if (!(error instanceof PageFailedError)) throw error;
          failures.set(after, { error: causeOf(error) });
        }
      }),
    );
    return failures;
  }

  /**
   * Reads what was a page of so many records when only ids were selected. Of the selection of the lookup the service may
   * give smaller pages, so this may take several.
   */
  async #readPage(start: string | null, length: number): Promise<void> {
    const { fetchPage, size } = this.#list;
    const read: [id: string | null, record: R][] = [];
    this.#read.set(start, read);
    let after = start;
    do {
      const page = await size.fetching(fetchPage)(after, size.limit);
      for (const [offset, id] of page.ids.entries()) {
        const record = page.records[offset]!;
        read.push([id, record]);
        if (id !== null && this.missing.delete(id)) this.results.set(id, { record });
      }
      if (!page.hasNextPage || page.endCursor === null || page.endCursor === after) return;
      after = page.endCursor;
    } while (read.length < length && this.missing.size > 0);
  }
}

/** A page that a walk read for lookups. */
type WalkedFor = Pick<IndexedPage, 'after' | 'hashes'>;

/** One walk of a list for all lookups. It is read on while at least one of them waits for it. */
class LookUpWalk {
  /** In the order of the list. */
  readonly pages: WalkedFor[] = [];
  readonly #options: LookUpsOptions;
  /** The lookups that wait are its readers. */
  readonly #walks = new SharedWalks();
  #waiting = 0;
  /** When it began, or when it ended. */
  #since: number;
  #isOld = false;
  #records = 0;
  #hasEnded = false;

  constructor(options: LookUpsOptions) {
    this.#options = options;
    this.#since = options.clock.elapsed();
  }

  /** Whether the next lookup begins another walk. A walk that is read is joined, however long it takes. */
  get isOld(): boolean {
    const age = this.#options.clock.elapsed() - this.#since;
    return this.#isOld || (this.#waiting === 0 && age >= WALK_AGAIN_MS);
  }

  /** Lookups that begin from now on do not join it. */
  end(): void {
    this.#isOld = true;
  }

  /** Reads on until all ids are met, or the list ends. @throws DRAIN_LIMIT_EXCEEDED; the failure of the walk */
  async find(
    list: LookUpList<unknown>,
    ids: ReadonlySet<string>,
    caller: LookUpCaller,
  ): Promise<void> {
    const unmet = new Set(Array.from(ids, identityHash));
    let checked = 0;
    const areMet = () => {
      for (; checked < this.pages.length; checked += 1)
        for (const hash of this.pages[checked]!.hashes) unmet.delete(hash);
      return unmet.size === 0;
    };
    if (areMet() || this.#hasEnded) return;
    this.#waiting += 1;
    try {
      const begin = (readers: WalkReaders) => this.#goOn(list, readers, caller);
      for await (const _ of this.#walks.join(list.name, begin, caller)) if (areMet()) return;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Goes on from the last page that was read. Yields when there is a page more. */
  async *#goOn(
    { name, idsFor }: LookUpList<unknown>,
    readers: WalkReaders,
    { caller, operation }: LookUpCaller,
  ): AsyncGenerator<void, void, undefined> {
    const { clock, maxRecords, slots } = this.#options;
    const list = idsFor(readers);
    // It is read again: if cursors are offsets, records behind it may have moved into it.
    const after = this.pages.at(-1)?.after ?? null;
    const walk = () => walkList(list, { after, readsAhead: false });
    try {
      if (this.#records >= maxRecords) throw tooLong(name, maxRecords);
      for await (const walked of walkInTurn(
        slots,
        { caller, operation, signal: readers.signal },
        walk,
      )) {
        this.#records += walked.offsets.length;
        this.pages.push({ after: walked.page.after, hashes: walked.page.identities.hashes });
        yield;
        if (this.#records >= maxRecords) throw tooLong(name, maxRecords);
      }
      this.#hasEnded = true;
      this.#since = clock.elapsed();
    } catch (error) {
      if (codeOf(error) !== 'DRAIN_LIMIT_EXCEEDED') this.end();
      throw causeOf(error);
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
