import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

const snapshot = readFileSync('schema/results.graphql', 'utf8');
const NO_PERSON = 99_999;
const OF_ANOTHER = 2_000_000_001;

const FORBIDDEN = {
  message: 'This person belongs to another company.',
  extensions: {
    code: 'FORBIDDEN',
    result: {
      __typename: 'PersonError',
      errorType: 'FORBIDDEN',
      message: 'This person belongs to another company.',
    },
  },
};

describe.each([
  ['as they are', {}, (text: string) => text],
  [
    'with a prefix',
    { schemaPrefix: 'Hr' },
    (text: string) =>
      text.replaceAll('PersonItem', 'HrPersonItem').replace('personItem', 'hrPersonItem'),
  ],
])('names %s', (_, config, named) => {
  let world: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
  beforeAll(async () => {
    world = await startGatewayOverSandbox({ schema: 'results' }, { snapshot, config });
  });
  afterAll(() => world[Symbol.asyncDispose]());
  const failed = (path: readonly (string | number)[]) => ({
    ...FORBIDDEN,
    extensions: {
      ...FORBIDDEN.extensions,
      result: {
        ...FORBIDDEN.extensions.result,
        __typename: named('PersonItem').replace('Item', 'Error'),
      },
    },
    path,
  });

  test('a record is found through the result that has it, in one request', async () => {
    await world.ask('{ __typename }');
    const { graphql: before } = world.sandbox.stats.requests;
    const { data, errors } = await world.ask<{ _entities: unknown[] }>(
      named(
        'query ($r: [_Any!]!) { _entities(representations: $r) { ... on PersonItem { id lastName } } }',
      ),
      { r: [3, '4', 3].map((id) => ({ __typename: named('PersonItem'), id })) },
    );
    expect(errors).toBeUndefined();
    expect(data._entities).toEqual([
      { id: 3, lastName: 'Castro' },
      { id: 4, lastName: 'Dvořák' },
      { id: 3, lastName: 'Castro' },
    ]);
    expect(world.sandbox.stats.requests.graphql - before).toBe(1);
  });

  test('an error that says not found is null, any other is an error at its path, and no other record fails', async () => {
    const { data, errors } = await world.ask<{ _entities: unknown[] }>(
      named('query ($r: [_Any!]!) { _entities(representations: $r) { ... on PersonItem { id } } }'),
      { r: [3, NO_PERSON, OF_ANOTHER, 4].map((id) => ({ __typename: named('PersonItem'), id })) },
    );
    expect(data._entities).toEqual([{ id: 3 }, null, null, { id: 4 }]);
    expect(errors).toEqual([failed(['_entities', 2])]);
  });

  test('the derived field of one record reads the result', async () => {
    const { data, errors } = await world.ask(
      named(`{
        there: personItem(id: 5) { __typename id }
        missing: personItem(id: ${NO_PERSON}) { id }
        refused: personItem(id: ${OF_ANOTHER}) { id }
      }`).replaceAll(': personItem', `: ${named('personItem')}`),
    );
    expect(data).toEqual({
      there: { __typename: named('PersonItem'), id: 5 },
      missing: null,
      refused: null,
    });
    expect(errors).toEqual([failed(['refused'])]);
  });
});
