import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest, json, refusal } from '../support/imitations/scripted.ts';
import { cut } from '../support/imitations/hostile-sockets.ts';
import { startHeldUpstream } from '../upstream/held-upstream.ts';
import { samplesOf } from '../support/processes/exposition.ts';

let gateway: GatewayOverFake;
let before: Map<string, number>;
beforeAll(async () => {
  gateway = await startGatewayOverFake({ persons: 260 });
});
afterAll(() => gateway[Symbol.asyncDispose]());
beforeEach(async () => {
  before = await samples();
  gateway.upstream.answer(honest);
});

test('requests are counted by the code of their first error, OK without one; probes are not counted', async () => {
  await gateway.ask('query OfMax { persons(first: 1) { items { id } } }');
  await gateway.ask('{ nothing }');
  await gateway.fetch('/elsewhere');
  await gateway.fetch('/health');
  gateway.upstream.answer(
    json({ data: null, errors: [{ message: 'x', extensions: { code: 'Max' } }] }),
  );
  await gateway.ask('{ persons(first: 2) { items { id } } }');
  expect(await counted('recruiting_requests_total')).toEqual({
    '{operation="",code="OK"}': 1,
    '{operation="",code="BAD_USER_INPUT"}': 2,
    '{operation="",code="OTHER"}': 1,
  });
  expect(await counted('recruiting_request_duration_seconds_count')).toEqual({
    '{type="query"}': 2,
    '{type="none"}': 2,
  });
  expect(await gateway.gateway.metrics.text()).not.toContain('Max');
});

test('callers cannot create series: all names that they send are one series', async () => {
  await gateway.ask('{ __typename }');
  await gateway.ask('{ nothing }');
  const lines = (await gateway.gateway.metrics.text()).split('\n').length;
  for (let caller = 0; caller < 10; caller += 1) {
    await gateway.ask(`query Name${caller} { __typename }`);
    await gateway.ask(`query Name${caller} { nothing${caller} }`);
  }
  expect((await gateway.gateway.metrics.text()).split('\n')).toHaveLength(lines);
});

test('each attempt of an upstream request is counted by its outcome, and each retry', async () => {
  const { ask, upstream } = gateway;
  upstream.answer(cut, json({}, 502), honest);
  await ask('{ persons(first: 1) { items { id } } }');
  upstream.answer(json({ errors: [{ message: 'no' }] }));
  await ask('{ persons(first: 1) { items { id } } }');
  upstream.answer(refusal('revoked'));
  await ask('{ persons(first: 1) { items { id } } }');
  expect(await counted('recruiting_upstream_requests_total')).toEqual({
    '{outcome="UPSTREAM_UNREACHABLE"}': 1,
    '{outcome="UPSTREAM_BAD_RESPONSE"}': 1,
    '{outcome="ok"}': 1,
    '{outcome="graphql_error"}': 1,
    '{outcome="UPSTREAM_UNAUTHORIZED"}': 1,
  });
  expect(await counted('recruiting_upstream_retries_total')).toEqual({
    '{code="UPSTREAM_UNREACHABLE"}': 1,
    '{code="UPSTREAM_BAD_RESPONSE"}': 1,
  });
  expect(await counted('recruiting_upstream_request_duration_seconds_count')).toEqual({ '': 5 });
});

test.each([
  ['no errors', {}, 'ok'],
  ['null for errors', { errors: null }, 'ok'],
  ['an empty list of errors', { errors: [] }, 'ok'],
  ['an error', { errors: [{ message: 'no' }] }, 'graphql_error'],
])('an answer with data and %s is counted as such', async (_, errors, outcome) => {
  gateway.upstream.answer(json({ data: { persons: null }, ...errors }));
  await gateway.ask('{ persons(first: 1) { items { id } } }');
  expect(await counted('recruiting_upstream_requests_total')).toEqual({
    [`{outcome="${outcome}"}`]: 1,
  });
});

test('pages that are read of lists are counted', async () => {
  await gateway.ask('{ allPersons { id } }');
  expect(await counted('recruiting_pages_read_total')).toEqual({ '': 6 });
});

test('gauges show how many drains and requests run and wait', async () => {
  const gate = Promise.withResolvers<void>();
  const arrived = gateway.upstream.received.length;
  gateway.upstream.answer(after(gate.promise, honest));
  const queries = Array.from({ length: 5 }, (_, at) =>
    gateway.ask(`{ allPersons(limit: 100) { id n${at}: firstName } }`),
  );
  await gateway.upstream.arrived(arrived + 4);
  const now = await samples();
  expect(now.get('recruiting_drains_running')).toBe(4);
  expect(now.get('recruiting_drains_waiting')).toBe(1);
  expect(now.get('recruiting_upstream_requests_in_flight')).toBeGreaterThanOrEqual(4);
  gate.resolve();
  await Promise.all(queries);
  const later = await samples();
  expect(later.get('recruiting_drains_running')).toBe(0);
  expect(later.get('recruiting_upstream_requests_in_flight')).toBe(0);
});

test('requests that wait for their turn are counted by priority', async () => {
  await using held = await startHeldUpstream({ concurrency: 2 });
  const answers = ['1', '2', '3', '4'].map((label) =>
    held.ask(label, { priority: Number(label) > 2 ? 'drain' : 'interactive' }),
  );
  await held.service.arrived(2);
  expect(held.load()).toEqual({ inFlight: 2, waiting: { interactive: 0, drain: 2 } });
  for (const label of ['1', '2', '3', '4']) held.release(label);
  await Promise.all(answers);
  expect(held.load()).toEqual({ inFlight: 0, waiting: { interactive: 0, drain: 0 } });
});

test('a caller who leaves is counted as LEFT', async () => {
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  const arrived = gateway.upstream.received.length;
  gateway.upstream.answer(() => {});
  const leaving = new AbortController();
  const answer = fetch(`${server.url}/graphql?query={persons(first:7){items{id}}}`, {
    signal: leaving.signal,
    headers: { 'apollo-require-preflight': 'true' },
  });
  await gateway.upstream.arrived(arrived + 1);
  leaving.abort();
  await expect(answer).rejects.toThrow('abort');
  await expect
    .poll(() => counted('recruiting_requests_total'), { interval: 5 })
    .toEqual({ '{operation="",code="LEFT"}': 1 });
  await expect
    .poll(() => counted('recruiting_upstream_requests_total'), { interval: 5 })
    .toEqual({ '{outcome="left"}': 1 });
  await server.close();
});

async function samples(): Promise<Map<string, number>> {
  return samplesOf(await gateway.gateway.metrics.text());
}

/** How much a metric grew in this test, by its labels. */
async function counted(name: string): Promise<Record<string, number>> {
  const grown = [...(await samples())].flatMap(([series, value]) => {
    const growth = value - (before.get(series) ?? 0);
    const [metric, labels = ''] = series.split(/(?=\{)/);
    return metric === name && growth > 0 ? [[labels, growth] as const] : [];
  });
  return Object.fromEntries(grown);
}
