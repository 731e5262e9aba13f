import { existsSync, readFileSync } from 'node:fs';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { listeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

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

interface Identified {
  readonly id: number;
}
interface Connection {
  readonly totalCount: number;
  readonly edges: readonly { readonly cursor: string; readonly node: Identified }[];
  readonly nodes: readonly Identified[];
  readonly pageInfo: { readonly hasNextPage: boolean };
}

let world: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
beforeEach(async () => {
  world = await startGatewayOverSandbox({ schema: 'results', persons: 30 }, { snapshot });
  onTestFinished(() => world[Symbol.asyncDispose]());
});

test('a page behind a result is drained and connected like any other', async () => {
  const { data, errors } = await world.ask<{
    allManagers: Identified[];
    managersConnection: Connection;
  }>(`{
    allManagers { id name }
    managersConnection(first: 2) { totalCount edges { cursor node { id } } pageInfo { hasNextPage } }
  }`);
  expect(errors).toBeUndefined();
  const ids = data.allManagers.map(({ id }) => id);
  expect(ids.length).toBeGreaterThan(2);
  const { edges, totalCount, pageInfo } = data.managersConnection;
  expect([totalCount, pageInfo.hasNextPage]).toEqual([ids.length, true]);
  expect(edges.map(({ node }) => node.id)).toEqual(ids.slice(0, 2));
  const rest = await world.ask<{ managersConnection: Connection }>(
    'query ($after: String) { managersConnection(first: 100, after: $after) { nodes { id } } }',
    { after: edges[1]!.cursor },
  );
  expect(rest.data.managersConnection.nodes.map(({ id }) => id)).toEqual(ids.slice(2));
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

test('the plain field of a result is the answer of the service itself', async () => {
  world.sandbox.rights.managers = false;
  const { data, errors } = await world.ask(
    '{ managers { __typename ... on ManagersError { errorType } } person(id: 99999) { ... on PersonError { message } } }',
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    managers: { __typename: 'ManagersError', errorType: 'FORBIDDEN' },
    person: { message: expect.any(String) },
  });
});

test('a list below a record goes on through the result that has its parent', async () => {
  const { data, errors } = await world.ask<{
    all: { id: number; allHistory: Identified[] }[];
    persons: { items: { id: number; historyConnection: Connection }[] };
  }>(`{
    all: allPersons(limit: 5) { id allHistory { id __typename } }
    persons(first: 5) {
      items {
        id
        historyConnection(first: 1) { edges { cursor node { id __typename ... on StatusEvent { createdAt } } } }
      }
    }
  }`);
  expect(errors).toBeUndefined();
  const whole = new Map(data.all.map(({ id, allHistory }) => [id, allHistory]));
  let walked = 0;
  for (const { id, historyConnection } of data.persons.items) {
    const events = whole.get(id)!;
    expect(historyConnection.edges.map(({ node }) => node.id)).toEqual(
      events.slice(0, 1).map((event) => event.id),
    );
    const [edge] = historyConnection.edges;
    if (!edge) continue;
    const next = await world.ask<{ personItem: { historyConnection: Connection } }>(
      'query ($id: Int!, $after: String) { personItem(id: $id) { historyConnection(first: 500, after: $after) { nodes { id } } } }',
      { id, after: edge.cursor },
    );
    expect(next.errors).toBeUndefined();
    expect(next.data.personItem.historyConnection.nodes.map((node) => node.id)).toEqual(
      events.slice(1).map((event) => event.id),
    );
    walked += 1;
  }
  expect(walked).toBeGreaterThan(0);
});

test('a public form of a record, and a record that does not exist, are null', async () => {
  const { data, errors } = await world.ask(
    '{ open: vacancyItem(id: 1) { id } other: vacancyItem(id: 2000000001) { id } none: vacancyItem(id: 99999) { id } }',
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({ open: { id: 1 }, other: null, none: null });
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

test('an export of a list that the service refuses says so in the words of the service, and fails', async () => {
  world.sandbox.rights.managers = false;
  await using door = await listeningGateway(world);
  using folder = temporaryFolder();
  const output = folder.file('managers.ndjson');
  const refused = await runHere(['export', 'managers', '--url', door.url, '--output', output]);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain('You may not see the managers.');
  expect(existsSync(output)).toBe(false);

  world.sandbox.rights.managers = true;
  const done = await runHere(['export', 'managers', '--url', door.url, '--output', output]);
  expect(done).toMatchObject({ code: 0 });
  expect(readFileSync(output, 'utf8').trim().split('\n').length).toBeGreaterThan(2);
});
