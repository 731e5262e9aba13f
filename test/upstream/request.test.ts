import { expect, test, vi } from 'vitest';
import { thisMachine } from '../../src/setup/machine.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import type { Reply } from '../service/service.ts';
import { json } from '../service/replies.ts';

const PERSONS = 'query ($first: Int) { persons(first: $first) { items { id } } }';

test('a query is POST, JSON, with a bearer token and the agent, which requests for tokens name too', async () => {
  await using gateway = await startGatewayOverService({}, { config: { agent: 'acme-intranet/7' } });
  await gateway.ask(PERSONS, { first: 2 });
  const { method, headers, body } = gateway.service.received[0]!;
  const { state } = await gateway.store.read();
  expect(method).toBe('POST');
  expect(headers['content-type']).toBe('application/json');
  expect(headers['user-agent']).toBe('acme-intranet/7');
  expect(headers['api-user-agent']).toBe('acme-intranet/7');
  expect(headers['authorization']).toBe(`Bearer ${state!.pair.accessToken}`);
  expect(JSON.parse(body)).toEqual({
    query: expect.stringContaining('persons(first: $first)'),
    variables: { first: 2 },
  });
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

const withId = (status: number, id: string): Reply => json({}, status, { 'x-request-id': id });

test.each([
  ['an answer that is not GraphQL', withId(400, 'svc-1')],
  ['an answer with status 503', withId(503, 'svc-1')],
  ['an answer with status 429', json({}, 429, { 'x-request-id': 'svc-1', 'retry-after': '60' })],
  ['a refused token', json({ type: 'x', detail: 'y' }, 403, { 'x-request-id': 'svc-1' })],
])(
  'the error and the log line of %s have the id by which the service finds the request',
  async (_what, reply) => {
    await using gateway = await startGatewayOverService();
    gateway.service.answer(reply);
    const { errors } = await gateway.ask(PERSONS);
    expect(errors).toMatchObject([{ extensions: { serviceRequestId: 'svc-1' } }]);
    expect(lineOf(gateway)).toMatchObject({ serviceRequestId: 'svc-1' });
  },
);

test('with introspection off, only the log line has the id of the service', async () => {
  await using gateway = await startGatewayOverService({}, { config: { introspection: false } });
  gateway.service.answer(withId(400, 'svc-1'));
  const { errors } = await gateway.ask(PERSONS);
  expect(errors![0]!.extensions).toEqual({
    code: 'UPSTREAM_BAD_RESPONSE',
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    retryAfter: 60,
  });
  expect(lineOf(gateway)).toMatchObject({ serviceRequestId: 'svc-1' });
});

test.each<[string, (token: string) => string]>([
  ['is too long', () => 'x'.repeat(129)],
  ['has white space', () => 'a b'],
  ['has quotes', () => '"a"'],
  ['has the token', (token) => `echo-${token}`],
])('an id of the service that %s is not passed on', async (_what, idWith) => {
  await using gateway = await startGatewayOverService();
  const { pair } = (await gateway.store.read()).state!;
  gateway.service.answer(withId(400, idWith(pair.accessToken)));
  const { errors } = await gateway.ask(PERSONS);
  expect(errors![0]!.extensions).not.toHaveProperty('serviceRequestId');
  expect(lineOf(gateway)).not.toHaveProperty('serviceRequestId');
});

function lineOf({ logged }: { readonly logged: readonly Record<string, unknown>[] }) {
  return logged.findLast(({ msg }) => msg === 'request');
}
