import { expect, test } from 'vitest';
import { ModelService, type Traits } from '../paging/model-service.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';

/* What people report about services and gateways of this kind, each tried through the front door. */

interface Connection {
  readonly edges: readonly { readonly cursor: string; readonly node: { readonly id: string } }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly hasPreviousPage: boolean };
}

const isHidden = (serial: number) => serial % 4 === 1;
const SERVICES: readonly [string, Partial<Traits>][] = [
  ['at least ten records', { sizing: 'least' }],
  ['full tens of records', { sizing: 'rounded' }],
  ['pages that are filled up after some records were hidden', { sizing: 'filled', isHidden }],
  ['pages in which some records are hidden', { isHidden }],
  ['two thirds of the records', { sizing: 'fewer' }],
  ['now more records, now fewer', { sizing: 'varied' }],
];

test.each(SERVICES)(
  'each record is returned exactly once by a service that gives %s',
  async (_, traits) => {
    const service = new ModelService({ kind: 'position', length: 233, limit: 50, ...traits });
    const all = service.shown.map(String);
    await using world = await startModel(service);
    for (let drain = 0; drain < 2; drain += 1) {
      const { data } = await world.ask<{ allPersons: { id: string }[] }>('{ allPersons { id } }');
      expect(data.allPersons.map(({ id }) => id)).toEqual(all);
    }
    for (const count of [1, 3, 10, 60, 200]) {
      expect(await paged(world, 'first', count), `first: ${count}`).toEqual(all);
      expect(await paged(world, 'last', count), `last: ${count}`).toEqual(all);
      const { edges } = await connection(world, { first: 40 });
      const resumed = await connection(world, { first: count, after: edges[16]!.cursor });
      expect(idsOf(resumed), `after: ${count}`).toEqual(all.slice(17, 17 + count));
    }
  },
);

test('a cursor is kept although the list has a new filter with a default', async () => {
  const { data } = await askFiltered('');
  const held = data.personsConnection.edges[1]!.cursor;
  const answer = await askFiltered(', includeArchived: Boolean = false', held);
  expect(answer.errors).toBeUndefined();
  expect(idsOf(answer.data.personsConnection)).toEqual(['c', 'd']);
});

/** Asks a gateway for two of five persons. @param filters further arguments of the list */
async function askFiltered(filters: string, after: string | null = null) {
  const snapshot = SNAPSHOT.replace('after: String', `after: String, named: String${filters}`);
  const ids = ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id }));
  const persons = (_: unknown, args: PageArgs) => pageOf(ids, args);
  const schema = makeExecutableSchema(snapshot, { Query: { persons } });
  await using world = await startGatewayOverFake({ schema }, { snapshot });
  const answer = await world.ask<{ personsConnection: Connection }>(
    `query ($after: String) {
      personsConnection(first: 2, named: "a", after: $after) { edges { cursor node { id } } }
    }`,
    { after },
  );
  return answer;
}

test('hasNextPage that is null on the last page ends the list', async () => {
  const snapshot = `
    type Person { id: ID! }
    type PersonPage { items: [Person!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean endCursor: String }
    type Query { persons(first: Int, after: String): PersonPage! }`;
  const ids = Array.from({ length: 7 }, (_, id) => ({ id: String(id) }));
  const schema = makeExecutableSchema(snapshot, {
    Query: {
      persons: (_: unknown, args: PageArgs) => {
        const { items, pageInfo } = pageOf(ids, args, 3);
        return { items, pageInfo: { ...pageInfo, hasNextPage: pageInfo.hasNextPage || null } };
      },
    },
  });
  await using world = await startGatewayOverFake({ schema }, { snapshot });
  for (let drain = 0; drain < 2; drain += 1) {
    const { data, errors } = await world.ask<{ allPersons: { id: string }[] }>(
      '{ allPersons { id } }',
    );
    expect(errors).toBeUndefined();
    expect(data.allPersons).toEqual(ids);
  }
  const { data, errors } = await world.ask<{ personsConnection: Connection }>(
    '{ personsConnection(first: 20) { edges { cursor node { id } } pageInfo { hasNextPage } } }',
  );
  expect(errors).toBeUndefined();
  expect(idsOf(data.personsConnection)).toEqual(ids.map(({ id }) => id));
  expect(data.personsConnection.pageInfo.hasNextPage).toBe(false);
});

test.each([
  '{ persons(first: 1) { items { id @skip(if: $no) } } }',
  '{ allPersons { id @skip(if: $no) } }',
  '{ personsConnection(first: 1) { nodes { id } nodes @skip(if: $no) { __typename } } }',
  '{ person(id: "1") { id @skip(if: $no) } }',
])('an operation with a condition that is null is refused: %s', async (body) => {
  await using world = await startModel(
    new ModelService({ kind: 'position', length: 3, limit: 50 }),
  );
  const answer = await world.ask(`query ($no: Boolean = false) ${body}`, { no: null });
  expect(answer).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
  expect(answer).not.toHaveProperty('data');
});

const SNAPSHOT = `
  type Person { id: ID! }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { first: Int! hasNextPage: Boolean! endCursor: String }
  type Query { persons(first: Int, after: String): PersonPage! }`;

type World = Awaited<ReturnType<typeof startModel>>;

async function startModel(service: ModelService) {
  const persons = (_: unknown, { first, after }: PageArgs) => {
    const { ids, hasNextPage, endCursor, size } = service.page(after ?? null, first ?? 50);
    return {
      items: ids.map((id) => ({ id })),
      pageInfo: { first: size, hasNextPage, endCursor },
    };
  };
  const schema = makeExecutableSchema(SNAPSHOT, { Query: { persons } });
  return startGatewayOverFake({ schema }, { snapshot: SNAPSHOT });
}

/** Pages through the whole list from one of its ends. */
async function paged(world: World, way: 'first' | 'last', count: number): Promise<string[]> {
  let ids: string[] = [];
  for (let cursor: string | undefined; ;) {
    const end = way === 'first' ? 'after' : 'before';
    const page = await connection(world, { [way]: count, ...(cursor && { [end]: cursor }) });
    ids = way === 'first' ? [...ids, ...idsOf(page)] : [...idsOf(page), ...ids];
    const { hasNextPage, hasPreviousPage } = page.pageInfo;
    const isEnd = way === 'first' ? !hasNextPage : !hasPreviousPage;
    // A fault that goes in circles ends as well.
    if (isEnd || ids.length > 1_000) return ids;
    cursor = page.edges.at(way === 'first' ? -1 : 0)!.cursor;
  }
}

async function connection(world: World, variables: Record<string, unknown>): Promise<Connection> {
  const { data, errors } = await world.ask<{ personsConnection: Connection }>(
    `query ($first: Int, $after: String, $last: Int, $before: String) {
      personsConnection(first: $first, after: $after, last: $last, before: $before) {
        edges { cursor node { id } }
        pageInfo { hasNextPage hasPreviousPage }
      }
    }`,
    variables,
  );
  expect(errors).toBeUndefined();
  return data.personsConnection;
}

function idsOf({ edges }: Connection): string[] {
  return edges.map(({ node }) => node.id);
}
