import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { altered, honest } from '../support/imitations/scripted.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';

const TOTAL = '{ personsConnection { totalCount } }';

test.each([0, 1, 49, 50, 51, 137, 700])(
  'totalCount of %i persons is their number',
  async (persons) => {
    await using gateway = await startGatewayOverSandbox({ persons });
    expect(await totalOf(gateway)).toBe(persons);
  },
);

test.each([
  ['that is not selected', '{ personsConnection(first: 5) { nodes { id } } }', 1],
  [
    'that is skipped',
    '{ personsConnection(first: 5) { nodes { id } totalCount @skip(if: true) } }',
    1,
  ],
  ['that is selected alone', TOTAL, 3],
  ['with edges', '{ personsConnection(first: 5) { nodes { id } totalCount } }', 1 + 3],
  [
    'in fragments and under aliases',
    `{
      a: personsConnection { ...Total }
      b: personsConnection { how: totalCount many: totalCount }
      c: personsConnection(last: 4) { ... on PersonConnection { totalCount } }
    }
    fragment Total on PersonConnection { totalCount __typename }`,
    3,
  ],
])('a totalCount %s costs no more pages than its walk', async (_, query, pages) => {
  await using gateway = await startGatewayOverSandbox({ persons: 137 });
  const ask = async () => expect((await gateway.ask(query)).errors).toBeUndefined();
  expect(await requestsOf(gateway, ask)).toBe(pages);
});

test('DRAIN_MAX_ITEMS limits a count like any drain: the total is null with an error, and the edges stay', async () => {
  await using gateway = await startGatewayOverSandbox(
    { persons: 137 },
    { config: { drainMaxItems: 100 } },
  );
  const { data, errors } = await gateway.ask(
    '{ personsConnection(first: 2) { nodes { id } totalCount } }',
  );
  const nodes = gateway.sandbox.persons.slice(0, 2).map(({ id }) => ({ id }));
  expect(data).toEqual({ personsConnection: { nodes, totalCount: null } });
  expect(errors).toMatchObject([
    {
      path: ['personsConnection', 'totalCount'],
      extensions: { code: 'DRAIN_LIMIT_EXCEEDED', max: 100, drained: 100 },
    },
  ]);
});

test('a count that fails half-way leaves no total, and the next one is right', async () => {
  await using gateway = await startGatewayOverFake({ persons: 137 });
  const stalled = altered(({ data }) => {
    for (const page of Object.values(data)) page.pageInfo['endCursor'] = null;
  });
  gateway.upstream.answer(honest, stalled, honest);
  const { data, errors } = await gateway.ask(
    '{ personsConnection(first: 0) { totalCount pageInfo { hasNextPage } } }',
  );
  expect(data).toMatchObject({ personsConnection: { totalCount: null } });
  expect(errors).toMatchObject([
    { path: ['personsConnection', 'totalCount'], extensions: { code: 'DRAIN_STALLED' } },
  ]);
  expect(await totalOf(gateway)).toBe(137);
});

test('one walk counts for many callers at once', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 137, latency: 20 });
  const requests = await requestsOf(gateway, async () => {
    const totals = await Promise.all(Array.from({ length: 30 }, () => totalOf(gateway)));
    expect(totals).toEqual(Array(30).fill(137));
  });
  expect(requests).toBe(3);
});

async function totalOf(gateway: TestGateway): Promise<number> {
  const { data, errors } = await gateway.ask<{ personsConnection: { totalCount: number } }>(TOTAL);
  expect(errors).toBeUndefined();
  return data.personsConnection.totalCount;
}

async function requestsOf(
  gateway: Awaited<ReturnType<typeof startGatewayOverSandbox>>,
  action: () => Promise<unknown>,
): Promise<number> {
  const before = gateway.sandbox.stats.requests.graphql;
  await action();
  return gateway.sandbox.stats.requests.graphql - before;
}
