import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway.ts';
import { nestedSdl, nestedUpstream } from '../support/nested-upstream.ts';

let nested: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
beforeAll(async () => {
  nested = await startGatewayOverSandbox({ schema: nestedUpstream() }, { snapshot: nestedSdl });
  await nested.ask('{ viewer { __typename } }');
});
afterAll(() => nested[Symbol.asyncDispose]());

test('a list of parents costs one request for the first pages of all their lists', async () => {
  const { data, errors, requests } = await asked<{ vacancies: { items: Listed[] } }>(`{
    vacancies(first: 5) {
      items { id candidatesConnection(first: 2) { nodes { id } pageInfo { hasNextPage } } }
    }
  }`);
  expect(errors).toBeUndefined();
  expect(requests).toBe(1);
  expect(data.vacancies.items).toHaveLength(5);
  expect(data.vacancies.items[1]).toEqual({
    id: 2,
    candidatesConnection: { nodes: [{ id: 104 }, { id: 105 }], pageInfo: { hasNextPage: true } },
  });
});

interface Listed {
  id: number;
  candidatesConnection: object;
}

async function asked<Data = Record<string, never>>(query: string, variables = {}) {
  const before = nested.sandbox.stats.requests.graphql;
  const answer = await nested.ask<Data>(query, variables);
  return { ...answer, requests: nested.sandbox.stats.requests.graphql - before };
}
