import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

const NO_PERSON = 99_999;
const OF_ANOTHER = 2_000_000_001;
const BY_ID =
  'query ($r: [_Any!]!) { _entities(representations: $r) { ... on HrPersonItem { id lastName } } }';

/** With a prefix, so that the names in results are not those of the service. */
let world: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
beforeAll(async () => {
  const snapshot = readFileSync('schema/results.graphql', 'utf8');
  const config = { schemaPrefix: 'Hr' };
  world = await startGatewayOverSandbox({ schema: 'results' }, { snapshot, config });
});
afterAll(() => world[Symbol.asyncDispose]());

const references = (...ids: (number | string)[]) =>
  ids.map((id) => ({ __typename: 'HrPersonItem', id }));

const failed = (...path: readonly (string | number)[]) => {
  const message = 'This person belongs to another company.';
  const result = { __typename: 'HrPersonError', errorType: 'FORBIDDEN', message };
  return { message, extensions: { code: 'FORBIDDEN', result }, path };
};

test('records are found through the result that has them, in one request', async () => {
  await world.ask('{ __typename }');
  const { graphql: before } = world.sandbox.stats.requests;
  const { data, errors } = await world.ask(BY_ID, { r: references(3, '4', 3) });
  expect(errors).toBeUndefined();
  const [castro, dvorak] = [
    { id: 3, lastName: 'Castro' },
    { id: 4, lastName: 'Dvořák' },
  ];
  expect(data).toEqual({ _entities: [castro, dvorak, castro] });
  expect(world.sandbox.stats.requests.graphql - before).toBe(1);
});

test('an error that says not found is null, any other is an error at its path, and no other record fails', async () => {
  const { data, errors } = await world.ask(BY_ID.replace('lastName', ''), {
    r: references(3, NO_PERSON, OF_ANOTHER, 4),
  });
  expect(data).toEqual({ _entities: [{ id: 3 }, null, null, { id: 4 }] });
  expect(errors).toEqual([failed('_entities', 2)]);
});

test('the derived field of one record reads the result', async () => {
  const { data, errors } = await world.ask(`{
    there: hrPersonItem(id: 5) { __typename id }
    missing: hrPersonItem(id: ${NO_PERSON}) { id }
    refused: hrPersonItem(id: ${OF_ANOTHER}) { id }
  }`);
  const there = { __typename: 'HrPersonItem', id: 5 };
  expect(data).toEqual({ there, missing: null, refused: null });
  expect(errors).toEqual([failed('refused')]);
});
