import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { buildHTTPExecutor } from '@graphql-tools/executor-http';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { altered, honest } from '../service/replies.ts';
import { serveRecorded } from '../support/supergraph/recorded-server.ts';
import { PEOPLE, peopleAdditions, peopleService, secondService } from './people.ts';

type Path = readonly (string | number)[];
type Fields = Record<string | number, unknown>;

const rejections: unknown[] = [];
const note = (reason: unknown) => void rejections.push(reason);

let world: GatewayOverService;
beforeAll(async () => {
  process.on('unhandledRejection', note);
  world = await startGatewayOverService(
    { schema: peopleService() },
    { snapshot: PEOPLE, additions: { ...peopleAdditions(), subschemas: [twice()] } },
  );
});
afterAll(async () => {
  process.off('unhandledRejection', note);
  await world[Symbol.asyncDispose]();
});

/** A second service whose answers always have an error without a path. */
function twice() {
  const { schema } = secondService('slow');
  const result = {
    data: { slowKnown: [], slowBy: null },
    errors: [new GraphQLError('Slow today.')],
  };
  return { schema, executor: () => result as never };
}

const SERVICE: Path = ['persons', 'items', 1, 'email'];
const MASKED = 'An unexpected error happened in the gateway.';

interface Row {
  readonly query: string;
  /** Changes the honest answer of the service. */
  readonly alter?: (answer: { data: Fields | null; errors?: unknown }) => void;
  readonly data: unknown;
  readonly errors: readonly (readonly [message: string, path?: Path, code?: string])[];
}

const value = (path: Path, set: unknown) => (answer: { data: Fields | null }) => {
  const parent = path.slice(0, -1).reduce((of, step) => of[step] as Fields, answer.data!);
  parent[path.at(-1)!] = set;
};
const errors =
  (...all: Partial<GraphQLFormattedError>[]) =>
  (answer: { errors?: unknown }) =>
    void (answer.errors = all);

const ROWS: Readonly<Record<string, Row>> = {
  'an error of the service': {
    query: '{ x: persons { items { mail: email shout } } }',
    data: {
      x: {
        items: [
          { mail: '1@example.com', shout: 'Name 1!' },
          { mail: '2@example.com', shout: 'Name 2!' },
          { mail: null, shout: 'Name 3!' },
        ],
      },
    },
    errors: [['No email.', ['x', 'items', 2, 'mail'], 'NO_EMAIL']],
  },
  'several errors of one value': {
    query: '{ persons(first: 2) { items { email fixed } } }',
    alter: (answer) => {
      value(SERVICE, null)(answer);
      errors({ message: 'One.', path: SERVICE }, { message: 'Two.', path: SERVICE })(answer);
    },
    data: {
      persons: {
        items: [
          { email: '1@example.com', fixed: 'fixed' },
          { email: null, fixed: 'fixed' },
        ],
      },
    },
    errors: [
      ['One.', SERVICE],
      ['Two.', SERVICE],
    ],
  },
  'an error whose value is below a null': {
    query: '{ x: persons(first: 1) { items { name fixed } } }',
    alter: (answer) => {
      answer.data = null;
      errors({ message: 'No name.', path: ['persons', 'items', 0, 'name'] })(answer);
    },
    data: null,
    errors: [['No name.', ['x', 'items', 0, 'name']]],
  },
  'an error without a path': {
    query: '{ persons(first: 1) { items { boss { name } fixed } } }',
    alter: errors({ message: 'Slow today.' }),
    data: { persons: { items: [{ boss: { name: 'Name 1b' }, fixed: 'fixed' }] } },
    errors: [['Slow today.']],
  },
  'an error at a value that is there': {
    query: '{ persons(first: 1) { items { id fixed } } }',
    alter: errors({ message: 'Slow today.', path: ['persons', 'items'] }),
    data: { persons: { items: [{ id: '1', fixed: 'fixed' }] } },
    errors: [['Slow today.']],
  },
  'an error without a path that two delegations report': {
    query: '{ slowKnown { id } slowBy(id: "1") { id } }',
    data: { slowKnown: [], slowBy: null },
    errors: [['Slow today.']],
  },
  'an operation that the service refuses': {
    query: '{ x: allPersons { fixed } }',
    alter: (answer) => {
      answer.data = null;
      errors({ message: 'Not now.' }, { message: 'Sorry.' })(answer);
    },
    data: { x: null },
    errors: [
      ['Not now.', ['x']],
      ['Sorry.', ['x']],
    ],
  },
  'a requirement that fails': {
    query: '{ persons { items { contact } } }',
    data: {
      persons: {
        items: [{ contact: '1@example.com' }, { contact: '2@example.com' }, { contact: null }],
      },
    },
    errors: [['No email.', ['persons', 'items', 2, 'contact'], 'NO_EMAIL']],
  },
  'a requirement whose failure nulls its record': {
    query: '{ x: odd { shout } }',
    data: { x: [null, { shout: 'Name 2!' }] },
    errors: [['No name.', ['x', 0], 'NAMELESS']],
  },
  'exceptions and errors of resolvers': {
    query: '{ a: persons(first: 1) { b: items { late told id } } }',
    data: { a: { b: [{ late: null, told: null, id: '1' }] } },
    errors: [
      [MASKED, ['a', 'b', 0, 'late'], 'INTERNAL_SERVER_ERROR'],
      ['Ask the owner.', ['a', 'b', 0, 'told'], 'OWN'],
    ],
  },
  'an exception in a root field that must not be null': {
    query: '{ brokenRoot persons { items { id } } }',
    data: null,
    errors: [[MASKED, ['brokenRoot'], 'INTERNAL_SERVER_ERROR']],
  },
  'a rejection beside an exception that nulls the record': {
    query: '{ allPersons(limit: 1) { late strict } }',
    data: { allPersons: null },
    errors: [
      [MASKED, ['allPersons', 0, 'late'], 'INTERNAL_SERVER_ERROR'],
      [MASKED, ['allPersons', 0, 'strict'], 'INTERNAL_SERVER_ERROR'],
    ],
  },
};

