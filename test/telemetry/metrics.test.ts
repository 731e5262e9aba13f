import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest, json, refusal } from '../support/imitations/scripted.ts';
import { cut } from '../support/imitations/hostile-sockets.ts';
import { TROUBLES } from '../../src/tokens/health.ts';
import { startService } from '../service/service.ts';
import { runHere, serveHere, type RunningHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
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

test('each attempt of an upstream request is counted by its outcome', async () => {
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
  expect(await counted('recruiting_upstream_request_duration_seconds_count')).toEqual({ '': 5 });
});

test('pages that are read of lists are counted', async () => {
  await gateway.ask('{ allPersons { id } }');
  expect(await counted('recruiting_pages_read_total')).toEqual({ '': 6 });
});

test('gauges show how many drains run and wait', async () => {
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
  gate.resolve();
  await Promise.all(queries);
  const later = await samples();
  expect(later.get('recruiting_drains_running')).toBe(0);
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

test('the metrics have the lifetimes of both tokens, their troubles and the exchanges', async () => {
  const service = await startService({ expiresIn: 3600 });
  onTestFinished(() => service.close());
  await using serving = await serveOver(service);
  await serving.printed(/access token refreshed/);
  const values = await adminSamples(serving);
  expect(values.get('recruiting_access_token_seconds_left')).toBeGreaterThan(3000);
  expect(values.get('recruiting_refresh_token_seconds_left')).toBeGreaterThan(119 * 86_400);
  expect(values.get('recruiting_token_exchanges_total{outcome="granted"}')).toBe(1);
  for (const trouble of TROUBLES) {
    expect(values.get(`recruiting_token_trouble{trouble="${trouble}"}`)).toBe(0);
  }
});

test('a trouble is 1 while it lasts, and failed exchanges are counted by outcome', async () => {
  const service = await startService();
  onTestFinished(() => service.close());
  service.tokenAnswers.next('drop-before');
  await using serving = await serveOver(service);
  await serving.printed(/no clear answer/);
  const values = await adminSamples(serving);
  expect(values.get('recruiting_token_trouble{trouble="uncertain"}')).toBe(1);
  expect(values.get('recruiting_token_trouble{trouble="lost"}')).toBe(0);
  expect(values.get('recruiting_token_exchanges_total{outcome="unclear"}')).toBe(1);
});

test('without tokens the metrics report them as missing, and have no lifetimes', async () => {
  const service = await startService();
  onTestFinished(() => service.close());
  await using serving = await serveOver({ url: service.url, tokenLink: '' });
  const values = await adminSamples(serving);
  expect(values.get('recruiting_token_trouble{trouble="missing"}')).toBe(1);
  expect(values.has('recruiting_access_token_seconds_left')).toBe(false);
});

test('the admin address serves nothing but the metrics, and not to a foreign host name', async () => {
  await using serving = await serveHere();
  const url = await metricsUrl(serving);
  expect((await fetch(url)).headers.get('content-type')).toContain('text/plain');
  expect((await fetch(new URL('/graphql', url))).status).toBe(404);
  expect((await fetch(url, { method: 'POST' })).status).toBe(405);
  expect((await fetch(new URL('/metrics', serving.url))).status).toBe(404);
  const foreign = get(url, { agent: false, headers: { host: 'evil.example' } });
  const [refused] = (await once(foreign, 'response')) as [IncomingMessage];
  expect(refused.statusCode).toBe(421);
  refused.resume();
});

test('a configured ADMIN_PORT that is taken prevents the start, and the error says what to change', async () => {
  await using serving = await serveHere();
  const { port } = new URL(await metricsUrl(serving));
  const { code, stderr } = await runHere([], { ADMIN_PORT: port });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    new RegExp(`127\\.0\\.0\\.1:${port}.*set ADMIN_PORT to another port`, 's'),
  );
});

function serveOver({ url, tokenLink }: { url: string; tokenLink: string }): Promise<RunningHere> {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return serveHere({
    RECRUITING_URL: url,
    TOKEN_LINK: tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    ALLOW_ANONYMOUS: 'true',
    NODE_ENV: 'production',
  });
}

async function metricsUrl(serving: RunningHere): Promise<string> {
  return (await serving.printed(/http:\/\/[^"]+\/metrics/))[0];
}

async function adminSamples(serving: RunningHere): Promise<Map<string, number>> {
  return samplesOf(await (await fetch(await metricsUrl(serving))).text());
}
