import { usePrometheus } from '@graphql-yoga/plugin-prometheus';
import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import type { ExecutionResult } from 'graphql';
import { createGraphQLError, type Plugin } from 'graphql-yoga';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startFront } from '../http/front.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { type TestGateway } from '../support/gateway/gateway.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { FAILING, got, OTHER, send, settings, STREAMED, WHOLE, REFUSED } from './requests.ts';

// Plugins that answer themselves: on a path of their own, instead of the gateway, or from a cache.

const ownPath: Plugin = {
  onRequest: ({ url, fetchAPI, endResponse }) => {
    if (url.pathname === '/report') endResponse(new fetchAPI.Response('mine'));
  },
};

test.each([
  ['alone', [ownPath]],
  ['beside another plugin', [everyHook(), ownPath]],
])(
  'a plugin that serves a path of its own gets it behind the checks of host and credential, %s',
  async (_, plugins) => {
    const auth = { apiKeys: [entryFor('known', 'known', 'read')], jwt: undefined };
    await using front = await startFront({ config: { auth }, plugins });
    const key = { 'x-api-key': 'known' };
    const through = (address: string, headers: Record<string, string>) =>
      front.gateway.gateway.handler.fetch(new Request(address, { headers }));
    for (const [path, headers, status] of [
      ['/report', key, 200],
      ['/report', {}, 401],
      ['/elsewhere', key, 404],
    ] as const) {
      for (const response of [
        await fetch(`${front.url}${path}`, { headers }),
        await through(`http://localhost${path}`, headers),
      ]) {
        expect(response.status).toBe(status);
        expect((await response.text()) === 'mine').toBe(status === 200);
      }
    }
    expect((await through('http://evil.example/report', key)).status).toBe(421);
  },
);

const refusing = (code: string, http: object) =>
  createGraphQLError('Not now.', { extensions: { code, http } });
const answering = (result: ExecutionResult): Plugin => ({
  onExecute: ({ setResultAndStopExecution }) => setResultAndStopExecution(result),
});
const [PAGE, STREAM] = [WHOLE[0]!, STREAMED[0]!];
const MINE = { 'x-mine': '1' };

test.each<[string, Plugin, number, string | undefined, body: unknown]>([
  [
    'a response in onRequest',
    {
      onRequest: ({ endResponse, fetchAPI }) =>
        endResponse(new fetchAPI.Response('"mine"', { status: 418, headers: MINE })),
      onResultProcess: () => {},
    },
    418,
    '1',
    'mine',
  ],
  [
    'a result in onExecute',
    answering({ data: { mine: 1 } }),
    200,
    undefined,
    { data: { mine: 1 } },
  ],
  [
    'an error that has a status and headers',
    answering({ data: null, errors: [refusing('LATER', { status: 503, headers: MINE })] }),
    503,
    '1',
    { data: null, errors: [{ message: 'Not now.', extensions: { code: 'LATER' } }] },
  ],
  [
    'an error of GraphQL that it throws',
    {
      onExecute: () => {
        throw refusing('FORBIDDEN', { status: 403 });
      },
    },
    403,
    undefined,
    { errors: [{ message: 'Not now.', extensions: { code: 'FORBIDDEN' } }] },
  ],
  [
    'a result in onParams',
    {
      onParams: ({ setResult }) =>
        setResult({ data: { mine: 1 }, extensions: { http: { headers: MINE } } }),
    },
    200,
    '1',
    { data: { mine: 1 } },
  ],
])('a plugin can answer with %s', async (_, plugin, expected, mine, body) => {
  const config = { ...settings, corsOrigins: ['https://app.example.test'] };
  const gateway = await startGatewayOverService({}, { config, plugins: [plugin] });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const init = { headers: { origin: 'https://app.example.test' } };
  for (const request of [PAGE, STREAM]) {
    const { status, headers, text } = await got(gateway, { ...request, init });
    expect([status, headers['x-mine'], JSON.parse(text)]).toEqual([expected, mine, body]);
    expect(headers).toMatchObject({ 'access-control-allow-origin': 'https://app.example.test' });
  }
  expect((await got(gateway, { ...PAGE, key: '' })).status).toBe(401);
  expect((await gateway.fetch('/health')).status).toBe(200);
  expect(gateway.service.stats.requests.graphql).toBe(0);
});

describe('the response cache of Yoga, beside its Prometheus', () => {
  const registry = new Registry();
  let cached: GatewayOverService;
  let plain: TestGateway;
  beforeAll(async () => {
    plain = await startGatewayOverService({}, { config: settings });
    const plugins = [
      useResponseCache({ session: () => null }),
      usePrometheus({ registry, endpoint: false }),
      everyHook(),
    ];
    cached = await startGatewayOverService({}, { config: settings, plugins });
  });
  afterAll(async () => {
    await plain[Symbol.asyncDispose]();
    await cached[Symbol.asyncDispose]();
  });
  const requests = () => cached.service.stats.requests.graphql;

  test.each([...WHOLE, ...FAILING, ...REFUSED])(
    'does not change the answer to $name, and a second one costs no upstream request unless it failed',
    async (request) => {
      const expected = await got(plain, request);
      for (let turn = 0; turn < 2; turn += 1) {
        const before = requests();
        const { headers, text, status } = await got(cached, request);
        const { etag, 'last-modified': _, ...others } = headers;
        // Those of wrong variables are in the document as the cache has changed it.
        const locations = /"locations":\[[^\]]*\],/g;
        expect([status, others, text.replaceAll(locations, '')]).toEqual([
          expected.status,
          expected.headers,
          expected.text.replaceAll(locations, ''),
        ]);
        if (!WHOLE.includes(request)) expect(etag).toBeUndefined();
        else if (turn === 1) expect(requests()).toBe(before);
      }
    },
  );

  test('keeps a stream as a whole list, and counts it', async () => {
    const request = { ...STREAM, query: `query Streamed ${STREAM.query}` };
    await got(cached, request);
    const before = requests();
    const { text } = await got(cached, request);
    expect(requests()).toBe(before);
    const { data } = JSON.parse(text) as { data: { allPersons: unknown[] } };
    expect(data.allPersons).toHaveLength(120);
    expect(text).not.toContain('responseCache');
    // It was executed once.
    expect(await registry.metrics()).toContain(
      'graphql_envelop_request{operationName="Streamed",operationType="query"} 1\n',
    );
  });

  test('answers an entity tag with 304, and no caller who may not have the answer', async () => {
    const request = { name: '', query: '{ allPersons(limit: 2) { firstName } }' };
    const { etag } = (await got(cached, request)).headers;
    const before = requests();
    const headers = { 'if-none-match': etag! };
    const response = await send(cached, { ...request, init: { headers } });
    expect([response.status, await response.text()]).toEqual([304, '']);
    expect((await send(cached, { ...request, init: { headers }, key: '' })).status).toBe(401);
    const { text } = await got(cached, { ...request, key: OTHER });
    expect([text.includes('FORBIDDEN'), text.includes('"data"')]).toEqual([true, false]);
    expect(requests()).toBe(before);
  });
});
