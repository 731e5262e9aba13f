import { describe, expect, onTestFinished, test } from 'vitest';
import { printSchema } from 'graphql';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverSandbox, type TestGatewayOptions } from '../support/gateway/gateway.ts';
import { fullService } from '../support/imitations/honest.ts';
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

const unknown = Array.from(
  { length: 3 },
  (_, at) => `{ __typename: "Person", id: "nobody-${at}" }`,
);

/** Each returns more than a few of the 20 pages of 1,000 persons. */
const reads: readonly [string, string][] = [
  ['all…', '{ allPersons { id } }'],
  ['all… with a limit', '{ allPersons(limit: 700) { id } }'],
  ['first', '{ personsConnection(first: 700) { nodes { id } } }'],
  ['last', '{ personsConnection(last: 700) { nodes { id } } }'],
  ['pages under aliases', pagesUnderAliases(13)],
  ['drains under aliases', aliased(7, (at) => `allPersons(limit: ${100 + at}) { id }`)],
];

/** Each requests all of these pages, and returns a few records at most. */
const searches: readonly [string, string][] = [
  ['last: 20', '{ personsConnection(last: 20) { nodes { id } } }'],
  ['totalCount', '{ personsConnection(first: 1) { totalCount } }'],
  ['an id that nobody has met', '{ person(id: "nobody") { id } }'],
  [
    'entities that have never been found',
    `{ _entities(representations: [${unknown.join()}]) { __typename } }`,
  ],
];
const ways = [...reads, ...searches];

describe('without the scope drain', () => {
  test.each(reads)(
    'an operation may return the records of a few pages, in whatever form it requests more: %s',
    async (way, query) => {
      const world = await startWorld();
      const refused = await world.ask(READER, query);
      expect(codesOf(refused)).toContain('FORBIDDEN');
      expect(JSON.stringify(refused.errors)).toContain('the scope \\"drain\\"');
      expect(JSON.stringify(refused.errors)).not.toContain('Send the operation again');
      if (!way.startsWith('last')) expect(world.requests()).toBeLessThanOrEqual(A_FEW);

      expect(codesOf(await world.ask(DRAINER, query))).toEqual([]);
    },
  );

  test.each(searches)(
    'an operation may search a list of any length for what it returns: %s',
    async (_, query) => {
      const world = await startWorld({ persons: 2_345 });
      expect(codesOf(await world.ask(READER, query))).toEqual([]);
      expect(world.requests()).toBeGreaterThan(40);
    },
  );

  test('a few pages are allowed to every caller with the scope read', async () => {
    const world = await startWorld({ persons: 300 });
    for (const query of [
      '{ allPersons { id } }',
      '{ personsConnection(first: 500) { nodes { id } } }',
      pagesUnderAliases(A_FEW),
    ]) {
      expect(codesOf(await world.ask(READER, query))).toEqual([]);
    }
  });

  test('a shared drain continues for callers with the scope, and ends for the one without it', async () => {
    const world = await startWorld();
    const query = '{ allPersons { id } }';
    const [reader, drainer, other] = await Promise.all(
      [READER, DRAINER, OTHER].map((key) => world.ask(key, query)),
    );
    expect(codesOf(reader!)).toEqual(['FORBIDDEN']);
    expect(reader!.errors?.[0]?.extensions).toMatchObject({
      drained: expect.any(Number),
      resumeAfter: expect.any(String),
    });
    for (const { data, errors } of [drainer!, other!]) {
      expect(errors).toBeUndefined();
      expect((data as unknown as { allPersons: unknown[] }).allPersons).toHaveLength(1_000);
    }
    expect(world.requests()).toBeLessThanOrEqual(22);
  });
});

describe('PAGES_PER_MINUTE', () => {
  test('a totalCount above the budget is null with an error of its own, and the edges stay', async () => {
    const world = await startWorld({ config: { pagesPerMinute: 5 } });
    const { data, errors } = await world.ask(
      READER,
      '{ personsConnection(first: 2) { nodes { id } totalCount } only: personsConnection { totalCount } }',
    );
    expect(data).toMatchObject({
      personsConnection: { nodes: [{}, {}], totalCount: null },
      only: { totalCount: null },
    });
    const extensions = {
      code: 'RATE_LIMITED',
      pages: 6,
      pagesPerMinute: 5,
      retryAfter: expect.any(Number),
    };
    expect(errors).toMatchObject([
      { path: ['personsConnection', 'totalCount'], extensions },
      { path: ['only', 'totalCount'], extensions },
    ]);
  });

  test.each(ways)(
    'an operation above the budget ends, and sends no further request: %s',
    async (way, query) => {
      const world = await startWorld({ config: { pagesPerMinute: 5 } });
      const { errors } = await world.ask(DRAINER, query);
      // This is one request that costs more than a whole minute.
      const code = way === 'pages under aliases' ? 'OPERATION_TOO_COMPLEX' : 'RATE_LIMITED';
      expect(errors?.map(({ extensions }) => extensions['code'])).toContain(code);
      // Only a drain can be continued: the others return no record of what they have read.
      const isContinued = errors!.some(({ extensions }) => 'resumeAfter' in extensions);
      if (!way.startsWith('drains')) expect(isContinued).toBe(way.startsWith('all…'));
      expect(world.requests()).toBeLessThanOrEqual(5);
    },
  );

  test('pages that several operations of one caller share are charged once', async () => {
    const world = await startWorld({ config: { pagesPerMinute: 25 } });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => world.ask(DRAINER, '{ allPersons { id } }')),
    );
    for (const answer of answers) expect(codesOf(answer)).toEqual([]);
  });

  test('a hundred references cost a page, those of all fields together', async () => {
    const world = await startWorld({ config: { pagesPerMinute: 5 } });
    const query = `query ($all: [_Any!]!) { a: _entities(representations: $all) { __typename } b: _entities(representations: $all) { __typename } }`;
    const codes = async (count: number) => {
      const wrong = { __typename: 'Nobody', id: '1' };
      const answer = await world.ask(READER, query, {
        all: Array.from({ length: count / 2 }, () => wrong),
      });
      return new Set(codesOf(answer));
    };
    expect(await codes(498)).toEqual(new Set(['BAD_USER_INPUT']));
    expect(await codes(298)).toContain('RATE_LIMITED');
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
  const world = await startGatewayOverSandbox(
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
  return { ...world, ask, clock, requests: () => world.sandbox.stats.requests.graphql };
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
