import { expect, test, vi } from 'vitest';
import { thisMachine } from '../../src/setup/machine.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { startServer } from '../support/test-server.ts';
import { startHeldUpstream } from './held-upstream.ts';

const PERSONS = 'query ($first: Int) { persons(first: $first) { items { id } } }';

test('a query is sent as the interface requires: POST, JSON, a bearer token and the agent', async () => {
  await using gateway = await startGatewayOverService({}, { config: { agent: 'acme-intranet/7' } });
  await gateway.ask(PERSONS, { first: 2 });
  const { method, headers, token, body } = gateway.service.received[0]!;
  const { state } = await gateway.store.read();
  expect(method).toBe('POST');
  expect(headers['content-type']).toBe('application/json');
  expect(headers['user-agent']).toBe('acme-intranet/7');
  expect(headers['api-user-agent']).toBe('acme-intranet/7');
  expect(headers['authorization']).toBe(`Bearer ${state!.pair.accessToken}`);
  expect(token).not.toBe('');
  expect(JSON.parse(body)).toEqual({
    query: expect.stringContaining('persons(first: $first)'),
    variables: { first: 2 },
  });
});

test('requests to the token link and the token endpoint name the agent too', async () => {
  await using gateway = await startGatewayOverService({}, { config: { agent: 'acme-intranet/7' } });
  expect(gateway.service.otherAgents).toEqual(Array<string>(4).fill('acme-intranet/7'));
});

test('without RECRUITING_AGENT, every request has a contact in its User-Agent, and asks for one', async () => {
  await using gateway = await startGatewayOverService();
  await gateway.ask(PERSONS);
  const { otherAgents, received } = gateway.service;
  for (const agent of [...otherAgents, received[0]!.headers['user-agent']]) {
    expect(agent).toMatch(/^[^\s/()]+\/[^\s()]+ \([^()]*RECRUITING_AGENT[^()]*\)$/);
  }
});

test('headers of callers are not sent to the service', async () => {
  await using gateway = await startGatewayOverService();
  const { errors } = await gateway.ask(
    PERSONS,
    {},
    {
      headers: {
        authorization: 'Bearer of-the-caller',
        cookie: 'session=of-the-caller',
        'x-api-key': 'of-the-caller',
        'x-forwarded-for': '203.0.113.7',
        'api-user-agent': 'of-the-caller',
        traceparent: '00-of-the-caller',
        baggage: 'user=of-the-caller',
        'x-request-id': 'of-the-caller, @',
      },
    },
  );
  expect(errors).toBeUndefined();
  const { headers, body } = gateway.service.received[0]!;
  expect(JSON.stringify([headers, body])).not.toMatch(/of-the-caller|203\.0\.113\.7/);
  expect(Object.keys(headers).toSorted()).toEqual([
    'accept',
    'accept-encoding',
    'api-user-agent',
    'authorization',
    'connection',
    'content-length',
    'content-type',
    'host',
    'user-agent',
    'x-request-id',
  ]);
});

test('a base address may have a path', async () => {
  await using gateway = await startGatewayOverService({ base: '/recruiting/v2' });
  expect((await gateway.ask(PERSONS)).errors).toBeUndefined();
  expect(gateway.service.received).toHaveLength(1);
});

test('requests go through the proxy that the environment names', async () => {
  const seen: unknown[] = [];
  const proxy = await startServer((request, response) => {
    seen.push(request.url);
    response.end('{"data":{"echo":"by the proxy"}}');
  });
  await using upstream = await startHeldUpstream({ proxies: { HTTP_PROXY: proxy } });
  expect(await upstream.ask('x')).toEqual({ data: { echo: 'by the proxy' } });
  expect(seen).toEqual([`${upstream.service.url}/graphql`]);
});

test('queries one after the other share a connection', async () => {
  await using gateway = await startGatewayOverService();
  for (let first = 1; first <= 50; first += 1) await gateway.ask(PERSONS, { first });
  const connections = new Set(gateway.service.received.map(({ connection }) => connection));
  expect(gateway.service.received).toHaveLength(50);
  expect(connections.size).toBeLessThanOrEqual(2);
});

test('a connection that the service closed while it was idle causes no error', async () => {
  await using gateway = await startGatewayOverService();
  for (let first = 1; first <= 5; first += 1) {
    expect((await gateway.ask(PERSONS, { first })).errors).toBeUndefined();
    const { connection } = gateway.service.received.at(-1)!;
    connection.destroy();
  }
});

test('the timeout of a request begins with its turn', async () => {
  const LATENCY = 120;
  await using gateway = await startGatewayOverService(
    { latency: LATENCY },
    { config: { upstreamConcurrency: 1, upstreamTimeoutMs: 4 * LATENCY } },
  );
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) => gateway.ask(PERSONS, { first: index + 1 })),
  );
  expect(answers.flatMap(({ errors = [] }) => errors)).toEqual([]);
});

test.each([
  ['proxy.example:3128', 'http://proxy.example:3128'],
  ['http://proxy.example:3128', 'http://proxy.example:3128'],
  ['https://proxy.example:3128', 'https://proxy.example:3128'],
])('a proxy that is written as %s is used as %s, as by curl', (written, used) => {
  vi.stubEnv('https_proxy', written);
  try {
    expect(thisMachine.proxyFor('https://service.example/graphql')).toBe(used);
  } finally {
    vi.unstubAllEnvs();
  }
});
