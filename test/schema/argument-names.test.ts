import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeExecutableSchema, pageOf } from '../support/imitations/honest.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';

/** `first` is required everywhere, and at most 200. */
const SDL = /* GraphQL */ `
  type Query {
    sources(afterCursor: String, first: Int!): SourcePage!
    "A date is not a cursor."
    changed(after: Int, PageCursor: String, beforeCursor: String, first: Int!): SourcePage!
  }
  type Source {
    id: Int!
  }
  type SourcePage {
    items: [Source!]!
    pageInfo: PageInfo!
  }
  type PageInfo {
    hasNextPage: Boolean!
    endCursor: String
  }
`;
const SOURCES = Array.from({ length: 450 }, (_, index) => ({ id: index + 1 }));

const byCursor = (_: unknown, args: { first: number; afterCursor?: string | null }) =>
  pageOf(SOURCES, { first: args.first, after: args.afterCursor ?? null }, 200);

let world: GatewayOverFake;
beforeAll(async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: {
      sources: byCursor,
      changed: (_: unknown, args: { first: number; PageCursor?: string; after?: number }) =>
        pageOf(
          SOURCES.filter(({ id }) => id > (args.after ?? 0)),
          { first: args.first, after: args.PageCursor ?? null },
          200,
        ),
    },
  });
  world = await startGatewayOverFake({ schema }, { snapshot: SDL });
});
afterAll(() => world[Symbol.asyncDispose]());

test('a filter with the name of our own argument keeps it, and ours has another', async () => {
  const { data, errors } = await world.ask<Connections & { all: { id: number }[] }>(`{
    all: allChanged(after: 440, limit: 3) { id }
    page: changedConnection(after: 445, first: 2) { edges { cursor node { id } } }
  }`);
  expect(errors).toBeUndefined();
  expect(data.all.map(({ id }) => id)).toEqual([441, 442, 443]);
  expect(idsOf(data['page'])).toEqual([446, 447]);
  const next = await world.ask<Connections & { all: { id: number }[] }>(
    `query ($cursor: String) {
      all: allChanged(after: 445, drainAfter: $cursor) { id }
      page: changedConnection(after: 445, connectionAfter: $cursor) { edges { cursor node { id } } }
    }`,
    { cursor: data['page']!.edges[0]!.cursor },
  );
  expect(next.errors).toBeUndefined();
  expect(next.data.all.map(({ id }) => id)).toEqual([447, 448, 449, 450]);
  expect(idsOf(next.data['page'])).toEqual([447, 448, 449, 450]);
});

test('a cursor of a connection in the plain list is explained with the name of its argument', async () => {
  const { data } = await world.ask<Connections>(
    '{ page: sourcesConnection(first: 1) { edges { cursor node { id } } } }',
  );
  const { errors } = await world.ask(
    'query ($cursor: String) { sources(first: 1, afterCursor: $cursor) { items { id } } }',
    { cursor: data['page']!.edges[0]!.cursor },
  );
  expect(errors![0]!.message).toMatch(/this `afterCursor` is a cursor of a connection/);
});

type Connections = Record<string, { edges: { cursor: string; node: { id: number } }[] }>;

function idsOf(connection: Connections[string] | undefined): number[] {
  return connection!.edges.map(({ node }) => node.id);
}
