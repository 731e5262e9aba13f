import type { Plugin } from 'graphql-yoga';
import { expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { idOf } from '../../sandbox/person-list.ts';
import type { Additions } from '../../src/additions/additions.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { after, honest } from '../support/imitations/scripted.ts';

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

test('own fields are answered to each caller where a plugin gives all requests one context', async () => {
  const shared = { request: new Request('http://x', { headers: { 'x-tenant': 'acme' } }) };
  const plugins = [withContext(() => shared)];
  await using gateway = await startGatewayOverSandbox({}, { additions, plugins });
  const query = '{ persons(first: 50) { items { seenBy } } }';
  const ask = async () => (await gateway.ask<{ persons: { items: object[] } }>(query)).data;
  const answers = await Promise.all([ask(), ask()]);
  for (let i = 0; i < 220; i += 1) answers.push(await ask());
  for (const { persons } of answers) {
    expect(persons.items).toEqual(Array.from({ length: 50 }, () => ({ seenBy: 'acme nobody' })));
  }
});

test('a caller who leaves ends nothing of another one, where a plugin gives both one context', async () => {
  const [gate, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const shared = {};
  const later: Additions = {
    typeDefs: 'extend type Query { later: Person }',
    resolvers: { Query: { later: () => gate.promise.then(() => ({ id: idOf(0) })) } },
  };
  const options = { additions: later, plugins: [withContext(() => shared)] };
  await using gateway = await startGatewayOverFake({}, options);
  const staying = gateway.ask('{ later { firstName } persons(first: 1) { items { id } } }');
  await gateway.upstream.arrived(1);
  gateway.upstream.answer(after(held.promise, honest));
  const leaving = new AbortController();
  const query = '{ later { firstName } persons(first: 2) { items { id } } }';
  const left = gateway.ask(query, {}, { signal: leaving.signal });
  await gateway.upstream.arrived(2);
  leaving.abort();
  await expect(left).rejects.toThrow(/abort/);
  held.resolve();
  gate.resolve();
  const { data, errors } = await staying;
  expect(errors).toBeUndefined();
  expect(data).toMatchObject({ later: { firstName: expect.any(String) } });
});
