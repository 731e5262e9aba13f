import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import {
  honest,
  text,
  type FakeUpstreamOptions,
  costlyService,
} from '../support/imitations/scripted.ts';
import { startTeams } from '../support/gateway/teams.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { randomRuns } from '../support/random/random-runs.ts';

interface People {
  allPersons: { id: string }[];
}

interface Edges {
  personsConnection: {
    edges: { cursor: string; node: { id: string } }[];
    pageInfo: { hasNextPage: boolean; endCursor: string };
  };
}

/** A record of it costs 3, and a page 1. */
const ALL = '{ allPersons { id firstName other: firstName } }';

describe('a list whose full page costs too much', () => {
  test('is drained whole, in pages that the service accepts, of which the size is learned once', async () => {
    await using world = await startWorld({ persons: 300 }, 100);
    expect(await world.drain()).toEqual(world.ids());
    expect(world.costs.refused.length).toBeLessThanOrEqual(3);
    expect(Math.max(...world.sizes())).toBeGreaterThan(20);
    world.costs.refused.length = 0;
    expect(await world.drain()).toEqual(world.ids());
    expect(world.costs.refused).toEqual([]);
  });

  test('is still read in full pages where less is selected', async () => {
    await using world = await startWorld({ persons: 300 }, 120);
    await world.drain();
    expect(Math.max(...world.sizes())).toBeLessThan(50);
    world.costs.accepted.length = 0;
    await world.ask('{ personsConnection(first: 50) { nodes { id } } }');
    expect(world.costs.accepted).toEqual([50]);
  });

  test.each(['keyset', 'record', 'position'] as const)(
    'is drained exactly while its limit changes, over %s cursors',
    async (cursors) => {
      await using world = await startWorld({ persons: 230, cursors }, 1_000);
      const changes = fc.array(
        fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 8, max: 260 })),
        {
          minLength: 1,
          maxLength: 4,
        },
      );
      await fc.assert(
        fc.asyncProperty(changes, async (limits) => {
          let requests = 0;
          const { costs } = world;
          let left = limits;
          world.upstream.answer((...request) => {
            requests += 1;
            if (left[0] && requests > left[0][0]) {
              costs.max = left[0][1];
              left = left.slice(1);
              requests = 0;
            }
            return costs.reply(...request);
          });
          expect(await world.drain()).toEqual(world.ids());
        }),
        { numRuns: randomRuns(8) },
      );
    },
  );

  test('is paged through as a connection, and cursors of one size lead on in pages of another', async () => {
    await using world = await startWorld({ persons: 120 }, 60);
    const ids = world.ids();
    const page = async (args: string) => {
      const { data, errors } = await world.ask<Edges>(
        `{ personsConnection(${args}) {
          edges { cursor node { id firstName other: firstName } } pageInfo { hasNextPage endCursor }
        } }`,
      );
      expect(errors).toBeUndefined();
      return data.personsConnection;
    };
    const first = await page('first: 40');
    expect(nodes(first)).toEqual(ids.slice(0, 40));
    expect(first.pageInfo.hasNextPage).toBe(true);
    for (const max of [1_000, 20]) {
      world.costs.max = max;
      for (const at of [3, 16, 39]) {
        const { cursor } = first.edges[at]!;
        expect(nodes(await page(`first: 12, after: "${cursor}"`))).toEqual(
          ids.slice(at + 1, at + 13),
        );
        const before = nodes(await page(`last: 3, before: "${cursor}"`));
        expect(before).toEqual(ids.slice(at - 3, at));
      }
    }
    world.costs.max = 1_000;
    const whole = await page('first: 50, after: ""');
    expect(nodes(whole)).toEqual(ids.slice(0, 50));
    world.costs.max = 20;
    const { cursor } = whole.edges[41]!;
    expect(nodes(await page(`first: 5, after: "${cursor}"`))).toEqual(ids.slice(42, 47));
    expect(nodes(await page(`last: 5, before: "${cursor}"`))).toEqual(ids.slice(36, 41));
  });

  test.each([
    [22, 1],
    [60, 8],
  ])(
    'is read one page after the other where pages cannot overlap: %i, %i',
    async (max, inFlight) => {
      await using world = await startWorld({ persons: 400 }, max);
      let now = 0;
      let most = 0;
      // Answers wait until as many requests are in flight as are expected, however slow this machine is.
      const answer = (expected: number) => {
        const full = Promise.withResolvers<void>();
        world.costs.answer = async (...request) => {
          now += 1;
          most = Math.max(most, now);
          if (now === expected) full.resolve();
          await full.promise;
          await setTimeout(2);
          await honest(...request);
          now -= 1;
        };
      };
      answer(1);
      await world.drain();
      expect(most).toBe(1);
      answer(inFlight);
      expect(await world.drain()).toEqual(world.ids());
      expect(most).toBe(inFlight);
    },
  );

  test('is read from its end by its identities, and only the edges are read in small pages', async () => {
    await using world = await startWorld({ persons: 400 }, 40);
    const ask = (args: string) =>
      world.ask<{ personsConnection: { nodes: { id: string }[] } }>(
        `{ personsConnection(${args}) { nodes { id a: firstName b: firstName c: firstName } } }`,
      );
    await ask('first: 20');
    await ask('last: 3');
    world.costs.accepted.length = 0;
    const { data } = await ask('last: 7');
    expect(data.personsConnection.nodes.map(({ id }) => id)).toEqual(world.ids().slice(-7));
    expect(world.costs.accepted.length).toBeLessThan(8);
  });

  test('serves lookups by id', async () => {
    await using world = await startWorld({ persons: 200 }, 30);
    const requested = world.ids().filter((_, at) => at % 7 === 3);
    const { data, errors } = await world.ask<{ _entities: { id: string }[] }>(
      `query ($of: [_Any!]!) {
        _entities(representations: $of) { ... on Person { id firstName other: firstName } }
      }`,
      { of: requested.map((id) => ({ __typename: 'Person', id })) },
    );
    expect(errors).toBeUndefined();
    expect(data._entities.map(({ id }) => id)).toEqual(requested);
  });

  test('is read whole below the records of another one', async () => {
    const snapshot = readFileSync('schema/rich.graphql', 'utf8');
    const read = async (max: number) => {
      await using world = await startWorld({ persons: 120, schema: 'rich' }, max, { snapshot });
      const { data, errors } = await world.ask(
        '{ allVacancies { id title allCandidates { id } } }',
      );
      expect(errors).toBeUndefined();
      return data;
    };
    expect(await read(60)).toEqual(await read(100_000));
  });

  test('is streamed page by page', async () => {
    await using world = await startWorld({ persons: 60 }, 60);
    const response = await world.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'multipart/mixed' },
      body: JSON.stringify({ query: '{ allPersons @stream { id firstName other: firstName } }' }),
    });
    const ids = Array.from((await response.text()).matchAll(/"id":"([\w-]+)"/g), ([, id]) => id);
    expect(ids).toEqual(world.ids());
  });

  test('is returned up to CONNECTION_MAX to callers without the scope drain', async () => {
    const key = { 'x-api-key': 'a key of 32 characters, or longer' };
    const apiKeys = [entryFor(key['x-api-key'], 'app', 'read')];
    await using world = await startWorld({ persons: 600 }, 30, {
      config: { auth: { apiKeys, jwt: undefined } },
    });
    const { data, errors } = await world.ask<Edges>(
      '{ personsConnection(first: 500) { edges { cursor node { id a: firstName b: firstName } } } }',
      {},
      { headers: key },
    );
    expect(errors).toBeUndefined();
    expect(nodes(data.personsConnection)).toEqual(world.ids().slice(0, 500));
  });

  test('costs callers about as much as in full pages', async () => {
    const config = { pagesPerMinute: 12 };
    await using world = await startWorld({ persons: 300 }, 22, { config });
    expect(await world.drain()).toEqual(world.ids());
    expect(world.costs.accepted.length).toBeGreaterThan(40);
    const again = await world.ask<People>(ALL);
    expect(again.errors?.[0]?.extensions?.['code']).toBe('RATE_LIMITED');
  });

  test('costs a page for each of several fields, however few records they have', async () => {
    const config = { pagesPerMinute: 20, maxAliases: 100 };
    await using world = await startWorld({ persons: 300 }, 22, { config });
    expect(await world.drain()).toEqual(world.ids());
    const fields = Array.from(
      { length: 20 },
      (_, at) => `a${at}: personsConnection(first: 1) { nodes { id a${at}: firstName } }`,
    );
    const { errors } = await world.ask(`{ ${fields.join(' ')} }`);
    expect(errors?.[0]?.extensions?.['code']).toBe('RATE_LIMITED');
  });

  test('begins with the size of adapters.json', async () => {
    const overrides = { fields: { 'Query.persons': { page: 5 } } };
    await using world = await startWorld({ persons: 40 }, 40, { overrides });
    expect(await world.drain()).toEqual(world.ids());
    expect(world.costs.refused).toEqual([]);
    expect(world.costs.accepted[0]).toBe(5);
  });
});

