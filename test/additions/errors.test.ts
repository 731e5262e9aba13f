import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { buildHTTPExecutor } from '@graphql-tools/executor-http';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { altered, honest } from '../service/replies.ts';
import { secondService, startPeople } from './people.ts';

type Path = readonly (string | number)[];
type Fields = Record<string | number, unknown>;

const rejections: unknown[] = [];
const note = (reason: unknown) => void rejections.push(reason);

/** A promise that is rejected in the next turn. */
const late = () =>
  new Promise<never>((_, reject) => void setImmediate(() => reject(new Error('late'))));
const MANY = Array.from({ length: 50_001 }, () => 1);

/** Lists that fail before all of their promises are rejected, and what is selected below them. */
const LISTS: Readonly<Record<string, [type: string, list: () => unknown, below?: string]>> = {
  tooLong: ['[Int]', () => [late(), ...MANY]],
  withNull: ['[Int!]!', () => [late(), null]],
  withNullInList: ['[[Int!]!]!', () => [[late(), null]]],
  withNullLater: ['[Int!]!', () => Promise.resolve([late(), null])],
  withNullInRecord: ['[Item!]!', () => RECORDS, '{ value }'],
  withNullInRecordLater: ['[Item!]!', () => Promise.resolve(RECORDS), '{ value }'],
  withNullOfService: ['Person', () => ({ skills: [late(), null] }), '{ skills }'],
};
const RECORDS = [{ value: late }, { value: () => null }];

const { schema, merge } = secondService('rating');
/** What the second service does. */
let second: (request: never) => unknown;

let world: Awaited<ReturnType<typeof startPeople>>;
beforeAll(async () => {
  process.on('unhandledRejection', note);
  const lists = Object.entries(LISTS);
  world = await startPeople({
    typeDefs: `
      type Item { value: Int! }
      extend type Query { ${lists.map(([name, [type]]) => `${name}: ${type}`).join(' ')} }
    `,
    resolvers: { Query: Object.fromEntries(lists.map(([name, [, list]]) => [name, list])) },
    subschemas: [
      { schema, merge: merge!, executor: ((request: never) => second(request)) as never },
    ],
  });
});
afterAll(async () => {
  process.off('unhandledRejection', note);
  await world[Symbol.asyncDispose]();
});

type Alter = (answer: { data: Fields | null; errors?: unknown }) => void;
type Reported = ReturnType<typeof error>;

const error = (message: string, path?: Path, code?: string) => ({ message, path, code });

/** Sets one value of the honest answer of the service. */
const value =
  (path: Path, set: unknown): Alter =>
  ({ data }) => {
    const parent = path.slice(0, -1).reduce((of, step) => of[step] as Fields, data!);
    parent[path.at(-1)!] = set;
  };
/** Adds an error to it. */
const failing =
  (...failures: Partial<GraphQLFormattedError>[]): Alter =>
  (answer) =>
    void (answer.errors = failures);
const refused =
  (...all: Partial<GraphQLFormattedError>[]): Alter =>
  (answer) =>
    Object.assign(answer, { data: null, errors: all });

const EMAIL: Path = ['persons', 'items', 1, 'email'];
const MASKED = 'An unexpected error happened in the gateway.';
const masked = (...path: Path) => error(MASKED, path, 'INTERNAL_SERVER_ERROR');

