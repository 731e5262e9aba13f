import { expect, test } from 'vitest';
import type { Answer } from '../support/gateway/gateway.ts';
import { makeExecutableSchema, PERSONS, personPages } from '../support/imitations/honest.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { altered, type Reply } from '../support/imitations/scripted.ts';
import { startTeams } from '../support/gateway/teams.ts';

/** Characters of the longest cursor that the gateway accepts. */
const LONGEST = 65_536;
const TOO_LONG = /cursor of more than 65536 characters/;
const MEGABYTE = 1024 * 1024;

/** Answers with cursors of this many characters: numbers with zeros in front. */
function withCursors(length: number): Reply {
  return altered(({ data }) => lengthen(data, length));
}

function lengthen(value: unknown, length: number): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value as Record<string, unknown>)) {
    if (key === 'endCursor' && typeof inner === 'string') {
      Object.assign(value, { endCursor: inner.padStart(length, '0') });
    } else lengthen(inner, length);
  }
}

const SDL = `type Person { id: ID! name: String } ${PERSONS}`;

async function startPersons(count: number, cursors: number, answerBytes = 64 * MEGABYTE) {
  const ids = Array.from({ length: count }, (_, id) => String(id));
  const gateway = await startGatewayOverFake(
    { schema: makeExecutableSchema(SDL, { Query: { persons: personPages(ids) } }) },
    { snapshot: SDL, config: { answerBytes } },
  );
  gateway.upstream.answer(withCursors(cursors));
  return gateway;
}

const refused = {
  message: expect.stringMatching(TOO_LONG),
  extensions: { code: 'UPSTREAM_BAD_RESPONSE' },
};

test.each([
  ['a drain', '{ field: allPersons { id } }'],
  ['a drain with @stream', '{ field: allPersons @stream { id } }'],
  ['a connection', '{ field: personsConnection(first: 3) { nodes { id } } }'],
  ['the end of a connection', '{ field: personsConnection(last: 3) { nodes { id } } }'],
  ['a total', '{ field: personsConnection { totalCount } }'],
  ['a lookup', '{ field: person(id: "99") { id } }'],
])('%s fails at a cursor of more than 64 KB', async (_, query) => {
  await using gateway = await startPersons(120, LONGEST + 1);
  const { errors } = await gateway.ask(query);
  expect(errors).toMatchObject([refused]);
});

test('a page that is read value by value fails at a cursor of more than 64 KB too', async () => {
  await using gateway = await startPersons(120, LONGEST + 1);
  gateway.upstream.answer(
    altered((answer) => {
      lengthen(answer.data, LONGEST + 1);
      answer.errors = [{ message: 'No name.', path: ['persons', 'items', 0, 'name'] }];
    }),
  );
  const { errors } = await gateway.ask('{ allPersons { id name } }');
  expect(errors).toMatchObject([refused]);
});

test('a later page with a longer cursor interrupts a drain', async () => {
  await using gateway = await startPersons(120, 10);
  gateway.upstream.answer(withCursors(10), withCursors(LONGEST + 1));
  const { errors } = await gateway.ask('{ allPersons { id } }');
  expect(errors).toMatchObject([
    {
      message: expect.stringMatching(TOO_LONG),
      extensions: { code: 'DRAIN_INTERRUPTED', reason: 'UPSTREAM_BAD_RESPONSE' },
    },
  ]);
});

test.each(['allMembers { id }', 'membersConnection { nodes { id } }'])(
  'a nested list fails at a cursor of more than 64 KB: %s',
  async (list) => {
    await using world = await startTeams({ teams: 1, members: 12 });
    world.upstream.answer(withCursors(LONGEST + 1));
    const { data, errors } = await world.ask<{ team: object }>(
      `{ team(id: "0") { id list: ${list} } }`,
    );
    expect(data.team).toEqual({ id: '0', list: null });
    expect(errors).toMatchObject([{ ...refused, path: ['team', 'list'] }]);
  },
);

test('a connection continues behind its cursors, however long those of the service may be', async () => {
  await using gateway = await startPersons(12, LONGEST);
  const page = '{ edges { cursor node { id } } pageInfo { endCursor } }';
  const ids: string[] = [];
  let after: string | null = null;
  while (ids.length < 12) {
    const answer: Answer<Connection> = await gateway.ask(
      `query ($after: String) { personsConnection(first: 4, after: $after) ${page} }`,
      { after },
    );
    expect(answer.errors).toBeUndefined();
    const { edges, pageInfo } = answer.data.personsConnection;
    ids.push(...edges.map(({ node }) => node.id));
    after = pageInfo.endCursor;
  }
  expect(ids).toEqual(Array.from({ length: 12 }, (_, id) => String(id)));
});

interface Connection {
  personsConnection: {
    edges: { cursor: string; node: { id: string } }[];
    pageInfo: { endCursor: string };
  };
}

test('the cursors of a connection count against the memory for answers, once for each place they are written', async () => {
  await using gateway = await startPersons(500, 60_000, 32 * MEGABYTE);
  const cursors = (first: number, places: string) =>
    gateway.ask(`{ personsConnection(first: ${first}) { ${places} } }`);
  expect((await cursors(100, 'edges { cursor }')).errors).toBeUndefined();
  for (const [first, places] of [
    [500, 'edges { cursor }'],
    [100, 'edges { a: cursor b: cursor c: cursor }'],
    [100, 'edges { cursor } b: edges { cursor } c: edges { cursor }'],
  ] as const) {
    const { errors } = await cursors(first, places);
    expect(errors).toMatchObject([{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }]);
  }
});
