import { usePrometheus } from '@graphql-yoga/plugin-prometheus';
import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import type { ExecutionResult } from 'graphql';
import { createGraphQLError, type Plugin } from 'graphql-yoga';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { post, startFront } from '../http/front.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { startGateway, type TestGateway } from '../support/gateway/gateway.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { json } from '../service/replies.ts';

// Plugins that answer themselves: on a path of their own, instead of the gateway, or from a cache.

const READER = 'key-of-a-reader';
const WRITER = 'key-of-a-writer';
const apiKeys = [entryFor(READER, 'reader', 'read', 'drain'), entryFor(WRITER, 'writer', 'write')];
const ORIGIN = 'https://app.example.test';
const config = { auth: { apiKeys, jwt: undefined }, corsOrigins: [ORIGIN] };
const PAGE = '{ persons(first: 3) { items { id firstName } } }';
const STREAM = '{ allPersons(limit: 120) @stream(initialCount: 2) { id firstName } }';

interface Sent {
  readonly accept?: string;
  readonly key?: string;
  readonly headers?: object;
}

async function got(gateway: TestGateway, query: string, sent: Sent = {}) {
  const { accept = 'application/json', key = READER, headers = {} } = sent;
  const all = { accept, 'x-api-key': key, origin: ORIGIN, ...headers };
  const response = await gateway.fetch('/graphql', post({ query }, all));
  const { 'x-request-id': _, ...others } = Object.fromEntries(response.headers);
  return { status: response.status, headers: others, text: await response.text() };
}

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
    await using front = await startFront({ config, plugins });
    const key = { 'x-api-key': READER };
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
const MINE = { 'x-mine': '1' };
const VALUES = [1, '\u2028', null, undefined, { id: 1, gone: undefined }];
const DATA = { list: VALUES, gone: undefined, at: new Date(0), none: [], 'a "key"': VALUES };

test.each<[string, Plugin, number, string | undefined, body: unknown]>([
  [
    'a response in onRequest',
    {
      onRequest: ({ endResponse, fetchAPI }) =>
        endResponse(
          new fetchAPI.Response('"mine"', { status: 418, headers: { ...MINE, vary: 'X-Mine' } }),
        ),
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
    'values that JSON writes in other words, and a status for HTTP',
    answering({ data: DATA, extensions: { cost: 1, http: { status: 203, headers: MINE } } }),
    203,
    '1',
    JSON.parse(JSON.stringify({ data: DATA, extensions: { cost: 1 } })),
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
  await using gateway = await startGatewayOverService({}, { config, plugins: [plugin] });
  for (const [query, accept] of [
    [PAGE, 'application/json'],
    [STREAM, 'multipart/mixed'],
  ] as const) {
    const { status, headers, text } = await got(gateway, query, { accept });
    expect([status, headers['x-mine'], JSON.parse(text)]).toEqual([expected, mine, body]);
    expect(headers['access-control-allow-origin']).toBe(ORIGIN);
    expect(headers['vary']).toBe(status === 418 ? 'X-Mine, Origin' : 'Origin');
  }
  expect((await got(gateway, PAGE, { key: '' })).status).toBe(401);
  expect((await gateway.fetch('/health')).status).toBe(200);
  expect(gateway.service.stats.requests.graphql).toBe(0);
});

test.each([
  ['no plugin', []],
  ['a plugin', [everyHook()]],
])('what the service calls http is passed on, and sets no status, with %s', async (_, plugins) => {
  await using gateway = await startGatewayOverService({}, { config, plugins });
  const http = { status: 418, headers: MINE };
  const error = { message: 'No.', path: ['persons'], extensions: { code: 'NO', http } };
  const extensions = { http, cost: 1 };
  gateway.service.answer(json({ data: { persons: null }, errors: [error], extensions }));
  for (const query of [PAGE, '{ allPersons { id } }']) {
    const { status, headers, text } = await got(gateway, query);
    expect([status, headers['x-mine']]).toEqual([200, undefined]);
    const answer = JSON.parse(text) as ExecutionResult;
    expect(answer.errors).toMatchObject([{ message: 'No.', extensions: error.extensions }]);
    if (query === PAGE) expect(answer.extensions).toEqual(extensions);
  }
});

describe('the response cache of Yoga, beside its Prometheus', () => {
  const registry = new Registry();
  let cached: GatewayOverService;
  let plain: TestGateway;
  beforeAll(async () => {
    const plugins = [
      useResponseCache({ session: () => null }),
      usePrometheus({ registry, endpoint: false }),
      everyHook(),
    ];
    cached = await startGatewayOverService({}, { config, plugins });
    plain = await startGateway(cached.service, { config, store: cached.store });
  });
  afterAll(async () => {
    await plain[Symbol.asyncDispose]();
    await cached[Symbol.asyncDispose]();
  });
  const requests = () => cached.service.stats.requests.graphql;

  test.each([
    ['a page', PAGE],
    ['a drain', '{ allPersons(limit: 120) { id firstName } }'],
    ['a connection', '{ personsConnection(first: 7) { edges { cursor node { id } } totalCount } }'],
    ['an error', '{ personsConnection(first: -1) { nodes { id } } persons { items { id } } }'],
    ['a refusal', '{ nope }'],
  ])(
    'does not change the answer that is %s, and a second one costs no upstream request unless it failed',
    async (name, query) => {
      const expected = await got(plain, query);
      for (let turn = 0; turn < 2; turn += 1) {
        const before = requests();
        const { headers, text, status } = await got(cached, query);
        const { etag, 'last-modified': _, ...others } = headers;
        expect({ status, headers: others, text }).toEqual(expected);
        const isKept = !/error|refusal/.test(name);
        expect(etag !== undefined).toBe(isKept);
        if (isKept && turn === 1) expect(requests()).toBe(before);
      }
    },
  );

  test('keeps a stream as a whole list, and counts it', async () => {
    const query = `query Streamed ${STREAM}`;
    await got(cached, query, { accept: 'multipart/mixed' });
    const before = requests();
    const { text } = await got(cached, query, { accept: 'multipart/mixed' });
    expect(requests()).toBe(before);
    const { data } = JSON.parse(text) as { data: { allPersons: unknown[] } };
    expect(data.allPersons).toHaveLength(120);
    expect(text).not.toContain('responseCache');
    const line = cached.logged.findLast(({ msg }) => msg === 'request');
    expect(line).toMatchObject({ status: 200, operationType: 'query' });
    // It was executed once.
    expect(await registry.metrics()).toContain(
      'graphql_envelop_request{operationName="Streamed",operationType="query"} 1\n',
    );
  });

  test('answers an entity tag with 304, and no caller who may not have the answer', async () => {
    const query = '{ allPersons(limit: 2) { firstName } }';
    const headers = { 'if-none-match': (await got(cached, query)).headers['etag']! };
    const before = requests();
    expect(await got(cached, query, { headers })).toMatchObject({ status: 304, text: '' });
    expect((await got(cached, query, { headers, key: '' })).status).toBe(401);
    const { text } = await got(cached, query, { key: WRITER });
    expect([text.includes('FORBIDDEN'), text.includes('"data"')]).toEqual([true, false]);
    expect(requests()).toBe(before);
  });
});