test('a single record that is refused is an error with the words of the service', async () => {
  await using world = await startWorld({ persons: 20 }, 3);
  const { data, errors } = await world.ask<People>(ALL);
  expect(data).toEqual({ allPersons: null });
  expect(errors).toMatchObject([
    {
      message: expect.stringContaining('maximum query complexity exceeded 4 > 3'),
      path: ['allPersons'],
    },
  ]);
  world.costs.refused.length = 0;
  await world.ask<People>(ALL);
  expect(world.costs.refused).toEqual([1]);
});

test('a page that a caller requests of the service itself gets the answer of the service', async () => {
  await using world = await startWorld({ persons: 60 }, 60);
  const { errors } = await world.ask('{ persons(first: 50) { items { id firstName } } }');
  expect(errors).toMatchObject([{ message: 'maximum query complexity exceeded 101 > 60' }]);
  expect(world.costs.refused).toEqual([50]);
});

test('status 413 says that a page is too big, whatever its body', async () => {
  await using world = await startWorld({ persons: 60 }, 60);
  world.costs.refuse = () => text('<h1>Request Entity Too Large</h1>', 413);
  expect(await world.drain()).toEqual(world.ids());
  world.costs.max = 0;
  const { errors } = await world.ask<People>(ALL);
  expect(errors?.[0]?.message).toMatch(/413/);
});

