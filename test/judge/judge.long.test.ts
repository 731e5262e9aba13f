import fc from 'fast-check';
import { parse, validate } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { difference } from './compare.ts';
import { cursorOf, withCursors, type Answer, type Ask } from './cursors.ts';
import { randomOperation, type Operation } from './operation.ts';
import { WORLDS, type World } from './world.ts';

/* Each answer is compared with the one of graphql-js, with the service's resolvers over lists in memory. */

interface Side {
  readonly world: World;
  readonly gateway: GatewayOverService;
  readonly ask: Ask;
  readonly askLists: Ask;
}

const sides = new Map<string, Side>();
beforeAll(async () => {
  for (const [name, makeWorld] of Object.entries(WORLDS)) {
    const world = makeWorld();
    const { schema, snapshot, prefix: schemaPrefix, isForwarded = false } = world;
    const mutations = isForwarded ? 'all' : 'off';
    const limits = { maxDepth: 100, maxAliases: 1_000, maxTokens: 20_000 };
    const config = { schemaPrefix, mutations, ...limits } as const;
    const gateway = await startGatewayOverService({ schema }, { snapshot, config });
    const ask: Ask = async (operation) => {
      const headers = { 'content-type': 'application/json', accept: 'application/json' };
      const body = JSON.stringify(operation);
      const response = await gateway.fetch('/graphql', { method: 'POST', headers, body });
      return (await response.json()) as Answer;
    };
    sides.set(name, { world, gateway, ask: withCursors(ask), askLists: withCursors(world.ask) });
  }
});
afterAll(async () => {
  for (const { gateway } of sides.values()) await gateway[Symbol.asyncDispose]();
});

async function compared({ ask, askLists }: Side, operation: Operation) {
  const answer = await ask(operation);
  const differing = difference(operation.query, answer, await askLists(operation));
  return { answer, differing };
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
    `{ allCandidates(drainLimit: 3, after: ${FROM_A_RECORD_THAT_FAILS}) { rank id } }`,
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
    '__typename of the root is there beside a derived field that is skipped',
    'full',
    '{ __typename applicantsConnection @skip(if: true) { totalCount } agencyCalled(label: "é") { __typename } }',
  ],
  [
    'keys have the order in which the operation names them, without those that it skips',
    'full',
    `query ($yes: Boolean!) {
      a: openingsConnection(last: 0) { totalCount @include(if: $yes) @skip(if: true) }
      a: openingsConnection(last: 0) { edges { cursor } ...T }
    }
    fragment T on VacancyConnection { totalCount }`,
    { yes: true },
  ],
];

test.each(ROWS)('%s', async (_, name, query, variables = {}) => {
  const { differing } = await compared(sides.get(name)!, { query, variables } as Operation);
  expect(differing).toBeUndefined();
});

test.each(Object.keys(WORLDS))(
  'random operations are answered as the service and its lists in memory say: %s',
  async (name) => {
    const side = sides.get(name)!;
    const counts = { all: 0, data: 0 };
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const operation = randomOperation(side.world, g);
        fc.pre(isValid(side.world, operation));
        const { answer, differing } = await compared(side, operation);
        expect({ operation, differing }).toEqual({ operation, differing: undefined });
        counts.all += 1;
        if (answer.data) counts.data += 1;
      }),
      // A failing operation is made smaller for half a minute.
      { numRuns: randomRuns(800), unbiased: true, interruptAfterTimeLimit: 30_000 },
    );
    expect(counts.data / counts.all).toBeGreaterThan(0.7);
  },
  300_000,
);

test.each([
  ['a list', '{ allPersons @tag(name: "x") { id } }'],
  ['a connection', '{ seen personsConnection @tag(name: "x") { nodes { id } } }'],
  [
    'a fragment around fragments around a list, which are also spread without it',
    '{ ...G ...F } fragment F on Query { ...G @tag(name: "x") } fragment G on Query { ...H } fragment H on Query { allPersons { id } }',
  ],
  ['the edges', '{ personsConnection { edges @tag(name: "x") { node { id } } } }'],
  [
    'a fragment in an edge',
    '{ personsConnection { edges { ...F } } } fragment F on PersonEdge @tag(name: "x") { node { id } }',
  ],
])('a custom directive on %s that the gateway adds is refused', async (_, query) => {
  const { ask, gateway } = sides.get('directives')!;
  const sent = gateway.service.received.length;
  const { data, errors } = await ask({ query, variables: {} });
  expect(data).toBeUndefined();
  expect(JSON.stringify(errors)).toMatch(/@tag cannot be used at .*BAD_USER_INPUT/);
  expect(gateway.service.received).toHaveLength(sent);
});

function isValid({ served }: World, { query }: Operation): boolean {
  return query.length < MOST_CHARACTERS && validate(served.schema, parse(query)).length === 0;
}

const MOST_CHARACTERS = 20_000;
