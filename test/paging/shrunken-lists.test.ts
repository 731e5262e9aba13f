import { describe, expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';

const KINDS = ['keyset', 'record', 'position'] as const;

interface Connection {
  edges: { cursor: string; node: { id: string } }[];
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; endCursor: string | null };
}

describe.each(KINDS)('with %s cursors', (cursors) => {
  test('a list that lost its end since it was walked ends where it ends now', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: 300, cursors });
    const { persons } = gateway.sandbox;
    await gateway.ask('{ allPersons { id } }');
    for (const removed of [20, 180, 95]) {
      persons.remove(persons.length - removed, removed);
      const { edges, pageInfo } = await connection(gateway, 'last: 3');
      expect(edges.map(({ node }) => node.id)).toEqual(
        persons
          .all()
          .slice(-3)
          .map(({ id }) => id),
      );
      expect(pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: persons.length > 3 });
    }
  });

  test('the last edge of a page whose record was removed skips no record after it', async () => {
    await using gateway = await startGatewayOverSandbox({ persons: 60, cursors });
    const { persons } = gateway.sandbox;
    const ids = persons.all().map(({ id }) => id);
    const { pageInfo } = await connection(gateway, 'first: 10');
    persons.remove(9);
    const { edges } = await connection(gateway, `first: 30, after: "${pageInfo.endCursor}"`);
    const returned = edges.map(({ node }) => node.id);
    // A cursor that names an offset cannot show that all records moved up by one.
    expect(returned).toEqual(
      expect.arrayContaining(ids.slice(cursors === 'position' ? 11 : 10, 20)),
    );
    const drained = await gateway.ask<{ allPersons: { id: string }[] }>(
      `{ allPersons(after: "${pageInfo.endCursor}") { id } }`,
    );
    expect(drained.errors).toBeUndefined();
    expect(drained.data.allPersons.map(({ id }) => id)).toEqual(
      expect.arrayContaining(ids.slice(cursors === 'position' ? 11 : 10)),
    );
  });
});

test('the first drain of a gateway makes the second one fast', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 900, latency: 20 });
  await gateway.ask('{ allPersons { id } }');
  expect(gateway.sandbox.stats.maxInFlight).toBeLessThanOrEqual(2);
  await gateway.ask('{ allPersons { id } }');
  expect(gateway.sandbox.stats.maxInFlight).toBeGreaterThan(2);
});

async function connection(gateway: TestGateway, args: string): Promise<Connection> {
  const { data, errors } = await gateway.ask<{ personsConnection: Connection }>(
    `{ personsConnection(${args}) { edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage endCursor } } }`,
  );
  expect(errors).toBeUndefined();
  return data.personsConnection;
}
