import { describe, expect, test } from 'vitest';
import {
  failure,
  makeExecutableSchema,
  pageOf,
  type PageArgs,
} from '../support/imitations/honest.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';

const SDL = /* GraphQL */ `
  type Query {
    rows(first: Int, after: String, kind: Int): RowPage!
    groups(first: Int, after: String): GroupPage!
    group(id: Int!): Group
  }
  type Row {
    id: Int!
  }
  type RowPage {
    items: [Row!]!
    pageInfo: PageInfo!
    total: Int
  }
  type Group {
    id: Int!
    rows(first: Int, after: String): RowPage!
  }
  type GroupPage {
    items: [Group!]!
    pageInfo: PageInfo!
  }
  type PageInfo {
    hasNextPage: Boolean!
    endCursor: String
  }
`;

/** How a list differs from one that is honest. */
interface Habits {
  /** The total that a page reports. Default: the number of records of the list. */
  total?: () => unknown;
}

const COUNTED = {
  fields: { 'Query.rows': { count: 'total' }, 'Group.rows': { count: 'total' } },
};

async function startRows(habits: Habits = {}, overrides: object = COUNTED) {
  const rows = Array.from({ length: 130 }, (_, index) => ({ id: index + 1 }));
  const page = (args: PageArgs & { kind?: number | null }) => {
    const kept = rows.filter(({ id }) => args.kind == null || id % 2 === args.kind);
    const { items, pageInfo } = pageOf(kept, args);
    return {
      items,
      pageInfo,
      total: () => (habits.total ? habits.total() : kept.length),
    };
  };
  const group = (id: number) => ({ id, rows: page });
  const groups = Array.from({ length: 10 }, (_, index) => group(index + 1));
  const schema = makeExecutableSchema(SDL, {
    Query: {
      rows: (_: unknown, args: PageArgs) => page(args),
      groups: (_: unknown, args: PageArgs) => pageOf(groups, args),
      group: (_: unknown, { id }: { id: number }) => groups[id - 1],
    },
  });
  return startGatewayOverFake({ schema }, { snapshot: SDL, overrides });
}

const TOTAL = 'query ($kind: Int) { rowsConnection(kind: $kind) { totalCount } }';

async function totalOf(world: GatewayOverFake, kind?: number) {
  const before = world.upstream.received.length;
  const { data, errors } = await world.ask<{ rowsConnection: { totalCount: number } }>(TOTAL, {
    kind,
  });
  expect(errors).toBeUndefined();
  return {
    total: data.rowsConnection.totalCount,
    requests: world.upstream.received.length - before,
  };
}

async function drained(world: GatewayOverFake): Promise<number> {
  const { data, errors } = await world.ask<{ allRows: unknown[] }>('{ allRows { id } }');
  expect(errors).toBeUndefined();
  return data.allRows.length;
}

describe('totalCount', () => {
  test('is one small request where adapters.json names the field of the page, for each list with its filters', async () => {
    await using world = await startRows();
    expect(await totalOf(world)).toEqual({ total: 130, requests: 1 });
    const request = JSON.parse(world.upstream.received.at(-1)!.body) as { variables: object };
    expect(request.variables).toEqual({ _rs_first: 1 });
    expect(await totalOf(world, 1)).toEqual({ total: 65, requests: 1 });
    expect(await totalOf(world, 7)).toEqual({ total: 0, requests: 1 });
  });

  test('of nested lists comes along with their parents', async () => {
    await using world = await startRows();
    const before = world.upstream.received.length;
    const { data } = await world.ask<{
      allGroups: { rowsConnection: { totalCount: number; nodes: unknown[] } }[];
    }>('{ allGroups { rowsConnection(first: 2) { totalCount nodes { id } } } }');
    expect(data.allGroups).toHaveLength(10);
    for (const { rowsConnection } of data.allGroups) {
      expect(rowsConnection).toEqual({ totalCount: 130, nodes: [{ id: 1 }, { id: 2 }] });
    }
    // The parents, then the first pages of their lists, then the counts.
    expect(world.upstream.received.length - before).toBe(3);
  });

  test('is counted by reading the list where adapters.json names no field', async () => {
    await using world = await startRows({ total: () => 7 }, {});
    expect(await totalOf(world)).toEqual({ total: 130, requests: 3 });
  });
});

describe('a walk', () => {
  test.each([
    ['null', () => null],
    ['an error', () => failure('No count today.')],
    ['negative', () => -1],
  ])('goes on where the count is %s, and reports nothing of it to the caller', async (_, total) => {
    await using world = await startRows({
      total: () => {
        const value = total();
        if (value instanceof Error) throw value;
        return value;
      },
    });
    expect(await drained(world)).toBe(130);
    expect((await totalOf(world)).total).toBe(130);
  });
});
