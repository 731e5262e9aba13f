import { describe, expect, test } from 'vitest';
import type { TestGateway } from '../support/gateway/gateway.ts';
import {
  failure,
  makeExecutableSchema,
  pageOf,
  type PageArgs,
} from '../support/imitations/honest.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';

const SDL = /* GraphQL */ `
  type Query {
    "A row whose value fails is null."
    rows(first: Int, after: String): RowPage!
    "A row whose value fails makes its page fail."
    strictRows(first: Int, after: String): StrictRowPage!
    "A list whose records have no ids."
    notes(first: Int, after: String): NotePage!
    boxes(first: Int, after: String): BoxPage!
    box(id: ID!): Box
  }
  type Box {
    id: ID!
    rows(first: Int, after: String): RowPage!
    strictRows(first: Int, after: String): StrictRowPage
  }
  type Row {
    id: ID!
    value: String!
  }
  type Note {
    value: String!
  }
  type NotePage {
    items: [Note]!
    pageInfo: PageInfo!
  }
  type RowPage {
    items: [Row]!
    pageInfo: PageInfo!
  }
  type StrictRowPage {
    items: [Row!]!
    pageInfo: PageInfo!
  }
  type BoxPage {
    items: [Box!]!
    pageInfo: PageInfo!
  }
  type PageInfo {
    first: Int!
    hasNextPage: Boolean!
    endCursor: String
  }
`;
const ROWS = 130;

/** Rows 0 to 129, in pages of at most 50. The values of those in `failing` cannot be read. */
async function startRows() {
  const ids = Array.from({ length: ROWS }, (_, number) => String(number));
  const failing = new Set<string>();
  const page = (_: unknown, args: PageArgs) =>
    pageOf(
      ids.map((id) => ({ id })),
      args,
    );
  const value = ({ id }: { id: string }) => {
    if (failing.has(id)) throw failure(`The value of ${id} cannot be read.`);
    return `v${id}`;
  };
  const resolvers = {
    Query: {
      rows: page,
      strictRows: page,
      notes: page,
      boxes: (_: unknown, args: PageArgs) => pageOf([{ id: 'b' }], args),
      box: (_: unknown, { id }: { id: string }) => ({ id }),
    },
    Box: { rows: page, strictRows: page },
    Row: { value },
    Note: { value },
  };
  const world = await startGatewayOverFake(
    { schema: makeExecutableSchema(SDL, resolvers) },
    { snapshot: SDL },
  );
  return Object.assign(world, { failing });
}

interface Connection {
  readonly edges: readonly { readonly node: { readonly id: string } | null }[];
}

describe.each(['rowsConnection', 'strictRowsConnection'])('a window of %s', (field) => {
  test('has the error of a record inside of it', async () => {
    await using world = await startRows();
    world.failing.add('128');
    const { connection, errors } = await readConnection(world, field, 'last: 3');
    expect(errors).toMatchObject([{ message: 'The value of 128 cannot be read.' }]);
    if (field === 'rowsConnection')
      expect(connection!.edges.map(({ node }) => node?.id)).toEqual(['127', undefined, '129']);
    else expect(connection).toBeNull();
  });
});

test('a page with a record that failed is requested once where no cursor of it is wanted', async () => {
  await using world = await startRows();
  world.failing.add('3');
  const { length: before } = world.upstream.received;
  await world.ask('{ boxes { items { rowsConnection(first: 5) { nodes { id value } } } } }');
  expect(world.upstream.received.length - before).toBe(1);
});

async function readConnection(world: TestGateway, field: string, args: string) {
  const { data, errors } = await world.ask<Record<string, Connection | null>>(
    `{ ${field}(${args}) { edges { node { id value } } } }`,
  );
  return { connection: data[field] ?? null, errors };
}

test('a page of records without ids is requested once, although a record of it failed', async () => {
  await using world = await startRows();
  world.failing.add('4');
  const { length: before } = world.upstream.received;
  const { data } = await world.ask<{ allNotes: unknown[] }>('{ allNotes(limit: 10) { value } }');
  expect(data.allNotes).toHaveLength(10);
  expect(world.upstream.received.length - before).toBe(1);
});
