/** A service that refuses requests as too big before it executes them. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { honest, json, text } from '../service/replies.ts';
import type { Received, Reply, ServiceOptions } from '../service/service.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { startTeams } from '../support/gateway/teams.ts';

/** A record costs 2. */
const ALL = '{ allPersons { id firstName other: firstName } }';
const ENTITIES = (type: string, ids: string) =>
  `{ _entities(representations: [${ids}]) { ... on ${type} { id } } }`;

type World = GatewayOverService & { costs: Costs };
/** A read, the highest cost that the service accepts, and what the list is. */
type Read = [string, string | ((world: World) => string), number, ServiceOptions?];

const rich = { persons: 120, schema: 'rich' } as const;
const READS: Read[] = [
  ['a list', ALL, 60],
  ['a list of which only two records are accepted at a time', ALL, 4],
  ['a connection', '{ personsConnection(first: 130) { nodes { a: firstName firstName } } }', 30],
  ['a list below records', '{ allVacancies { id title allCandidates { id } } }', 30, rich],
  [
    'records by their ids',
    ({ service }) => {
      const ids = service.persons.all().filter((_, at) => at % 7 === 3);
      const found = ids.map(({ id }) => `{ __typename: "Person", id: "${id}" }`);
      return ENTITIES('Person', found.join()).replace('{ id }', '{ id firstName }');
    },
    30,
  ],
];

const words: Refuse = (cost, max) =>
  json({ errors: [{ message: `maximum query complexity exceeded ${cost} > ${max}` }] });
const status: Refuse = () => text('<h1>Request Entity Too Large</h1>', 413);

describe.each([
  ['in the words of graphql-java', words],
  ['with status 413, whatever its body', status],
])('refused %s', (_, refuse) => {
  test.each(READS)(
    '%s is read as if it were accepted',
    async (_read, query, max, options = { persons: 137 }) => {
      const gateway =
        options === rich ? { snapshot: readFileSync('schema/rich.graphql', 'utf8') } : {};
      await using world = await startWorld(max, options, gateway, refuse);
      const sent = typeof query === 'string' ? query : query(world);
      const answer = await world.ask(sent);
      expect(world.costs.refused).not.toEqual([]);
      world.costs.max = Infinity;
      await using generous = await startWorld(Infinity, options, gateway);
      expect(answer).toEqual(await generous.ask(sent));
      expect(answer.errors).toBeUndefined();
    },
  );

  test('records by id that are too many at a time are requested singly, which costs callers as much as together', async () => {
    const apiKeys = [entryFor('router', 'app', 'read', 'router')];
    const config = { auth: { apiKeys, jwt: undefined } };
    await using world = await startTeams({ teams: 60 }, { config });
    world.service.answer(costlyService(40, refuse).reply);
    const ids = world.teams.map(({ id }) => `{ __typename: "Team", id: "${id}" }`).join();
    const query = ENTITIES('Team', ids).replace('{ id }', '{ number }');
    const headers = { 'x-api-key': 'router' };
    expect(await world.ask(query, {}, { headers })).toEqual({
      data: { _entities: world.teams.map(({ number }) => ({ number })) },
    });
  });
});

test('the size is learned once for a list and its selection: full pages are read where less is selected', async () => {
  await using world = await startWorld(60, { persons: 300 });
  const { costs } = world;
  expect((await world.ask(ALL)).errors).toBeUndefined();
  expect(costs.refused).toHaveLength(1);
  expect(Math.max(...costs.accepted)).toBeLessThan(30);
  costs.refused.length = costs.accepted.length = 0;
  await world.ask(ALL);
  expect(costs.refused).toEqual([]);
  costs.accepted.length = 0;
  await world.ask('{ personsConnection(first: 50) { nodes { id } } }');
  expect(costs).toMatchObject({ accepted: [50], refused: [] });
});

test('CONNECTION_MAX records need no scope drain, however small the pages are', async () => {
  const auth = { apiKeys: [entryFor('key', 'app', 'read')], jwt: undefined };
  await using world = await startWorld(30, { persons: 600 }, { config: { auth } });
  const query = '{ personsConnection(first: 500) { nodes { id a: firstName b: firstName } } }';
  const { data, errors } = await world.ask(query, {}, { headers: { 'x-api-key': 'key' } });
  expect(errors).toBeUndefined();
  expect(data).toMatchObject({ personsConnection: { nodes: { length: 500 } } });
});

