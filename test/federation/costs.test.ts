import { buildASTSchema, parse, versionInfo } from 'graphql';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fullSdl } from '../support/imitations/honest.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { apolloEstimate } from '../support/supergraph/apollo-estimate.ts';
import { compose, composed } from '../support/supergraph/composition.ts';
import {
  ROUTER_KEY,
  startRecruiting,
  type RecruitingSubgraph,
} from '../support/supergraph/recruiting-subgraph.ts';
import { reviewsSdl } from '../support/supergraph/reviews-subgraph.ts';
import { startRouter, type Router } from '../support/supergraph/router.ts';

const PERSONS = 1_000;
const OVERRIDES = { fields: { 'Query.persons': { size: PERSONS } } };
const NOT_WITH_17 = 'Hive Gateway reads variables as graphql 16 has them when it estimates costs.';
/** What a page costs. */
const PAGE = 50;

let recruiting: RecruitingSubgraph;
let router: Router;

beforeAll(async () => {
  recruiting = await startRecruiting({
    persons: PERSONS,
    federationVersion: '2.9',
    overrides: OVERRIDES,
  });
  router = await startRouter({
    supergraph: composed([recruiting]),
    // With this option, the router reports its estimates.
    env: { RECRUITING_KEY: ROUTER_KEY, NODE_ENV: 'development' },
  });
}, 60_000);
afterAll(async () => {
  await router[Symbol.asyncDispose]();
  await recruiting[Symbol.asyncDispose]();
});

const EDGES = 'edges { cursor node { id firstName } } pageInfo { hasNextPage endCursor }';

/** Below 25 records, a page is estimated at less than half a page, because all cost of a list is in its records. */
const LIMITS = [25, 30, 40, 49, 50, 51, 60, 75, 99, 100, 137, 150, 200, 300, 400, 500, 750, 1_000];
const FIRSTS = [1, 2, 5, 10, 20, 30, 49, 50, 51, 75, 100, 150, 250, 400, 500];

/** Operations with the variables that their callers would send, on a list that was walked before. */
const OPERATIONS: readonly (readonly [query: string, variables?: Record<string, unknown>])[] = [
  ['{ allPersons { id } }'],
  ['{ allPersons(limit: null) { id } }'],
  ['query ($limit: Int) { allPersons(limit: $limit) { id } }', { limit: null }],
  ['query All { people: allPersons { __typename name: firstName } }'],
  ['{ allPersons { ...Name } } fragment Name on Person { id firstName }'],
  ...LIMITS.map((limit) => [`{ allPersons(limit: ${limit}) { id firstName } }`] as const),
  ...[60, 180, 600].map(
    (limit) => ['query ($limit: Int) { allPersons(limit: $limit) { id } }', { limit }] as const,
  ),
  ['{ personsConnection { nodes { id } } }'],
  [`query ($last: Int) { personsConnection(last: $last) { ${EDGES} } }`, { last: null }],
  ...FIRSTS.map((first) => [`{ personsConnection(first: ${first}) { ${EDGES} } }`] as const),
  ...[25, 300].map(
    (first) =>
      [
        `query ($first: Int!) { c: personsConnection(first: $first) { ...Part } }
        fragment Part on PersonConnection { ${EDGES} }`,
        { first },
      ] as const,
  ),
  ['{ personsConnection(last: 100) { nodes { firstName } } }'],
  ['{ personsConnection(last: 400) { edges { node { id } } } }'],
  ['{ a: personsConnection(first: 20) { nodes { id } } b: allPersons(limit: 300) { id } }'],
  [
    '{ a: personsConnection(first: 60) { nodes { id } } b: personsConnection(first: 500) { nodes { id } } }',
  ],
  ['{ persons { items { id } pageInfo { endCursor } } }'],
  ['{ persons(first: 3) { items { id firstName } } }'],
  ['{ persons(first: 50) { items { id firstName } pageInfo { hasNextPage } } }'],
];

