import { print, type GraphQLResolveInfo } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../support/gateway/gateway.ts';
import {
  failure,
  makeExecutableSchema,
  pageOf,
  type PageArgs,
} from '../support/imitations/honest.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest } from '../support/imitations/scripted.ts';

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
  /** What happens before the first page of values is read. */
  const changes: (() => void)[] = [];
  const page = (_: unknown, args: PageArgs, _context: unknown, info: GraphQLResolveInfo) => {
    if (print(info.fieldNodes[0]!).includes('value')) changes.pop()?.();
    return pageOf(
      ids.map((id) => ({ id })),
      args,
    );
  };
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
  return Object.assign(world, { ids, failing, changes });
}

interface Connection {
  edges: { cursor: string; node: { id: string; value: string } | null }[];
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean };
}

type World = Awaited<ReturnType<typeof startRows>>;

const WAYS = {
  'a list': (field: string) => ({ open: '', field, close: '' }),
  'a nested list': (field: string) => ({ open: 'box(id: "b") {', field, close: '}' }),
};

describe.each(['a list', 'a nested list'] as const)('a cursor of %s', (way) => {
  describe.each([
    ['rowsConnection', 'is null'],
    ['strictRowsConnection', 'makes its page fail'],
  ])('in %s, where a record that fails %s', (field) => {
    let world: World;
    beforeAll(async () => {
      world = await startRows();
    });
    afterAll(() => world[Symbol.asyncDispose]());

    const read = (args: string) => readConnection(world, WAYS[way](field), args);
    /** The cursors of all records, read while nothing failed. */
    const cursors = async (size: number) => {
      world.failing.clear();
      const all: string[] = [];
      for (let after = ''; all.length < ROWS; after = all.at(-1)!) {
        const { edges } = (await read(`first: ${size}, after: "${after}"`)).connection!;
        all.push(...edges.map(({ cursor }) => cursor));
      }
      return all;
    };

    test.each([7, 50, 120])(
      'finds its record although that fails, among pages of %i',
      async (size) => {
        const all = await cursors(size);
        for (const at of [0, 3, 6, 48, 49, 50, 61, 128]) {
          world.failing.clear();
          world.failing.add(String(at));
          const after = await read(`first: 5, after: "${all[at]}"`);
          expect(after.errors).toBeUndefined();
          expect(idsOf(after)).toEqual(world.ids.slice(at + 1, at + 6));
          const last = await read(`last: 5, before: "${all[at]}"`);
          expect(last.errors).toBeUndefined();
          expect(idsOf(last)).toEqual(world.ids.slice(Math.max(0, at - 5), at));
          const from = Math.max(0, at - 8);
          const start = from === 0 ? '' : `after: "${all[from - 1]}"`;
          const before = await read(`first: 20, before: "${all[at]}", ${start}`);
          expect(before.errors).toBeUndefined();
          expect(idsOf(before)).toEqual(world.ids.slice(from, at));
          expect(before.connection!.pageInfo.hasNextPage).toBe(false);
        }
      },
    );

    test('is no obstacle to a drain that begins after it, although its record fails', async () => {
      const all = await cursors(20);
      world.failing.clear();
      world.failing.add('64').add('79');
      for (const at of [64, 79]) {
        const drained = await drain(world, WAYS[way](allOf(field)), `after: "${all[at]}"`);
        if (at === 79) expect(drained.errors).toBeUndefined();
        const shown = drained.records?.map((record) => record?.id ?? null);
        const expected = world.ids.slice(at + 1).map((id) => (id === '79' ? null : id));
        expect(shown ?? null).toEqual(
          field === 'strictRowsConnection' && at === 64 ? null : expected,
        );
      }
    });
  });
});

describe.each(['rowsConnection', 'strictRowsConnection'])('a window of %s', (field) => {
  test.each(['not read before', 'read to its end before'])(
    'has no error of a record outside of it, in a list %s',
    async (how) => {
      await using world = await startRows();
      const read = (args: string) => readConnection(world, WAYS['a list'](field), args);
      if (how !== 'not read before') await drain(world, WAYS['a list'](allOf(field)), '');
      const { edges } = (await read('first: 120')).connection!;
      const end = (await read('last: 10')).connection!.edges;
      for (const id of ['0', '30', '59', '66', '125', '128']) world.failing.add(id);
      for (const [args, expected] of [
        ['last: 1', ['129']],
        ['last: 0', []],
        ['last: 0, before: "$126"', []],
        ['last: 1, before: "$128"', ['127']],
        ['last: 2, before: "$63"', ['61', '62']],
        ['last: 2, after: "$60", before: "$63"', ['61', '62']],
        ['last: 40, after: "$61", before: "$65"', ['62', '63', '64']],
        ['first: 2, after: "$60", before: "$66"', ['61', '62']],
        ['first: 10, after: "$60", before: "$66"', ['61', '62', '63', '64', '65']],
        ['first: 0', []],
        ['first: 0, after: "$58"', []],
      ] as const) {
        const cursorOf = (id: string) =>
          Number(id) < 120 ? edges[Number(id)]!.cursor : end[Number(id) - 120]!.cursor;
        const answer = await read(args.replaceAll(/\$(\d+)/g, (_, id: string) => cursorOf(id)));
        expect([args, answer.errors, idsOf(answer)]).toEqual([args, undefined, expected]);
      }
    },
  );

  test('has the error of a record inside of it', async () => {
    await using world = await startRows();
    world.failing.add('128');
    const { connection, errors } = await readConnection(world, WAYS['a list'](field), 'last: 3');
    expect(errors).toMatchObject([{ message: 'The value of 128 cannot be read.' }]);
    if (field === 'rowsConnection')
      expect(connection!.edges.map(({ node }) => node?.id)).toEqual(['127', undefined, '129']);
    else expect(connection).toBeNull();
  });
});

