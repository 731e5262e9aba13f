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