const ROWS: readonly [
  what: string,
  query: string,
  data: unknown,
  errors: readonly Reported[],
  alter?: Alter,
][] = [
  [
    'several errors of one value',
    '{ persons(first: 2) { items { email } } own }',
    { persons: { items: [{ email: '1@example.com' }, { email: null }] }, own: 'own' },
    [error('One.', EMAIL), error('Two.', EMAIL)],
    (answer) => {
      value(EMAIL, null)(answer);
      answer.errors = [
        { message: 'One.', path: EMAIL },
        { message: 'Two.', path: EMAIL },
      ];
    },
  ],
  [
    'an error at a value that is there, in each answer of a second service',
    '{ ratingKnown { id } ratingBy(id: "1") { id } }',
    { ratingKnown: [{ id: '1' }], ratingBy: null },
    [error('Slow today.', undefined, 'SLOW')],
  ],
  [
    'an error at no null, in each answer of the service',
    '{ a: persons(first: 1) { items { fixed } } b: persons(first: 2) { items { id } } }',
    { a: { items: [{ fixed: 'fixed' }] }, b: { items: [{ id: '1' }, { id: '2' }] } },
    [error('Slow today.', undefined, 'SLOW'), error('Busy.')],
    failing(
      { message: 'Slow today.', path: ['persons', 'items'], extensions: { code: 'SLOW' } },
      { message: 'Busy.' },
    ),
  ],
  [
    'an operation that the service refuses',
    '{ x: allPersons { fixed } }',
    { x: null },
    [error('Not now.', ['x']), error('Sorry.', ['x'])],
    refused({ message: 'Not now.' }, { message: 'Sorry.' }),
  ],
  [
    'a page that fails as a whole',
    '{ x: persons(first: 2) { items { name fixed } } }',
    null,
    [error('No name.', ['x', 'items', 1, 'name']), error('Sorry.', ['x'])],
    refused({ message: 'No name.', path: ['persons', 'items', 1, 'name'] }, { message: 'Sorry.' }),
  ],
  [
    'a record that fails, of which a resolver returns the id',
    '{ anyone { name } }',
    { anyone: null },
    [error('Not now.', ['anyone'])],
    refused({ message: 'Not now.' }),
  ],
  [
    'a requirement that fails',
    '{ persons(after: "1") { items { contact } } }',
    { persons: { items: [{ contact: '2@example.com' }, { contact: null }] } },
    [error('No email.', ['persons', 'items', 1, 'contact'], 'NO_EMAIL')],
  ],
  [
    'a requirement whose failure nulls its record',
    '{ x: odd { shout } }',
    { x: [null, { shout: 'Name 2!' }] },
    [error('No name.', ['x', 0], 'NAMELESS')],
  ],
  [
    'an exception and an error of resolvers',
    '{ a: persons(first: 1) { b: items { late told id } } }',
    { a: { b: [{ late: null, told: null, id: '1' }] } },
    [masked('a', 'b', 0, 'late'), error('Ask the owner.', ['a', 'b', 0, 'told'], 'OWN')],
  ],
  [
    'an exception in a root field that must not be null',
    '{ brokenRoot persons { items { id } } }',
    null,
    [masked('brokenRoot')],
  ],
  [
    'a rejection beside an exception that nulls the record',
    '{ allPersons(limit: 1) { late strict } }',
    { allPersons: null },
    [masked('allPersons', 0, 'late'), masked('allPersons', 0, 'strict')],
  ],
];

/** Its own path means nothing to a caller. */
const slow = () => ({
  data: { ratingKnown: [{ id: '1' }], ratingBy: null },
  errors: [
    new GraphQLError('Slow today.', {
      path: ['ratingKnown', 0, 'id'],
      extensions: { code: 'SLOW' },
    }),
  ],
});

test.each(ROWS)(
  'beside added fields, %s is reported once at its place',
  async (_, query, data, expected, alter) => {
    second = slow;
    world.service.answer(alter ? altered(alter) : honest);
    const answer = await world.ask(query);
    expect(answer.data).toEqual(data);
    const reported = reportedIn(answer.errors);
    expect(reported).toHaveLength(expected.length);
    expect(reported).toEqual(expect.arrayContaining([...expected]));
    expect(JSON.stringify(answer)).not.toContain('secret');
    for (const { extensions } of answer.errors ?? []) {
      if (extensions?.['code'] !== 'INTERNAL_SERVER_ERROR') continue;
      const logged = world.logged.filter(({ requestId }) => requestId === extensions['id']);
      expect(JSON.stringify(logged)).toContain('secret');
    }
    // Rejections are reported after the microtasks of the turn in which they happen.
    await delay(0);
    expect(rejections).toEqual([]);
  },
);

