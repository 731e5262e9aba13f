import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';

// Relay's GraphQL Cursor Connections Specification, https://relay.dev/graphql/connections.htm: its sections 4.4 and 5.1
// end to end. The golden SDL shows the types of sections 2 and 3, and connections.test.ts compares any window in any
// history with the algorithm.

const PERSONS = 137;
/** Behind the third person. */
const SERVICE_CURSOR = Buffer.from('behind:3').toString('base64url');
const QUERY = `query ($first: Int, $after: String, $last: Int, $before: String) {
  personsConnection(first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { id } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;

interface Connection {
  edges: { cursor: string; node: { id: string } }[];
  pageInfo: Record<string, unknown>;
}

let gateway: GatewayOverService;
let ids: string[];
let cursors: string[];
beforeAll(async () => {
  gateway = await startGatewayOverService({ persons: PERSONS });
  ids = gateway.service.persons.all().map(({ id }) => id);
  cursors = (await read({ first: PERSONS })).edges.map(({ cursor }) => cursor);
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function read(args: object, of = gateway): Promise<Connection> {
  const { data, errors } = await of.ask<{ personsConnection: Connection }>(QUERY, { ...args });
  expect(errors).toBeUndefined();
  return data.personsConnection;
}

/** Cursors are given as the offsets of their edges. */
interface Args {
  first?: number | null;
  after?: number | '' | null;
  last?: number | null;
  before?: number | '' | null;
}
type Row = [args: Args, from: number, to: number, hasPreviousPage: boolean, hasNextPage: boolean];

test.each<Row>([
  [{ first: 500, before: 70 }, 0, 70, false, false],
  [{ first: 4, after: 9, before: 14 }, 10, 14, true, false],
  [{ last: 4, after: 9, before: 20 }, 16, 20, true, true],
  [{ last: 5, before: 0 }, 0, 0, false, true],
  [{ first: 0 }, 0, 0, false, true],
  // Neither of them: a page of the service.
  [{}, 0, 50, false, true],
  // Relay sends the variables of the other direction as null or as an empty cursor.
  [{ first: null, after: null, last: 2, before: 9 }, 7, 9, true, true],
  [{ first: 2, after: 9, last: null, before: '' }, 10, 12, true, true],
])(
  'of 137 records, %j returns those from %i to %i, hasPreviousPage %j and hasNextPage %j',
  async ({ after, before, ...counted }, from, to, hasPreviousPage, hasNextPage) => {
    const cursorAt = (place: typeof after) => (typeof place === 'number' ? cursors[place] : place);
    const args = { ...counted, after: cursorAt(after), before: cursorAt(before) };
    const { edges, pageInfo } = await read(args);
    expect(edges.map(({ node }) => node.id)).toEqual(ids.slice(from, to));
    const [startCursor = null, endCursor = null] = [edges[0]?.cursor, edges.at(-1)?.cursor];
    expect(pageInfo).toEqual({ hasPreviousPage, hasNextPage, startCursor, endCursor });
  },
);

test('of an empty list there are no edges, no cursors, and nothing on either side', async () => {
  await using empty = await startGatewayOverService({ persons: 0 });
  const pageInfo = {
    hasNextPage: false,
    hasPreviousPage: false,
    startCursor: null,
    endCursor: null,
  };
  for (const args of [{}, { first: 0 }, { first: 5 }, { last: 0 }, { last: 5 }])
    expect(await read(args, empty)).toEqual({ edges: [], pageInfo });
});

test('each edge has another cursor, which is also accepted in the text, and by another process', async () => {
  expect(new Set(cursors).size).toBe(PERSONS);
  await using restarted = await startGatewayOverService({ persons: PERSONS });
  const query = `{ personsConnection(first: 2, after: "${cursors[4]}") { nodes { id } } }`;
  expect(await restarted.ask(query)).toEqual({
    data: { personsConnection: { nodes: [{ id: ids[5] }, { id: ids[6] }] } },
  });
});

test.each([
  'firstName',
  'id @include(if: false)',
  'id: firstName',
  '... @skip(if: true) { id } firstName',
])('a cursor has the id of its record, whatever is selected: %s', async (selection) => {
  const { data, errors } = await gateway.ask<{ personsConnection: Connection }>(
    `{ personsConnection(first: 60) { edges { cursor node { ${selection} } } } }`,
  );
  expect(errors).toBeUndefined();
  // Without the id of its record, a cursor has only its page in front of it.
  const window = await read({ last: 20, before: data.personsConnection.edges[59]!.cursor });
  expect(window.edges.map(({ node }) => node.id)).toEqual(ids.slice(39, 59));
});

// Section 4.4 ignores a cursor that no edge has, and discourages `first` and `last` at once: two stated deviations.
test.each([
  [{ first: -1 }, 'BAD_USER_INPUT', /negative/],
  [{ last: -(2 ** 31) }, 'BAD_USER_INPUT', /negative/],
  [{ first: 501 }, 'BAD_USER_INPUT', /at most 500, but it is 501/],
  [{ first: 2, last: 1 }, 'BAD_USER_INPUT', /first.*last/],
  [{ first: 1, after: 'nonsense' }, 'CURSOR_INVALID', /./],
  [{ last: 1, before: SERVICE_CURSOR }, 'CURSOR_INVALID', /cursors of the plain list/],
])('%j is refused without an upstream request', async (args, code, message) => {
  await using fresh = await startGatewayOverService();
  const { data, errors } = await fresh.ask(QUERY, args);
  expect(data).toEqual({ personsConnection: null });
  expect(errors).toMatchObject([
    {
      message: expect.stringMatching(message),
      path: ['personsConnection'],
      extensions: { code },
    },
  ]);
  expect(fresh.service.received).toEqual([]);
});
