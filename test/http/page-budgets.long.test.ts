import { expect, onTestFinished, test } from 'vitest';
import { fullSdl, fullService } from '../service/full.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { codesOf } from '../support/gateway/codes.ts';
import type { ServiceOptions } from '../service/service.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { ManualClock } from '../support/random/manual-clock.ts';

// How many pages an operation may cause: without the scope drain, and in a minute.

const READER = 'the reader';
const DRAINER = 'the drainer';
const OTHER = 'another drainer';
const auth = {
  apiKeys: [
    entryFor(READER, 'reader', 'read', 'router'),
    entryFor(DRAINER, 'drainer', 'read', 'drain', 'write', 'router'),
    entryFor(OTHER, 'other', 'read', 'drain', 'router'),
  ],
  jwt: undefined,
};

/** The pages that an operation may use without the scope drain. */
const A_FEW = 12;
const NOBODY = ['x', 'y', 'z'].map((id) => `{ __typename: "Person", id: "${id}" }`).join(' ');
const DRAIN = '{ allPersons { id } }';
const FIRST = '{ personsConnection(first: 700) { nodes { id } } }';
const PAGES = Array.from(
  { length: A_FEW + 1 },
  (_, at) => `a${at}: persons(first: ${1 + at}) { items { id } }`,
);

interface Way {
  readonly query: string;
  /** Whether it returns all that it reads, and so needs the scope drain, instead of a few records at most. */
  readonly isDrain?: true;
  /** Only a drain can be continued: the others return no record of what they have read. */
  readonly isContinued?: true;
  /** That of a request which costs more than a whole minute is another one. */
  readonly code?: string;
  /** The list is read from its beginning, to return its end. */
  readonly isRead?: true;
}

/** Each requests more than a few of the 20 pages of 1,000 persons. */
const WAYS: readonly (readonly [string, Way])[] = [
  ['all…', { query: DRAIN, isDrain: true, isContinued: true }],
  ['first', { query: FIRST, isDrain: true }],
  ['last', { query: FIRST.replace('first', 'last'), isDrain: true, isRead: true }],
  [
    'pages under aliases',
    { query: `{ ${PAGES.join(' ')} }`, isDrain: true, code: 'OPERATION_TOO_COMPLEX' },
  ],
  ['last: 20', { query: '{ personsConnection(last: 20) { nodes { id } } }' }],
  ['totalCount', { query: '{ personsConnection(first: 1) { totalCount } }' }],
  ['an id that nobody has met', { query: '{ person(id: "nobody") { id } }' }],
  [
    'references that were never found',
    { query: `{ _entities(representations: [${NOBODY}]) { __typename } }` },
  ],
];

test.each(WAYS)(
  'without the scope drain, an operation may search a list of any length, and return a few pages: %s',
  async (_, { query, isDrain, isRead }) => {
    const world = await startWorld();
    const answer = await world.ask(READER, query);
    if (!isDrain) {
      expect(codesOf(answer)).toEqual([]);
      return expect(world.requests()).toBeGreaterThanOrEqual(20);
    }
    expect(codesOf(answer)).toContain('FORBIDDEN');
    expect(JSON.stringify(answer.errors)).toContain('the scope \\"drain\\"');
    expect(JSON.stringify(answer.errors)).not.toContain('Send the operation again');
    if (!isRead) expect(world.requests()).toBeLessThanOrEqual(A_FEW);
    expect(codesOf(await world.ask(DRAINER, query))).toEqual([]);
  },
);

test('a field that needs the scope drain is refused, and the other fields of its operation are answered', async () => {
  const world = await startWorld({}, { ...fullService(), snapshot: fullSdl });
  const costly = 'openings(first: 50) { items { candidates(first: 50) { items { id } } } }';
  const answer = await world.ask(READER, `{ ${costly} allCandidates { id } }`);
  expect(answer.errors).toMatchObject([{ path: ['openings'], extensions: { code: 'FORBIDDEN' } }]);
});

test('a shared drain continues for callers with the scope, and ends for the one without it', async () => {
  const world = await startWorld();
  const keys = [READER, DRAINER, OTHER];
  const [reader, ...others] = await Promise.all(keys.map((key) => world.ask(key, DRAIN)));
  const resumed = { drained: expect.any(Number), resumeAfter: expect.any(String) };
  expect(reader!.errors).toMatchObject([{ extensions: { code: 'FORBIDDEN', ...resumed } }]);
  for (const { data, errors } of others) {
    expect(errors).toBeUndefined();
    expect((data as { allPersons?: unknown[] }).allPersons).toHaveLength(1_000);
  }
  expect(world.requests()).toBeLessThanOrEqual(22);
});

