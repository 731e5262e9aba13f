import { afterAll, beforeAll, expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { makeExecutableSchema, pageOf } from '../support/imitations/honest.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** `first` is required everywhere, and at most 200. */
const SDL = /* GraphQL */ `
  type Query {
    sources(afterCursor: String, first: Int!): SourcePage!
    "A date is not a cursor."
    changed(after: Int, PageCursor: String, beforeCursor: String, first: Int!): SourcePage!
    source(id: Int!): Source
  }
  type Source {
    id: Int!
    name: String
    parts(afterCursor: String, first: Int!): SourcePage!
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
const SOURCES = Array.from({ length: 450 }, (_, index) => ({
  id: index + 1,
  name: `s${index + 1}`,
}));

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
      source: (_: unknown, { id }: { id: number }) => SOURCES[id - 1],
    },
    Source: { parts: byCursor },
  });
  world = await startGatewayOverFake({ schema }, { snapshot: SDL });
});
afterAll(() => world[Symbol.asyncDispose]());

const ALL = SOURCES.map(({ id }) => id);

test('a list with another name for its cursor, and a required first, is drained, also by its page index', async () => {
  for (let walk = 0; walk < 2; walk += 1) {
    const { data, errors } = await world.ask<{ allSources: { id: number }[] }>(
      '{ allSources { id } }',
    );
    expect(errors).toBeUndefined();
    expect(data.allSources.map(({ id }) => id)).toEqual(ALL);
  }
});

test('its connection goes forward and backward, with cursors that resume behind each record', async () => {
  const { data, errors } = await world.ask<Connections>(`{
    forward: sourcesConnection(first: 120) { totalCount edges { cursor node { id } } pageInfo { hasNextPage } }
    end: sourcesConnection(last: 3) { edges { cursor node { id } } }
  }`);
  expect(errors).toBeUndefined();
  expect(data['forward']).toMatchObject({ totalCount: 450, pageInfo: { hasNextPage: true } });
  expect(idsOf(data['forward'])).toEqual(ALL.slice(0, 120));
  expect(idsOf(data['end'])).toEqual([448, 449, 450]);
  for (const at of [0, 49, 50, 119]) {
    const after = data['forward']!.edges[at]!.cursor;
    const resumed = await world.ask<Connections & { all: { id: number }[] }>(
      `query ($after: String) {
        next: sourcesConnection(first: 2, after: $after) { edges { cursor node { id } } }
        before: sourcesConnection(last: 2, before: $after) { edges { cursor node { id } } }
        all: allSources(after: $after, limit: 2) { id }
      }`,
      { after },
    );
    expect(idsOf(resumed.data['next'])).toEqual([at + 2, at + 3]);
    expect(idsOf(resumed.data['before'])).toEqual([at - 1, at].filter((id) => id > 0));
    expect(resumed.data.all.map(({ id }) => id)).toEqual([at + 2, at + 3]);
  }
});

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

test('a nested list of this kind is read through its parent', async () => {
  const first = await world.ask<{ source: Connections }>(
    '{ source(id: 3) { partsConnection(first: 2) { edges { cursor node { id } } } } }',
  );
  expect(first.errors).toBeUndefined();
  expect(idsOf(first.data.source['partsConnection'])).toEqual([1, 2]);
  const whole = await world.ask<{ source: { allParts: { id: number }[] } }>(
    '{ source(id: 3) { allParts { id } } }',
  );
  expect(whole.data.source.allParts.map(({ id }) => id)).toEqual(ALL);
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

test('schema explain says which argument it takes, and why a list has no cursor', async () => {
  using folder = temporaryFolder();
  const RECRUITING_SCHEMA = join(folder.path, 'upstream.graphql');
  const more = `
    several(first: Int, afterThis: String, cursor: String): SourcePage!
    none(first: Int, afterCursor: String!): SourcePage!
    keyed(first: Int, after: Key): SourcePage!
    counted(first: Int, after: String): CountedPage!`;
  const types = `
    scalar Key
    type CountedPage { items: [Source!]! pageInfo: CountedInfo! }
    type CountedInfo { hasNextPage: Boolean! endCursor: Int }`;
  writeFileSync(RECRUITING_SCHEMA, SDL.replace('type Query {', `${types} type Query { ${more}`));
  const { stdout } = await runHere(['schema', 'explain'], { RECRUITING_SCHEMA });
  expect(stdout).toContain(`Query.sources
  all         allSources
  connection  sourcesConnection (SourceConnection, SourceEdge)
  why         it takes first and afterCursor, and returns pages of Source.
`);
  expect(stdout).toMatch(
    /Query\.several\n {2}omitted .* afterThis, cursor may be its argument for/,
  );
  expect(stdout).toMatch(/Query\.none\n {2}omitted .* no argument after: String, nor one of/);
  expect(stdout).toMatch(
    /Query\.keyed\n {2}omitted .* no argument after: String.*only cursors of type String or ID/,
  );
  expect(stdout).toMatch(
    /Query\.counted\n {2}omitted .*CountedInfo\.endCursor has the type Int, and only cursors of type String/,
  );
});

test('adapters.json says which argument has the cursor where several may be the one, in the words of schema explain', async () => {
  const ambiguous = SDL.replace(
    'afterCursor: String, first: Int!): SourcePage!\n    "A date',
    'afterCursor: String, cursorMode: String, first: Int!): SourcePage!\n    "A date',
  );
  using folder = temporaryFolder();
  const path = folder.file('upstream.graphql');
  writeFileSync(path, ambiguous);
  const { stdout } = await runHere(['schema', 'explain'], { RECRUITING_SCHEMA: path });
  const advice = /such as (?<entry>"fields": .* \}) *\}/.exec(stdout)!.groups!['entry']!;
  const overrides: unknown = JSON.parse(`{ ${advice} } }`);
  const schema = makeExecutableSchema(ambiguous, { Query: { sources: byCursor } });
  await using told = await startGatewayOverFake({ schema }, { snapshot: ambiguous, overrides });
  const { data } = await told.ask<{ allSources: { id: number }[] }>('{ allSources { id } }');
  expect(data.allSources.map(({ id }) => id)).toEqual(ALL);

  writeFileSync(
    join(path, '..', 'adapters.json'),
    JSON.stringify({ fields: { 'Query.sources': { after: 'first' } } }),
  );
  const refused = await runHere(['schema', 'explain'], { RECRUITING_SCHEMA: path });
  expect(refused.stderr).toContain('is not an optional argument for a cursor');
});

type Connections = Record<string, { edges: { cursor: string; node: { id: number } }[] }>;

function idsOf(connection: Connections[string] | undefined): number[] {
  return connection!.edges.map(({ node }) => node.id);
}
