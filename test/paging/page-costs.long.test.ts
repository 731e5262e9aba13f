import fc from 'fast-check';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import {
  altered,
  honest,
  json,
  text,
  type FakeUpstreamOptions,
  type Reply,
  costlyService,
  costOf,
} from '../support/imitations/scripted.ts';
import { startTeams } from '../support/gateway/teams.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { entryFor } from '../support/gateway/api-key.ts';
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
    expect(await world.drain(ALL.replace('{', 'query Other {'))).toEqual(world.ids());
    expect(world.costs.refused).toEqual([]);
    expect(world.logged.filter(({ size }) => size !== undefined)).toEqual([
      expect.objectContaining({
        level: 30,
        list: 'Query.persons',
        size: Math.max(...world.sizes()),
      }),
    ]);
    expect(await world.gateway.metrics.text()).toMatch(
      /^recruiting_too_big_total\{list="Query\.persons"\} [123]$/m,
    );
  });

  test('is halved where the service gives no numbers, down to a single record', async () => {
    await using world = await startWorld({ persons: 30 }, 5);
    world.costs.refuse = () => json({ errors: [{ message: 'Query is too complex.' }], data: null });
    expect(await world.drain()).toEqual(world.ids());
    expect(world.costs.refused).toEqual([null, 25, 12, 6, 3]);
    expect(new Set(world.sizes())).toEqual(new Set([1]));
  });

  test('is still read in full pages where less is selected', async () => {
    await using world = await startWorld({ persons: 300 }, 120);
    await world.drain();
    world.costs.accepted.length = 0;
    await world.drain('{ allPersons { id } }');
    expect(world.costs.accepted.length).toBeLessThan(10);
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

  test('grows again when the service accepts more, one step after the other', async () => {
    await using world = await startWorld({ persons: 1_500 }, 80);
    await world.drain();
    expect(Math.max(...world.sizes())).toBeLessThanOrEqual(26);
    world.costs.max = 10_000;
    for (let drains = 0; drains < 8 && Math.max(...world.sizes()) <= 40; drains += 1) {
      expect(await world.drain()).toEqual(world.ids());
    }
    expect(Math.max(...world.sizes())).toBeGreaterThan(40);
  });

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

  test('is read in the same way where its pages have errors', async () => {
    await using world = await startWorld({ persons: 130 }, 60);
    world.costs.answer = altered((answer) => {
      answer.errors = [{ message: 'Hidden.', path: ['persons', 'items', 0, 'firstName'] }];
      answer.data['persons']!.items[0]!['firstName'] = null;
    });
    for (let drains = 0; drains < 2; drains += 1) {
      const { data, errors } = await world.ask<People>(ALL);
      expect(data.allPersons.map(({ id }) => id)).toEqual(world.ids());
      expect(errors!.length).toBeGreaterThan(1);
      expect(errors![0]).toEqual({ message: 'Hidden.', path: ['allPersons', 0, 'firstName'] });
    }
  });

  test('begins with the size of adapters.json', async () => {
    const overrides = { fields: { 'Query.persons': { page: 5 } } };
    await using world = await startWorld({ persons: 40 }, 40, { overrides });
    expect(await world.drain()).toEqual(world.ids());
    expect(world.costs.refused).toEqual([]);
    expect(world.costs.accepted[0]).toBe(5);
  });

  test('costs callers about as much as in full pages', async () => {
    const config = { pagesPerMinute: 12 };
    await using world = await startWorld({ persons: 300 }, 22, { config });
    expect(await world.drain()).toEqual(world.ids());
    expect(world.costs.accepted.length).toBeGreaterThan(40);
    const again = await world.ask<People>(ALL);
    expect(again.errors?.[0]?.extensions?.['code']).toBe('RATE_LIMITED');
  });
});

