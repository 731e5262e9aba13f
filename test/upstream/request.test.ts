import type { Dispatcher } from 'undici';
import { expect, test, vi } from 'vitest';
import { openConnections } from '../../src/upstream/connections.ts';
import { noTelemetry } from '../../src/upstream/telemetry.ts';
import { startServer } from '../support/listening.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { after, honest, json, silence } from '../service/replies.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { query, senderWith } from './held-requests.ts';

const PERSONS = 'query ($first: Int) { persons(first: $first) { items { id } } }';

test('a query is POST, JSON, with a bearer token and the agent, which requests for tokens name too, and without headers of callers', async () => {
  const config = { agent: 'acme-intranet/7' };
  await using gateway = await startGatewayOverService({ base: '/recruiting/v2' }, { config });
  const sent = {
    authorization: 'Bearer of-the-caller',
    cookie: 'session=of-the-caller',
    'x-api-key': 'of-the-caller',
    'x-forwarded-for': '203.0.113.7',
    'api-user-agent': 'of-the-caller',
    traceparent: '00-of-the-caller',
    'x-request-id': 'of-the-caller, @',
  };
  expect((await gateway.ask(PERSONS, { first: 2 }, { headers: sent })).errors).toBeUndefined();
  const { method, headers, body } = gateway.service.received[0]!;
  const { pair } = (await gateway.store.read()).state!;
  expect(method).toBe('POST');
  expect(headers).toEqual({
    accept: 'application/json',
    'accept-encoding': 'identity',
    'api-user-agent': 'acme-intranet/7',
    authorization: `Bearer ${pair.accessToken}`,
    connection: 'keep-alive',
    'content-length': String(body.length),
    'content-type': 'application/json',
    host: new URL(gateway.service.url).host,
    'user-agent': 'acme-intranet/7',
    'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
  });
  expect(JSON.parse(body)).toEqual({
    query: expect.stringContaining('persons(first: $first)'),
    variables: { first: 2 },
  });
  expect(gateway.service.otherAgents).toEqual(Array<string>(4).fill('acme-intranet/7'));
});

test('an operation has at most 8 requests in flight, others go before its next one, and those that fail keep no place', async () => {
  await using gateway = await startGatewayOverService();
  const { service, ask } = gateway;
  const gate = Promise.withResolvers<void>();
  const fails = after(gate.promise, json({}, 404));
  service.answer(fails, ...Array<typeof fails>(7).fill(fails), honest);
  const counts = Array.from({ length: 12 }, (_, at) => at + 2);
  const fields = counts.map(
    (first) => `a${first}: personsConnection(first: ${first}) { nodes { id } }`,
  );
  const many = ask(`{ ${fields.join(' ')} }`);
  await service.arrived(8);
  const one = ask(PERSONS, { first: 1 });
  await service.arrived(9);
  expect(JSON.parse(service.received[8]!.body)).toMatchObject({ variables: { first: 1 } });
  gate.resolve();
  expect((await one).errors).toBeUndefined();
  expect((await many).errors).toHaveLength(8);
});

test('a query that is sent again waits for another turn, behind those that wait already', async () => {
  await using gateway = await startGatewayOverService({}, { config: { upstreamConcurrency: 1 } });
  const { service, ask } = gateway;
  const gate = Promise.withResolvers<void>();
  service.answer(after(gate.promise, json({}, 503)), honest);
  const first = ask(PERSONS, { first: 1 });
  await service.arrived(1);
  const second = ask(PERSONS, { first: 2 });
  const waiting = 'recruiting_upstream_requests_waiting{priority="interactive"}';
  await expect.poll(async () => (await gateway.samples()).get(waiting)).toBe(1);
  gate.resolve();
  for (const { errors } of await Promise.all([first, second])) expect(errors).toBeUndefined();
  const asked = service.received.map(({ body }) => JSON.parse(body).variables.first as number);
  expect(asked).toEqual([1, 2, 1]);
});

test('the timeout of a request begins with its turn', async () => {
  const config = { upstreamConcurrency: 1, upstreamTimeoutMs: 30_000 };
  await using gateway = await startGatewayOverService({}, { config });
  const { service, age, ask } = gateway;
  const gates = [1, 2].map(() => Promise.withResolvers<void>());
  service.answer(after(gates[0]!.promise, honest), after(gates[1]!.promise, honest), silence);
  const answers = [1, 2, 3].map((first) => ask(PERSONS, { first }));
  for (const [at, gate] of gates.entries()) {
    await service.arrived(at + 1);
    age(14_000);
    gate.resolve();
    expect((await answers[at])!.errors).toBeUndefined();
  }
  await service.arrived(3);
  age(30_000);
  expect(await answers[2]).toMatchObject({
    errors: [{ extensions: { code: 'UPSTREAM_TIMEOUT' } }],
  });
});

test('a request whose caller leaves before there is a connection is not sent on it later', async () => {
  const handlers: Dispatcher.DispatchHandler[] = [];
  const dispatch: Dispatcher['dispatch'] = (_, handler) => handlers.push(handler) > 0;
  const { post } = openConnections({
    baseUrl: 'http://service.example',
    agent: 'test',
    connect: () => ({ dispatch }) as Dispatcher,
    concurrency: 1,
    timeoutMs: 30_000,
    clock: new ManualClock(),
    telemetry: noTelemetry,
  });
  const leaving = new AbortController();
  const outcome = post(query('x'), senderWith({ signal: leaving.signal }), 'token');
  leaving.abort(new Error('left'));
  await expect(outcome).rejects.toThrow('left');
  const abort = vi.fn<() => void>();
  handlers[0]!.onRequestStart!({ abort } as never, undefined);
  expect(abort).toHaveBeenCalledOnce();
});

test('requests go through the proxy that the environment names', async () => {
  const seen: unknown[] = [];
  const HTTP_PROXY = await startServer((request, response) => {
    seen.push(request.url);
    response.end('{"data":{"persons":{"items":[]}}}');
  });
  await using gateway = await startGatewayOverService({}, { proxies: { HTTP_PROXY } });
  expect(await gateway.ask(PERSONS)).toEqual({ data: { persons: { items: [] } } });
  expect(seen).toEqual([`${gateway.service.url}/graphql`]);
});