/** The errors of an answer. Masked ones without their ids. */
function reportedIn(all: readonly GraphQLError[] = []): Reported[] {
  return all.map(({ message, path, extensions }) => {
    const words = message.startsWith(MASKED) ? MASKED : message;
    return error(words, path, extensions?.['code'] as string | undefined);
  });
}

/** graphql-tools and graphql-js forget the promises of a list that fails before they are rejected. */
test.each(Object.entries(LISTS))(
  'a list that fails is one error, and a promise in it that is rejected later is none: %s',
  async (name, [, , below = '']) => {
    const { errors: found } = await world.ask(`{ ${name} ${below} }`);
    expect(found).toHaveLength(1);
    await turn();
    expect(rejections).toEqual([]);
  },
);

test.each<[what: string, place: Path, set: unknown]>([
  ['an unknown enum value', ['persons', 'items', 0, 's'], 'FIRED'],
  ['a string for an object', ['persons', 'items', 0, 'boss'], 'me'],
  ['a null where none is allowed', ['persons', 'items', 0, 'name'], null],
  ['a string for a page', ['persons'], 'x'],
  ['an object in a list of texts', ['persons', 'items', 0, 'skills', 0], {}],
  ['a page that is not there', ['persons'], undefined],
])('%s is UPSTREAM_BAD_RESPONSE at its place, beside added fields', async (_, path, set) => {
  world.service.answer(altered(value(path, set)));
  const { errors: found } = await world.ask(
    '{ persons(first: 1) { items { s: stage boss { name } skills name fixed } } }',
  );
  expect(found).toMatchObject([{ path, extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }]);
});

/** A record with another key. */
const FORGED = { __typename: 'Person', _rsNeeds_Person_id: 'secret' };
const MISFIT = expect.stringContaining('where its schema promises [Person]') as string;
const NOTHING = expect.stringContaining('returned neither data nor an error') as string;
const BAD = 'UPSTREAM_BAD_RESPONSE';
const http = (respond: () => Response) =>
  buildHTTPExecutor({ endpoint: 'http://internal.test/', fetch: respond }) as never;
const json = (body: unknown) => http(() => Response.json(body));
const PLAIN = { message: 'No today.', extensions: { code: 'CLOSED' } };

test.each<[what: string, executor: typeof second, Reported?]>([
  ['answers 500', http(() => new Response('secret', { status: 500 })), masked()],
  ['returns nothing', () => ({}), error(NOTHING, [], BAD)],
  ['has another type', json({ data: { ratingByKeys: 'secret' } }), error(MISFIT, [], BAD)],
  ['has too few records', json({ data: { ratingByKeys: [] } })],
  ['gives other ids', json({ data: { ratingByKeys: [FORGED, FORGED] } })],
  ['has an error', json({ errors: [PLAIN] }), error('No today.', [], 'CLOSED')],
  ['returns a plain error', () => ({ errors: [PLAIN] }), error('No today.', [], 'CLOSED')],
])('a second service that %s costs only its own fields', async (_, executor, failed) => {
  second = executor;
  world.service.answer(honest);
  const answer = await world.ask('{ persons(first: 2) { items { id name rating } } }');
  const items = ['1', '2'].map((id) => ({ id, name: `Name ${id}`, rating: null }));
  expect(answer.data).toEqual({ persons: { items } });
  const places: Path[] = [0, 1].map((at) => ['persons', 'items', at, 'rating']);
  expect(reportedIn(answer.errors)).toEqual(
    failed ? places.map((path) => ({ ...failed, path })) : [],
  );
  expect(JSON.stringify(answer)).not.toMatch(/secret|internal/);
});
