import fc from 'fast-check';
import { parse, validate } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ACCEPTED, joinedAnswer } from '../support/clients/multipart.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { difference } from './compare.ts';
import { cursorOf, withCursors, type Answer, type Ask } from './cursors.ts';
import { randomOperation, type Operation } from './operation.ts';
import { BY_CODE, CLASHING, HABITS, listWorld } from './random-lists.ts';
import { WORLDS, type World } from './world.ts';

/* Each answer is compared with the one of graphql-js, with the service's resolvers over lists in memory. */

interface Side {
  readonly world: World;
  readonly gateway: GatewayOverService;
  /** For an answer whole, and for one in parts. */
  readonly asks: readonly Ask[];
  readonly askLists: Ask;
}

const sides = new Map<string, Side>();
beforeAll(async () => {
  for (const [name, makeWorld] of Object.entries(WORLDS)) sides.set(name, await start(makeWorld()));
});
afterAll(async () => {
  for (const { gateway } of sides.values()) await gateway[Symbol.asyncDispose]();
});

async function start(world: World): Promise<Side> {
  const { schema, snapshot, prefix, overrides, mutates = false, additions } = world;
  const mutations = mutates ? 'all' : 'off';
  const limits = { maxDepth: 100, maxAliases: 1_000, maxTokens: 20_000 };
  const config = { schemaPrefix: prefix, mutations, ...limits } as const;
  const gateway = await startGatewayOverService(
    { schema },
    { snapshot, overrides, config, ...(additions && { additions }) },
  );
  const asks = ACCEPTED.map((accept) =>
    withCursors(({ query, variables, operationName }) =>
      joinedAnswer(gateway, { query, variables, operationName }, accept),
    ),
  );
  return { world, gateway, asks, askLists: withCursors(world.ask) };
}

async function compared({ world, askLists }: Side, ask: Ask, operation: Operation) {
  const answer = await ask(operation);
  const expected = await askLists(operation);
  const isTolerated = world.additions && isLess(answer, expected);
  const differing = isTolerated ? undefined : difference(operation.query, answer, expected);
  return { answer, differing };
}

/** With added fields, an operation may read 50,000 values, and the request of each root field may leave no data. */
function isLess({ data, errors = [] }: Answer, expected: Answer): boolean {
  const isTooMuch = errors.some(
    ({ extensions }) => extensions?.['code'] === 'OPERATION_TOO_COMPLEX',
  );
  return isTooMuch || (errors.length > 0 && !data && !expected.data);
}

const FROM_A_RECORD_THAT_FAILS = JSON.stringify(
  cursorOf({ via: [], field: 'candidatesConnection', args: ['first: 100'], at: 10 }),
);

/** What random operations found once. */
const ROWS: readonly [promise: string, world: string, query: string, variables?: object][] = [
  [
    'a cursor of a record that fails in this selection resumes exactly there',
    'full',
    `{ candidatesConnection(first: 3, after: ${FROM_A_RECORD_THAT_FAILS}) { nodes { rank id } } }`,
  ],
  [
    'a drain goes on after a record that fails in this selection',
    'full',
    `{ allCandidates(limit: 3, after: ${FROM_A_RECORD_THAT_FAILS}) { rank id } }`,
  ],
  [
    'errors of records before the window have no place in it',
    'full',
    `{ candidatesConnection(first: 8, after: ${JSON.stringify(cursorOf({ via: [], field: 'candidatesConnection', args: ['first: 100'], at: 0 }))}) {
      nodes { score history(after: "nowhere") { items { text } } }
    } }`,
  ],
  [
    'an entity of which nothing is selected is an empty object',
    'rich',
    '{ _entities(representations: [{ __typename: "Vacancy", id: "14" }]) { ... on Comment { text } } }',
  ],
  [
    'an entity of which only a list is selected has that list',
    'full',
    '{ _entities(representations: [{ __typename: "Vacancy", id: 2 }]) { ... on Vacancy { allCandidates { id } } } }',
  ],
  [
    'a damaged cursor is refused although only __typename is selected',
    'full',
    '{ openingsConnection(after: "nowhere") { __typename } }',
  ],
  [
    'a negative number is refused although only totalCount is selected',
    'full',
    '{ applicantsConnection(last: -1) { totalCount } }',
  ],
  [
    'a connection without edges asks nothing of its records',
    'rich',
    `{ vacancies(first: 2) { items {
      candidatesConnection(first: 0) { edges { node { comments(after: "nowhere") { __typename } } } }
    } } }`,
  ],
  [
    'a record of a list that fails in this selection is an error in the words of the service',
    'rich',
    '{ candidate(id: "113") { comments(after: "nowhere") { __typename } } }',
  ],
  [
    'one operation has one list with different lists below its records',
    'full',
    `{ vacancies(first: 5) { items {
      a: allCandidates { id history: allHistory { text } }
      b: allCandidates { id history: allHistory { at } }
    } } }`,
  ],
  [
    'variables are sent in fields of an input object',
    'forwarded',
    'query ($a: String, $c: String!, $b: [String]) { some(or: { a: $a, b: $b, c: $c, inner: { c: $c } }) }',
    { c: 'C', a: null },
  ],
  [
    'one value is sent for a list',
    'forwarded',
    '{ some(or: { b: "bar", c: "baz", list: BLUE }) given(lists: 1) }',
  ],
  [
    'null is sent for a strict argument with a default',
    'forwarded',
    'query ($v: String) { given(strict: $v) name }',
    { v: null },
  ],
  [
    'introspection has root types with other names, and the description of the schema',
    'forwarded',
    `{ __schema { description queryType { name } mutationType { name } }
       __type(name: "QueryRoot") { name kind } payload: __type(name: "Payload") { name fields { name } } }`,
  ],
  [
    '__typename of the root is there beside a derived field that is skipped',
    'full',
    '{ __typename applicantsConnection @skip(if: true) { totalCount } agencyCalled(label: "é") { __typename } }',
  ],
];

