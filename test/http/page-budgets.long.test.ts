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
  const costly = PAGES.map((page) => page.replace('persons', 'candidates')).join(' ');
  const answer = await world.ask(READER, `{ ${costly} allCandidates { id } }`);
  expect(answer.errors).toMatchObject([{ path: ['a0'], extensions: { code: 'FORBIDDEN' } }]);
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

const INSIDE =
  'items { ...All } } } fragment All on Vacancy { candidates(first: 50) { items { id } } }';
const NESTED = `{ vacancies(first: 50) { ${INSIDE}`;
const TWICE = `{ a: vacancies { items { id } } b: vacancies(first: 1) { ${INSIDE}`;
const BELOW = '{ allVacancies(limit: 1) { candidates(first: 50) { items { id } } } }';
const RESULTS = `
  type Query { boards(first: Int, after: String): BoardsResult! }
  union BoardsResult = Boards | Denied
  type Boards { items: [Board!]! pageInfo: PageInfo! }
  type Board { id: Int! }
  type Denied { message: String! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;
const RESULT = '{ boards { ... on Boards { items { id } } } boards { ... on Denied { message } } }';

test.each([
  ['a list below records', NESTED, 2],
  ['two aliases, one with a list below its records', TWICE, 3],
  ['a field that may return a page', RESULT, 2],
  ['a list below the records of a drain', BELOW, 2],
])(
  'each paged field of the service costs a page, and more than a minute has are refused: %s',
  async (_, query, pages) => {
    const full = { ...fullService(), snapshot: query === RESULT ? RESULTS : fullSdl };
    const world = await startWorld({ pagesPerMinute: 1 }, full);
    const { errors } = await world.ask(DRAINER, query);
    const extensions = { code: 'OPERATION_TOO_COMPLEX', pages, pagesPerMinute: 1 };
    expect(errors).toMatchObject([{ extensions }]);
    expect(world.requests()).toBe(0);
  },
);

test('a request without a paged field costs a page', async () => {
  const world = await startWorld({ pagesPerMinute: 1 }, { ...fullService(), snapshot: fullSdl });
  const ask = async () => codesOf(await world.ask(DRAINER, '{ me { id } }'));
  expect([await ask(), await ask()]).toEqual([[], ['RATE_LIMITED']]);
});

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