test.each(WAYS)(
  'an operation above PAGES_PER_MINUTE ends, and sends no further request: %s',
  async (_, { query, isContinued = false, code = 'RATE_LIMITED' }) => {
    const world = await startWorld({ pagesPerMinute: 5 });
    const { errors } = await world.ask(DRAINER, query);
    const facts = { code, pages: expect.any(Number), pagesPerMinute: 5 };
    expect(errors![0]!.extensions).toMatchObject(facts);
    const hasCursor = errors!.some(({ extensions }) => 'resumeAfter' in extensions);
    expect(hasCursor).toBe(isContinued);
    expect(world.requests()).toBeLessThanOrEqual(5);
  },
);

test('pages that several operations of one caller share are charged once, and each caller has a budget', async () => {
  const world = await startWorld({ pagesPerMinute: 25 });
  const sent = Array.from({ length: 20 }, () => world.ask(DRAINER, DRAIN));
  for (const answer of await Promise.all(sent)) expect(codesOf(answer)).toEqual([]);
  expect(codesOf(await world.ask(DRAINER, FIRST))).toEqual(['RATE_LIMITED']);
  expect(codesOf(await world.ask(OTHER, FIRST))).toEqual([]);
});

const nested = (first: number, inner: number) =>
  `vacancies(first: ${first}) { items { candidates(first: ${inner}) { items { id } } } }`;
const CONDITION =
  'query ($in: Boolean!, $first: Int, $inner: Int = 50) { vacancies(first: $first) { items { ...one @include(if: $in) } } } ' +
  'fragment one on Vacancy { candidates(first: $inner) { items { id } } }';
const INCLUDED = CONDITION.replace(', $first: Int, $inner: Int = 50', '')
  .replace('$first', '20')
  .replace('$inner', '50');
const TWICE = `{ vacancy(id: 1) { ...All } vacancies(first: 10) { items { ...All } } }
  fragment All on Vacancy { candidates(first: 50) { items { id } } }`;
const behindResults = (inner: number) =>
  `{ boards(first: 50) { ... on Boards { items { cards(first: ${inner}) { ... on Cards { items { id } } ... on Denied { message } } } } } }`;

test.each<[string, number | undefined, string, object?]>([
  ['a page', undefined, '{ vacancies { items { id } } }'],
  ['5 and 5 times 3 records, less than a page', undefined, `{ ${nested(5, 3)} }`],
  ['20 and 20 times 10 records', 5, `{ ${nested(20, 10)} }`],
  ['a page and 10 pages below', 11, `{ ${nested(10, 50)} }`],
  ['two fields', 101, `{ a: ${nested(50, 50)} b: ${nested(49, 50)} }`],
  ['a fragment in two places', 12, TWICE],
  ['what a variable includes', 21, INCLUDED, { in: true }],
  ['as many records as a variable requests', 5, CONDITION, { in: true, first: 20, inner: 10 }],
  ['nothing that a variable excludes', undefined, CONDITION, { in: false, first: 50 }],
  ['a list behind a result', 51, behindResults(50)],
  ['a short list behind a result', 11, behindResults(10)],
])('the cost of an operation is that of %s', async (_, cost, query, variables = {}) => {
  const full = { ...fullService(), snapshot: fullSdl };
  const served = query.includes('boards') ? { snapshot: RESULTS } : full;
  const world = await startWorld({ pagesPerMinute: 4 }, served);
  // A known text has another cost under another condition.
  if ('in' in variables) await world.ask(DRAINER, query, { ...variables, in: !variables.in });
  const before = world.requests();
  const { errors } = await world.ask(DRAINER, query, variables);
  if (cost === undefined) return expect(errors).toBeUndefined();
  expect(codesOf({ errors: errors ?? [] })).toEqual(['OPERATION_TOO_COMPLEX']);
  const told = new RegExp(`costs at least ${cost} pages .* 4 a minute.*PAGES_PER_MINUTE`);
  expect(errors![0]!.message).toMatch(told);
  expect(world.requests()).toBe(before);
});

const RESULTS = `
  type Query { boards(first: Int, after: String): BoardsResult! }
  union BoardsResult = Boards | Denied
  union CardsResult = Cards | Denied
  type Boards { items: [Board!]! pageInfo: PageInfo! }
  type Board { id: Int! cards(first: Int, after: String): CardsResult! }
  type Cards { items: [Card!]! pageInfo: PageInfo! }
  type Card { id: Int! }
  type Denied { message: String! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;

async function startWorld(
  config: TestGatewayOptions['config'] = {},
  { snapshot, ...service }: ServiceOptions & Pick<TestGatewayOptions, 'snapshot'> = {
    persons: 1_000,
  },
) {
  const world = await startGatewayOverService(service, {
    ...(snapshot !== undefined && { snapshot }),
    clock: new ManualClock(),
    config: { auth, connectionMax: 1_000, ...config },
  });
  onTestFinished(() => world[Symbol.asyncDispose]());
  const ask = (key: string, query: string, variables: object = {}) =>
    world.ask(query, variables as Record<string, unknown>, { headers: { 'x-api-key': key } });
  return { ...world, ask, requests: () => world.service.received.length };
}
