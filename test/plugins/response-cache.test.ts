import { usePrometheus } from '@graphql-yoga/plugin-prometheus';
import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Service } from '../service/service.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { countedHooks, type Seen } from './counted-hooks.ts';
import {
  ALL,
  FAILING,
  got,
  OTHER,
  send,
  settings,
  STREAMED,
  WHOLE,
  type TestRequest,
} from './requests.ts';

const seen: Seen[] = [];
let plain: TestGateway;
let cached: TestGateway & { sandbox: Service };
beforeAll(async () => {
  plain = await startGatewayOverSandbox({}, { config: settings });
  const plugins = [
    useResponseCache({ session: () => null }),
    usePrometheus({ registry: new Registry(), endpoint: false }),
    countedHooks(seen),
  ];
  cached = await startGatewayOverSandbox({}, { config: settings, plugins });
});
afterAll(async () => {
  await plain[Symbol.asyncDispose]();
  await cached[Symbol.asyncDispose]();
});

const requests = () => cached.sandbox.stats.requests.graphql;

/** The cache adds them to answers that it keeps. */
async function withoutValidators(gateway: TestGateway, request: TestRequest) {
  const { status, text: sent, headers } = await got(gateway, request);
  // Those of wrong variables are in the document as the cache has changed it.
  const text = sent.replaceAll(/"locations":\[[^\]]*\],/g, '');
  const { etag, 'last-modified': _, ...others } = headers;
  return { answer: { status, text, headers: others }, etag };
}

test.each(ALL)(
  'with several plugins, $name is answered as without them, twice',
  async (request) => {
    const { answer } = await withoutValidators(plain, request);
    expect((await withoutValidators(cached, request)).answer).toEqual(answer);
    expect(seen.at(-1)?.hooks).toContain('response');
    const again = await withoutValidators(cached, request);
    // The cache keeps a stream as a whole list.
    if (!STREAMED.includes(request)) expect(again.answer).toEqual(answer);
  },
);

describe('a second request', () => {
  test.each(WHOLE.filter(({ query, init }) => !init && !/__type\(/.test(query!)))(
    'for $name costs no upstream request',
    async (request) => {
      const other = { ...request, query: `# ${request.name}\n${request.query}` };
      const first = await withoutValidators(cached, other);
      expect(first.etag).toBeDefined();
      const before = requests();
      expect(await withoutValidators(cached, other)).toEqual(first);
      expect(requests()).toBe(before);
    },
  );

  test('for the same entity tag is told that nothing changed', async () => {
    const request = { name: '', query: '{ persons(first: 2) { items { firstName } } }' };
    const { etag } = await withoutValidators(cached, request);
    const before = requests();
    const headers = { 'if-none-match': etag! };
    const response = await send(cached, { ...request, init: { headers } });
    expect([response.status, await response.text()]).toEqual([304, '']);
    expect(requests()).toBe(before);
    const stranger = await send(cached, { ...request, init: { headers }, key: '' });
    expect(stranger.status).toBe(401);
  });

  test.each(FAILING)('for $name is answered anew: errors are not kept', async (request) => {
    const first = await withoutValidators(cached, request);
    expect(first.etag).toBeUndefined();
    expect(await withoutValidators(cached, request)).toEqual(first);
  });

  test('of a caller who may not have the answer is refused', async () => {
    const request = { name: '', query: '{ allPersons { lastName: firstName } }' };
    expect((await got(cached, request)).status).toBe(200);
    const { text } = await got(cached, { ...request, key: OTHER });
    expect(text).toContain('FORBIDDEN');
    expect(text).not.toContain('"data"');
  });

  test.each(STREAMED.slice(0, 1))('for $name has all records', async (request) => {
    const other = { ...request, query: `# again\n${request.query}` };
    await got(cached, other);
    const before = requests();
    const { text } = await got(cached, other);
    expect(requests()).toBe(before);
    const { data } = JSON.parse(text) as { data: { allPersons: unknown[] } };
    expect(data.allPersons.length).toBeGreaterThan(60);
    expect(text).not.toContain('responseCache');
  });
});

test('fields that the cache adds count in the limits of an operation', async () => {
  const fields = Array.from(
    { length: 15 },
    (_, i) => `a${i}: persons(first: 1) { items { firstName } }`,
  );
  const request = { name: '', query: `{ ${fields.join(' ')} }` };
  expect((await got(plain, request)).text).toContain('"data"');
  expect((await got(cached, request)).text).toContain('OPERATION_TOO_COMPLEX');
});
