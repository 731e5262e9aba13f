import { systemClock } from '../../src/clock.ts';
import {
  checkedArguments,
  readConnection,
  type ConnectionArguments,
} from '../../src/paging/connection.ts';
import { cursorsOf } from '../../src/paging/cursor.ts';
import { walkList, type PagedList } from '../../src/paging/walk.ts';
import { KnownLists } from '../../src/paging/known-lists.ts';
import { LookUps } from '../../src/paging/look-up.ts';
import { CallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { PageSize } from '../../src/paging/page-size.ts';
import { SharedWalks } from '../../src/paging/shared-walk.ts';
import { WalkSlots } from '../../src/paging/walk-slots.ts';
import type { Benchmark, Row } from '../report.ts';

/*
 * Requests to the service for what screens need: counted, not timed. Paging alone, without GraphQL and HTTP, over a list
 * in memory. The promised numbers are what the former paging needed for the same list.
 */

const RECORDS = 1_000;
const LIMIT = 50;

export const requests: Benchmark = {
  title: `requests to the service, of a list of ${RECORDS} records in pages of ${LIMIT}`,
  measure: async () => {
    const rows: Row[] = [];
    for (const { what, promised, prepare } of screens) {
      for (const [state, atMost] of Object.entries(promised)) {
        const list = new CountedList();
        if (state === 'walked') await list.walk();
        const request = await prepare(list);
        const before = list.requests;
        await request();
        rows.push({
          what: `${what}, list ${state === 'walked' ? 'walked before' : 'unknown'}`,
          figures: [list.requests - before],
          unit: 'requests',
          promise: { atMost },
        });
      }
    }
    return rows;
  },
};

interface Screen {
  readonly what: string;
  /** Requests for a list that the gateway does not know yet, and for one that it has walked. */
  readonly promised: { readonly unknown: number; readonly walked: number };
  /** Brings the screen to the state before, and returns what the user does then. */
  readonly prepare: (list: CountedList) => Promise<() => Promise<unknown>>;
}

const screens: readonly Screen[] = [
  {
    what: 'next page',
    promised: { unknown: 1, walked: 1 },
    prepare: async (list) => {
      const { end } = await list.page({ first: LIMIT });
      return () => list.page({ first: LIMIT, after: end });
    },
  },
  {
    what: 'next page from the middle of a page',
    promised: { unknown: 2, walked: 2 },
    prepare: async (list) => {
      const { cursors } = await list.page({ first: LIMIT });
      return () => list.page({ first: LIMIT, after: cursors[20]! });
    },
  },
  {
    what: 'previous page, of the sixth',
    promised: { unknown: 8, walked: 6 },
    prepare: async (list) => {
      let page = await list.page({ first: LIMIT });
      for (let turned = 0; turned < 5; turned += 1)
        page = await list.page({ first: LIMIT, after: page.end });
      return () => list.page({ last: LIMIT, before: page.start });
    },
  },
  {
    what: 'previous 20 records in a page',
    promised: { unknown: 1, walked: 1 },
    prepare: async (list) => {
      const { cursors } = await list.page({ first: LIMIT });
      return () => list.page({ last: 20, before: cursors[40]! });
    },
  },
  {
    what: 'last page',
    promised: { unknown: 21, walked: 2 },
    prepare: async (list) => () => list.page({ last: LIMIT }),
  },
  {
    what: 'page before the last one',
    promised: { unknown: 5, walked: 5 },
    prepare: async (list) => {
      const { start } = await list.page({ last: LIMIT });
      return () => list.page({ last: LIMIT, before: start });
    },
  },
  {
    what: 'total',
    promised: { unknown: 21, walked: 0 },
    prepare: async (list) => () => list.total(),
  },
  {
    what: 'a record',
    promised: { unknown: 4, walked: 1 },
    prepare: async (list) => () => list.find([120]),
  },
  {
    what: '50 records in a row',
    promised: { unknown: 6, walked: 2 },
    prepare: async (list) => () => list.find(range(120, 170)),
  },
  {
    what: '50 records all over the list',
    promised: { unknown: 42, walked: 21 },
    prepare: async (list) => () => list.find(range(0, 50).map((at) => 20 * at + 7)),
  },
  {
    what: 'a record that does not exist',
    promised: { unknown: 21, walked: 24 },
    prepare: async (list) => () => list.find([RECORDS]),
  },
  {
    what: 'a second record that does not exist',
    promised: { unknown: 2, walked: 2 },
    prepare: async (list) => {
      await list.find([RECORDS]);
      return () => list.find([RECORDS + 1]);
    },
  },
];

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}

/** A list that does not change, and what the gateway remembers of it. */
class CountedList {
  requests = 0;
  readonly #known = new KnownLists({
    clock: systemClock,
    maxIds: 2 * RECORDS,
    totalSeconds: 60,
  });
  readonly #list: PagedList = {
    name: 'records',
    fetchPage: async (after, first) => {
      this.requests += 1;
      const start = after === null ? 0 : Number(after);
      const end = Math.min(RECORDS, start + Math.min(first, LIMIT));
      const records = range(start, end);
      return {
        records,
        ids: records.map(String),
        hasNextPage: end < RECORDS,
        endCursor: String(end),
        size: Math.min(first, LIMIT),
      };
    },
    known: this.#known,
    size: new PageSize(systemClock, LIMIT),
    concurrency: 8,
  };
  readonly #lookUps = new LookUps({
    walks: new SharedWalks(),
    maxRecords: 2 * RECORDS,
    slots: new WalkSlots(1, systemClock),
  });
  readonly #budget = new PageBudget(new CallerBudgets(0, systemClock), 'bench', true);

  async walk(): Promise<number> {
    let records = 0;
    for await (const { offsets } of walkList(this.#list, { after: null }))
      records += offsets.length;
    return records;
  }

  async total(): Promise<number> {
    const { name } = this.#list;
    const renew = () => walkList(this.#list, { after: null });
    return this.#known.totalOf(name, renew) ?? (await this.walk());
  }

  async page(args: ConnectionArguments) {
    const list = { ...this.#list, inTurn: <T>(begin: () => T) => begin() };
    const { places } = await readConnection(list, checkedArguments('', 500, args));
    const cursors = places.map(cursorsOf(''));
    return { cursors, start: cursors[0]!, end: cursors.at(-1)! };
  }

  async find(ids: readonly number[]) {
    const list = { ...this.#list, idsFor: () => this.#list };
    return this.#lookUps.find(list, ids.map(String), {
      caller: 'bench',
      operation: {},
      budget: this.#budget,
      signal: new AbortController().signal,
    });
  }
}