test('a single record that is refused is an error with the words of the service', async () => {
  await using world = await startWorld({ persons: 20 }, 3);
  const { data, errors } = await world.ask<People>(ALL);
  expect(data).toEqual({ allPersons: null });
  expect(errors).toEqual([
    {
      message: expect.stringMatching(
        /refuses even a single record with these fields: maximum query complexity exceeded 4 > 3\. Request fewer fields/,
      ),
      path: ['allPersons'],
      extensions: { code: 'OPERATION_TOO_COMPLEX' },
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
  expect(errors?.[0]?.message).toMatch(/status 413.*Request fewer fields/);
});

describe('a proxy that gives up', () => {
  test.each([502, 504])(
    'is asked for less after a %i, because a single record is answered',
    async (status) => {
      await using world = await startWorld({ persons: 120 }, 60);
      world.costs.refuse = () => text('Bad', status);
      expect(await world.drain()).toEqual(world.ids());
      // The first page, with its retries, the trial, and the sizes behind it.
      expect(world.costs.accepted.slice(0, 5)).toEqual([1, 2, 4, 8, 14]);
      expect(world.costs.refused.filter((first) => first === null)).toHaveLength(4);
    },
  );

  test('is asked for less after no answer in time', async () => {
    await using world = await startWorld({ persons: 40 }, 60, {
      config: { upstreamTimeoutMs: 300 },
    });
    world.costs.refuse = () => () => {};
    expect(await world.drain()).toEqual(world.ids());
    expect(world.costs.accepted[0]).toBe(1);
  });

  test('is asked for less where many pages fail at the same time', async () => {
    await using world = await startWorld({ persons: 1_000 }, 1_000);
    await world.drain();
    await world.drain();
    world.costs.max = 60;
    let failing = 0;
    let most = 0;
    world.costs.refuse = () => async (response, request, sandbox) => {
      failing += 1;
      most = Math.max(most, failing);
      await setTimeout(20);
      failing -= 1;
      return text('Bad', 504)(response, request, sandbox);
    };
    expect(await world.drain()).toEqual(world.ids());
    expect(most).toBeGreaterThan(3);
    expect(world.costs.refused.length).toBeLessThan(100);
  });

  test('is down where a single record fails too, after one trial and with the original failure', async () => {
    await using world = await startWorld({ persons: 120 }, 1_000);
    const received: (number | null)[] = [];
    const down: Reply = (response, request) => {
      received.push(costOf(request).first);
      return text('Bad', 502)(response, request, world.upstream.sandbox);
    };
    world.upstream.answer(down);
    const ask = () => world.ask<People>(ALL);
    const answers = await Promise.all([
      ask(),
      world.ask<People>('{ allPersons { id firstName } }'),
      world.ask<Edges>('{ personsConnection { edges { node { id } } } }'),
      ask(),
    ]);
    for (const { errors } of answers) {
      expect(errors?.[0]?.message).toMatch(/status 502/);
      expect(errors?.[0]?.extensions?.['code']).toBe('UPSTREAM_BAD_RESPONSE');
    }
    expect(received.filter((first) => first === 1)).toHaveLength(1);
  });
});

describe('first pages of nested lists', () => {
  const TEAMS = '{ allTeams { number allMembers { id } } }';

  test('are requested for as many parents as the service accepts', async () => {
    await using world = await startTeams({ teams: 30, members: 7 });
    const costs = costlyService(1_000);
    world.upstream.answer(costs.reply);
    const { data, errors } = await world.ask<Teams>(TEAMS);
    expect(errors).toBeUndefined();
    expect(membersOf(data)).toEqual(world.teams.map(({ members }) => members.map(({ id }) => id)));
    expect(costs.refused.length).toBeGreaterThan(0);
  });

  test('are left out where even one parent is refused with them', async () => {
    await using world = await startTeams({ teams: 12, members: 7 });
    const costs = costlyService(60);
    world.upstream.answer(costs.reply);
    const { data, errors } = await world.ask<Teams>(TEAMS);
    expect(errors).toBeUndefined();
    expect(membersOf(data)).toEqual(world.teams.map(({ members }) => members.map(({ id }) => id)));
    const single = await world.ask<{ team: { allMembers: { id: string }[] } }>(
      '{ team(id: "3") { number allMembers { id } } }',
    );
    expect(single.errors).toBeUndefined();
    expect(single.data.team.allMembers).toHaveLength(7);
  });
});

test('an outage costs one trial more, also with first pages of nested lists, and teaches nothing', async () => {
  await using world = await startTeams({ teams: 5 });
  const ask = () =>
    world.ask<{ teams: object }>('{ teams(first: 3) { items { number allMembers { id } } } }');
  world.upstream.answer(text('Bad', 502));
  const { length } = world.upstream.received;
  expect((await ask()).errors?.[0]?.message).toMatch(/status 502/);
  expect(world.upstream.received.length - length).toBe(4 + 1);
  const costs = costlyService(10_000);
  world.upstream.answer(costs.reply);
  expect((await ask()).errors).toBeUndefined();
  expect(costs.accepted).toHaveLength(1);
});

test('records by id are requested as many at a time as the service accepts', async () => {
  await using world = await startTeams({ teams: 60 });
  const costs = costlyService(40);
  world.upstream.answer(costs.reply);
  const of = world.teams.map(({ id }) => ({ __typename: 'Team', id }));
  const ask = () =>
    world.ask<{ _entities: { number: number }[] }>(
      'query ($of: [_Any!]!) { _entities(representations: $of) { ... on Team { id number } } }',
      { of },
    );
  const { data, errors } = await ask();
  expect(errors).toBeUndefined();
  expect(data._entities.map(({ number }) => number)).toEqual(
    world.teams.map(({ number }) => number),
  );
  costs.refused.length = 0;
  await ask();
  expect(costs.refused).toEqual([]);
});

function nodes({ edges }: Edges['personsConnection']): string[] {
  return edges.map(({ node }) => node.id);
}

interface Teams {
  allTeams: { allMembers: { id: string }[] }[];
}

function membersOf({ allTeams }: Teams): string[][] {
  return allTeams.map(({ allMembers }) => allMembers.map(({ id }) => id));
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
