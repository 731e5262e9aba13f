import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import {
  makeExecutableSchema,
  pageOf,
  personPages,
  type PageArgs,
} from '../support/imitations/honest.ts';

/* What people report about services and gateways of this kind, each tried through the front door. */

interface Connection {
  readonly edges: readonly { readonly cursor: string; readonly node: { readonly id: string } }[];
  readonly pageInfo: { readonly hasNextPage: boolean };
}

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
  const persons = personPages(['1', '2', '3']);
  const schema = makeExecutableSchema(SNAPSHOT, { Query: { persons } });
  await using world = await startGatewayOverFake({ schema }, { snapshot: SNAPSHOT });
  const answer = await world.ask(`query ($no: Boolean = false) ${body}`, { no: null });
  expect(answer).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
  expect(answer).not.toHaveProperty('data');
});

const SNAPSHOT = `
  type Person { id: ID! }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { first: Int! hasNextPage: Boolean! endCursor: String }
  type Query { persons(first: Int, after: String): PersonPage! }`;

function idsOf({ edges }: Connection): string[] {
  return edges.map(({ node }) => node.id);
}
