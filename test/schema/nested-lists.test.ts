import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeExecutableSchema, fullSdl, fullService } from '../support/imitations/honest.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

type World = Awaited<ReturnType<typeof startGatewayOverSandbox>>;

let world: World;
beforeAll(async () => {
  world = await over({ mutations: 'all' });
});
afterAll(() => world[Symbol.asyncDispose]());

test('pages are requested through the parent, one request for each', async () => {
  const byId = await answered('{ vacancy(id: 7) { allCandidates { id } } }');
  expect(byId.errors).toBeUndefined();
  expect(at(byId.data, 'vacancy', 'allCandidates')).toHaveLength(32);
  expect(byId.requests).toBe(1 + 11);
  const byPath = await answered('{ viewer { settings { allEvents { text } } } }');
  expect(byPath.errors).toBeUndefined();
  expect(at(byPath.data, 'viewer', 'settings', 'allEvents')).toHaveLength(7);
  expect(byPath.requests).toBe(1 + 4);
});

test('a cursor is valid only for the list of its parent, however the parent is found', async () => {
  const { data } = await answered(`{
    vacancy(id: 7) { candidatesConnection(first: 2) { edges { cursor } pageInfo { hasNextPage } } }
  }`);
  const after = at(data, 'vacancy', 'candidatesConnection', 'edges', 0, 'cursor');
  const here = await answered(
    `query ($after: String) {
      theVacancy(id: 7) { candidatesConnection(first: 2, after: $after) { nodes { id } pageInfo { hasPreviousPage } } }
      vacancies(after: "5") { items { id allCandidates(after: $after, limit: 1) { id } } }
    }`,
    { after },
  );
  expect(at(here.data, 'theVacancy', 'candidatesConnection')).toEqual({
    nodes: [{ id: 2 }, { id: 3 }],
    pageInfo: { hasPreviousPage: true },
  });
  const items = at(here.data, 'vacancies', 'items') as { id: number; allCandidates: unknown }[];
  expect(items.find(({ id }) => id === 7)?.allCandidates).toEqual([{ id: 2 }]);
  expect(here.errors?.map(({ extensions }) => extensions?.['code'])).toEqual([
    'CURSOR_INVALID',
    'CURSOR_INVALID',
  ]);
});

test('DRAIN_MAX_ITEMS counts all drains of an operation, nested ones too', async () => {
  await using small = await over({ drainMaxItems: 20 });
  const { errors } = await small.ask('{ allVacancies { allCandidates { id } } }');
  expect(errors?.[0]).toMatchObject({
    path: ['allVacancies', expect.any(Number), 'allCandidates'],
    extensions: { code: 'DRAIN_LIMIT_EXCEEDED', max: 20 },
  });
  const enough = await small.ask('{ allVacancies { allCandidates(limit: 1) { id } } }');
  expect(enough.errors).toBeUndefined();
});

test('a parent that no longer exists when its list is requested is reported', async () => {
  const sdl = `
    type Query { persons(first: Int, after: String): PersonPage! person(id: ID!): Person }
    type Person { id: ID! notes(first: Int, after: String): NotePage! }
    type PersonPage { items: [Person!]! pageInfo: PageInfo! }
    type Note { text: String }
    type NotePage { items: [Note!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }
  `;
  const schema = makeExecutableSchema(sdl, {
    Query: {
      persons: () => ({ items: [{ id: 'p' }], pageInfo: { hasNextPage: false } }),
      person: () => null,
    },
    Person: {
      notes: () => ({ items: [{ text: 'n' }], pageInfo: { hasNextPage: true, endCursor: 'x' } }),
    },
  });
  await using gateway = await startGatewayOverSandbox({ schema }, { snapshot: sdl });
  const { data, errors } = await gateway.ask('{ allPersons { id allNotes { text } } }');
  expect(data).toEqual({ allPersons: [{ id: 'p', allNotes: null }] });
  expect(errors).toEqual([
    expect.objectContaining({
      message: expect.stringContaining('no longer has this Person'),
      path: ['allPersons', 0, 'allNotes'],
      extensions: { code: 'UPSTREAM_BAD_RESPONSE' },
    }),
  ]);
});

function at(value: unknown, ...path: (string | number)[]): unknown {
  return path.reduce<unknown>(
    (holder, step) => (holder as Record<string, unknown> | null | undefined)?.[step],
    value,
  );
}

async function answered(query: string, variables: Record<string, unknown> = {}) {
  const before = world.sandbox.stats.requests.graphql;
  const answer = await world.ask(query, variables);
  return { ...answer, requests: world.sandbox.stats.requests.graphql - before };
}

async function over(config: { mutations?: 'all'; drainMaxItems?: number }): Promise<World> {
  const gateway = await startGatewayOverSandbox(
    { schema: fullService().schema },
    {
      snapshot: fullSdl,
      overrides: { fields: { 'Candidate.history': { identity: 'at' } } },
      config,
    },
  );
  await gateway.ask('{ viewer { __typename } }');
  return gateway;
}
