import { readFileSync } from 'node:fs';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';

const snapshot = readFileSync('schema/results.graphql', 'utf8');
const FORBIDDEN = {
  message: 'You may not see the managers.',
  extensions: {
    code: 'FORBIDDEN',
    result: {
      __typename: 'ManagersError',
      errorType: 'FORBIDDEN',
      message: 'You may not see the managers.',
    },
  },
};

let world: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
beforeEach(async () => {
  world = await startGatewayOverSandbox({ schema: 'results', persons: 30 }, { snapshot });
  onTestFinished(() => world[Symbol.asyncDispose]());
});

test('an error in place of a page fails every derived field with the words of the service', async () => {
  world.sandbox.rights.managers = false;
  const { data, errors } = await world.ask(
    '{ allManagers { id } managersConnection(first: 2, after: null) { nodes { id } } counted: managersConnection { many: totalCount } }',
  );
  expect(data).toEqual({
    allManagers: null,
    managersConnection: null,
    counted: { many: null },
  });
  const paths = [['allManagers'], ['managersConnection'], ['counted', 'many']];
  expect(errors).toEqual(expect.arrayContaining(paths.map((path) => ({ ...FORBIDDEN, path }))));
  expect(errors).toHaveLength(paths.length);
});

test('an error in place of a page ends a stream with the words of the service', async () => {
  world.sandbox.rights.managers = false;
  const response = await world.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'multipart/mixed' },
    body: JSON.stringify({ query: '{ allManagers @stream { id } }' }),
  });
  const text = await response.text();
  expect(text).toContain('"message":"You may not see the managers."');
  expect(text).toContain('"items":null');
});

const OUTCOMES = `
  interface Outcome { took: Int }
  type Teams implements Outcome { took: Int items: [Team!]! pageInfo: PageInfo! }
  type Denied implements Outcome { took: Int reason: String! }
  type Closed implements Outcome { took: Int reason: Int }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  interface TeamOutcome { took: Int }
  type Team implements TeamOutcome { took: Int id: ID! name: String }
  type TeamGone implements TeamOutcome { took: Int status: Int }
  type Query {
    teams(first: Int, after: String, denied: Boolean): Outcome
    team(id: ID!): TeamOutcome
  }
`;
const TEAMS = ['1', '2', '3'].map((id) => ({ __typename: 'Team', id, name: `Team ${id}` }));
const outcomes = () =>
  makeExecutableSchema(OUTCOMES, {
    Query: {
      teams: (_: unknown, { denied, ...args }: PageArgs & { denied?: boolean }) =>
        denied
          ? { __typename: 'Denied', reason: 'Not for you.' }
          : { __typename: 'Teams', ...pageOf(TEAMS, args, 2) },
      team: (_: unknown, { id }: { id: string }) =>
        TEAMS.find((team) => team.id === id) ?? { __typename: 'TeamGone', status: 404 },
    },
  });

test('results that are interfaces are read like unions, also if fields of their errors differ in type', async () => {
  await using told = await startGatewayOverSandbox({ schema: outcomes() }, { snapshot: OUTCOMES });
  const { data, errors } = await told.ask(`{
    allTeams { id name }
    teamsConnection(first: 3) { nodes { id } }
    denied: allTeams(denied: true) { id }
    _entities(representations: [{ __typename: "Team", id: "2" }, { __typename: "Team", id: "9" }]) { ... on Team { name } }
  }`);
  expect(data).toEqual({
    allTeams: TEAMS.map(({ id, name }) => ({ id, name })),
    teamsConnection: { nodes: TEAMS.map(({ id }) => ({ id })) },
    denied: null,
    _entities: [{ name: 'Team 2' }, null],
  });
  expect(errors).toEqual([
    {
      message: 'Not for you.',
      path: ['denied'],
      extensions: {
        code: 'FORBIDDEN',
        result: { __typename: 'Denied', took: null, reason: 'Not for you.' },
      },
    },
  ]);
});
