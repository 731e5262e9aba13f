import { buildSubgraphSchema } from '@apollo/subgraph';
import { parse } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { serveRecorded } from '../support/supergraph/recorded-server.ts';
import { executedSupergraph } from '../support/supergraph/executed.ts';

const snapshot = readFileSync('schema/results.graphql', 'utf8');
const OF_ANOTHER = 2_000_000_001;

/** Another team's subgraph, which refers to persons and adds a field to them. */
const BADGES = parse(/* GraphQL */ `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
  type PersonItem @key(fields: "id") {
    id: Int!
    colour: String
  }
  type Badge {
    person: PersonItem
  }
  type Query {
    badges(of: [Int!]!): [Badge!]!
  }
`);

test('pages and records of another subgraph are read through results', async () => {
  await using world = await startGatewayOverSandbox(
    { schema: 'results', persons: 30 },
    { snapshot },
  );
  await using recruiting = await serveRecorded((request) => world.gateway.handler.fetch(request));
  const badges = createYoga({
    logging: false,
    schema: buildSubgraphSchema([
      {
        typeDefs: BADGES,
        resolvers: {
          Query: {
            badges: (_: unknown, { of }: { of: number[] }) => of.map((id) => ({ person: { id } })),
          },
          PersonItem: { colour: ({ id }: { id: number }) => `colour ${id}` },
        },
      },
    ]),
  });
  await using other = await serveRecorded((request) => badges.fetch(request));
  const { data: service } = await world.ask<{ _service: { sdl: string } }>('{ _service { sdl } }');
  const { sdl } = service._service;
  const router = executedSupergraph([
    { name: 'recruiting', sdl, url: recruiting.url },
    { name: 'badges', sdl: BADGES.loc!.source.body, url: other.url },
  ]);

  const query = `{
      allManagers { id name }
      managers(first: 2) {
        __typename
        ... on Managers { items { id } }
        ... on ManagersError { errorType }
      }
      managersConnection(first: 2) { nodes { id } }
      personItem(id: 3) { lastName colour }
    }`;
  const { data, errors } = await router.ask(query);
  expect(errors).toBeUndefined();
  const all = data!['allManagers'] as { id: number }[];
  const two = all.slice(0, 2).map(({ id }) => ({ id }));
  expect(two).toHaveLength(2);
  expect(data).toEqual({
    allManagers: all,
    managers: { __typename: 'Managers', items: two },
    managersConnection: { nodes: two },
    personItem: { lastName: 'Castro', colour: 'colour 3' },
  });

  recruiting.received.length = 0;
  const entities = await router.ask(
    `{ badges(of: [3, 99999, ${OF_ANOTHER}]) { person { id lastName } } }`,
  );
  expect(recruiting.received.map(({ body }) => body.query).join()).toContain('_entities');
  const persons = (entities.data!['badges'] as { person: unknown }[]).map(({ person }) => person);
  expect(persons).toEqual([
    { id: 3, lastName: 'Castro' },
    { id: 99_999, lastName: null },
    { id: OF_ANOTHER, lastName: null },
  ]);
  expect(entities.errors).toEqual([
    expect.objectContaining({ message: 'This person belongs to another company.' }),
  ]);
});
