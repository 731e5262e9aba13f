import { setImmediate } from 'node:timers/promises';
import {
  readConnection,
  type ConnectedList,
  type ConnectionArguments,
} from '../../src/paging/connection.ts';
import { walkList, type ListWalkOptions } from '../../src/paging/list-walk.ts';
import { PageIndexes } from '../../src/paging/page-index.ts';
import { PageSize } from '../../src/paging/page-size.ts';
import { PageFailedError, type FetchPage, type Page } from '../../src/paging/page.ts';
import type { WalkedPage } from '../../src/paging/walk.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { ListModel, type Change, type Traits } from '../service/list-model.ts';

/** What happens during a walk; times are numbers of answers. */
interface Meanwhile {
  readonly changes?: readonly { readonly change: Change; readonly after: number }[];
  /** From when on, and how many times in a row, the service fails. */
  readonly failure?: { readonly after: number; readonly answers: number } | undefined;
}

interface WorldOptions extends Partial<Traits> {
  readonly concurrency?: number;
  /** The page size to begin with. Default: the limit of the service. */
  readonly usual?: number;
}

/** A list of the model service, and what its walks, connections and lookups share. A record is its serial number. */
export class World {
  readonly service: ListModel;
  readonly list: ConnectedList<number>;
  readonly clock = new ManualClock();
  requests = 0;
  inFlight = 0;
  maxInFlight = 0;
  aborted = 0;
  /** Whether requests wait until the test answers them, in any order. */
  holds = false;
  /** Whether the requests that are answered now fail. */
  fails = false;
  /** Called after each page was read. */
  onRead = () => {};
  readonly #waiting = new Set<() => void>();

  constructor(length: number, { concurrency = 8, usual, ...traits }: WorldOptions = {}) {
    this.service = new ListModel({ kind: 'key', limit: 50, ...traits, length });
    this.list = {
      name: 'letters',
      fetchPage: this.fetchPage,
      indexes: new PageIndexes(100_000),
      size: new PageSize(this.clock, usual ?? this.service.limit),
      concurrency,
      max: 500,
      inTurn: (begin) => begin(),
    };
  }

  get fetchPage(): FetchPage<number> {
    return async (after, first, left) => {
      this.requests += 1;
      if (this.holds) await this.#held(left);
      if (this.fails) throw new PageFailedError('The service is down.');
      const page = this.service.page(after, first);
      this.onRead();
      return page;
    };
  }

  #held(left: AbortSignal | undefined): Promise<void> {
    this.inFlight += 1;
    this.maxInFlight = Math.max(this.maxInFlight, this.inFlight);
    return new Promise((resolve, reject) => {
      const answer = () => this.#end(answer) && resolve();
      this.#waiting.add(answer);
      const abort = () => {
        if (!this.#end(answer)) return;
        this.aborted += 1;
        reject(left!.reason as Error);
      };
      left?.addEventListener('abort', abort, { once: true });
    });
  }

  #end(answer: () => void): boolean {
    if (!this.#waiting.delete(answer)) return false;
    this.inFlight -= 1;
    return true;
  }

  /** Answers one of the waiting requests. @param choice any whole number */
  answerOne(choice = 0): void {
    [...this.#waiting][choice % this.#waiting.size]?.();
  }

  /** Drains the list. */
  async drain(part: ListWalkOptions<number> = { after: null }): Promise<number[]> {
    return (await recordsOf(walkList(this.list, part))).records;
  }

  /** Walks the list while requests are held. @param choose returns which of them is answered next */
  async walk(
    part: ListWalkOptions<number> = { after: null },
    choose: () => number = () => 0,
    { changes = [], failure }: Meanwhile = {},
  ) {
    this.holds = true;
    const state = { isOver: false };
    const walking = recordsOf(walkList(this.list, part), (error) => error).finally(() => {
      state.isOver = true;
    });
    const due = changes.toSorted((a, b) => a.after - b.after);
    for (let turn = 0; !state.isOver; turn += 1) {
      await setImmediate();
      while (due[0] && due[0].after <= turn) this.service.apply(due.shift()!.change);
      this.fails =
        failure !== undefined && turn >= failure.after && turn < failure.after + failure.answers;
      if (this.inFlight > 0) this.answerOne(choose());
    }
    // Later changes are applied too, so that all walks have the same history.
    for (const { change } of due) this.service.apply(change);
    this.holds = this.fails = false;
    return walking;
  }

  async read(args: ConnectionArguments) {
    const { edges, ...flags } = await readConnection(this.list, args);
    return {
      ...flags,
      records: edges.map(({ record }) => record),
      cursors: edges.map(({ cursor }) => cursor()),
    };
  }

  /** Pages through the list by `endCursor`, calling `between` after each page. */
  async pageThrough(first: number, between: () => void = () => {}): Promise<number[]> {
    const records: number[] = [];
    for (let after: string | null = null, pages = 0; ; pages += 1) {
      if (pages > 2_000) throw new Error('It goes in circles.');
      const page = await this.read({ first, after });
      records.push(...page.records);
      if (!page.hasNextPage) return records;
      after = page.cursors.at(-1) ?? after;
      between();
    }
  }

  /** Applies a change after each page that is read from now on. */
  changeDuring(changes: readonly Change[]): void {
    const left = [...changes];
    this.onRead = () => {
      const change = left.shift();
      if (change) this.service.apply(change);
    };
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

/** Collects the records of a walk. @param orThrow returns the error of a walk that may fail; it throws by default */
export async function recordsOf<R>(
  pages: AsyncIterable<WalkedPage<R>>,
  orThrow: (error: Error) => Error = (error) => {
    throw error;
  },
): Promise<{ readonly records: R[]; readonly error: Error | undefined }> {
  const records: R[] = [];
  try {
    for await (const { page, offsets } of pages)
      records.push(...offsets.map((offset) => page.records[offset]!));
  } catch (error) {
    return { records, error: orThrow(error as Error) };
  }
  return { records, error: undefined };
}

/** A page of records that are their own ids. */
export function pageOf<R extends string | null>(
  records: readonly R[],
  { endCursor = 'x', hasNextPage = true, size = 50, bytes = 0 }: Partial<Page> = {},
): Page<R> {
  return { records, ids: records, hasNextPage, endCursor, size, bytes };
}
