import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { fullSdl, fullService } from '../service/full.ts';

// How many requests an operation costs the service. Those of references of routers are in schema/entities.test.ts.

test.each([
  ['a field of the service', '{ me { id } }', 1],
  [
    'fields of the service beside a derived one',
    '{ me { id } viewer { company { id } } allActiveCandidates(limit: 1) { id } }',
    2,
  ],
  [
    'two aliases of one page',
    '{ a: openingsConnection(first: 5) { nodes { id } } b: openingsConnection(first: 5) { nodes { id } } }',
    1,
  ],
  [
    'the nested lists of many parents',
    '{ openings(first: 7) { items { allCandidates(limit: 1) { id } } } }',
    2,
  ],
  ['introspection', '{ __schema { types { name } } __typename }', 0],
])('the service gets as few requests as possible: %s', async (_, query, expected) => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverService({ schema }, { snapshot: fullSdl });
  const { errors } = await gateway.ask(query);
  expect(errors).toBeUndefined();
  expect(gateway.service.received).toHaveLength(expected);
});
