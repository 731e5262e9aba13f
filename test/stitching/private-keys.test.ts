import { expect, test } from 'vitest';
import type { Additions } from '../../src/stitching/additions.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { ratingOf, reviews } from '../support/stitching/reviews.ts';

const names: Additions = {
  typeDefs: 'extend type Person { shout: String! seen: String! }',
  resolvers: {
    Person: {
      shout: {
        selectionSet: '{ firstName }',
        resolve: ({ firstName }: Record<string, unknown>) => `${String(firstName)}!`,
      },
      seen: {
        selectionSet: '{ id kind: __typename }',
        resolve: ({ id, kind }: Record<string, unknown>) => `${String(kind)} ${String(id)}`,
      },
    },
  },
};

async function start() {
  const service = reviews();
  const gateway = await startGatewayOverSandbox(
    { persons: 20 },
    { additions: { ...names, subschemas: [service] } },
  );
  const { data } = await gateway.ask<{ persons: { items: { id: string; firstName: string }[] } }>(
    '{ persons(first: 5) { items { id firstName } } }',
  );
  return { gateway, service, people: data.persons.items };
}

interface Items {
  persons: { items: Record<string, unknown>[] };
}

test('an alias does not change what a resolver gets', async () => {
  const { gateway, people } = await start();
  await using _ = gateway;
  const { data, errors } = await gateway.ask<Items>(
    '{ persons(first: 5) { items { firstName: id shout id: firstName seen } } }',
  );
  expect(errors).toBeUndefined();
  expect(data.persons.items).toEqual(
    people.map(({ id, firstName }) => ({
      firstName: id,
      shout: `${firstName}!`,
      id: firstName,
      seen: `Person ${id}`,
    })),
  );
});

test('an alias cannot forge the key that a second service is asked for', async () => {
  const { gateway, service, people } = await start();
  await using _ = gateway;
  const { data, errors } = await gateway.ask<Items>(
    '{ persons(first: 5) { items { id: firstName rating } } }',
  );
  expect(errors).toBeUndefined();
  expect(data.persons.items).toEqual(
    people.map(({ id, firstName }) => ({ id: firstName, rating: ratingOf(id) })),
  );
  expect(service.requests).toHaveLength(1);
  expect(Object.values(service.requests[0]!.variables)).toEqual([people.map(({ id }) => id)]);
});

test.each([
  [
    'a condition that is false',
    '{ persons(first: 5) { items { firstName @skip(if: true) shout } } }',
  ],
  [
    'a fragment',
    '{ persons(first: 5) { items { ...F shout } } } fragment F on Person { firstName: id }',
  ],
  ['an inline fragment', '{ persons(first: 5) { items { ... { firstName: id } shout } } }'],
  ['a list with an alias', '{ persons(first: 5) { items: items { firstName: id shout } } }'],
  ['a private name', '{ persons(first: 5) { items { firstName__rs: id shout } } }'],
])('a resolver gets the true value beside %s', async (_, query) => {
  const { gateway, people } = await start();
  await using _gateway = gateway;
  const { data, errors } = await gateway.ask<Items>(query);
  expect(errors).toBeUndefined();
  expect(data.persons.items.map(({ shout }) => shout)).toEqual(
    people.map(({ firstName }) => `${firstName}!`),
  );
});
