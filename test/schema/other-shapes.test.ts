import { printSchema } from 'graphql';
import { describe, expect, test } from 'vitest';
import {
  makeExecutableSchema,
  pageOf,
  personPages,
  type PageArgs,
} from '../support/imitations/honest.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { servedOffline } from '../support/gateway/served-offline.ts';

type Resolvers = Parameters<typeof makeExecutableSchema>[1];

const PERSONS = 'persons(first: Int, after: String): PersonPage!';
const PAGE = `
  type Person { id: ID! name: String }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;

test('a type with the name of a root type is an ordinary type', async () => {
  const sdl = `schema { query: Query }
    type Query { persons(first: Int, after: String): PersonPage! last: Mutation events: [Subscription!]! }
    type Mutation { at: String! } type Subscription { name: String! }`;
  const config = { mutations: 'all' } as const;
  const resolvers = {
    Query: { persons: pages(), last: () => ({ at: 'noon' }), events: () => [{ name: 'hired' }] },
  };
  await using gateway = await over(sdl + PAGE, resolvers, config);
  const { data } = await gateway.ask('{ last { __typename at } events { __typename name } }');
  expect(data).toEqual({
    last: { __typename: 'UpstreamMutation', at: 'noon' },
    events: [{ __typename: 'UpstreamSubscription', name: 'hired' }],
  });
  const before = gateway.sandbox.stats.requests.graphql;
  for (const kind of ['mutation', 'subscription']) {
    const { errors } = await gateway.ask(`${kind} { __typename }`);
    expect(errors).toMatchObject([{ extensions: { code: expect.any(String) } }]);
  }
  expect(gateway.sandbox.stats.requests.graphql).toBe(before);
});

test('a first and an after that must not be null are sent, whatever their defaults are', async () => {
  const sdl = `type Query { persons(first: Int! = 20, after: String! = "", kind: String! = "x"): PersonPage! }`;
  await using gateway = await over(sdl + PAGE, { Query: { persons: pages() } });
  const { data, errors } = await gateway.ask(
    '{ allPersons { id } personsConnection { nodes { id } } three: personsConnection(first: 3) { nodes { id } } }',
  );
  expect(errors).toBeUndefined();
  expect(data['allPersons']).toHaveLength(120);
  expect(data['personsConnection']).toMatchObject({ nodes: { length: 50 } });
  expect(data['three']).toMatchObject({ nodes: { length: 3 } });
});

test('a list that is null gives null, and a list without items gives no records', async () => {
  const sdl = `
    type Query { gone(first: Int, after: String): Gone empty(first: Int, after: String): Gone }
    type Gone { items: [Person!] pageInfo: PageInfo! }
  `;
  await using gateway = await over(sdl + PAGE, {
    Query: {
      gone: () => null,
      empty: () => ({ items: null, pageInfo: { hasNextPage: false } }),
    },
  });
  const { data, errors } = await gateway.ask(
    '{ allGone { id } goneConnection { nodes { id } } allEmpty { id } emptyConnection { nodes { id } } }',
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    allGone: null,
    goneConnection: null,
    allEmpty: [],
    emptyConnection: { nodes: [] },
  });
});

test('an empty first page is skipped, so that a connection begins with a record', async () => {
  const sdl = `type Query { ${PERSONS} }`;
  await using gateway = await over(sdl + PAGE, {
    Query: {
      persons: (_: unknown, { after }: { after?: string }) =>
        after
          ? { items: [{ id: 1 }], pageInfo: { hasNextPage: false, endCursor: 'b' } }
          : { items: [], pageInfo: { hasNextPage: true, endCursor: 'a' } },
    },
  });
  const { data } = await gateway.ask('{ personsConnection { nodes { id } } }');
  expect(data['personsConnection']).toEqual({ nodes: [{ id: '1' }] });
});

test.each([
  '{ allPersons { _rsId: name } }',
  '{ allPersons { __typename: name } }',
  'query ($_rs_first: Int) { personsConnection(first: $_rs_first) { nodes { id } } }',
])('names that the gateway uses itself are refused: %s', async (query) => {
  const sdl = `type Query { ${PERSONS} }`;
  await using gateway = await over(sdl + PAGE, { Query: { persons: pages() } });
  const { errors } = await gateway.ask(query);
  expect(errors).toMatchObject([
    { message: expect.stringContaining('is reserved'), extensions: { code: 'BAD_USER_INPUT' } },
  ]);
  expect(gateway.sandbox.stats.requests.graphql).toBe(0);
});

test('names that routers use are accepted', async () => {
  const sdl = `type Query { ${PERSONS} }`;
  await using gateway = await over(sdl + PAGE, { Query: { persons: pages() } });
  const { data, errors } = await gateway.ask(
    'query ($__limit: Int) { __all: allPersons(limit: $__limit) { __id: id __type: __typename } }',
    { __limit: 1 },
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({ __all: [{ __id: '0', __type: 'Person' }] });
});

describe('a service whose root types have other names', () => {
  const sdl = `
    schema { query: QueryRoot mutation: MutationRoot }
    type QueryRoot { ${PERSONS} }
    type MutationRoot { rename(name: String!): Renamed! }
    type Renamed { query: QueryRoot! name: String! }
    ${PAGE}`;
  const resolvers = {
    QueryRoot: { persons: personPages(['0', '1', '2']) },
    MutationRoot: { rename: (_: unknown, { name }: { name: string }) => ({ name, query: {} }) },
  };

  test.each([undefined, 'Recruiting'])(
    'the names of root types are kept, with SCHEMA_PREFIX %s',
    async (prefix) => {
      const config = { schemaPrefix: prefix, mutations: 'all' } as const;
      await using gateway = await over(sdl, resolvers, config);
      const field = (name: string) =>
        prefix ? `recruiting${name.charAt(0).toUpperCase()}${name.slice(1)}` : name;
      const { data, errors } = await gateway.ask(
        `query { __typename ...Root
        ... on QueryRoot { page: ${field('persons')}(first: 1) { items { id } } } }
      fragment Root on QueryRoot {
        all: ${field('allPersons')}(limit: 2) { id }
        connection: ${field('personsConnection')}(first: 1) { nodes { id } }
        one: ${field('person')}(id: "0") { id }
      }`,
      );
      expect(errors).toBeUndefined();
      expect(data).toEqual({
        __typename: 'QueryRoot',
        page: { items: [{ id: '0' }] },
        all: [{ id: '0' }, { id: '1' }],
        connection: { nodes: [{ id: '0' }] },
        one: { id: '0' },
      });
      const mutation = await gateway.ask(
        `mutation { __typename ... on MutationRoot { done: ${field('rename')}(name: "x") { name query { __typename } } } }`,
      );
      expect(mutation).toEqual({
        data: {
          __typename: 'MutationRoot',
          done: { name: 'x', query: { __typename: 'QueryRoot' } },
        },
      });
    },
  );

  test('schema explain and adapters.json use the names of root types', () => {
    const overrides = { fields: { 'QueryRoot.persons': { page: 5 } } };
    const { reports } = servedOffline(sdl, { overrides });
    expect(reports).toMatchObject([
      { list: 'QueryRoot.persons', all: 'allPersons' },
      { type: 'Person', foundBy: 'QueryRoot.persons' },
    ]);
    expect(() => servedOffline(sdl, { overrides: { fields: { 'Query.persons': {} } } })).toThrow(
      'The paged lists are: QueryRoot.persons',
    );
  });
});

test('the description of the whole schema is served', () => {
  const sdl = `"""All about people."""\nschema { query: Query }\ntype Query { ${PERSONS} } ${PAGE}`;
  expect(printSchema(servedOffline(sdl).schema)).toMatch(/^"""All about people\."""\nschema \{/);
});

function over(sdl: string, resolvers: Resolvers, config = {}) {
  return startGatewayOverSandbox(
    { schema: makeExecutableSchema(sdl, resolvers) },
    { snapshot: sdl, config },
  );
}

function pages() {
  const all = Array.from({ length: 120 }, (_item, id) => ({ id }));
  return (_: unknown, args: PageArgs) => pageOf(all, args);
}