test(`a router estimates the cost of ${OPERATIONS.length} operations within a factor of two of the pages that are read`, async ({
  skip,
}) => {
  if (versionInfo.major > 16) skip(NOT_WITH_17);
  const schema = buildASTSchema(parse(recruiting.sdl), { assumeValidSDL: true });
  const wrong: string[] = [];
  for (const [query, variables = {}] of OPERATIONS) {
    const before = recruiting.upstreamRequests();
    const { data, errors, extensions } = await router.ask(query, variables);
    expect({ query, data, errors }).toMatchObject({ data: expect.anything(), errors: undefined });
    const pages = recruiting.upstreamRequests() - before;
    const estimates = {
      'Hive Gateway': (extensions as { cost: { estimated: number } }).cost.estimated / PAGE,
      'Apollo Router': apolloEstimate(schema, parse(query), { variables }) / PAGE,
    };
    for (const [name, estimated] of Object.entries(estimates)) {
      if (estimated < pages / 2 || estimated > pages * 2) {
        wrong.push(`${name} estimates ${estimated} instead of ${pages} pages: ${query}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(OPERATIONS.length).toBeGreaterThanOrEqual(50);
});

test('a limit that is null costs as much as a missing one, also through a variable', async ({
  skip,
}) => {
  if (versionInfo.major > 16) skip(NOT_WITH_17);
  const whole = await estimate(allWith());
  expect(whole).toBeGreaterThan(PERSONS / 2);
  expect(await estimate('{ allPersons(limit: null) { id } }')).toBe(whole);
  expect(await estimate(allWith('($limit: Int)'), { limit: null })).toBe(whole);
  expect(await estimate(allWith('($limit: Int)'))).toBe(whole);
  expect(await estimate(allWith('($limit: Int = null)'))).toBe(whole);
  expect(await estimate(allWith('($limit: Int = 60)'), { limit: null })).toBe(whole);
  expect(await estimate(allWith('($limit: Int = 60)'))).toBe(60);
  const fragment = '{ ...All } fragment All on Query { allPersons(limit: null) { id } }';
  expect(await estimate(fragment)).toBe(whole);
});

test('a router charges lists that are read whole, whatever their fields are called', async ({
  skip,
}) => {
  if (versionInfo.major > 16) skip(NOT_WITH_17);
  await using prefixed = await startRecruiting({
    prefix: 'Recruiting',
    federationVersion: '2.9',
    overrides: { fields: { 'Query.recruitingPersons': { size: 2_000 } } },
  });
  await using other = await startRouter({
    supergraph: composed([prefixed]),
    env: { RECRUITING_KEY: ROUTER_KEY, NODE_ENV: 'development' },
  });
  const whole = '{ a: recruitingAllPersons { id } b: recruitingAllPersons(limit: null) { id } }';
  expect(await estimate(whole, {}, other)).toBeGreaterThanOrEqual(4_000);
  expect(await estimate('{ recruitingAllPersons(limit: 60) { id } }', {}, other)).toBe(60);
});

test('a router refuses an operation that is too expensive before it sends anything', async ({
  skip,
}) => {
  if (versionInfo.major > 16) skip(NOT_WITH_17);
  recruiting.received.length = 0;
  const { errors } = await router.ask(connectionsOf500(10));
  const codes = new Set(errors?.map(({ extensions }) => extensions['code']));
  expect(codes).toEqual(new Set(['COST_ESTIMATED_TOO_EXPENSIVE']));
  expect(recruiting.received).toHaveLength(0);
  expect(await router.ask(connectionsOf500(9))).not.toHaveProperty('errors');
});

test('_service and schema print have costs only with version 2.9', async () => {
  const { data } = await recruiting.ask('{ _service { sdl } }');
  const { sdl } = data!['_service'] as { sdl: string };
  using folder = temporaryFolder();
  copyFileSync('schema/upstream.graphql', folder.file('upstream.graphql'));
  writeFileSync(folder.file('adapters.json'), JSON.stringify(OVERRIDES));
  const env = { RECRUITING_SCHEMA: folder.file('upstream.graphql') };
  const print = ['schema', 'print', '--subgraph'];
  const printed = await Promise.all([
    runHere([...print, '--federation', '2.9'], env),
    runHere(print, { ...env, FEDERATION_VERSION: '2.9' }),
    runHere([...print, '--federation', '2.3'], { ...env, FEDERATION_VERSION: '2.9' }),
    runHere(print, env),
  ]);
  const before = readFileSync('schema/subgraph.graphql', 'utf8');
  expect(printed.map(({ stdout }) => stdout)).toEqual([sdl, sdl, before, before]);
  expect(before).not.toContain('@cost');
});

test('lists below records and lists that are not paged have a length, too', async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file('upstream.graphql'), fullSdl);
  const { stdout: sdl } = await runHere(['schema', 'print', '--subgraph', '--federation', '2.9'], {
    RECRUITING_SCHEMA: folder.file('upstream.graphql'),
  });
  const { errors } = compose([
    { name: 'recruiting', sdl, url: 'http://recruiting.test' },
    { name: 'reviews', sdl: reviewsSdl(), url: 'http://reviews.test' },
  ]);
  expect(errors).toBeUndefined();
  const schema = buildASTSchema(parse(sdl), { assumeValidSDL: true });
  const costOf = (query: string) => apolloEstimate(schema, parse(query));
  // As callers are charged: 20 openings with 5 candidates each are 120 records.
  expect(
    costOf('{ openings(first: 20) { items { candidates(first: 5) { items { id } } } } }'),
  ).toBe(34 + 20 * (1 + 5));
  expect(costOf('{ candidates(first: 50) { items { friends { id } } } }')).toBe(34 + 50 * (1 + 10));
  expect(costOf('{ allCandidates(drainLimit: 70) { id } }')).toBe(70);
});

/** All persons, with the variable `limit` if it is defined. */
function allWith(definition = ''): string {
  return `query ${definition} { allPersons${definition && '(limit: $limit)'} { id } }`;
}

/** What Hive Gateway estimates an operation to cost. */
async function estimate(
  query: string,
  variables: Record<string, unknown> = {},
  by: Router = router,
): Promise<number> {
  const { data, errors, extensions } = await by.ask(query, variables);
  expect({ query, data, errors }).toMatchObject({ data: expect.anything(), errors: undefined });
  return (extensions as { cost: { estimated: number } }).cost.estimated;
}

/** Each reads ten pages. */
function connectionsOf500(count: number): string {
  const fields = Array.from(
    { length: count },
    (_, index) => `c${index}: personsConnection(first: 500) { nodes { id } }`,
  );
  return `{ ${fields.join(' ')} }`;
}
