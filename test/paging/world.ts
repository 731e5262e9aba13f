import { setImmediate } from 'node:timers/promises';
import {
  checkedArguments,
  readConnection,
  type ConnectedList,
  type ConnectionArguments,
} from '../../src/paging/connection.ts';
import { cursorsOf } from '../../src/paging/cursor.ts';
import { endOf } from '../../src/paging/drain.ts';
import { walkList, type WalkedPage, type WalkOptions } from '../../src/paging/walk.ts';
import { hashIds } from '../../src/paging/identities.ts';
import { KnownLists } from '../../src/paging/known-lists.ts';
import { LookUps, type LookUpList } from '../../src/paging/look-up.ts';
import { CallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { PageSize } from '../../src/paging/page-size.ts';
import {
  PageFailedError,
  type FetchPage,
  type Page,
  type Place,
  type ReadPage,
} from '../../src/paging/page.ts';
import { SharedWalks } from '../../src/paging/shared-walk.ts';
import { WalkSlots } from '../../src/paging/walk-slots.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { ListModel, type Change, type Serials, type Traits } from '../service/list-model.ts';

/** What happens while a list is read; times are numbers of answers. */
export interface Meanwhile {
  readonly changes: readonly { readonly change: Change; readonly after: number }[];
  /** From when on, and how many times in a row, the service fails. */
  readonly failure?: { readonly after: number; readonly answers: number } | undefined;
  /** Returns which of the waiting requests is answered next: any whole number. */
  readonly choose?: () => number;
}

export interface WorldOptions extends Partial<Traits> {
  readonly concurrency?: number;
  /** The page size to begin with. Default: the limit of the service. */
  readonly usual?: number;
  /** The most records that a walk for lookups reads. */
  readonly mostLookedUp?: number;
}

interface LookUpOptions {
  readonly list?: LookUpList<Serials>;
  readonly budget?: PageBudget;
  readonly signal?: AbortSignal;
}

/** A list of the model service, and what its walks, connections and lookups share. A record is its serial number. */
export class World {
  readonly service: ListModel;
  readonly list: ConnectedList<Serials> & LookUpList<Serials>;
  readonly clock = new ManualClock();
  readonly known = new KnownLists({ clock: this.clock, maxIds: 100_000, totalSeconds: 300 });
  readonly walks = new SharedWalks();
  readonly lookUps: LookUps;
  requests = 0;
  maxInFlight = 0;
  /** Whether requests wait until the test answers them, in any order. */
  holds = false;
  /** Whether the requests that are answered now fail. */
  fails = false;
  /** Called after each page was read. */
  onRead = () => {};
  readonly #waiting = new Set<() => void>();

  constructor(
    length: number,
    { concurrency = 8, usual, mostLookedUp = 1_000, ...traits }: WorldOptions = {},
  ) {
    const { clock, fetchPage } = this;
    this.service = new ListModel({ kind: 'key', limit: 50, ...traits, length });
    this.lookUps = new LookUps({
      maxRecords: mostLookedUp,
      walks: this.walks,
      slots: new WalkSlots(1, clock),
    });
    const list = {
      name: 'letters',
      fetchPage,
      known: this.known,
      size: new PageSize(clock, usual ?? this.service.limit),
      concurrency,
    };
    this.list = {
      ...list,
      inTurn: (begin) => begin(),
      idsFor: ({ budget }) => ({
        ...list,
        fetchPage: async (...request) => {
          budget.spend();
          return fetchPage(...request);
        },
      }),
    };
  }

  get fetchPage(): FetchPage<Serials> {
    return async (after, first) => {
      this.requests += 1;
      if (this.holds) await this.#held();
      if (this.fails) throw new PageFailedError('The service is down.');
      const page = this.service.page(after, first);
      this.onRead();
      return page;
    };
  }

  async #held(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    this.maxInFlight = Math.max(this.maxInFlight, this.inFlight);
    await promise;
  }

  get inFlight(): number {
    return this.#waiting.size;
  }

  /** Answers one of the waiting requests. @param choice any whole number */
  answerOne(choice = 0): void {
    const answer = [...this.#waiting][choice % this.#waiting.size]!;
    this.#waiting.delete(answer);
    answer();
  }

  /** Reads while requests are held, which are answered one by one. */
  async during<T>(
    read: () => Promise<T>,
    { changes = [], failure, choose = () => 0 }: Partial<Meanwhile> = {},
  ): Promise<T> {
    this.holds = true;
    const state = { isOver: false };
    const reading = read().finally(() => {
      state.isOver = true;
    });
    // It may fail while requests wait, and nothing awaits it yet.
    reading.catch(() => {});
    const due = changes.toSorted((a, b) => a.after - b.after);
    for (let turn = 0; !state.isOver; turn += 1) {
      await setImmediate();
      while (due[0] && due[0].after <= turn) this.service.apply(due.shift()!.change);
      this.fails =
        failure !== undefined && turn >= failure.after && turn < failure.after + failure.answers;
      if (this.inFlight > 0) this.answerOne(choose());
    }
    // Later changes are applied too, so that all readers have the same history.
    for (const { change } of due) this.service.apply(change);
    this.holds = this.fails = false;
    while (this.inFlight > 0) this.answerOne();
    return reading;
  }

  /** Drains the list. */
  async drain(part: WalkOptions<Serials> = { after: null }): Promise<number[]> {
    return (await recordsOf(walkList(this.list, part))).records;
  }

  /** Walks the list while requests are held; the walk may fail. */
  walk(part: WalkOptions<Serials> = { after: null }, meanwhile: Partial<Meanwhile> = {}) {
    return this.during(() => recordsOf(walkList(this.list, part), (error) => error), meanwhile);
  }

  async read(args: ConnectionArguments, list = this.list) {
    const checked = checkedArguments('letters', 500, args);
    const { places, ...flags } = await readConnection(list, checked);
    return { ...flags, records: places.map(serialAt), cursors: places.map(cursorsOf('letters')) };
  }

  /** Pages through the list by `endCursor`, calling `onPage` after each page. */
  async pageThrough(
    first: number,
    onPage: (page: Awaited<ReturnType<World['read']>>) => void = () => {},
  ): Promise<number[]> {
    const records: number[] = [];
    for (let after: string | null = null, pages = 0; ; pages += 1) {
      if (pages > 2_000) throw new Error('It goes in circles.');
      const page = await this.read({ first, after });
      records.push(...page.records);
      onPage(page);
      if (!page.hasNextPage) return records;
      after = page.cursors.at(-1) ?? after;
    }
  }

  /** Looks records up. @returns for each its record or failure; undefined if it does not exist */
  async find(
    serials: readonly number[],
    { list = this.list, budget = this.budgetOf('caller'), signal = STAYS }: LookUpOptions = {},
  ) {
    const caller = { caller: 'caller', operation: {}, budget, signal };
    const found = await this.lookUps.find(list, serials.map(String), caller);
    return serials.map((serial) => {
      const result = found.get(String(serial));
      if (!result) return undefined;
      return 'place' in result ? serialAt(result.place) : result.error;
    });
  }

  /** @param pages per minute. Default: any number */
  budgetOf(caller: string, pages = 0): PageBudget {
    return new PageBudget(new CallerBudgets(pages, this.clock), caller, true);
  }

  remove(...serials: number[]): void {
    for (const serial of serials)
      this.service.apply({ do: 'remove', at: this.service.shown.indexOf(serial), count: 1 });
  }

  /** The number of requests to the service that this takes. */
  async costOf(work: () => Promise<unknown>): Promise<number> {
    const before = this.requests;
    await work();
    return this.requests - before;
  }
}

/** @returns the serial of the record */
export function serialAt({ page, offset }: Place<Serials>): number {
  return page.records[offset]!;
}

const { signal: STAYS } = new AbortController();

interface Walked<R> {
  readonly records: R[];
  /** The place of the last record. */
  readonly end: Place | undefined;
  readonly error: Error | undefined;
}

/** Collects the records of a walk. @param orThrow returns the error of a walk that may fail; it throws by default */
export async function recordsOf<R>(
  pages: AsyncIterable<WalkedPage<readonly R[]>>,
  orThrow: (error: Error) => Error = (error) => {
    throw error;
  },
): Promise<Walked<R>> {
  const records: R[] = [];
  let end: Place | undefined;
  try {
    for await (const walked of pages) {
      end = endOf(walked) ?? end;
      records.push(...walked.offsets.map((offset) => walked.page.records[offset]!));
    }
  } catch (error) {
    return { records, end, error: orThrow(error as Error) };
  }
  return { records, end, error: undefined };
}

/** A page of records that are their own ids, behind a cursor. */
export function readPageOf(after: string | null, ids: readonly string[]): ReadPage {
  return { ...pageOf(ids), after, identities: hashIds(ids) };
}

/** A page of records that are their own ids. */
export function pageOf<R extends string | null>(
  records: readonly R[],
  { endCursor = 'x', hasNextPage = true, size = 50 }: Partial<Page> = {},
): Page<readonly R[]> {
  return { records, ids: records, hasNextPage, endCursor, size };
}
