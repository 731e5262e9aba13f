import { readFileSync } from 'node:fs';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';

const snapshot = readFileSync('schema/results.graphql', 'utf8');
let world: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
beforeEach(async () => {
  world = await startGatewayOverSandbox({ schema: 'results', persons: 30 }, { snapshot });
  onTestFinished(() => world[Symbol.asyncDispose]());
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

const SDL = `
  type Query { teams(first: Int, after: String): TeamsResult! }
  union TeamsResult = Teams | TeamsError
  type Teams { items: [Team!]! pageInfo: PageInfo! }
  type Team { id: Int! }
  type TeamsError { errorType: ErrorType! message: String! retryAfter: Float }
  enum ErrorType { FORBIDDEN }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;
const MANY_TEAMS = Array.from({ length: 30 }, (_, id) => ({ id }));
const REFUSED = {
  __typename: 'TeamsError',
  errorType: 'FORBIDDEN',
  message: 'The rest is not for you.',
  retryAfter: 0.5,
};

test('an error in place of a page in the middle of a list keeps its type and words', async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: {
      teams: (_: unknown, args: PageArgs) => {
        const page = pageOf(MANY_TEAMS, args, 10);
        return page.items.some(({ id }) => id === 25) ? REFUSED : { __typename: 'Teams', ...page };
      },
    },
  });
  await using told = await startGatewayOverSandbox({ schema }, { snapshot: SDL });
  const drain = await told.ask('{ allTeams { id } }');
  expect(drain.errors).toEqual([
    {
      message: expect.stringContaining('The rest is not for you.'),
      path: ['allTeams'],
      extensions: {
        code: 'DRAIN_INTERRUPTED',
        reason: 'FORBIDDEN',
        result: REFUSED,
        drained: expect.any(Number),
        resumeAfter: expect.any(String),
      },
    },
  ]);
  const connection = await told.ask('{ teamsConnection(first: 30) { nodes { id } } }');
  expect(connection).toEqual({
    data: { teamsConnection: null },
    errors: [
      {
        message: REFUSED.message,
        path: ['teamsConnection'],
        extensions: { code: 'FORBIDDEN', result: REFUSED },
      },
    ],
  });
});

test('records are found through the result that has them, in one request', async () => {
  const query = `query ($r: [_Any!]!) { _entities(representations: $r) { ... on PersonItem { lastName } } }`;
  const r = [3, '4', 3].map((id) => ({ __typename: 'PersonItem', id }));
  await world.ask('{ __typename }');
  const { graphql: before } = world.sandbox.stats.requests;
  const { data, errors } = await world.ask(query, { r });
  expect(errors).toBeUndefined();
  const [castro, dvorak] = [{ lastName: 'Castro' }, { lastName: 'Dvořák' }];
  expect(data).toEqual({ _entities: [castro, dvorak, castro] });
  expect(world.sandbox.stats.requests.graphql - before).toBe(1);
});
