import { buildSchema, type GraphQLFieldResolver } from 'graphql';
import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../service/lists.ts';
import { sideBySide } from './side-by-side.ts';

test('the query type below itself is answered as a nested object, not as the root', async () => {
  const world = await sideBySide({ schema: usersSchema() });
  await world.expectSame({ query: '{ asUser(id: 2) { name } }' });
  await world.expectSame({
    query: `query Deep($id: Int!) {
      name
      asUser(id: 2) { name deeper: asUser(id: $id) { ...Names } __typename }
      again: asUser(id: 9) { ...Names }
    }
    fragment Names on Query { name users { name } }`,
    variables: { id: 3 },
  });
});

test('the result of a mutation is read in the request of the mutation', async () => {
  const { schema, added } = addingSchema();
  const world = await sideBySide({ schema });
  const query = 'mutation { put(n: 1) { sum query { total } self { sum } } }';
  const { sent } = await world.both({ query });
  expect(sent).toHaveLength(1);
  expect(added).toEqual([1, 1]);
  added.length = 0;
  const through = await world.through({ query });
  added.length = 0;
  expect(await world.direct({ query })).toEqual(through);
});

test.each([
  ['in a fragment', 'mutation { self { ...M } } fragment M on Mutation { add(n: 5) }'],
  ['on an interface of the mutation type', 'mutation { self { ... on Adding { add(n: 5) } } }'],
  ['beside an allowed one', 'mutation { self { __typename } add(n: 5) }'],
])('with MUTATIONS=self a refused mutation %s is not sent', async (_, query) => {
  const { schema, added } = addingSchema();
  const world = await sideBySide({ schema, config: { mutations: ['self'] } });
  expect(await world.through({ query })).toMatchObject({ errors: [expect.any(String)] });
  expect(added).toEqual([]);
});

test('with MUTATIONS=self the allowed mutation is sent', async () => {
  const { schema } = addingSchema();
  const world = await sideBySide({ schema, config: { mutations: ['self'] } });
  await world.expectSame({
    query:
      'mutation { self { self { __typename } t: __typename } ...M } fragment M on Mutation { b: self { c: self { __typename } } }',
  });
});

test.each([
  ['returns the mutation type', '{ door { add(n: 5) } }'],
  ['returns a union with it', '{ either { ... on Mutation { add(n: 5) } } }'],
])('with MUTATIONS=off a query field that %s sends no mutation', async (_, query) => {
  const { schema, added } = addingSchema();
  const world = await sideBySide({ schema, config: { mutations: 'off' } });
  expect((await world.through({ query })).errors).toBeDefined();
  expect(added).toEqual([]);
});

const user = ({ id }: { id: number }) => ({ __typename: 'Query', id });

function usersSchema() {
  return makeExecutableSchema(
    'type Query { name: String asUser(id: Int!): Query users: [Query!] }',
    {
      Query: {
        name: (source: { id?: number } | undefined) => `User ${source?.id ?? 'nobody'}`,
        asUser: (_: unknown, { id }: { id: number }) => user({ id }),
        users: (source: { id?: number } | undefined) =>
          [1, 2].map((number) => user({ id: (source?.id ?? 0) * 10 + number })),
      },
    },
  );
}

const mutation = () => ({ __typename: 'Mutation' });

function addingSchema() {
  const added: number[] = [];
  const add = (_: unknown, { n }: { n: number }) => {
    added.push(n);
    return n * 2;
  };
  const schema = makeExecutableSchema(
    `interface Adding { add(n: Int!): Int }
     type Mutation implements Adding { self: Mutation add(n: Int!): Int put(n: Int!): Payload sum: Int }
     type Payload { sum: Int self: Mutation query: Query }
     type Inner { door: Mutation }
     union Either = Inner | Mutation
     type Query {
       total: Int door: Mutation either: Either
     }`,
    {
      Mutation: {
        self: mutation,
        add,
        put: (_: unknown, args: { n: number }) => ({ sum: add(undefined, args) }),
        sum: () => 42,
      },
      Payload: { self: mutation, query: () => ({}) },
      Query: {
        total: () => 7,
        door: mutation,
        either: mutation,
      },
      Inner: { door: mutation },
    },
  );
  return { schema, added };
}

test('a schema whose query type has another name keeps it', async () => {
  const schema = buildSchema(
    `schema { query: QueryRoot mutation: Changes }
     type QueryRoot { a: String self: QueryRoot }
     type Changes { b: String query: QueryRoot }`,
  );
  const world = await sideBySide({ schema, service: { rootValue: { a: 'A', b: 'B', self: {} } } });
  await world.expectSame({
    query: '{ __typename ...F self { __typename } } fragment F on QueryRoot { a __typename }',
  });
  await world.expectSame({ query: 'mutation { __typename ... on Changes { b } }' });
  await world.expectSame({
    query:
      '{ __schema { queryType { name } mutationType { name } } __type(name: "QueryRoot") { name kind } }',
  });
});

test('the service receives only the selected operation, with its name', async () => {
  const world = await sideBySide({ schema: namesSchema() });
  for (const [query, name] of [
    ['query Hello { operation }', 'Hello'],
    ['{ operation }', 'none'],
  ] as const) {
    const { through } = await world.expectSame({ query });
    expect(through.data).toBe(`{"operation":"${name}"}`);
  }

  const query = `query Hello { operation ...F } query Other($x: Int) { b: operation(x: $x) }
    mutation Change { operation } fragment F on Query { again: operation }`;
  for (const operationName of ['Hello', 'Other', 'Change']) {
    const { sent } = await world.expectSame({ query, operationName });
    expect(sent).toEqual([
      expect.objectContaining({ query: expect.stringContaining(operationName) }),
    ]);
    for (const other of ['Hello', 'Other', 'Change']) {
      if (other !== operationName) expect(sent[0]!.query).not.toContain(other);
    }
  }
});

test('the description of the schema is served', async () => {
  const described = '"""All about people."""\nschema { query: Query }\ntype Query { a: String }';
  const world = await sideBySide({ schema: buildSchema(described), snapshot: described });
  await world.expectSame({ query: '{ __schema { description } }' });
});

const operation = (...[, , , info]: Parameters<GraphQLFieldResolver<never, unknown, never>>) =>
  info.operation.name?.value ?? 'none';

function namesSchema() {
  return makeExecutableSchema(
    'type Query { operation(x: Int): String } type Mutation { operation: String }',
    { Query: { operation }, Mutation: { operation } },
  );
}