test.each(ROWS)('%s', async (_, name, query, variables = {}) => {
  const side = sides.get(name)!;
  const { differing } = await compared(side, side.asks[0]!, { query, variables } as Operation);
  expect(differing).toBeUndefined();
});

const NESTED = `query ($n: Int, $is: Boolean = true) {
  allCandidates(limit: 2) { history: allHistory(limit: $n) { text at @include(if: $is) } }
}`;
test.each<[string, Operation[]]>([
  [
    'other selections',
    ['text', 'by { id }'].map((name) => ({ query: NESTED.replace('text', name), variables: {} })),
  ],
  ['other arguments', [1, 0].map((n) => ({ query: NESTED, variables: { n } }))],
  ['other conditions', [true, false].map((is) => ({ query: NESTED, variables: { n: 1, is } }))],
  [
    'other defaults',
    [NESTED, NESTED.replace('= true', '= false')].map((query) => ({ query, variables: { n: 1 } })),
  ],
])(
  'lists below records are not shared with a caller who sends %s at the same time',
  async (_, sent) => {
    const side = sides.get('full')!;
    const results = await Promise.all(sent.map((each) => compared(side, side.asks[0]!, each)));
    expect(results.map(({ differing }) => differing)).toEqual([undefined, undefined]);
  },
);

test.each(Object.keys(WORLDS))(
  'random operations are answered as the service and its lists in memory say, also to callers who send one at the same time: %s',
  async (name) => {
    const side = sides.get(name)!;
    const counts = { all: 0, data: 0 };
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const operation = randomOperation(side.world, g);
        fc.pre(isValid(side.world, operation));
        const isShared = g(fc.nat, { max: 99 }) < 10;
        const sent = isShared ? [operation, changed(operation)] : [operation];
        const asks = isShared ? side.asks : [side.asks[g(fc.nat, { max: 1 })]!];
        const results = await Promise.all(
          sent.flatMap((each) => asks.map((ask) => compared(side, ask, each))),
        );
        const differing = results.filter((result) => result.differing);
        expect({ operation, differing }).toEqual({ operation, differing: [] });
        counts.all += results.length;
        counts.data += results.filter(({ answer }) => answer.data).length;
      }),
      // A failing operation is made smaller for half a minute.
      { numRuns: randomRuns(600), unbiased: true, interruptAfterTimeLimit: 30_000 },
    );
    expect(counts.data / counts.all).toBeGreaterThan(0.7);
  },
  300_000,
);

test('random operations over lists with random habits are answered as the service and its lists in memory say', async () => {
  await fc.assert(
    fc.asyncProperty(HABITS, fc.nat(), async (habits, seed) => {
      const side = await start(listWorld(habits));
      await using _ = side.gateway;
      for (const g of fc.sample(fc.gen(), { seed, numRuns: 25 })) {
        const operation = randomOperation(side.world, g);
        if (!isValid(side.world, operation)) continue;
        const { differing } = await compared(side, side.asks[0]!, operation);
        expect({ operation, differing }).toEqual({ operation, differing: undefined });
      }
    }),
    {
      numRuns: randomRuns(40),
      interruptAfterTimeLimit: 90_000,
      examples: [
        [CLASHING, 4],
        [BY_CODE, 0],
      ],
    },
  );
}, 120_000);

/** The same operation, with every condition the other way round and every number another one. */
function changed({ variables, ...operation }: Operation): Operation {
  const others = Object.entries(variables).map(([name, value]) => {
    if (typeof value === 'boolean') return [name, !value];
    return [name, typeof value === 'number' ? value + 1 : value];
  });
  return { ...operation, variables: Object.fromEntries(others) };
}

function isValid({ served, additions }: World, { query }: Operation): boolean {
  // It conflicts with a field of that key of another type (specification, 5.3.2), which graphql-js does not see.
  if (/\b(pageInfo|items|edges|nodes?): __typename/.test(query)) return false;
  // The first two are refused. The last graphql-tools selects on all types of a union.
  if (additions && /\b(then:|constructor:|id: __typename)/.test(query)) return false;
  return query.length < MOST_CHARACTERS && validate(served.schema, parse(query)).length === 0;
}

const MOST_CHARACTERS = 20_000;
