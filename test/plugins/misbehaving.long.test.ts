import { setTimeout as pause } from 'node:timers/promises';
import { createGraphQLError, type Plugin } from 'graphql-yoga';
import { expect, test } from 'vitest';
import type { Front } from '../support/gateway/front.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { IN_PARTS } from '../support/clients/multipart.ts';
import { got, PAGE, READER, startWith, STREAM } from './gateway.ts';

const sendOn = (way: Pick<Front, 'fetch'>, query: string) => got(way, query, { accept: IN_PARTS });

/** The ways to a gateway: over a socket, and through its `fetch`. */
function waysOf(front: Front): Pick<Front, 'fetch'>[] {
  const overSocket = {
    fetch: (path: string, init?: RequestInit) =>
      fetch(front.url + path, { ...init, signal: AbortSignal.timeout(5_000) }),
  };
  return [overSocket, front];
}

/** Nothing that a request has held is held any longer. */
async function expectNothingHeld(front: Front): Promise<void> {
  const held = async () => {
    const samples = await front.samples();
    return ['answer_bytes', 'request_bytes', 'drains_running'].map((name) =>
      samples.get(`recruiting_${name}`),
    );
  };
  await expect.poll(held, { interval: 5, timeout: 5_000 }).toEqual([0, 0, 0]);
}

/** Throws where a test says so. */
const failure: { at: string; thrown: unknown } = { at: '', thrown: undefined };
const at = (place: string): void => {
  if (place === failure.at) throw failure.thrown;
};
const executing: Plugin = {
  onExecute: async ({ executeFn, setExecuteFn }) => {
    await pause(0);
    at('onExecute, later');
    setExecuteFn(async (args) => {
      at('executeFn');
      const result: unknown = await executeFn(args);
      at('executeFn, after the answer');
      return result;
    });
  },
};
const HOOKS =
  'onRequest,onRequestParse,onRequestParseDone,onParams,onEnveloped,onParse,onParseDone,onValidate,onValidateDone,' +
  'onContextBuilding,onContextBuildingDone,onExecute,onExecuteDone,onExecutionResult,' +
  'onResultProcess,onResponse';
const OF_EXECUTION = ['onExecute, later', 'executeFn', 'executeFn, after the answer'];
const SECRET = 'secret of db.internal';
const forged = new Error(SECRET);
forged.name = 'GraphQLError';

test.each([
  ['an error', new Error(SECRET)],
  ['an error of GraphQL about another', createGraphQLError(SECRET, { originalError: forged })],
  ['an abort', new DOMException(SECRET, 'AbortError')],
  ['a text', SECRET],
])(
  'a plugin that throws %s, anywhere, costs its caller the answer, and nothing else',
  async (what, thrown) => {
    const gateway = await startWith([everyHook(at), executing]);
    for (const place of [...HOOKS.split(','), ...OF_EXECUTION]) {
      Object.assign(failure, { at: place, thrown });
      for (const way of what === 'an error' ? waysOf(gateway) : [gateway]) {
        for (const query of [PAGE, STREAM]) {
          const { headers, text } = await sendOn(way, query);
          expect(text, place).not.toMatch(/db\.internal|    at |"items"|"allPersons"/);
          expect(text, place).toContain('"code":"INTERNAL_SERVER_ERROR"');
          expect(headers['content-type']).toContain('json');
        }
      }
    }
    failure.at = '';
    expect((await got(gateway, PAGE)).text).toContain('"data":{"persons":{"items":[{"id"');
    if (what === 'an error') expect(JSON.stringify(gateway.logged)).toContain(SECRET);
    await expectNothingHeld(gateway);
  },
);

test.each<[string, NonNullable<Plugin['onResponse']>]>([
  // The headers of the first body have its length.
  [
    'sends another body',
    ({ response: { headers, status }, setResponse }) => {
      headers.set('x-served-by', 'me');
      setResponse(new Response('another body', { headers, status }));
    },
  ],
  ['sets a header', ({ response }) => response.headers.set('x-served-by', 'me')],
])('a plugin that %s changes every response', async (_, onResponse) => {
  const gateway = await startWith([{ onExecute: () => undefined, onResponse }]);
  for (const way of waysOf(gateway)) {
    for (const query of [PAGE, STREAM, '{']) {
      const { headers, text } = await sendOn(way, query);
      expect(headers['x-served-by']).toBe('me');
      expect(text).not.toContain('INTERNAL_SERVER_ERROR');
    }
  }
});

test.each(['onRequest', 'onExecute'])(
  'nothing is sent for a caller who leaves while %s of a plugin waits',
  async (hook) => {
    const waiting = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const gateway = await startWith([{ [hook]: () => (waiting.resolve(), gate.promise) }]);
    const leaving = new AbortController();
    const left = gateway.ask(
      PAGE,
      {},
      { headers: { 'x-api-key': READER }, signal: leaving.signal },
    );
    await waiting.promise;
    leaving.abort();
    await expect(left).rejects.toThrow('abort');
    gate.resolve();
    await got(gateway, '{ persons(first: 1) { items { id } } }');
    expect(gateway.service.received).toHaveLength(1);
    expect(gateway.logged.filter(({ level }) => Number(level) > 30)).toEqual([]);
    await expectNothingHeld(gateway);
  },
);

test('plugins can end what they have begun when the gateway closes', async () => {
  const ended: string[] = [];
  const gateway = await startWith([
    { onDispose: () => void ended.push('onDispose') },
    { [Symbol.asyncDispose]: async () => void ended.push('asyncDispose') },
  ]);
  await gateway.gateway.close();
  expect(ended.toSorted()).toEqual(['asyncDispose', 'onDispose']);
});
