/** A service that refuses requests as too big before it executes them. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { ServiceError } from '../../src/engine/answer.ts';
import { isTooBig, type ServiceAnswer } from '../../src/engine/service-answer.ts';
import { range } from '../service/lists.ts';
import { honest, json, text } from '../service/replies.ts';
import type { Received, Reply, ServiceOptions } from '../service/service.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';

/** A record costs 2. */
const ALL = '{ allPersons { id firstName other: firstName } }';
const entities = (type: string, ids: readonly (string | number)[], fields: string) => {
  const representations = ids.map((id) => `{ __typename: "${type}", id: "${id}" }`);
  return `{ _entities(representations: [${representations.join()}]) { ... on ${type} { ${fields} } } }`;
};

type World = GatewayOverService & { costs: Costs };
/** A read, the highest cost that the service accepts, what the list is, and how it refuses. */
type Read = [string, string | ((world: World) => string), number, ServiceOptions?, Refuse?];

const words: Refuse = (cost, max) =>
  json({ errors: [{ message: `maximum query complexity exceeded ${cost} > ${max}` }] });
const status: Refuse = () => text('<h1>Request Entity Too Large</h1>', 413);

const PERSONS = { persons: 137 } as const;
const rich = { persons: 120, schema: 'rich' } as const;
const VACANCIES = entities('Vacancy', range(64), 'id title');
const READS: Read[] = [
  ['a list', ALL, 60],
  ['a list, refused with status 413', ALL, 60, PERSONS, status],
  ['a list of which only two records are accepted at a time', ALL, 4],
  ['a connection', '{ personsConnection(first: 130) { nodes { a: firstName firstName } } }', 30],
  ['a list below records', '{ allVacancies { id title allCandidates { id } } }', 30, rich],
  [
    'records by their ids',
    ({ service }) => {
      const persons = service.persons.all().filter((_, at) => at % 7 === 3);
      const ids = persons.map(({ id }) => id);
      return entities('Person', ids, 'id firstName other: firstName');
    },
    30,
  ],
  ['records by a field of the service', VACANCIES, 30, rich],
  ['records by a field of the service, refused with status 413', VACANCIES, 30, rich, status],
];

test.each(READS)(
  '%s is read as if no request were refused as too big',
  async (_, query, max, options = PERSONS, refuse = words) => {
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

test.each<[boolean, readonly ServiceError[], ServiceAnswer['data']?]>([
  [true, [{ message: 'The cost of this query is 120; at most 100 is allowed.' }]],
  [true, [{ message: 'No.' }, { message: 'Too large' }], null],
  [true, [{ message: 'No.', extensions: { code: 'MAX_COST_EXCEEDED' } }]],
  [false, [{ message: 'Not allowed. See https://example.com/cost.' }]],
  [false, [{ message: 'The post was costly.' }]],
  [false, [{ message: 'The cost is too large.' }], { rows: {} }],
])('a request is refused as too big: %s for %j', (isRefused, errors, data) => {
  const placed = errors.map((service) => ({ service, path: undefined }));
  expect(isTooBig({ data, errors: placed, extensions: undefined })).toBe(isRefused);
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

test('small pages cost callers as much as full ones, and CONNECTION_MAX records need no scope drain', async () => {
  const apiKeys = [entryFor('key', 'app', 'read')];
  const config = { pagesPerMinute: 12, auth: { apiKeys, jwt: undefined } };
  await using world = await startWorld(30, { persons: 600 }, { config });
  const query = '{ personsConnection(first: 500) { nodes { id a: firstName b: firstName } } }';
  const headers = { 'x-api-key': 'key' };
  const { data, errors } = await world.ask(query, {}, { headers });
  expect(errors).toBeUndefined();
  expect(data).toMatchObject({ personsConnection: { nodes: { length: 500 } } });
  expect(world.costs.accepted.length).toBeGreaterThan(30);
  const refused = { errors: [{ extensions: { code: 'RATE_LIMITED' } }] };
  expect(await world.ask(query, {}, { headers })).toMatchObject(refused);
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
  const fields = query.match(/\b(firstName|title)\b/g)?.length ?? 1;
  const records = query.match(/_rsRecord\d+:/g)?.length ?? 1;
  return { cost: first * fields * records, first };
}
