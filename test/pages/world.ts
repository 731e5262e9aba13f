import {
  readConnection,
  type ConnectedList,
  type ConnectionArguments,
} from '../../src/pages/connection.ts';
import { walkList } from '../../src/pages/list-walk.ts';
import { Pace } from '../../src/pages/pace.ts';
import { CursorRefusedError, type FetchPage } from '../../src/pages/page.ts';
import { PageIndexes } from '../../src/pages/page-index.ts';
import { PageSize } from '../../src/pages/page-size.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { ChangingList, type Options } from './changing-list.ts';

/** Paging over a list of the model. A record is its serial. */
export function worldOf(count: number, options: Options) {
  const list = new ChangingList(count, options);
  const fetchPage: FetchPage<number> = async (after, first) => {
    try {
      return list.read(after, first);
    } catch (error) {
      throw new CursorRefusedError('refused', { cause: error });
    }
  };
  const paged: ConnectedList<number> = {
    name: 'letters',
    fetchPage,
    indexes: new PageIndexes(100_000),
    size: new PageSize(new ManualClock(), list.limit),
    pace: new Pace(8),
    max: 500,
    inTurn: (begin) => begin(),
  };
  const read = async (args: ConnectionArguments) => {
    const { edges, ...flags } = await readConnection(paged, args);
    return {
      ...flags,
      records: edges.map(({ record }) => record),
      cursors: edges.map(({ cursor }) => cursor()),
    };
  };
  return {
    list,
    paged,
    read,
    drain: async () => {
      const records: number[] = [];
      for await (const { page, offsets } of walkList(paged, { after: null }))
        records.push(...offsets.map((offset) => page.records[offset]!));
      return records;
    },
    /** Pages through the list by `endCursor`, calling `between` after each page. */
    pageThrough: async (first: number, between: () => void = () => {}) => {
      const records: number[] = [];
      for (let after: string | null = null, pages = 0; ; pages += 1) {
        if (pages > 2_000) throw new Error('It goes in circles.');
        const page = await read({ first, after });
        records.push(...page.records);
        if (!page.hasNextPage) return records;
        after = page.cursors.at(-1) ?? after;
        between();
      }
    },
    /** The number of requests to the service that this takes. */
    requests: async (work: () => Promise<unknown>) => {
      const before = list.requests;
      await work();
      return list.requests - before;
    },
  };
}

export type World = ReturnType<typeof worldOf>;
