import { describe, expect, onTestFinished, test } from 'vitest';
import { printSchema } from 'graphql';
import { entryFor } from '../support/gateway/api-key.ts';
import { type TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { fullService } from '../service/full.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { codesOf } from '../support/gateway/codes.ts';

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

interface Way {
  readonly query: string;
  /** Only a drain can be continued: the others return no record of what they have read. */
  readonly isContinued?: true | 'maybe';
  /** That of a request which costs more than a whole minute is another one. */
  readonly code?: string;
  /** The list is read from its beginning, to return its end. */
  readonly isRead?: true;
}

/** Each returns more than a few of the 20 pages of 1,000 persons. */
const READS: Readonly<Record<string, Way>> = {
  'all…': { query: DRAIN, isContinued: true },
  'all… with a limit': { query: '{ allPersons(limit: 700) { id } }', isContinued: true },
  first: { query: '{ personsConnection(first: 700) { nodes { id } } }' },
  last: { query: '{ personsConnection(last: 700) { nodes { id } } }', isRead: true },
  'pages under aliases': { query: pagesUnderAliases(13), code: 'OPERATION_TOO_COMPLEX' },
  'drains under aliases': {
    query: aliased(7, (at) => `allPersons(limit: ${100 + at}) { id }`),
    isContinued: 'maybe',
  },
};
/** Each requests all pages, and returns a few records at most. */
const SEARCHES: Readonly<Record<string, Way>> = {
  'last: 20': { query: '{ personsConnection(last: 20) { nodes { id } } }' },
  totalCount: { query: '{ personsConnection(first: 1) { totalCount } }' },
  'an id that nobody has met': { query: '{ person(id: "nobody") { id } }' },
  'references that were never found': {
    query: `{ _entities(representations: [${NOBODY}]) { __typename } }`,
  },
};

test.each(Object.entries(READS))(
  'without the scope drain, an operation may return the records of a few pages: %s',
  async (_, { query, isRead }) => {
    const world = await startWorld();
    const refused = await world.ask(READER, query);
    expect(codesOf(refused)).toContain('FORBIDDEN');
    expect(JSON.stringify(refused.errors)).toContain('the scope \\"drain\\"');
    expect(JSON.stringify(refused.errors)).not.toContain('Send the operation again');
    if (!isRead) expect(world.requests()).toBeLessThanOrEqual(A_FEW);
    expect(codesOf(await world.ask(DRAINER, query))).toEqual([]);
  },
);

test('without the scope drain, an operation may search a list of any length, and read a few pages', async () => {
  for (const { query } of Object.values(SEARCHES)) {
    const world = await startWorld({ persons: 2_345 });
    expect(codesOf(await world.ask(READER, query))).toEqual([]);
    expect(world.requests()).toBeGreaterThan(40);
  }
  const world = await startWorld({ persons: 300 });
  for (const query of [DRAIN, READS['first']!.query, pagesUnderAliases(A_FEW)]) {
    expect(codesOf(await world.ask(READER, query))).toEqual([]);
  }
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

describe('PAGES_PER_MINUTE', () => {
  test.each(Object.entries({ ...READS, ...SEARCHES }))(
    'an operation above the budget ends, and sends no further request: %s',
    async (_, { query, isContinued = false, code = 'RATE_LIMITED' }) => {
      const world = await startWorld({ config: { pagesPerMinute: 5 } });
      const { errors } = await world.ask(DRAINER, query);
      expect(codesOf({ errors: errors! })).toContain(code);
      const hasCursor = errors!.some(({ extensions }) => 'resumeAfter' in extensions);
      if (isContinued !== 'maybe') expect(hasCursor).toBe(isContinued);
      expect(world.requests()).toBeLessThanOrEqual(5);
    },
  );

  test('a totalCount above the budget is null with an error of its own, and the edges stay', async () => {
    const world = await startWorld({ config: { pagesPerMinute: 5 } });
    const { data, errors } = await world.ask(
      READER,
      '{ personsConnection(first: 2) { nodes { id } totalCount } }',
    );
    expect(data).toMatchObject({ personsConnection: { nodes: [{}, {}], totalCount: null } });
    const facts = { pages: 6, pagesPerMinute: 5, retryAfter: expect.any(Number) };
    expect(errors).toMatchObject([
      {
        path: ['personsConnection', 'totalCount'],
        extensions: { code: 'RATE_LIMITED', ...facts },
      },
    ]);
  });

  test('pages that several operations of one caller share are charged once', async () => {
    const world = await startWorld({ config: { pagesPerMinute: 25 } });
    const sent = Array.from({ length: 20 }, () => world.ask(DRAINER, DRAIN));
    for (const answer of await Promise.all(sent)) expect(codesOf(answer)).toEqual([]);
  });

  test('a hundred references cost a page, those of all fields together', async () => {
    const world = await startWorld({ config: { pagesPerMinute: 5 } });
    const query = `query ($all: [_Any!]!) { a: _entities(representations: $all) { __typename } b: _entities(representations: $all) { __typename } }`;
    for (const [count, code] of [
      [498, 'BAD_USER_INPUT'],
      [298, 'RATE_LIMITED'],
    ] as const) {
      const wrong = { __typename: 'Nobody', id: '1' };
      const all = Array.from({ length: count / 2 }, () => wrong);
      expect(codesOf(await world.ask(READER, query, { all }))).toContain(code);
    }
  });

  const CONDITION =
    'query ($in: Boolean!, $first: Int, $inner: Int = 50) { vacancies(first: $first) { items { ...one @include(if: $in) } } } ' +
    'fragment one on Vacancy { candidates(first: $inner) { items { id } } }';
  const ALL = 'fragment All on Vacancy { candidates(first: 50) { items { id } } }';

  test.each<[string, number | undefined, string, object?]>([
    ['a page', undefined, '{ vacancies { items { id } } }'],
    ['5 and 5 times 3 records, less than a page', undefined, page(5, 3)],
    ['20 and 20 times 10 records', 5, page(20, 10)],
    ['a page and 10 pages below', 11, page(10, 50)],
    ['a page and 50 pages below', 51, page(50, 50)],
    ['two fields', 101, `{ a: ${page(50, 50).slice(1, -1)} b: ${page(49, 50).slice(1, -1)} }`],
    [
      'a fragment in two places',
      12,
      `{ vacancy(id: 1) { ...All } vacancies(first: 10) { items { ...All } } } ${ALL}`,
    ],
    ['what a variable includes', 21, CONDITION, { in: true, first: 20 }],
    ['as many records as a variable requests', 5, CONDITION, { in: true, first: 20, inner: 10 }],
    ['nothing that a variable excludes', undefined, CONDITION, { in: false, first: 50 }],
    ['a list behind a result', 51, behindResults(50, 50)],
    ['a short list behind a result', 11, behindResults(50, 10)],
  ])('the cost of an operation is that of %s', async (_, cost, query, variables = {}) => {
    const schema = query.includes('boards') ? undefined : fullService().schema;
    const snapshot = schema ? printSchema(schema) : RESULTS;
    const config = { pagesPerMinute: 4 };
    const world = await startWorld({ snapshot, config, ...(schema && { schema }) });
    const { errors } = await world.ask(DRAINER, query, variables as Record<string, unknown>);
    if (cost === undefined) return expect(errors).toBeUndefined();
    expect(codesOf({ errors: errors ?? [] })).toEqual(['OPERATION_TOO_COMPLEX']);
    expect(errors![0]!.message).toMatch(/costs at least \d+ pages .* 4 a minute.*PAGES_PER_MINUTE/);
    expect(Number(/at least (\d+)/.exec(errors![0]!.message)![1])).toBe(cost);
    expect(world.requests()).toBe(0);
  });
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

function behindResults(boards: number, cards: number): string {
  return `{ boards(first: ${boards}) { ... on Boards { items {
    cards(first: ${cards}) { ... on Cards { items { id } } ... on Denied { message } }
  } } } }`;
}

async function startWorld({
  persons = 1_000,
  schema,
  snapshot,
  config,
}: Pick<TestGatewayOptions, 'config' | 'snapshot'> & {
  persons?: number;
  schema?: ReturnType<typeof fullService>['schema'];
} = {}) {
  const clock = new ManualClock();
  const world = await startGatewayOverService(
    { persons, ...(schema && { schema }) },
    {
      clock,
      ...(snapshot !== undefined && { snapshot }),
      config: { auth, connectionMax: 1_000, ...config },
    },
  );
  onTestFinished(() => world[Symbol.asyncDispose]());
  const ask = (key: string, query: string, variables?: Record<string, unknown>) =>
    world.ask(query, variables, { headers: { 'x-api-key': key } });
  return { ...world, ask, clock, requests: () => world.service.stats.requests.graphql };
}

function page(first: number, inner: number): string {
  return `{ vacancies(first: ${first}) { items { candidates(first: ${inner}) { items { id } } } } }`;
}

function pagesUnderAliases(count: number): string {
  return aliased(count, (at) => `persons(first: ${1 + at}) { items { id } }`);
}

function aliased(count: number, field: (at: number) => string): string {
  return `{ ${Array.from({ length: count }, (_, at) => `a${at}: ${field(at)}`).join(' ')} }`;
}
