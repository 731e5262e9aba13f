import { setTimeout as pause } from 'node:timers/promises';
import { usePrometheus } from '@graphql-yoga/plugin-prometheus';
import { createGraphQLError, type Plugin } from 'graphql-yoga';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { listen } from '../../src/http/listen.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { type TestGateway, type TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { got, settings, STREAMED, type TestRequest } from './requests.ts';

const PAGE: TestRequest = { name: 'a page', query: '{ persons(first: 2) { items { id } } }' };
const STREAM = STREAMED[0]!;

async function startWith(plugin: Plugin | Plugin[], options: TestGatewayOptions = {}) {
  const plugins = [plugin].flat();
  const gateway = await startGatewayOverService({}, { config: settings, ...options, plugins });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

/** A gateway over a socket, and through `fetch`. */
async function both(...plugins: Plugin[]) {
  const gateway = await startWith(plugins);
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const overSocket = {
    fetch: (path: string, init?: RequestInit) =>
      fetch(server.url + path, { ...init, signal: AbortSignal.timeout(5_000) }),
  };
  return [overSocket, gateway] as const;
}

/** Nothing that a request has held is held any longer. */
async function expectNothingHeld({ gateway }: TestGateway): Promise<void> {
  const held = async () => {
    const text = await gateway.metrics.text();
    return ['recruiting_answer_bytes', 'recruiting_request_bytes', 'recruiting_drains_running'].map(
      (name) => Number(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)`, 'm').exec(text)?.[1]),
    );
  };
  await expect.poll(held, { interval: 5, timeout: 5_000 }).toEqual([0, 0, 0]);
}

/** Throws where it is told to. */
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
const PLACES =
  'onRequest,onRequestParse,onRequestParseDone,onParams,onEnveloped,onParse,onParseDone,onValidate,onValidateDone,' +
  'onContextBuilding,onContextBuildingDone,onExecute,onExecuteDone,onExecuteDone.onNext,onExecutionResult,' +
  'onResultProcess,onResponse';
const SECRET = 'secret of db.internal';
const forged = new Error(SECRET);
forged.name = 'GraphQLError';

test.each([
  ['an error', new Error(SECRET)],
  ['a text', SECRET],
  ['an error of GraphQL about another', createGraphQLError(SECRET, { originalError: forged })],
  ['an abort', new DOMException(SECRET, 'AbortError')],
])(
  'a plugin that throws %s, anywhere, costs its caller the answer, and nothing else',
  async (what, thrown) => {
    const [overSocket, gateway] = await both(everyHook(at), executing);
    const ways = what === 'an error' ? [overSocket, gateway] : [gateway];
    const ofExecution = ['onExecute, later', 'executeFn', 'executeFn, after the answer'];
    for (const place of [...PLACES.split(','), ...ofExecution]) {
      Object.assign(failure, { at: place, thrown });
      for (const way of ways) {
        for (const request of place.endsWith('onNext') ? [STREAM] : [PAGE, STREAM]) {
          const { text, headers } = await got(way, request);
          expect(text, place).not.toMatch(/db\.internal|    at |"items"|"allPersons"/);
          expect(text, place).toContain('"code":"INTERNAL_SERVER_ERROR"');
          if (!place.endsWith('onNext')) expect(headers['content-type']).toMatch(/json/);
        }
      }
    }
    failure.at = '';
    expect((await got(gateway, PAGE)).text).toContain('"items"');
    if (what === 'an error') expect(JSON.stringify(gateway.logged)).toContain(SECRET);
    await expectNothingHeld(gateway);
  },
);

test('a plugin that throws at a later payload ends the stream with an error', async () => {
  let payloads = 0;
  const onNext = () => {
    if ((payloads += 1) > 2) throw new Error(SECRET);
  };
  const gateway = await startWith({ onExecute: () => ({ onExecuteDone: () => ({ onNext }) }) });
  const { text } = await got(gateway, STREAM);
  expect(text).not.toContain('db.internal');
  expect(text.endsWith('\r\n-----\r\n')).toBe(true);
  const parts = [...text.matchAll(/\r\n\r\n(\{.*\})\r\n---/g)].map(
    ([, json]) => JSON.parse(json!) as unknown,
  );
  expect(parts).toMatchObject([
    { data: { allPersons: [{}, {}] }, hasNext: true },
    { incremental: [{ path: ['allPersons', 2], label: 'rows' }] },
    { errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }], hasNext: false },
  ]);
  await expectNothingHeld(gateway);
});

test('a plugin can change the headers of every response', async () => {
  const ways = await both({
    onExecute: () => undefined,
    onResponse: ({ response }) => response.headers.set('x-served-by', 'me'),
  });
  for (const way of ways) {
    for (const request of [PAGE, STREAM, { ...PAGE, key: '' }, { name: '', query: '{' }]) {
      expect((await got(way, request)).headers).toMatchObject({ 'x-served-by': 'me' });
    }
  }
});

test.each<[string, Plugin]>([
  [
    'a header that HTTP does not allow',
    { onResponse: ({ response }) => response.headers.set('x-name', 'Łukasz') },
  ],
  [
    'a body that was read',
    {
      onResponse: async ({ setResponse }) => {
        const response = new Response('read');
        await response.text();
        setResponse(response);
      },
    },
  ],
])('a plugin that responds with %s costs the answer, not the connection', async (_, plugin) => {
  for (const way of await both(plugin)) {
    for (const request of [PAGE, STREAM]) {
      expect((await got(way, request)).text).toContain('INTERNAL_SERVER_ERROR');
    }
  }
});

test('a plugin that wraps resolvers is reported at the start: it would protect nothing', async () => {
  const snapshot = `${documentedSdl}\n# Of this test alone: the plugin changes the schema that is made of it.`;
  const warnings = async (plugins: Plugin[]) => {
    await using gateway = await startGatewayOverService({}, { snapshot, plugins });
    return gateway.logged.filter(({ msg }) => String(msg).startsWith('A plugin wraps resolvers'));
  };
  const resolverMetrics = usePrometheus({
    registry: new Registry(),
    endpoint: false,
    metrics: { graphql_envelop_execute_resolver: true },
  });
  expect(await warnings([{ onExecute: () => undefined }])).toHaveLength(0);
  expect(await warnings([resolverMetrics])).toHaveLength(1);
});

test('plugins can end what they have begun when the gateway closes, for 5 s at most', async () => {
  const ended: string[] = [];
  const waits: number[] = [];
  const clock = {
    ...systemClock,
    sleep: async (ms: number, signal?: AbortSignal) => {
      waits.push(ms);
      if (ms !== 5_000) await systemClock.sleep(ms, signal);
    },
  };
  const plugins = [
    // Yoga ends them in turn, the last one first.
    { onDispose: () => new Promise<void>(() => {}) },
    { onDispose: () => void ended.push('onDispose') },
    { [Symbol.asyncDispose]: async () => void ended.push('asyncDispose') },
  ];
  const gateway = await startGatewayOverService({}, { plugins, clock });
  await gateway[Symbol.asyncDispose]();
  expect(ended.toSorted()).toEqual(['asyncDispose', 'onDispose']);
  expect(waits).toContain(5_000);
});

test('a caller that leaves while a plugin works costs no upstream request', async () => {
  const gate = Promise.withResolvers<void>();
  const gateway = await startWith({ onExecute: () => gate.promise }, { config: {} });
  const leaving = new AbortController();
  const request = gateway.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: PAGE.query }),
    signal: leaving.signal,
  });
  await pause(20);
  leaving.abort();
  await expect(request).rejects.toThrow('aborted');
  gate.resolve();
  await pause(20);
  expect(gateway.service.stats.requests.graphql).toBe(0);
  await expectNothingHeld(gateway);
});

test('values of an answer that a plugin reads count in ANSWER_BYTES', async () => {
  const persons = { persons: 5_000 };
  const options = { config: { ...settings, answerBytes: 1_000_000 } };
  const request = { name: '', query: '{ allPersons { id firstName } }' };
  const reader: Plugin = { onExecute: () => ({ onExecuteDone: () => {} }) };
  await using gateway = await startGatewayOverService(persons, { ...options, plugins: [reader] });
  const { text } = await got(gateway, request);
  const refusal = { errors: [{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }] };
  expect(JSON.parse(text)).toMatchObject(refusal);
  expect(text).not.toContain('"data"');
  await expectNothingHeld(gateway);
  await using plain = await startGatewayOverService(persons, options);
  expect((await got(plain, request)).text).toContain('"data"');
});
