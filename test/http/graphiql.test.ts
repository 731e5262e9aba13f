import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { examples } from '../../src/http/graphiql/examples.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { fullSdl, fullService } from '../service/full.ts';
import { makeExecutableSchema } from '../service/lists.ts';
import { serveHere } from '../support/gateway/run-here.ts';

const KEY = 'rsk_of-the-portal';
const OPEN = {
  headers: { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' },
};

const SINGLE = 'type Query { me: Person } type Person { id: ID! }';
const results = readFileSync('schema/results.graphql', 'utf8');

test.each([
  ['the documented service', {}, {}],
  ['a service whose fields return results', { schema: 'results' as const }, { snapshot: results }],
  ['a service of which some lists need a filter', fullService(), { snapshot: fullSdl }],
  ['a service without lists', { schema: makeExecutableSchema(SINGLE, {}) }, { snapshot: SINGLE }],
])(
  'every example is answered for a caller with the scope read, by %s',
  async (_, service, options) => {
    const auth = { apiKeys: [entryFor(KEY, 'portal', 'read')], jwt: undefined };
    await using gateway = await startGatewayOverService(service, { ...options, config: { auth } });
    for (const { query, variables = '{}' } of examples(gateway.gateway.offered.adapters)) {
      const headers = { 'x-api-key': KEY };
      const sent = JSON.parse(variables) as Record<string, unknown>;
      const { data, errors } = await gateway.ask(query, sent, { headers });
      expect(errors).toBeUndefined();
      expect(JSON.stringify(data)).toMatch(/"name":"|"firstName":"|"__typename":"/);
      expect(query).toMatch(/^# .*\n/);
    }
  },
);

describe('the page', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGatewayOverService({}, { config: { corsOrigins: ['https://a.test'] } });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());
  const open = () => gateway.fetch('/graphql', OPEN);

  test('the page is not served if GraphiQL is off', async () => {
    await using closed = await startGatewayOverService({}, { config: { graphiql: false } });
    const { status, headers } = await closed.fetch('/graphql', OPEN);
    expect([status, headers.get('content-type')]).toEqual([400, 'application/json; charset=utf-8']);
    expect((await closed.fetch('/', OPEN)).status).toBe(404);
  });

  test('the root leads browsers to the page, also behind a proxy that serves it under another path', async () => {
    const { status, headers } = await gateway.fetch('/', OPEN);
    expect([status, headers.get('location')]).toEqual([302, 'graphql']);
    const other = { headers: { accept: '*/*' } };
    expect((await gateway.fetch('/', other)).status).toBe(404);
    expect((await gateway.fetch('/graphql', other)).status).toBe(400);
  });

  test('the page is sent compressed', async () => {
    const response = await open();
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(response.headers.get('vary')).toBe('Accept, Origin');
    const bytes = await response.arrayBuffer();
    const page = gunzipSync(bytes).toString();
    expect(page.includes('}\nstartGraphiql();</script>')).toBe(true);
    expect(bytes.byteLength).toBeLessThan(page.length / 3);
  });

  test('the page of the sandbox says that the people are made up', async () => {
    await using sandbox = await serveHere();
    expect(await (await fetch(sandbox.url, OPEN)).text()).toContain('the people are made up');
  });

  test('the page allows neither frames of other sites nor pictures and requests elsewhere', async () => {
    const { headers } = await open();
    const policy = headers.get('content-security-policy')!.split('; ');
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("connect-src 'self'");
    expect(policy.filter((rule) => rule.startsWith('img-src')).join()).not.toMatch(/http|\*/);
  });
});
