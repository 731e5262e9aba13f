import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const PERSONS = 137;
const SIZES = [1, 7, 50, 120];
const QUERY = `query ($first: Int, $after: String) {
  personsConnection(first: $first, after: $after) {
    edges { cursor node { id firstName } }
    nodes { id }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;

interface Connection {
  edges: { cursor: string; node: { id: string; firstName: string } }[];
  nodes: { id: string }[];
  pageInfo: {
    hasNextPage: boolean;
    hasPreviousPage: boolean;
    startCursor: string | null;
    endCursor: string | null;
  };
}

type Started = Awaited<ReturnType<typeof startGatewayOverSandbox>>;

describe.each(['keyset', 'record', 'position'] as const)('over %s cursors', (cursors) => {
  let gateway: Started;
  let ids: string[];
  beforeAll(async () => {
    gateway = await startGatewayOverSandbox({ persons: PERSONS, cursors });
    ids = gateway.sandbox.persons.all().map(({ id }) => id);
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test('every edge cursor of 137 persons resumes exactly after its edge', async () => {
    const cursorsBySize = new Map<number, string[]>();
    for (const size of SIZES) cursorsBySize.set(size, await allCursors(gateway, size));
    const resumption = fc.record({
      readBy: fc.constantFrom(...SIZES),
      resumeBy: fc.constantFrom(...SIZES),
      index: fc.nat(PERSONS - 1),
    });
    await fc.assert(
      fc.asyncProperty(resumption, async ({ readBy, resumeBy, index }) => {
        const after = cursorsBySize.get(readBy)![index]!;
        const { edges, nodes, pageInfo } = await read(gateway, { first: resumeBy, after });
        const expected = ids.slice(index + 1, index + 1 + resumeBy);
        expect(edges.map(({ node }) => node.id)).toEqual(expected);
        expect(nodes.map(({ id }) => id)).toEqual(expected);
        expect(pageInfo).toEqual({
          hasNextPage: index + 1 + resumeBy < PERSONS,
          hasPreviousPage: true,
          startCursor: edges[0]?.cursor ?? null,
          endCursor: edges.at(-1)?.cursor ?? null,
        });
      }),
      { numRuns: randomRuns(120) },
    );
  });

  test('a connection is read to its end by endCursor, each record once and in order', async () => {
    for (const first of [1, 7, 49, 50, 51, 120, 137, 500]) {
      expect(await allIds(gateway, first)).toEqual(ids);
    }
  });
});

test('`first` returns exactly that many edges, with no more pages than necessary', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: PERSONS });
  for (const [first, requests] of [
    [1, 1],
    [50, 1],
    [51, 2],
    [120, 3],
    [500, 3],
    [undefined, 1],
    [null, 1],
  ] as const) {
    const before = gateway.sandbox.stats.requests.graphql;
    const { edges, pageInfo } = await read(gateway, { first });
    expect(edges).toHaveLength(Math.min(first ?? 50, PERSONS));
    expect(pageInfo.hasPreviousPage).toBe(false);
    expect(pageInfo.hasNextPage).toBe((first ?? 50) < PERSONS);
    expect(gateway.sandbox.stats.requests.graphql - before).toBe(requests);
  }
});

test('`first: 0` returns no edges, and its flags still say whether there are any', async () => {
  for (const persons of [0, 1, 137]) {
    await using gateway = await startGatewayOverSandbox({ persons });
    const { edges, pageInfo } = await read(gateway, { first: 0 });
    expect(edges).toEqual([]);
    expect(pageInfo).toEqual({
      hasNextPage: persons > 0,
      hasPreviousPage: false,
      startCursor: null,
      endCursor: null,
    });
  }
});

test('the cursor of the last edge returns no edges and no error', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 60 });
  const { pageInfo } = await read(gateway, { first: 60 });
  const beyond = await read(gateway, { first: 10, after: pageInfo.endCursor });
  expect(beyond.edges).toEqual([]);
  expect(beyond.pageInfo.hasNextPage).toBe(false);
});

test.each([
  [{ first: -1 }, 'BAD_USER_INPUT', /must not be negative/],
  [{ first: 501 }, 'BAD_USER_INPUT', /at most 500/],
  [{ after: 'x' }, 'CURSOR_INVALID', /not a cursor of this gateway/],
  [{ after: 'a'.repeat(100_000) }, 'CURSOR_INVALID', /not a cursor of this gateway/],
  [{ after: 'AAAA\u0000AAAA' }, 'CURSOR_INVALID', /not a cursor of this gateway/],
] as const)(
  'the arguments %j are refused without an upstream request',
  async (variables, code, message) => {
    await using gateway = await startGatewayOverSandbox();
    const { data, errors } = await gateway.ask<{ personsConnection: null }>(QUERY, variables);
    expect(data.personsConnection).toBeNull();
    expect(errors).toMatchObject([
      {
        message: expect.stringMatching(message),
        path: ['personsConnection'],
        extensions: { code },
      },
    ]);
    expect(gateway.sandbox.stats.requests.graphql).toBe(0);
  },
);

test("the upstream's own cursor is refused", async () => {
  await using gateway = await startGatewayOverSandbox();
  const { data } = await gateway.ask<{ persons: { pageInfo: { endCursor: string } } }>(
    '{ persons(first: 3) { pageInfo { endCursor } } }',
  );
  const { errors } = await gateway.ask(QUERY, { after: data.persons.pageInfo.endCursor });
  expect(errors).toMatchObject([{ extensions: { code: 'CURSOR_INVALID' } }]);
});

test('an empty cursor counts as left out, as in the code of Relay', async () => {
  await using gateway = await startGatewayOverSandbox();
  const page = '{ nodes { id } pageInfo { hasPreviousPage hasNextPage } }';
  const { data, errors } = await gateway.ask<Record<string, unknown>>(
    `query ($empty: String) {
      first: personsConnection(first: 3) ${page}
      firstEmpty: personsConnection(first: 3, after: $empty, before: "") ${page}
      last: personsConnection(last: 3) ${page}
      lastEmpty: personsConnection(last: 3, after: "", before: $empty) ${page}
      all: allPersons(limit: 3) { id }
      allEmpty: allPersons(limit: 3, after: $empty) { id }
    }`,
    { empty: '' },
  );
  expect(errors).toBeUndefined();
  for (const name of ['first', 'last', 'all']) expect(data[`${name}Empty`]).toEqual(data[name]);
});

test('a cursor with any byte changed is refused', async () => {
  await using gateway = await startGatewayOverSandbox();
  const { pageInfo } = await read(gateway, { first: 3 });
  const bytes = Buffer.from(pageInfo.endCursor!, 'base64url');
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, by) => {
      const damaged = Buffer.from(bytes);
      damaged[at] = damaged[at]! ^ by;
      const { errors } = await gateway.ask(QUERY, { after: damaged.toString('base64url') });
      expect(errors).toMatchObject([{ extensions: { code: 'CURSOR_INVALID' } }]);
    }),
  );
});

test('a cursor stays valid after a restart of the gateway', async () => {
  await using first = await startGatewayOverSandbox({ persons: PERSONS });
  const { edges } = await read(first, { first: 30 });
  await using second = await startGatewayOverSandbox({ persons: PERSONS });
  const { nodes } = await read(second, { first: 2, after: edges[10]!.cursor });
  expect(nodes.map(({ id }) => id)).toEqual([edges[11]!.node.id, edges[12]!.node.id]);
});

describe.each(['keyset', 'record'] as const)('a list that changes, over %s cursors', (cursors) => {
  test('records inserted before an edge neither repeat nor skip records after it', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: PERSONS, cursors });
    const { persons } = gateway.sandbox;
    const { edges } = await read(gateway, { first: 40 });
    for (const [at, count] of [
      [0, 3],
      [10, 30],
    ] as const) {
      persons.insert(at, count);
      const all = persons.all().map(({ id }) => id);
      const index = all.indexOf(edges[20]!.node.id);
      const { nodes } = await read(gateway, { first: 5, after: edges[20]!.cursor });
      expect(nodes.map(({ id }) => id)).toEqual(all.slice(index + 1, index + 6));
    }
  });

  test('records removed before an edge skip no record after it', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: PERSONS, cursors });
    const { persons } = gateway.sandbox;
    const { edges } = await read(gateway, { first: 40 });
    persons.remove(5, 10);
    const { nodes } = await read(gateway, { first: 3, after: edges[20]!.cursor });
    expect(nodes.map(({ id }) => id)).toEqual(edges.slice(21, 24).map(({ node }) => node.id));
  });

  test('an edge whose record was removed skips no record after it', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: PERSONS, cursors });
    const { persons } = gateway.sandbox;
    const { edges } = await read(gateway, { first: 40 });
    persons.remove(20, 1);
    const { nodes } = await read(gateway, { first: 40, after: edges[20]!.cursor });
    const returned = nodes.map(({ id }) => id);
    for (const { node } of edges.slice(21)) expect(returned).toContain(node.id);
  });
});

test('several connections of one operation are kept apart: aliases, arguments, repeated names', async () => {
  await using gateway = await startGatewayOverSandbox();
  const { persons } = gateway.sandbox;
  const { data, errors } = await gateway.ask(`{
    two: personsConnection(first: 2) { ...Edges nodes { x: id } }
    one: personsConnection(first: 1) {
      e: edges { n: node { x: firstName } }
      f: edges { cursor n: node { x: id ... @include(if: false) { firstName } } }
      edges @skip(if: true) { cursor }
      nodes { id: firstName }
      more: nodes { id }
      __typename
    }
  }
  fragment Edges on PersonConnection { edges { ...Node __typename } }
  fragment Node on PersonEdge { node { id } node { name: firstName } }`);
  expect(errors).toBeUndefined();
  const [a, b] = persons.slice(0, 2);
  expect(data).toEqual({
    two: {
      edges: [a, b].map((person) => ({
        node: { id: person!.id, name: person!.firstName },
        __typename: 'PersonEdge',
      })),
      nodes: [{ x: a!.id }, { x: b!.id }],
    },
    one: {
      e: [{ n: { x: a!.firstName } }],
      f: [{ cursor: expect.any(String), n: { x: a!.id } }],
      nodes: [{ id: a!.firstName }],
      more: [{ id: a!.id }],
      __typename: 'PersonConnection',
    },
  });
});

test('an edge whose fields are all skipped is an empty object', async () => {
  await using gateway = await startGatewayOverSandbox();
  const { data, errors } = await gateway.ask(
    '{ personsConnection(first: 2) { edges { cursor @include(if: false) } totalCount } }',
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({ personsConnection: { edges: [{}, {}], totalCount: 137 } });
});

test('a page that one operation selects twice is fetched once', async () => {
  await using gateway = await startGatewayOverSandbox();
  const { data, errors } = await gateway.ask(`{
    a: personsConnection(first: 2) { nodes { id } }
    b: personsConnection(first: 2) { nodes { id } }
    c: persons(first: 2) { items { id } }
    d: persons(first: 2) { items { id } }
    e: allPersons { id }
    f: allPersons { id }
  }`);
  expect(errors).toBeUndefined();
  expect(data['b']).toEqual(data['a']);
  expect(data['f']).toEqual(data['e']);
  expect(data['f']).toHaveLength(PERSONS);
  expect(gateway.sandbox.stats.requests.graphql).toBe(1 + 1 + 3);
});

test('only what is selected is requested: cursors and pageInfo alone request no fields of a person', async () => {
  await using gateway = await startGatewayOverSandbox();
  const { data, errors } = await gateway.ask(
    '{ personsConnection(first: 2) { pageInfo { hasNextPage endCursor } } }',
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    personsConnection: { pageInfo: { hasNextPage: true, endCursor: expect.any(String) } },
  });
});

async function read(
  gateway: Started,
  variables: { first?: number | null | undefined; after?: string | null },
): Promise<Connection> {
  const { data, errors } = await gateway.ask<{ personsConnection: Connection }>(QUERY, variables);
  expect(errors).toBeUndefined();
  return data.personsConnection;
}

async function* pages(gateway: Started, first: number) {
  for (let after: string | null = null; ;) {
    const page: Connection = await read(gateway, { first, after });
    yield page;
    if (!page.pageInfo.hasNextPage) return;
    after = page.pageInfo.endCursor;
  }
}

async function allCursors(gateway: Started, first: number): Promise<string[]> {
  const cursors: string[] = [];
  for await (const { edges } of pages(gateway, first)) {
    cursors.push(...edges.map(({ cursor }) => cursor));
  }
  return cursors;
}

async function allIds(gateway: Started, first: number): Promise<string[]> {
  const ids: string[] = [];
  for await (const { edges } of pages(gateway, first))
    ids.push(...edges.map(({ node }) => node.id));
  return ids;
}