test('small pages cost callers about as much as full ones', async () => {
  await using world = await startWorld(13, { persons: 300 }, { config: { pagesPerMinute: 12 } });
  expect((await world.ask(ALL)).errors).toBeUndefined();
  expect(world.costs.accepted.length).toBeGreaterThan(40);
  expect((await world.ask(ALL)).errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }]);
});

test('a page of the service costs one, however many records it is asked for', async () => {
  await using world = await startWorld(Infinity, {}, { config: { pagesPerMinute: 2 } });
  const query = '{ persons(first: 1000) { items { id } } }';
  for (let page = 0; page < 2; page += 1) expect((await world.ask(query)).errors).toBeUndefined();
  expect((await world.ask(query)).errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }]);
});

test('a field of the service that is no list costs one page', async () => {
  await using world = await startTeams({ teams: 1 }, { config: { pagesPerMinute: 1 } });
  expect((await world.ask('{ team(id: "0") { number } }')).errors).toBeUndefined();
  const { errors } = await world.ask('{ team(id: "0") { id } }');
  expect(errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }]);
});

test('the first page has the size of adapters.json', async () => {
  const overrides = { fields: { 'Query.persons': { page: 5 } } };
  await using world = await startWorld(10, { persons: 40 }, { overrides });
  expect((await world.ask(ALL)).errors).toBeUndefined();
  expect(world.costs.refused).toEqual([]);
  expect(world.costs.accepted[0]).toBe(5);
});

test.each([
  ['in the words of the service', words, /maximum query complexity exceeded 2 > 1/],
  ['with its status', status, /413/],
])('a single record that is refused is an error %s', async (_, refuse, message) => {
  await using world = await startWorld(1, { persons: 20 }, {}, refuse);
  const failed = {
    data: { allPersons: null },
    errors: [{ message: expect.stringMatching(message), path: ['allPersons'] }],
  };
  expect(await world.ask(ALL)).toMatchObject(failed);
  world.costs.refused.length = 0;
  expect(await world.ask(ALL)).toMatchObject(failed);
  expect(world.costs.refused).toEqual([1]);
});

test('a page that a caller requests of the service itself gets the answer of the service', async () => {
  await using world = await startWorld(40, { persons: 60 });
  const { errors } = await world.ask('{ persons(first: 50) { items { id firstName } } }');
  expect(errors).toMatchObject([{ message: 'maximum query complexity exceeded 50 > 40' }]);
  expect(world.costs.refused).toEqual([50]);
});

async function startWorld(
  max: number,
  options: ServiceOptions,
  gateway: TestGatewayOptions = {},
  refuse = words,
): Promise<World> {
  const world = await startGatewayOverService(options, gateway);
  const costs = costlyService(max, refuse);
  world.service.answer(costs.reply);
  return Object.assign(world, { costs });
}

/** How a request that costs too much is refused. */
type Refuse = (cost: number, max: number) => Reply;

interface Costs {
  /** The highest cost that is accepted. */
  max: number;
  /** The number of records that each request asks for. */
  readonly accepted: number[];
  readonly refused: number[];
  readonly reply: Reply;
}

function costlyService(max: number, refuse: Refuse): Costs {
  const costs: Costs = {
    max,
    accepted: [],
    refused: [],
    reply: (...exchange) => {
      const { cost, first } = costOf(exchange[1]);
      const isTooMuch = cost > costs.max;
      (isTooMuch ? costs.refused : costs.accepted).push(first);
      return (isTooMuch ? refuse(cost, costs.max) : honest)(...exchange);
    },
  };
  return costs;
}

/** Each of some fields costs 1 for each record of a page, and for each record by its id. */
function costOf({ body }: Received): { cost: number; first: number } {
  const { query, variables = {} } = JSON.parse(body) as {
    query: string;
    variables?: Record<string, number>;
  };
  const variable = Object.keys(variables).find((name) => name.endsWith('first'));
  const sent = variable ? variables[variable] : /first: (\d+)/.exec(query)?.[1];
  const first = query.includes('items') ? Number(sent ?? 50) : 1;
  const fields = query.match(/\b(firstName|title|number)\b/g)?.length ?? 1;
  const records = query.match(/_rsRecord\d+:/g)?.length ?? 1;
  return { cost: first * fields * records, first };
}
