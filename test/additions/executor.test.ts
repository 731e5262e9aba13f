import { isAsyncIterable, type ExecutionResult } from '@graphql-tools/utils';
import { parse } from 'graphql';
import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { breakableStore } from '../support/gateway/stores.ts';
import { refusal } from '../support/imitations/scripted.ts';

type Results = (ExecutionResult & { hasNext?: boolean; incremental?: object[] })[];

/** Runs a document with the executor of a gateway, in a resolver and with its context. */
async function executed(
  query: string,
  variables?: Record<string, unknown>,
): Promise<{ results: Results; isStream: boolean }> {
  const results: Results = [];
  let isStream = false;
  const additions: Additions = {
    typeDefs: 'extend type Query { run: String }',
    resolvers: {
      Query: {
        run: async (_: unknown, __: unknown, context: object) => {
          const executor = (gateway as TestGateway).gateway.executor;
          const result = await executor({ document: parse(query), variables, context });
          isStream = isAsyncIterable(result);
          if (isAsyncIterable(result))
            for await (const payload of result) results.push(copied(payload));
          else results.push(copied(result));
        },
      },
    },
  };
  await using gateway = await startGatewayOverSandbox({ persons: 120 }, { additions });
  const { errors } = await gateway.ask('{ run }');
  expect(errors).toBeUndefined();
  return { results, isStream };
}

function copied(result: object): Results[number] {
  return JSON.parse(JSON.stringify(result)) as Results[number];
}

test('the executor answers any document of the served schema', async () => {
  const { results } = await executed(
    'query ($n: Int!) { allPersons(limit: $n) { id } first: persons(first: 1) { items { id } } }',
    { n: 70 },
  );
  const data = results[0]!.data as Record<string, unknown>;
  expect(data['allPersons']).toHaveLength(70);
});

test('the executor answers @stream in parts', async () => {
  const { results, isStream } = await executed(
    '{ allPersons @stream(initialCount: 1) { id firstName } }',
  );
  expect(isStream).toBe(true);
  expect(results.length).toBeGreaterThan(2);
  expect(results[0]).toMatchObject({ data: { allPersons: expect.any(Array) }, hasNext: true });
  expect(results.at(-1)).toMatchObject({ hasNext: false });
});

test.each([
  ['an unknown field', '{ nothing }', undefined, 'Cannot query field "nothing"'],
  ['a reserved alias', '{ _rsA: persons { items { id } } }', undefined, 'is reserved'],
  [
    'a variable of another type',
    'query ($n: Int!) { allPersons(limit: $n) { id } }',
    { n: 'x' },
    '"$n" got invalid value',
  ],
  ['two operations', 'query A { __typename } query B { __typename }', undefined, 'operationName'],
])('the executor refuses %s', async (_, query, variables, message) => {
  const { results } = await executed(query, variables);
  expect(results).toHaveLength(1);
  expect(results[0]!.data ?? null).toBeNull();
  expect(results[0]!.errors![0]!.message).toContain(message);
});

test.each(['{ persons(first: 1) { items { id } } }', '{ allPersons @stream { id } }'])(
  'an unexpected error is masked in what the executor returns for %s',
  async (query) => {
    const ELSEWHERE = 'https://internal.example.test';
    const { store, broken } = breakableStore(ELSEWHERE);
    await using gateway = await startGatewayOverFake({}, { store });
    gateway.upstream.answer(refusal('expired'));
    broken.is = true;
    const result = await gateway.gateway.executor({ document: parse(query) });
    const results: object[] = [];
    if (isAsyncIterable(result)) for await (const payload of result) results.push(copied(payload));
    else results.push(copied(result));
    broken.is = false;
    expect(JSON.stringify(results)).toContain('INTERNAL_SERVER_ERROR');
    expect(JSON.stringify(results)).not.toContain(ELSEWHERE);
  },
);
