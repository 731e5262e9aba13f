import { expect, onTestFinished, test } from 'vitest';
import {
  makeExecutableSchema,
  pageOf,
  type PageArgs,
} from '../support/imitations/executable-schema.ts';
import { startGatewayOverFake } from '../support/imitations/fake-upstream.ts';
import { startTeams } from '../support/imitations/teams.ts';

const LONG = 'n'.repeat(240);
const wide = (field: string) =>
  Array.from({ length: 20 }, (_, at) => `${LONG}${at}: ${field}`).join(' ');

test.each([
  `{ allTeams { allMembers { ${wide('id')} } } }`,
  `{ teams { items { allMembers { ${wide('id')} } } } }`,
  `{ team(id: "1") { id ... { allMembers { ${wide('id')} } } } }`,
])('long aliases of nested lists are refused before anything is requested: %#', async (query) => {
  await using gateway = await startTeams({ teams: 3 }, { config: { answerBytes: 50_000_000 } });
  const { errors } = await gateway.ask(query);
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'OPERATION_TOO_COMPLEX' });
  expect(gateway.upstream.received).toEqual([]);
});

test('an ordinary alias in the nested lists of many parents is not refused', async () => {
  const config = { answerBytes: 20_000_000 };
  await using gateway = await startTeams({ teams: 1_000 }, { config });
  const { data, errors } = await gateway.ask<{ allTeams: { allMembers: object[] }[] }>(
    '{ allTeams { id allMembers { idOfThisMember: id } } }',
  );
  expect(errors).toBeUndefined();
  expect(data.allTeams.every(({ allMembers }) => allMembers.length === 2)).toBe(true);
});

const THINGS = `
  interface Named { id: ID! name: String }
  type Thing implements Named { id: ID! name: String }
  type NamedPage { items: [Named!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { things(first: Int, after: String): NamedPage! }
`;

test('long aliases of an interface are refused before anything is requested', async () => {
  const things = Array.from({ length: 100 }, (_, id) => ({ __typename: 'Thing', id, name: 'One' }));
  const schema = makeExecutableSchema(THINGS, {
    Query: { things: (_: unknown, args: PageArgs) => pageOf(things, args) },
  });
  const gateway = await startGatewayOverFake(
    { schema },
    { snapshot: THINGS, config: { answerBytes: 50_000_000 } },
  );
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const { errors } = await gateway.ask(`{ allThings { id ... on Named { ${wide('name')} } } }`);
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'OPERATION_TOO_COMPLEX' });
  expect(gateway.upstream.received).toEqual([]);
  const short = await gateway.ask<{ allThings: object[] }>('{ allThings { id theName: name } }');
  expect(short.data.allThings).toHaveLength(100);
});
