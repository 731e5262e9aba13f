import { buildSubgraphSchema } from '@apollo/subgraph';
import { buildASTSchema, parse, versionInfo } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { serveRecorded } from '../support/supergraph/recorded-server.ts';
import { apolloEstimate } from '../support/supergraph/apollo-estimate.ts';
import { composed } from '../support/supergraph/composition.ts';
import { startRouter } from '../support/supergraph/router.ts';

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

describe.each(['2.3', '2.9'] as const)('Federation %s', (federationVersion) => {
  test('a router reads pages and records of another subgraph through results', async ({ skip }) => {
    if (versionInfo.major > 16) skip('Hive Gateway needs graphql 16 to estimate costs.');
    await using world = await startGatewayOverSandbox(
      { results: true, persons: 30 },
      { snapshot, config: { federationVersion } },
    );
    await using recruiting = await serveRecorded((request) => world.gateway.handler.fetch(request));
    const badges = createYoga({
      logging: false,
      schema: buildSubgraphSchema([
        {
          typeDefs: BADGES,
          resolvers: {
            Query: {
              badges: (_: unknown, { of }: { of: number[] }) =>
                of.map((id) => ({ person: { id } })),
            },
            PersonItem: { colour: ({ id }: { id: number }) => `colour ${id}` },
          },
        },
      ]),
    });
    await using other = await serveRecorded((request) => badges.fetch(request));
    const { data: service } = await world.ask<{ _service: { sdl: string } }>(
      '{ _service { sdl } }',
    );
    const { sdl } = service._service;
    await using router = await startRouter({
      supergraph: composed([
        { name: 'recruiting', sdl, url: recruiting.url },
        { name: 'badges', sdl: BADGES.loc!.source.body, url: other.url },
      ]),
      env: { RECRUITING_KEY: 'none' },
    });

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

    if (federationVersion === '2.3') return;
    const served = buildASTSchema(parse(sdl), { assumeValidSDL: true });
    const costOf = (text: string) => apolloEstimate(served, parse(text));
    expect(costOf('{ managers { ... on Managers { items { id } } } }')).toBe(34 + 50);
    expect(costOf('{ persons(first: 5) { items { id } } }')).toBe(34 + 5);
  }, 60_000);
});
