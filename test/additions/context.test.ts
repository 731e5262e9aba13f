import type { Plugin } from 'graphql-yoga';
import { expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import type { Additions } from '../../src/additions/additions.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

interface Context {
  readonly request: Request;
  readonly user?: string;
}

const additions: Additions = {
  typeDefs: 'extend type Person { seenBy: String }',
  resolvers: {
    Person: {
      seenBy: {
        selectionSet: '{ id }',
        resolve: (_: unknown, __: unknown, { request, user = 'nobody' }: Context) =>
          `${request.headers.get('x-tenant')} ${user}`,
      },
    },
  },
};

/** Executes operations with another context. */
function withContext(change: (context: object) => unknown): Plugin {
  return {
    onExecute: ({ executeFn, setExecuteFn }) =>
      setExecuteFn((args) => {
        const contextValue = change(args.contextValue as object);
        return executeFn({ ...args, contextValue }) as unknown;
      }),
  };
}

const wrapping = withContext((context) => ({ ...context, user: 'Ada' }));

test.each<readonly [string, Plugin[], string]>([
  ['without plugins', [], 'acme nobody'],
  [
    'with one that extends it',
    [{ onContextBuilding: ({ extendContext }) => extendContext({ user: 'Ada' } as object) }],
    'acme Ada',
  ],
  ['with one that copies it', [wrapping], 'acme Ada'],
  [
    'with one that freezes it',
    [withContext((context) => Object.freeze({ ...context, user: 'Ada' }))],
    'acme Ada',
  ],
])('resolvers find the request in their context, %s', async (_, plugins, seenBy) => {
  await using gateway = await startGatewayOverSandbox({}, { additions, plugins });
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-tenant': 'acme' },
    body: JSON.stringify({ query: '{ persons(first: 1) { items { seenBy } } }' }),
  };
  const expected = { data: { persons: { items: [{ seenBy }] } } };
  const overSocket = await fetch(`${server.url}/graphql`, init);
  expect(await overSocket.json()).toEqual(expected);
  expect(await (await gateway.fetch('/graphql', init)).json()).toEqual(expected);
  await server.close();
});
