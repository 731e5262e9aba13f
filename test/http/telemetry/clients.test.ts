import { expect, onTestFinished, test, vi } from 'vitest';
import { listen } from '../../../src/http/listen.ts';
import { startGatewayOverSandbox } from '../../support/gateway/gateway.ts';

const MANIFEST = { people: 'query People { __typename }' };

test.each([
  ['graphql-client-name', 'graphql-client-version'],
  ['apollographql-client-name', 'apollographql-client-version'],
])('a client that sends %s is named in the log and in the metric', async (name, version) => {
  const gateway = await start();
  await gateway.ask({ [name]: 'people-web', [version]: '1.2.0' });
  expect(gateway.lines()).toEqual([['people-web', '1.2.0']]);
  expect(await gateway.counted()).toEqual({ '{client="people-web",operation=""}': 1 });
});

test('a value that is not the name of an application is left out', async () => {
  const gateway = await start();
  for (const name of ['', '-x', 'a"b', 'a\tb', 'x'.repeat(65), 'é', '{}']) {
    await gateway.ask({ 'graphql-client-name': name, 'graphql-client-version': name });
  }
  expect(gateway.lines()).toEqual(Array.from({ length: 7 }, () => [undefined, undefined]));
  expect(await gateway.counted()).toEqual({ '{client="",operation=""}': 7 });
});

test('the first hundred clients have series, all others share one', async () => {
  const gateway = await start();
  for (let client = 0; client < 130; client += 1) {
    await gateway.ask({ 'graphql-client-name': `client ${client}` });
  }
  await gateway.ask({ 'graphql-client-name': 'client 7' });
  const counted = await gateway.counted();
  expect(Object.keys(counted)).toHaveLength(101);
  expect(counted['{client="client 7",operation=""}']).toBe(2);
  expect(counted['{client="other",operation=""}']).toBe(30);
});

test('a request that is refused does not count for a client', async () => {
  const gateway = await start();
  await gateway.ask({ 'graphql-client-name': 'web' }, '{ nothing }');
  expect(gateway.lines()).toEqual([['web', undefined]]);
  expect(await gateway.counted()).toEqual({});
});

test('a client is named too if its answer is sent in parts', async () => {
  const gateway = await start();
  const { handler } = gateway.gateway;
  const server = await listen(handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const response = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: {
      accept: 'multipart/mixed',
      'content-type': 'application/json',
      'graphql-client-name': 'kiosk',
      'graphql-client-version': '7',
    },
    body: JSON.stringify({ query: '{ allPersons @stream { id } }' }),
  });
  expect(await response.text()).toContain('"hasNext":false');
  await vi.waitFor(() => expect(gateway.lines()).toEqual([['kiosk', '7']]));
  expect(await gateway.counted()).toEqual({ '{client="kiosk",operation=""}': 1 });
});

test('trusted operations are counted for each client', async () => {
  const gateway = await start({ trustedDocuments: MANIFEST });
  await gateway.ask({ 'graphql-client-name': 'web' }, undefined, 'people');
  expect(await gateway.counted()).toEqual({ '{client="web",operation="People"}': 1 });
});

async function start(parts: { trustedDocuments?: unknown } = {}) {
  const gateway = await startGatewayOverSandbox({ persons: 1 }, parts);
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return {
    ...gateway,
    ask: async (headers: Record<string, string>, query = '{ __typename }', documentId?: string) => {
      const body = JSON.stringify(documentId ? { documentId } : { query });
      const response = await gateway.fetch('/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      });
      await response.text();
    },
    lines: () =>
      gateway.logged
        .filter(({ msg }) => msg === 'request')
        .map(({ client, clientVersion }) => [client, clientVersion]),
    counted: async () => {
      const text = await gateway.gateway.metrics.text();
      const samples = text.matchAll(/^recruiting_client_requests_total(\{.*\}) (\d+)$/gm);
      return Object.fromEntries(
        Array.from(samples, ([, labels, value]) => [labels, Number(value)]),
      );
    },
  };
}
