import { readFileSync } from 'node:fs';
import { Kind, parse, visit, type FieldNode } from 'graphql';
import { describe, expect, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import type { Received, Reply, ServiceOptions } from '../service/service.ts';
import { honest, json, text } from '../service/replies.ts';
import { startTeams } from '../support/gateway/teams.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';

interface People {
  allPersons: { id: string }[];
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

  test('is returned up to CONNECTION_MAX to callers without the scope drain', async () => {
    const key = { 'x-api-key': 'a key of 32 characters, or longer' };
    const apiKeys = [entryFor(key['x-api-key'], 'app', 'read')];
    await using world = await startWorld({ persons: 600 }, 30, {
      config: { auth: { apiKeys, jwt: undefined } },
    });
    const { data, errors } = await world.ask<{ personsConnection: { nodes: { id: string }[] } }>(
      '{ personsConnection(first: 500) { nodes { id a: firstName b: firstName } } }',
      {},
      { headers: key },
    );
    expect(errors).toBeUndefined();
    expect(data.personsConnection.nodes.map(({ id }) => id)).toEqual(world.ids().slice(0, 500));
  });

  test('costs callers about as much as in full pages', async () => {
    const config = { pagesPerMinute: 12 };
    await using world = await startWorld({ persons: 300 }, 22, { config });
    expect(await world.drain()).toEqual(world.ids());
    expect(world.costs.accepted.length).toBeGreaterThan(40);
    const again = await world.ask<People>(ALL);
    expect(again.errors?.[0]?.extensions?.['code']).toBe('RATE_LIMITED');
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
    world.service.answer(costlyService(40, refuse).reply);
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

async function startWorld(options: ServiceOptions, max: number, gateway: TestGatewayOptions = {}) {
  const world = await startGatewayOverService(options, gateway);
  const costs = costlyService(max);
  world.service.answer(costs.reply);
  const { persons } = world.service;
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

/** How a request that costs too much is refused. */
type Refuse = (cost: number, max: number) => Reply;

/** The message of graphql-java. */
const graphqlJava: Refuse = (cost, max) =>
  json({ errors: [{ message: `maximum query complexity exceeded ${cost} > ${max}` }] });

interface Costs {
  /** The highest cost that is accepted. */
  max: number;
  refuse: Refuse;
  /** `first` of the outermost list of each request; null where it had none. */
  readonly accepted: (number | null)[];
  readonly refused: (number | null)[];
  readonly reply: Reply;
}

/** Refuses requests that cost too much before it executes them, as services do. */
function costlyService(max: number, refuse = graphqlJava): Costs {
  const costs: Costs = {
    max,
    refuse,
    accepted: [],
    refused: [],
    reply: (...exchange) => {
      const { cost, first } = costOf(exchange[1]);
      const isTooMuch = cost > costs.max;
      (isTooMuch ? costs.refused : costs.accepted).push(first);
      return (isTooMuch ? costs.refuse(cost, costs.max) : honest)(...exchange);
    },
  };
  return costs;
}

const PAGE = 50;

/** A field costs 1, and each field of a record 1 for each record of the page. */
function costOf({ body }: Received): { cost: number; first: number | null } {
  const { query, variables = {} } = JSON.parse(body) as {
    query: string;
    variables?: Record<string, number>;
  };
  const sizeOf = ({ arguments: args = [] }: FieldNode) => {
    const value = args.find(({ name }) => name.value === 'first')?.value;
    if (value?.kind === Kind.VARIABLE) return variables[value.name.value];
    return value?.kind === Kind.INT ? Number(value.value) : undefined;
  };
  let cost = 0;
  let outermost: number | undefined;
  /** Those of the fields around the current one. */
  const sizes: (number | undefined)[] = [];
  const times = [1];
  visit(parse(query), {
    Field: {
      enter: (field) => {
        if (field.name.value === 'pageInfo') return false;
        const isItems = field.name.value === 'items';
        if (!isItems) cost += times.at(-1)!;
        times.push(times.at(-1)! * (isItems ? Math.min(sizes.at(-1) ?? PAGE, PAGE) : 1));
        sizes.push(sizeOf(field));
        outermost ??= sizes.at(-1);
        return undefined;
      },
      leave: () => {
        times.pop();
        sizes.pop();
      },
    },
  });
  return { cost, first: outermost ?? null };
}
