import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { listeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';

const SDL = `
  type Query { members(first: Int, after: String): Members! tags(limit: Int, after: String): [String!]! }
  type Members { items: [Member!]! pageInfo: PageInfo! }
  union Member = Person | Team
  type Person { id: Int! firstName: String rank: Int }
  type Team { id: Int! title: String rank: String }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;
const MEMBERS = Array.from({ length: 60 }, (_, id) =>
  id % 2 === 0
    ? { __typename: 'Person', id, firstName: `Name ${id}` }
    : { __typename: 'Team', id, title: `Title ${id}` },
);

test('a list whose records are a union is exported with the plain fields of all its types', async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: { members: (_: unknown, args: PageArgs) => pageOf(MEMBERS, args, 20) },
  });
  await using world = await startGatewayOverSandbox({ schema }, { snapshot: SDL });
  await using door = await listeningGateway(world);
  const done = await runHere(['export', 'members', '--url', door.url]);
  expect(done).toMatchObject({ code: 0 });
  expect(
    done.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual(MEMBERS);

  const unknown = await runHere(['export', 'nothing', '--url', door.url]);
  expect(unknown.stderr).toContain('Choose one of these: allMembers.');
});

test('a list behind a result is among those that can be exported', async () => {
  await using world = await startGatewayOverSandbox(
    { schema: 'results' },
    { snapshot: readFileSync('schema/results.graphql', 'utf8') },
  );
  await using door = await listeningGateway(world);
  const { stderr } = await runHere(['export', 'nothing', '--url', door.url]);
  expect(stderr).toContain('allManagers');
});
