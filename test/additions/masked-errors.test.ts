import { GraphQLError } from 'graphql';
import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

const failing: Additions = {
  typeDefs: `extend type Person { broken: String told: String late: String }
    extend type Query { brokenRoot: String! }`,
  resolvers: {
    Query: {
      brokenRoot: () => {
        throw new Error('secret');
      },
    },
    Person: {
      broken: () => {
        throw new Error('secret');
      },
      told: () => {
        throw new GraphQLError('Ask the owner of this field.', { extensions: { code: 'OWN' } });
      },
      late: () => Promise.reject(new TypeError('secret')),
    },
  },
};

test('an error of a resolver is masked and logged, and has the path of the caller', async () => {
  await using gateway = await startGatewayOverSandbox({}, { additions: failing });
  const { data, errors } = await gateway.ask(
    '{ a: persons(first: 1) { b: items { c: broken late told firstName } } }',
  );
  expect(data).toEqual({
    a: { b: [{ c: null, late: null, told: null, firstName: expect.any(String) }] },
  });
  expect(errors).toHaveLength(3);
  expect(errors).toEqual(
    expect.arrayContaining([
      masked('c'),
      masked('late'),
      expect.objectContaining({
        message: 'Ask the owner of this field.',
        path: ['a', 'b', 0, 'told'],
        extensions: { code: 'OWN' },
      }),
    ]),
  );
  expect(JSON.stringify(errors)).not.toContain('secret');
  const ids = errors!.flatMap(({ extensions }) => extensions?.['id'] ?? []);
  const logged = gateway.logged.filter(
    ({ errorId, msg }) => ids.includes(errorId as object) && msg !== 'request',
  );
  expect(logged).toHaveLength(2);
  expect(JSON.stringify(logged)).toContain('secret');
});

test('the failure of a required root field leaves no data', async () => {
  await using gateway = await startGatewayOverSandbox({}, { additions: failing });
  const { data, errors } = await gateway.ask('{ brokenRoot persons(first: 1) { items { id } } }');
  expect(data).toBeNull();
  expect(errors).toHaveLength(1);
});

function masked(key: string) {
  return expect.objectContaining({
    message: expect.stringMatching(/^An unexpected error happened in the gateway\. Report this id/),
    path: ['a', 'b', 0, key],
    extensions: { code: 'INTERNAL_SERVER_ERROR', id: expect.any(String) },
  });
}
