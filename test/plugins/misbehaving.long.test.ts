import { setTimeout as pause } from 'node:timers/promises';
import { usePrometheus } from '@graphql-yoga/plugin-prometheus';
import { createGraphQLError, type Plugin } from 'graphql-yoga';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { listen } from '../../src/http/listen.ts';
import { ask, gathered, partsOf } from '../support/clients/multipart.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import type { TestGateway, TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { samplesOf } from '../support/processes/exposition.ts';

const PAGE = '{ persons(first: 2) { items { id } } }';
const STREAM = '{ allPersons(limit: 120) @stream(label: "rows", initialCount: 2) { id } }';

/** A gateway with these plugins, which answers over a socket as well. */
async function startWith(plugins: Plugin[], options: TestGatewayOptions = {}, persons = 137) {
  const gateway = await startGatewayOverService({ persons }, { ...options, plugins });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const overSocket = {
    fetch: (path: string, init?: RequestInit) =>
      fetch(server.url + path, { ...init, signal: AbortSignal.timeout(5_000) }),
  };
  return { ...gateway, ways: [overSocket, gateway] };
}

/** Nothing that a request has held is held any longer. */
async function expectNothingHeld({ gateway }: Pick<TestGateway, 'gateway'>): Promise<void> {
  const held = async () => {
    const samples = samplesOf(await gateway.metrics.text());
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
  'onContextBuilding,onContextBuildingDone,onExecute,onExecuteDone,onExecuteDone.onNext,onExecutionResult,' +
  'onResultProcess,onResponse';
const OF_EXECUTION = ['onExecute, later', 'executeFn', 'executeFn, after the answer'];
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
    const gateway = await startWith([everyHook(at), executing]);
    for (const place of [...HOOKS.split(','), ...OF_EXECUTION]) {
      Object.assign(failure, { at: place, thrown });
      for (const way of what === 'an error' ? gateway.ways : [gateway]) {
        for (const query of place.endsWith('onNext') ? [STREAM] : [PAGE, STREAM]) {
          const response = await ask(way, query);
          const text = await response.text();
          expect(text, place).not.toMatch(/db\.internal|    at |"items"|"allPersons"/);
          expect(text, place).toContain('"code":"INTERNAL_SERVER_ERROR"');
          const isWhole = response.headers.get('content-type')?.includes('json');
          expect(isWhole).toBe(!place.endsWith('onNext'));
        }
      }
    }
    failure.at = '';
    expect(await gateway.ask(PAGE)).toMatchObject({ data: { persons: { items: [{}, {}] } } });
    if (what === 'an error') expect(JSON.stringify(gateway.logged)).toContain(SECRET);
    await expectNothingHeld(gateway);
  },
);

test('a plugin that throws at a later payload ends the stream with an error', async () => {
  let payloads = 0;
  const onNext = () => {
    if ((payloads += 1) > 2) throw new Error(SECRET);
  };
  const gateway = await startWith([{ onExecute: () => ({ onExecuteDone: () => ({ onNext }) }) }]);
  const parts = await gathered(partsOf(await ask(gateway, STREAM)));
  expect(JSON.stringify(parts)).not.toContain('db.internal');
  expect(parts).toMatchObject([
    { data: { allPersons: [{}, {}] }, hasNext: true },
    { incremental: [{ path: ['allPersons', 2], label: 'rows' }] },
    { errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }], hasNext: false },
  ]);
  await expectNothingHeld(gateway);
});

const readBody = async () => {
  const response = new Response('read');
  await response.text();
  return response;
};

test.each<[string, NonNullable<Plugin['onResponse']>, header?: string]>([
  // The headers of the first body have its length.
  [
    'sends another body',
    ({ response: { headers, status }, setResponse }) => {
      headers.set('x-served-by', 'me');
      setResponse(new Response('another body', { headers, status }));
    },
    'me',
  ],
  ['sets a header', ({ response }) => response.headers.set('x-served-by', 'me'), 'me'],
  [
    'sets a header that HTTP does not allow',
    ({ response }) => response.headers.set('x-served-by', 'Łukasz'),
  ],
  ['responds with a body that was read', async ({ setResponse }) => setResponse(await readBody())],
])(
  'a plugin that %s changes every response, or costs the answer',
  async (_, onResponse, header) => {
    const { ways } = await startWith([{ onExecute: () => undefined, onResponse }]);
    for (const way of ways) {
      for (const query of [PAGE, STREAM, '{']) {
        const response = await ask(way, query);
        expect(response.headers.get('x-served-by')).toBe(header ?? null);
        expect((await response.text()).includes('INTERNAL_SERVER_ERROR')).toBe(!header);
      }
    }
  },
);

test('a plugin that wraps resolvers is reported at the start: it would protect nothing', async () => {
  const snapshot = `${documentedSdl}\n# Of this test alone: the plugin changes the schema that is made of it.`;
  const warnings = async (plugins: Plugin[]) => {
    const { logged } = await startWith(plugins, { snapshot });
    return logged.filter(({ msg }) => String(msg).startsWith('A plugin wraps resolvers'));
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
