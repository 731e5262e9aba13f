import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { ratingOf, reviews } from '../support/additions/reviews.ts';

const richSdl = readFileSync('schema/rich.graphql', 'utf8');

interface Rated {
  id: string;
  rating: number;
}

async function start() {
  const people: string[] = [];
  const service = reviews({ people });
  const gateway = await startGatewayOverSandbox(
    { persons: 60, schema: 'rich' },
    { snapshot: richSdl, additions: { subschemas: [service] } },
  );
  const { data } = await gateway.ask<{ allPersons: Named[] }>('{ allPersons { id firstName } }');
  people.push(...data.allPersons.slice(0, 5).map(({ id }) => id));
  return { gateway, service, all: data.allPersons };
}

interface Named {
  readonly id: string;
  readonly firstName: string;
}

test.each([
  ['a page', '{ persons(first: 50) { items { id rating } } }', 50, 1],
  ['a drain', '{ allPersons { id rating } }', 60, undefined],
  ['nodes', '{ personsConnection(first: 40) { nodes { id rating } } }', 40, 1],
  [
    'a nested list',
    '{ allVacancies { title candidatesConnection { nodes { person { id rating } } } } }',
    20,
    undefined,
  ],
])(
  'records of %s have the fields of a second service, which is asked once',
  async (_, query, least, pages) => {
    const { gateway, service } = await start();
    await using _gateway = gateway;
    const before = gateway.sandbox.stats.graphql;
    const { data, errors } = await gateway.ask(query);
    expect(errors).toBeUndefined();
    const rated = recordsIn(data);
    expect(rated.length).toBeGreaterThanOrEqual(least);
    for (const { id, rating } of rated) expect(rating).toBe(ratingOf(id));
    expect(service.requests).toHaveLength(1);
    if (pages !== undefined) expect(gateway.sandbox.stats.graphql - before).toBe(pages);
  },
);

test('records that a second service refers to are requested together', async () => {
  const { gateway, all } = await start();
  await using _ = gateway;
  const before = gateway.sandbox.stats.graphql;
  const { data, errors } = await gateway.ask(
    '{ topReviews { body person { id firstName rating } } }',
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    topReviews: all.slice(0, 5).map(({ id, firstName }) => ({
      body: `about ${id}`,
      person: { id, firstName, rating: ratingOf(id) },
    })),
  });
  expect(gateway.sandbox.stats.graphql - before).toBeLessThanOrEqual(2);
});

test('a list in both services is read once, together with the other service', async () => {
  const { gateway, service } = await start();
  await using _ = gateway;
  const before = gateway.sandbox.stats.graphql;
  const { data, errors } = await gateway.ask<Record<string, unknown[]>>(
    '{ persons(first: 5) { items { id reviews(first: 2) { body person { firstName } } } } topReviews { person { rating } } }',
  );
  expect(errors).toBeUndefined();
  expect(data['topReviews']).toHaveLength(5);
  expect(service.requests).toHaveLength(2);
  expect(gateway.sandbox.stats.graphql - before).toBeLessThanOrEqual(3);
});

function recordsIn(value: unknown): Rated[] {
  if (Array.isArray(value)) return value.flatMap(recordsIn);
  if (typeof value !== 'object' || value === null) return [];
  if ('rating' in value) return [value as Rated];
  return Object.values(value).flatMap(recordsIn);
}
