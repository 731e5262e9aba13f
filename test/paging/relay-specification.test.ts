import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';

// Relay's GraphQL Cursor Connections Specification, https://relay.dev/graphql/connections.htm. The numbers are those
// of its sections. The golden SDL shows the types of sections 2 and 3, and connections.test.ts compares any window
// with the algorithm.

const PERSONS = 137;
const QUERY = `query ($first: Int, $after: String, $last: Int, $before: String) {
  personsConnection(first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { id } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;

interface Arguments {
  first?: number | null;
  after?: string | null;
  last?: number | null;
  before?: string | null;
}

interface Connection {
  edges: { cursor: string; node: { id: string } }[];
  pageInfo: {
    hasNextPage: boolean;
    hasPreviousPage: boolean;
    startCursor: string | null;
    endCursor: string | null;
  };
}

/** Cursors are given as the offsets of their edges. */
interface Args {
  first?: number;
  after?: number;
  last?: number;
  before?: number;
}

type Row = readonly [
  section: string,
  args: Args,
  edges: readonly [from: number, to: number],
  hasPreviousPage: boolean,
  hasNextPage: boolean,
];

const NONE = [0, 0] as const;
const ROWS: readonly Row[] = [
  ['4.1 edges behind `after`, at most `first`', { first: 3, after: 9 }, [10, 13], true, true],
  ['4.2 edges in front of `before`, at most `last`', { last: 3, before: 9 }, [6, 9], true, true],
  ['4.3 the edge closest to `before` is last', { first: 500, before: 70 }, [0, 70], false, false],
  ['4.3 the edge closest to `after` is first', { last: 500, after: 70 }, [71, 137], false, false],
  ['4.4 without cursors, all edges', { first: 500 }, [0, 137], false, false],
  ['4.4 `after` removes the last edge', { first: 500, after: 136 }, NONE, true, false],
  ['4.4 `before` removes the first edge', { last: 5, before: 0 }, NONE, false, true],
  ['4.4 what lies between', { first: 500, after: 40, before: 61 }, [41, 61], true, false],
  ['4.4 what lies between', { last: 500, after: 40, before: 61 }, [41, 61], false, true],
  [
    '4.4 `after` may remove `before`',
    { first: 500, after: 90, before: 10 },
    [91, 137],
    true,
    false,
  ],
  ['4.4 `first` cuts the end', { first: 4, after: 9, before: 20 }, [10, 14], true, true],
  ['4.4 `first` cuts nothing', { first: 4, after: 9, before: 14 }, [10, 14], true, false],
  ['4.4 `last` cuts the start', { last: 4, after: 9, before: 20 }, [16, 20], true, true],
  ['4.4 0 is not negative', { first: 0 }, NONE, false, true],
  ['4.4 0 is not negative', { last: 0 }, NONE, true, false],
  ['4.4 neither of them: a page of the service', {}, [0, 50], false, true],
  ['4.4 neither of them', { before: 99 }, [0, 50], false, true],
  ['5.1 `last`, and one more in front', { last: 136 }, [1, 137], true, false],
  ['5.1 `last`, and exactly so many', { last: 137 }, [0, 137], false, false],
  ['5.1 `first`, and one more behind', { first: 136 }, [0, 136], false, true],
  ['5.1 `first`, and exactly so many', { first: 137 }, [0, 137], false, false],
];

describe('over a list that stands still', () => {
  let gateway: Awaited<ReturnType<typeof startGatewayOverService>>;
  let ids: string[];
  let cursors: string[];
  beforeAll(async () => {
    gateway = await startGatewayOverService({ persons: PERSONS });
    ids = gateway.service.persons.all().map(({ id }) => id);
    cursors = (await read(gateway, { first: PERSONS })).edges.map(({ cursor }) => cursor);
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const idsOf = async (args: Arguments) =>
    (await read(gateway, args)).edges.map(({ node }) => node.id);

  test.each(ROWS)(
    '%s: %j',
    async (_, { after, before, ...counted }, [from, to], hasPreviousPage, hasNextPage) => {
      const { edges, pageInfo } = await read(gateway, {
        ...counted,
        ...(after !== undefined && { after: cursors[after]! }),
        ...(before !== undefined && { before: cursors[before]! }),
      });
      expect(edges.map(({ node }) => node.id)).toEqual(ids.slice(from, to));
      expect(pageInfo).toEqual({
        hasPreviousPage,
        hasNextPage,
        startCursor: edges[0]?.cursor ?? null,
        endCursor: edges.at(-1)?.cursor ?? null,
      });
    },
  );

  test('3.1.2 each edge has another cursor, which is passed back literally or as a variable', async () => {
    expect(new Set(cursors).size).toBe(PERSONS);
    const { data, errors } = await gateway.ask<Record<string, { edges: unknown[] }>>(
      `query ($after: String!) {
        literal: personsConnection(first: 2, after: "${cursors[4]}") { edges { node { id } } }
        variable: personsConnection(first: 2, after: $after) { edges { node { id } } }
      }`,
      { after: cursors[4] },
    );
    expect(errors).toBeUndefined();
    const expected = { edges: [{ node: { id: ids[5] } }, { node: { id: ids[6] } }] };
    expect(data).toEqual({ literal: expected, variable: expected });
  });

  test('a window that is too large is refused with the field that returns the whole list', async () => {
    const { errors } = await gateway.ask(QUERY, { first: 501 });
    expect(errors![0]!.message).toContain('at most 500, but it is 501');
    expect(errors![0]!.message).toContain('`allPersons`');
  });

  // Section 4.4 ignores a cursor that no edge has, and discourages `first` and `last` at once: two stated deviations.
  test.each([
    [{ first: -1 }, 'BAD_USER_INPUT'],
    [{ last: -(2 ** 31) }, 'BAD_USER_INPUT'],
    [{ first: 501 }, 'BAD_USER_INPUT'],
    [{ first: 2, last: 1 }, 'BAD_USER_INPUT'],
    [{ first: 0, last: 0 }, 'BAD_USER_INPUT'],
    [{ first: 1, after: 'nonsense' }, 'CURSOR_INVALID'],
    [{ last: 1, before: 'nonsense' }, 'CURSOR_INVALID'],
  ] as const)(
    '4.4 the arguments %j are refused without an upstream request',
    async (args, code) => {
      const before = gateway.service.stats.requests.graphql;
      const { data, errors } = await gateway.ask<{ personsConnection: null }>(QUERY, args);
      expect(data.personsConnection).toBeNull();
      expect(errors).toMatchObject([{ path: ['personsConnection'], extensions: { code } }]);
      expect(gateway.service.stats.requests.graphql).toBe(before);
    },
  );

  test("the service's own cursor is refused", async () => {
    const { data } = await gateway.ask<{ persons: { pageInfo: { endCursor: string } } }>(
      '{ persons(first: 3) { pageInfo { endCursor } } }',
    );
    const { errors } = await gateway.ask(QUERY, { after: data.persons.pageInfo.endCursor });
    expect(errors).toMatchObject([{ extensions: { code: 'CURSOR_INVALID' } }]);
  });

  test('4.4 null and an empty cursor mean not given: Relay sends the variables of the other direction so', async () => {
    const backward = { first: null, after: null, last: 2, before: cursors[9]! };
    const forward = { first: 2, after: cursors[9]!, last: null, before: '' };
    expect(await idsOf(backward)).toEqual(ids.slice(7, 9));
    expect(await idsOf(forward)).toEqual(ids.slice(10, 12));
  });
});

test('5.1 of an empty list: no edges, no cursors, and nothing on either side', async () => {
  await using gateway = await startGatewayOverService({ persons: 0 });
  for (const args of [{}, { first: 0 }, { first: 5 }, { last: 0 }, { last: 5 }]) {
    expect(await read(gateway, args)).toEqual({
      edges: [],
      pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null },
    });
  }
});

test('`first` returns exactly that many edges, with no more pages than necessary', async () => {
  await using gateway = await startGatewayOverService({ persons: PERSONS });
  for (const [first, requests] of [
    [1, 1],
    [50, 1],
    [51, 2],
    [120, 3],
    [500, 3],
    [null, 1],
  ] as const) {
    const before = gateway.service.stats.requests.graphql;
    const { edges } = await read(gateway, { first });
    expect(edges).toHaveLength(Math.min(first ?? 50, PERSONS));
    expect(gateway.service.stats.requests.graphql - before).toBe(requests);
  }
});

test('a cursor stays valid after a restart of the gateway', async () => {
  await using first = await startGatewayOverService({ persons: PERSONS });
  const { edges } = await read(first, { first: 30 });
  await using second = await startGatewayOverService({ persons: PERSONS });
  const page = await read(second, { first: 2, after: edges[10]!.cursor });
  expect(page.edges.map(({ node }) => node.id)).toEqual([edges[11]!.node.id, edges[12]!.node.id]);
});

async function read(gateway: TestGateway, args: Arguments): Promise<Connection> {
  const { data, errors } = await gateway.ask<{ personsConnection: Connection }>(QUERY, { ...args });
  expect(errors).toBeUndefined();
  return data.personsConnection;
}
