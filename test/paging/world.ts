import fc from 'fast-check';
import {
  readConnection,
  type ConnectedList,
  type ConnectionArguments,
} from '../../src/paging/connection.ts';
import { walkList } from '../../src/paging/list-walk.ts';
import { Pace } from '../../src/paging/pace.ts';
import type { FetchPage } from '../../src/paging/page.ts';
import { PageIndexes } from '../../src/paging/page-index.ts';
import { PageSize } from '../../src/paging/page-size.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { ModelService, type Change, type Sizing, type Traits } from './model-service.ts';

export const SIZINGS = [
  'exact',
  'least',
  'rounded',
  'filled',
  'fewer',
  'single',
  'varied',
] as const satisfies Sizing[];

/** Changes that leave the records in their order. */
export const comings = (count: fc.Arbitrary<number>): fc.Arbitrary<Change> =>
  fc.record({
    do: fc.constantFrom('insert' as const, 'remove' as const),
    at: fc.oneof(fc.constant(0), fc.nat(80)),
    count,
  });
export const moves: fc.Arbitrary<Change> = fc.record({
  do: fc.constant('move' as const),
  from: fc.nat(80),
  to: fc.nat(80),
});

/** Connections over a list of the model. A record is its serial number, and so is its id. */
export function worldOf(length: number, { limit = 50, ...traits }: Partial<Traits>) {
  const service = new ModelService({ kind: 'key', ...traits, limit, length });
  const counted = { requests: 0, onRead: () => {} };
  const fetchPage: FetchPage<number> = async (after, first) => {
    counted.requests += 1;
    const page = service.page(after, first);
    counted.onRead();
    return page;
  };
  const paged: ConnectedList<number> = {
    name: 'letters',
    fetchPage,
    indexes: new PageIndexes(100_000),
    size: new PageSize(new ManualClock(), limit),
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
    service,
    counted,
    paged,
    read,
    drain: async () => {
      const records: number[] = [];
      for await (const { page, offsets } of walkList(paged, { after: null }))
        records.push(...offsets.map((offset) => page.records[offset]!));
      return records;
    },
    remove: (serial: number) =>
      service.apply({ do: 'remove', at: service.shown.indexOf(serial), count: 1 }),
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
      const before = counted.requests;
      await work();
      return counted.requests - before;
    },
  };
}

export type World = ReturnType<typeof worldOf>;
