import { expect, onTestFinished, test } from 'vitest';
import { startGatewayOverSandbox } from '../../support/gateway/gateway.ts';

test.each([
  ['graphql-client-name', 'graphql-client-version'],
  ['apollographql-client-name', 'apollographql-client-version'],
])('a client that sends %s is named in the log', async (name, version) => {
  const gateway = await start();
  await gateway.ask({ [name]: 'people-web', [version]: '1.2.0' });
  expect(gateway.lines()).toEqual([['people-web', '1.2.0']]);
});

test('a value that is not the name of an application is left out', async () => {
  const gateway = await start();
  for (const name of ['', '-x', 'a"b', 'a\tb', 'x'.repeat(65), 'é', '{}']) {
    await gateway.ask({ 'graphql-client-name': name, 'graphql-client-version': name });
  }
  expect(gateway.lines()).toEqual(Array.from({ length: 7 }, () => [undefined, undefined]));
});

async function start() {
  const gateway = await startGatewayOverSandbox({ persons: 1 });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return {
    ...gateway,
    ask: async (headers: Record<string, string>) => {
      const response = await gateway.fetch('/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ query: '{ __typename }' }),
      });
      await response.text();
    },
    lines: () =>
      gateway.logged
        .filter(({ msg }) => msg === 'request')
        .map(({ client, clientVersion }) => [client, clientVersion]),
  };
}
