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
  return Object.assign(world, { ids, failing });
}

interface Connection {
  readonly edges: readonly {
    readonly cursor: string;
    readonly node: { readonly id: string } | null;
  }[];
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

test.each(['not read before', 'read to its end before'])(
  'a window has no error of a record outside of it, in a list %s',
  async (how) => {
    await using world = await startRows();
    const read = (args: string) => readConnection(world, 'rowsConnection', args);
    if (how !== 'not read before') await world.ask('{ allRows { id value } }');
    const { edges } = (await read('first: 120')).connection!;
    const cursorOf = (at: number) => `"${edges[at]!.cursor}"`;
    for (const id of ['30', '60', '63', '66', '128']) world.failing.add(id);
    for (const [args, expected] of [
      ['last: 1', ['129']],
      ['last: 0', []],
      [`last: 2, before: ${cursorOf(63)}`, ['61', '62']],
      [`first: 2, after: ${cursorOf(60)}, before: ${cursorOf(66)}`, ['61', '62']],
      [`first: 2, after: ${cursorOf(63)}`, ['64', '65']],
      [`first: 0, after: ${cursorOf(29)}`, []],
    ] as const) {
      const answer = await read(args);
      expect([args, answer.errors, idsOf(answer)]).toEqual([args, undefined, expected]);
    }
  },
);

test('the cursor of a record that fails skips none of the others', async () => {
  await using world = await startRows();
  const read = (args: string) => readConnection(world, 'rowsConnection', args);
  const { edges: whole } = (await read('first: 120')).connection!;
  for (const at of [0, 3, 48, 49, 50, 61]) world.failing.add(String(at));
  const { edges: failed } = (await read('first: 120')).connection!;
  for (const edges of [whole, failed]) {
    for (const at of [0, 3, 48, 49, 50, 61]) {
      // What stood in front of the cursor may be repeated.
      const after = idsOf(await read(`first: 60, after: "${edges[at]!.cursor}"`));
      const next = world.ids.slice(at + 1).find((id) => !world.failing.has(id))!;
      const from = after.indexOf(next);
      expect([at, from]).toEqual([at, expect.toSatisfy((found: number) => found >= 0)]);
      const shown = world.ids.map((id) => (world.failing.has(id) ? null : id));
      const start = Number(next) - from;
      expect(after).toEqual(shown.slice(start, start + 60));
    }
  }
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
    `{ ${field}(${args}) { edges { cursor node { id value } } } }`,
  );
  return { connection: data[field] ?? null, errors };
}

function idsOf({ connection }: { connection: Connection | null }) {
  return connection!.edges.map(({ node }) => node?.id ?? null);
}

test('a page of records without ids is requested once, although a record of it failed', async () => {
  await using world = await startRows();
  world.failing.add('4');
  const { length: before } = world.upstream.received;
  const { data } = await world.ask<{ allNotes: unknown[] }>('{ allNotes(limit: 10) { value } }');
  expect(data.allNotes).toHaveLength(10);
  expect(world.upstream.received.length - before).toBe(1);
});