describe.each([
  ['in the words of the service', undefined],
  ['with status 413', () => text('Too large', 413)],
])('records by id that are too many at a time, %s', (_, refuse) => {
  test('are requested singly, which costs callers as much as together', async () => {
    const key = { 'x-api-key': 'a key of 32 characters, or longer' };
    const apiKeys = [entryFor(key['x-api-key'], 'app', 'read', 'router')];
    await using world = await startTeams(
      { teams: 60 },
      { config: { auth: { apiKeys, jwt: undefined } } },
    );
    world.upstream.answer(costlyService(40, refuse).reply);
    const of = world.teams.map(({ id }) => ({ __typename: 'Team', id }));
    const { data, errors } = await world.ask<{ _entities: { number: number }[] }>(
      'query ($of: [_Any!]!) { _entities(representations: $of) { ... on Team { id number } } }',
      { of },
      { headers: key },
    );
    expect(errors).toBeUndefined();
    const numbers = data._entities.map(({ number }) => number);
    expect(numbers).toEqual(world.teams.map(({ number }) => number));
  });
});

function nodes({ edges }: Edges['personsConnection']): string[] {
  return edges.map(({ node }) => node.id);
}

async function startWorld(
  options: FakeUpstreamOptions,
  max: number,
  gateway: TestGatewayOptions = {},
) {
  const world = await startGatewayOverFake(options, gateway);
  const costs = costlyService(max);
  world.upstream.answer(costs.reply);
  const { persons } = world.upstream.sandbox;
  return Object.assign(world, {
    costs,
    ids: () => persons.all().map(({ id }) => id),
    sizes: () => costs.accepted.map((first) => first ?? 50),
    drain: async (query = ALL) => {
      const { data, errors } = await world.ask<People>(query);
      expect(errors).toBeUndefined();
      return data.allPersons.map(({ id }) => id);
    },
  });
}
