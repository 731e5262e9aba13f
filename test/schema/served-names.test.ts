import { printSchema } from 'graphql';
import { describe, expect, test } from 'vitest';
import { makeExecutableSchema, personPages } from '../support/imitations/honest.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { servedOffline } from '../support/gateway/served-offline.ts';

type Resolvers = Parameters<typeof makeExecutableSchema>[1];

const twoPages = personPages(['0', '1', '2']);
const PAGE = `
  type Person { id: ID! name: String }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;
const PERSONS = 'persons(first: Int, after: String): PersonPage!';

describe('a service whose root types have other names', () => {
  const sdl = `
    schema { query: QueryRoot mutation: MutationRoot }
    type QueryRoot { ${PERSONS} }
    type MutationRoot { rename(name: String!): Renamed! }
    type Renamed { query: QueryRoot! name: String! }
    ${PAGE}`;
  const resolvers = {
    QueryRoot: { persons: twoPages },
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

describe('PageInfo of the service', () => {
  test('the type is renamed if a connection is served', () => {
    const sdl = printed(`type Query { ${PERSONS} } ${PAGE}`);
    expect(sdl).toContain(
      'type UpstreamPageInfo {\n  hasNextPage: Boolean!\n  endCursor: String\n}',
    );
    expect(sdl).toContain('hasPreviousPage: Boolean!');
  });

  test('the type keeps its name if no list is paged', () => {
    const sdl = printed(`type Query { info: PageInfo } ${PAGE}`);
    expect(sdl).toContain('type PageInfo {\n  hasNextPage: Boolean!\n  endCursor: String\n}');
    expect(sdl).not.toContain('UpstreamPageInfo');
  });
});

test('a page type named like a connection is served next to the connection, each with its own name', async () => {
  const sdl = `
    type Query { persons(first: Int, after: String): PersonConnection! edge: PersonEdge }
    type Person { id: ID! }
    type PersonEdge { mine: Boolean }
    type PersonConnection { items: [Person!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }`;
  const resolvers = { Query: { persons: twoPages, edge: () => ({ mine: true }) } };
  await using gateway = await over(sdl, resolvers);
  const { data, errors } = await gateway.ask(
    `{ page: persons(first: 1) { __typename ... on PersonConnection { items { id } } }
       personsConnection(first: 1) {
         __typename
         ... on RelayPersonConnection { edges { __typename ... on RelayPersonEdge { node { id } } } }
       }
       edge { __typename mine } }`,
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    page: { __typename: 'PersonConnection', items: [{ id: '0' }] },
    personsConnection: {
      __typename: 'RelayPersonConnection',
      edges: [{ __typename: 'RelayPersonEdge', node: { id: '0' } }],
    },
    edge: { __typename: 'PersonEdge', mine: true },
  });
  expect(printed(sdl, { prefix: 'Ats' })).toContain('type AtsRelayPersonConnection {');
});

test('the description of the whole schema is served', async () => {
  const sdl = `"""All about people."""\nschema { query: Query }\ntype Query { ${PERSONS} } ${PAGE}`;
  await using gateway = await over(sdl, { Query: { persons: twoPages } });
  const { data } = await gateway.ask('{ __schema { description } }');
  expect(data).toEqual({ __schema: { description: 'All about people.' } });
  expect(printed(sdl)).toMatch(/^"""All about people\."""\nschema \{/);
});

function printed(sdl: string, parts: Parameters<typeof servedOffline>[1] = {}): string {
  return printSchema(servedOffline(sdl, parts).schema);
}

function over(sdl: string, resolvers: Resolvers, config = {}) {
  return startGatewayOverSandbox(
    { schema: makeExecutableSchema(sdl, resolvers) },
    { snapshot: sdl, config },
  );
}
