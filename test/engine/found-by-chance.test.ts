import { afterAll, expect, test } from 'vitest';
import { difference } from '../judge/compare.ts';
import { cursorOf, withCursors, type Answer, type Ask } from '../judge/cursors.ts';
import type { Operation } from '../judge/operation.ts';
import { openWorlds } from '../judge/world.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';

/* Faults that random operations found once. Each answer is compared with graphql-js over lists in memory. */

const FROM_A_RECORD_THAT_FAILS = JSON.stringify(
  cursorOf({ via: [], field: 'candidatesConnection', args: ['first: 100'], at: 10 }),
);

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

const worlds = new Map((await openWorlds()).map((world) => [world.name, world]));
const gateways = new Map<string, TestGateway>();
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway[Symbol.asyncDispose]();
});

test.each(ROWS)('%s', async (_, name, query, variables = {}) => {
  const world = worlds.get(name)!;
  const operation = { query, variables } as Operation;
  const expected = await withCursors(world.oracle.ask)(operation);
  const answer = await withCursors(await gatewayOf(name))(operation);
  expect(difference(query, answer, expected)).toBeUndefined();
});

async function gatewayOf(name: string): Promise<Ask> {
  const { schema, snapshot } = worlds.get(name)!;
  const gateway = gateways.get(name) ?? (await startGatewayOverSandbox({ schema }, { snapshot }));
  gateways.set(name, gateway);
  return ({ query, variables }) => gateway.ask(query, variables) as Promise<Answer>;
}