test('the cursor of a record that is null because it failed resumes at the same record when others were inserted', async () => {
  await using world = await startRows();
  const read = (args: string) => readConnection(world, WAYS['a list']('rowsConnection'), args);
  world.failing.add('4');
  const { edges } = (await read('first: 10')).connection!;
  expect(edges[4]!.node).toBeNull();
  world.ids.splice(2, 0, 'new');
  expect(idsOf(await read(`first: 2, after: "${edges[4]!.cursor}"`))).toEqual(['5', '6']);
  expect(idsOf(await read(`last: 2, before: "${edges[4]!.cursor}"`))).toEqual(['2', '3']);
});

describe('a list that changes after its records in front of `before` were counted', () => {
  test.each([
    ['a record is removed', ['60', '62'], false],
    ['a record is added', ['60', 'new', '61'], true],
  ] as const)(
    'ends in front of it, and says whether more follow: %s',
    async (how, expected, more) => {
      await using world = await startRows();
      const read = (args: string) => readConnection(world, WAYS['a list']('rowsConnection'), args);
      const { edges } = (await read('first: 80')).connection!;
      world.changes.push(() => {
        if (how === 'a record is added') world.ids.splice(61, 0, 'new');
        else world.ids.splice(61, 1);
      });
      const answer = await read(
        `first: 10, after: "${edges[59]!.cursor}", before: "${edges[63]!.cursor}"`,
      );
      expect(world.changes).toEqual([]);
      expect(answer.errors).toBeUndefined();
      expect(idsOf(answer)).toEqual(expected);
      expect(answer.connection!.pageInfo.hasNextPage).toBe(more);
    },
  );
});

test('a list that changes after the record of `before` was located has the records in front of it, where its page fails', async () => {
  await using world = await startRows();
  const read = (args: string) =>
    readConnection(world, WAYS['a list']('strictRowsConnection'), args);
  const { edges } = (await read('first: 10')).connection!;
  world.failing.add('6');
  // The page of the record fails, and the list changes before the records in front of it are read.
  world.changes.push(
    () => world.ids.splice(0, 0, 'new'),
    () => {},
  );
  const answer = await read(`last: 2, before: "${edges[6]!.cursor}"`);
  expect(answer.errors).toBeUndefined();
  expect(idsOf(answer)).toEqual(['4', '5']);
});

test('a list in which a page fails is read once with what is selected, for a window at its end', async () => {
  await using world = await startRows();
  world.failing.add('59');
  const read = await readConnection(world, WAYS['a list']('strictRowsConnection'), 'last: 1');
  expect(idsOf(read)).toEqual(['129']);
  const ofValues = world.upstream.received.filter(({ body }) => body.includes('value'));
  // Up to the page that fails, and the window.
  expect(ofValues).toHaveLength(3);
});

test('a page with a failed record is returned, although a request for its identities is refused', async () => {
  await using world = await startRows();
  world.failing.add('3');
  world.upstream.answer((response, received, sandbox) => {
    if (received.body.includes('value')) return honest(response, received, sandbox);
    response.writeHead(429, { 'retry-after': '0' }).end();
  });
  const read = readConnection(world, WAYS['a list']('rowsConnection'), 'first: 5');
  const { connection, errors } = await read;
  expect(errors).toMatchObject([{ message: 'The value of 3 cannot be read.' }]);
  expect(connection!.edges.map(({ node }) => node?.id)).toEqual(['0', '1', '2', undefined, '4']);
});

test('a page with a record that failed is requested once where no cursor of it is wanted', async () => {
  await using world = await startRows();
  world.failing.add('3');
  const { length: before } = world.upstream.received;
  await world.ask('{ boxes { items { rowsConnection(first: 5) { nodes { id value } } } } }');
  expect(world.upstream.received.length - before).toBe(1);
});

type Place = ReturnType<(typeof WAYS)['a list']>;

async function readConnection(world: TestGateway, { open, field, close }: Place, args: string) {
  const { data, errors } = await world.ask<Record<string, unknown>>(
    `{ ${open} ${field}(${args}) {
      edges { cursor node { id value } }
      pageInfo { hasNextPage hasPreviousPage }
    } ${close} }`,
  );
  const parent = (open === '' ? data : data?.['box']) as Record<string, unknown> | null;
  return { connection: (parent?.[field] ?? null) as Connection | null, errors };
}

async function drain(world: TestGateway, { open, field, close }: Place, args: string) {
  const { data, errors } = await world.ask<Record<string, unknown>>(
    `{ ${open} ${field}${args === '' ? '' : `(${args})`} { id value } ${close} }`,
  );
  const parent = (open === '' ? data : data?.['box']) as Record<string, unknown> | null;
  return { records: parent?.[field] as ({ id: string } | null)[] | null | undefined, errors };
}

function allOf(connection: string): string {
  const name = connection.replace('Connection', '');
  return `all${name[0]!.toUpperCase()}${name.slice(1)}`;
}

function idsOf({ connection }: { connection: Connection | null }) {
  return connection?.edges.map(({ node }) => node?.id ?? null) ?? null;
}

test('a page of records without ids is requested once, although a record of it failed', async () => {
  await using world = await startRows();
  world.failing.add('4');
  const { length: before } = world.upstream.received;
  const { data } = await world.ask<{ allNotes: unknown[] }>('{ allNotes(limit: 10) { value } }');
  expect(data.allNotes).toHaveLength(10);
  expect(world.upstream.received.length - before).toBe(1);
});