test.each(Object.entries(ROWS))(
  'beside added fields, %s is reported once at its place',
  async (_, { query, alter, data, errors: expected }) => {
    world.service.answer(alter ? altered(alter) : honest);
    const answer = await world.ask(query);
    expect(answer.data).toEqual(data);
    const { errors: reported = [] } = answer;
    expect(reported).toHaveLength(expected.length);
    for (const [message, path, code] of expected) {
      expect(reported).toContainEqual(
        expect.objectContaining({
          message: expect.stringContaining(message),
          ...(path && { path }),
          ...(code && { extensions: expect.objectContaining({ code }) }),
        }),
      );
    }
    expect(JSON.stringify(answer)).not.toContain('secret');
    for (const { extensions } of reported) {
      if (extensions?.['code'] !== 'INTERNAL_SERVER_ERROR') continue;
      const logged = world.logged.filter(({ errorId }) => errorId === extensions['id']);
      expect(JSON.stringify(logged)).toContain('secret');
    }
    // Rejections are reported after the microtasks of the turn in which they happen.
    await delay(0);
    expect(rejections).toEqual([]);
  },
);

/** A promise that is rejected in the next turn. */
const late = () =>
  new Promise<never>((_, reject) => void setImmediate(() => reject(new Error('late'))));
const MANY = Array.from({ length: 50_001 }, () => 1);

/** graphql-tools and graphql-js forget the promises of a list that fails before they are rejected. */
test.each<[string, string, () => unknown]>([
  ['is too long', '[Int]', () => [late(), ...MANY]],
  ['has a list that is too long', '[[Int]]', () => [[late()], MANY]],
  ['throws', '[Int]', lateAndThrowing],
  ['has a null', '[Int!]!', () => [late(), null]],
  ['has a list with a null', '[[Int!]!]!', () => [[late(), null]]],
  ['has a null in a record', '[Item!]!', () => [{ value: late }, { value: () => null }]],
])(
  'a list that %s is one error, and a promise in it that is rejected later is none',
  async (...row) => {
    const [, type, list] = row;
    const additions = {
      typeDefs: `type Item { value: Int! } extend type Query { list: ${type} }`,
      resolvers: { Query: { list } },
    };
    await using gateway = await startGatewayOverService({}, { additions });
    const { errors: found } = await gateway.ask(
      type === '[Item!]!' ? '{ list { value } }' : '{ list }',
    );
    expect(found).toHaveLength(1);
    await turn();
    expect(rejections).toEqual([]);
  },
);

function* lateAndThrowing() {
  yield late();
  throw new Error('at once');
}

test.each<[what: string, place: Path, set: unknown]>([
  ['an unknown enum value', ['persons', 'items', 0, 'stage'], 'FIRED'],
  ['a string for an object', ['persons', 'items', 0, 'boss'], 'me'],
  ['a null in a list without nulls', ['persons', 'items', 0, 'skills', 0], null],
  ['a null where none is allowed', ['persons', 'items', 0, 'name'], null],
  ['a string for a page', ['persons'], 'x'],
])('%s is UPSTREAM_BAD_RESPONSE at its place, beside added fields', async (_, path, set) => {
  world.service.answer(altered(value(path, set)));
  const { errors: found } = await world.ask(
    '{ persons(first: 1) { items { stage boss { name } skills name fixed } } }',
  );
  expect(found).toMatchObject([{ path, extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }]);
});

/** A record with another key. */
const FORGED = { __typename: 'Person', _rsNeeds_Person_id: 'secret' };

test.each<[string, () => Response | Promise<Response>]>([
  ['answers 500', () => new Response('secret', { status: 500 })],
  ['answers HTML', () => new Response('<html>secret</html>')],
  ['answers null', () => new Response('null')],
  ['answers too slowly', () => new Promise(() => {})],
  ['has another type', () => Response.json({ data: { ratingByKeys: 'secret' } })],
  ['has too few records', () => Response.json({ data: { ratingByKeys: [] } })],
  ['gives other ids', () => Response.json({ data: { ratingByKeys: [FORGED, FORGED] } })],
  ['has an error', () => Response.json({ errors: [{ message: 'No ratings today.' }] })],
])('a second service that %s costs only its own fields', async (_, respond) => {
  await using service = await serveRecorded(() => respond());
  const { schema, merge } = secondService('rating');
  const executor = buildHTTPExecutor({ endpoint: service.url, timeout: 300 });
  await using gateway = await startGatewayOverService(
    { schema: peopleService() },
    { snapshot: PEOPLE, additions: { subschemas: [{ schema, merge: merge!, executor }] } },
  );
  const answer = await gateway.ask('{ persons(first: 2) { items { id name rating } } }');
  const items = ['1', '2'].map((id) => ({ id, name: `Name ${id}`, rating: null }));
  expect(answer.data).toEqual({ persons: { items } });
  for (const { path } of answer.errors ?? [])
    expect(path).toEqual(['persons', 'items', expect.any(Number), 'rating']);
  expect(JSON.stringify(answer)).not.toContain('secret');
  expect(JSON.stringify(answer)).not.toContain(new URL(service.url).host);
});
