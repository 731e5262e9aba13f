import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { compileRelayApp, type RelayApp } from '../support/clients/relay-app.ts';
import { relay, relayEnvironment } from '../support/clients/relay-network.ts';

const COMPONENT = `
import { graphql } from 'relay-runtime';
export const query = graphql\`
  query streamedQuery($count: Int!) {
    personsConnection(first: 60) @stream_connection(key: "streamed_personsConnection", initial_count: $count) {
      edges {
        node {
          id
          firstName
        }
      }
    }
  }
\`;
`;

let app: RelayApp;

beforeAll(() => {
  app = compileRelayApp({ 'streamed.js': COMPONENT });
});
afterAll(() => app.remove());

test("Relay's @stream_connection fills a connection edge by edge, and then its pageInfo", async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 137 });
  const environment = relayEnvironment(gateway);
  const query = app.artifact('streamedQuery');
  const operation = relay.createOperationDescriptor(query, { count: 5 });
  const shown = () => environment.lookup(operation.fragment).data?.personsConnection;
  const lengths: number[] = [];
  await new Promise<void>((done, fail) => {
    environment.execute({ operation }).subscribe({
      next: () => lengths.push(shown()?.edges.length ?? 0),
      complete: done,
      error: fail,
    });
  });
  expect(lengths[0]).toBe(5);
  expect(shown()?.pageInfo.hasNextPage).toBe(true);
  expect(shown()?.edges.map(({ node }) => node.id)).toEqual(
    gateway.sandbox.persons.slice(0, 60).map(({ id }) => id),
  );
});

test('a stream that fails behind its first part is an error for Relay, and is reported to the page', async () => {
  await using gateway = await startGatewayOverSandbox(
    { persons: 137 },
    { config: { pagesPerMinute: 1 } },
  );
  const told: string[] = [];
  const environment = relayEnvironment(gateway, ({ message }) => void told.push(message));
  const query = app.artifact('streamedQuery');
  const operation = relay.createOperationDescriptor(query, { count: 5 });
  const failure = await new Promise<Error>((fail, complete) => {
    environment
      .execute({ operation })
      .subscribe({ next: () => {}, complete: () => complete(new Error('Whole')), error: fail });
  });
  expect(failure.message).toMatch(/has used its 1 page/);
  expect(told).toEqual([failure.message]);
});
