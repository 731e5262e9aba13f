import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { listen, type Listening } from '../../src/http/listen.ts';
import { startIssuer, type Issuer } from '../http/auth/issuer.ts';
import { gathered, next, partsOf } from '../support/clients/multipart.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { after, cut, honest, json, refusal } from '../service/replies.ts';
import type { Reply } from '../service/service.ts';
import { samplesOf } from '../support/processes/exposition.ts';

// The log line and the metrics of a request.

const KEY = 'rsk_of-the-portal-0123456789012345678901';
/** Nothing that a caller sends is in a log line, and no name of a person. */
const PRIVATE = /Max|mustermann|rsk_|max@|of=/;

let issuer: Issuer;
let gateway: GatewayOverService;
let server: Listening;
let before: Map<string, number>;
beforeAll(async () => {
  issuer = await startIssuer();
  const auth = { apiKeys: [entryFor(KEY, 'portal', 'read')], jwt: issuer.jwt };
  gateway = await startGatewayOverService(
    { persons: 260 },
    { config: { auth, drainConcurrency: 1 } },
  );
  server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await server.close();
  await gateway[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});
beforeEach(async () => {
  gateway.service.answer(honest);
  gateway.logged.length = 0;
  before = await samples();
});

interface Situation {
  readonly query?: string;
  /** A GET of it is sent with these headers alone, instead of an operation. */
  readonly path?: string;
  readonly headers?: Record<string, string>;
  /** What the service replies, in turn. Default: honest answers. */
  readonly replies?: readonly [Reply, ...Reply[]];
}
type Counts = Record<string, number>;

interface Row extends Situation {
  /** The facts that the log line has. */
  readonly line: Readonly<Record<string, unknown>>;
  /** The code that is counted; null: the request is not counted. Default: that of the line, or OK. */
  readonly counted?: null;
  /** The upstream requests by their outcome. */
  readonly upstream?: Counts;
  /** The lines about the request that are logged before. */
  readonly before?: readonly string[];
}

const page = (count: number) => `{ persons(first: ${count}) { items { id } } }`;
const DRAIN = '{ allPersons { id } }';
const failed = json({ errors: [{ message: 'of Max' }] });
const OWN_CODE = { code: 'Max Mustermann' };
const coded = json({ data: null, errors: [{ message: 'of Max', extensions: OWN_CODE }] });
const named = (client: string, value: string, version: string): Situation => ({
  query: '{ __typename }',
  headers: { [`${client}-name`]: value, [`${client}-version`]: version },
});
const CLIENTS = ['graphql-client', 'apollographql-client'];
const NO_PROBES = ['/x/health', '/x/ready', '/health/', '//health', '/graphql?query=/health'];

const MADE = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/;

const ROWS: Readonly<Record<string, Row>> = {
  'a drain': {
    query: DRAIN,
    line: {
      status: 200,
      caller: 'portal',
      operationType: 'query',
      upstreamRequests: 6,
      pages: 6,
    },
    upstream: { ok: 6 },
  },
  'an error of the service with a code of its own': {
    query: 'query OfMax { Max: persons { items { id } } }',
    replies: [coded],
    line: { status: 200, code: 'OTHER' },
    upstream: { graphql_error: 1 },
  },
  'a drain that the service refuses': {
    query: DRAIN,
    replies: [failed],
    line: { status: 200, code: 'OTHER' },
    upstream: { graphql_error: 1 },
  },
  'an answer after two failures': {
    query: page(2),
    replies: [cut, json({}, 502), honest],
    headers: { 'x-request-id': 'from-the-caller_1.2' },
    line: { status: 200, upstreamRequests: 3, requestId: 'from-the-caller_1.2' },
    before: [
      'a request to the service got no usable answer',
      'sending a request again',
      'a request to the service got no usable answer',
      'sending a request again',
    ],
    upstream: { UPSTREAM_UNREACHABLE: 1, UPSTREAM_BAD_RESPONSE: 1, ok: 1 },
  },
  'a token that the service refuses': {
    query: page(3),
    replies: [refusal('revoked')],
    line: { status: 200, code: 'UPSTREAM_UNAUTHORIZED' },
    upstream: { UPSTREAM_UNAUTHORIZED: 1 },
  },
  'a mistake of the caller': {
    query: '{ persons(first: -1) { items { id } } nothing }',
    line: { status: 200, code: 'BAD_USER_INPUT' },
  },
  'a format that is not sent': {
    query: '{ __typename }',
    headers: { accept: 'text/csv' },
    line: { status: 406, code: 'BAD_USER_INPUT' },
  },
  'a caller with a wrong key': {
    query: 'mutation { nothing }',
    headers: { 'x-api-key': 'of Max' },
    line: { status: 401, code: 'UNAUTHENTICATED' },
  },
  'a probe': { path: '/health', line: { level: 20, status: 200, path: '/health' }, counted: null },
  'a probe of readiness': {
    path: '/ready',
    line: { level: 20, status: 200, path: '/ready' },
    counted: null,
  },
  ...Object.fromEntries(
    NO_PROBES.map((path) => [
      `${path}, which is no probe`,
      { path, line: { level: 30, status: 401, code: 'UNAUTHENTICATED' } },
    ]),
  ),
  'a stream': {
    query: '{ allPersons @stream { id firstName } }',
    headers: { 'x-request-id': 'of-a-stream', accept: 'multipart/mixed' },
    line: { status: 200, requestId: 'of-a-stream', pages: 6 },
    upstream: { ok: 6 },
  },
  ...Object.fromEntries(
    ['two words', 'x'.repeat(65), '{"level":60}', 'max@example.com'].map((id) => [
      `a caller with the request id ${id}, which is replaced`,
      {
        query: '{ __typename }',
        headers: { 'x-request-id': id },
        line: { status: 200, requestId: expect.stringMatching(MADE) as string },
      },
    ]),
  ),
  'an unknown path': {
    path: '/elsewhere',
    headers: { 'x-api-key': KEY },
    line: { method: 'GET', status: 404, path: undefined, code: 'BAD_USER_INPUT' },
  },
  'a path that contains a key or names people': {
    path: '/rsk_secret/max@example.com?of=Max',
    line: { method: 'GET', status: 401, path: undefined, code: 'UNAUTHENTICATED' },
  },
  ...Object.fromEntries(
    CLIENTS.map((client) => [
      `an application in ${client}`,
      {
        ...named(client, 'people-web', '1.2.0'),
        line: { client: 'people-web', clientVersion: '1.2.0' },
      },
    ]),
  ),
  ...Object.fromEntries(
    CLIENTS.flatMap((client) =>
      ['-x', 'a"b', 'x'.repeat(65), '{}'].map((odd) => [
        `what is no application in ${client}: ${odd}`,
        { ...named(client, odd, odd), line: { client: undefined, clientVersion: undefined } },
      ]),
    ),
  ),
};

test.each(Object.entries(ROWS))('%s has its log line and is counted', async (_, row) => {
  const arrived = gateway.service.received.length;
  const response = await send(row);
  await response.text();
  const line = (await lineOf()) as { pages?: number; operationType?: string; requestId: string };
  expect(response.headers.get('x-request-id')).toBe(line.requestId);
  for (const id of upstreamIds(arrived)) expect(id).toBe(line.requestId);
  const facts = Object.keys(row.line).map((name) => [name, Reflect.get(line, name)]);
  expect(Object.fromEntries(facts)).toEqual(row.line);
  // Lines about the service have its words.
  expect(JSON.stringify(gateway.logged.filter(({ level }) => level !== 40))).not.toMatch(PRIVATE);
  if (row.before) {
    const lines = gateway.logged.filter(({ requestId }) => requestId === line.requestId);
    expect(lines.map(({ msg }) => msg)).toEqual([...row.before, 'request']);
  }
  const isCounted = row.counted === undefined;
  const { code = 'OK' } = row.line as { code?: string };
  expect(await grown('recruiting_requests_total')).toEqual(
    isCounted ? { [`{operation="",code="${code}"}`]: 1 } : {},
  );
  expect(await grown('recruiting_request_duration_seconds_count')).toEqual(
    isCounted ? { [`{type="${line.operationType ?? 'none'}"}`]: 1 } : {},
  );
  const upstream = Object.entries(row.upstream ?? {});
  expect(await grown('recruiting_upstream_requests_total')).toEqual(
    Object.fromEntries(upstream.map(([outcome, count]) => [`{outcome="${outcome}"}`, count])),
  );
  if (line.pages) expect(await grown('recruiting_pages_read_total')).toEqual({ '': line.pages });
  expect(await gateway.gateway.metrics.text()).not.toMatch(PRIVATE);
});

test.each<[string, string, object, Reply]>([
  ['PAGES_PER_MINUTE', 'RATE_LIMITED', { pagesPerMinute: 1 }, honest],
  ['UPSTREAM_TIMEOUT_MS', 'UPSTREAM_TIMEOUT', { upstreamTimeoutMs: 50 }, () => {}],
])('a request that reached %s has it in its error and in its line', async (...row) => {
  const [limit, code, config, reply] = row;
  await using limited = await startGatewayOverService({ persons: 100 }, { config });
  limited.service.answer(reply);
  const { errors } = await limited.ask('{ personsConnection(first: 60) { nodes { id } } }');
  expect(errors).toMatchObject([{ extensions: { code, limit } }]);
  await expect.poll(() => limited.logged.filter(isLine)).toMatchObject([{ code, limit }]);
});

test('a log line has these facts, and no other', async () => {
  await (await send({ query: '{ allPersons { id } }' })).text();
  expect(Object.keys(await lineOf()).toSorted()).toEqual(
    (
      'caller hostname level method ms msg operationType pages path pid requestId status time ' +
      'upstreamRequests'
    ).split(' '),
  );
});

test('the subject of a token is not logged, because it may be a person', async () => {
  const authorization = `Bearer ${await issuer.token({ sub: 'max.mustermann' })}`;
  await (await send({ query: '{ __typename }', headers: { authorization } })).text();
  expect(await lineOf()).toMatchObject({ status: 200, operationType: 'query' });
  expect(JSON.stringify(gateway.logged)).not.toMatch(PRIVATE);
});

test('a stream is logged when it ends, with the error that interrupted it', async () => {
  const response = await send({
    query: '{ allPersons @stream { id firstName } }',
    headers: { accept: 'multipart/mixed' },
    replies: [honest, honest, json({}, 400)],
  });
  const parts = partsOf(response);
  await next(parts);
  expect(gateway.logged.filter(isLine)).toEqual([]);
  await gathered(parts);
  expect(await lineOf()).toMatchObject({ status: 200, code: 'DRAIN_INTERRUPTED', pages: 2 });
});

test('a caller who leaves is counted as LEFT', async () => {
  gateway.service.answer(() => {});
  const arrived = gateway.service.received.length;
  const leaving = new AbortController();
  const answer = fetch(`${server.url}/graphql?query={persons(first:7){items{id}}}`, {
    signal: leaving.signal,
    headers: { 'x-api-key': KEY },
  });
  await gateway.service.arrived(arrived + 1);
  leaving.abort();
  await expect(answer).rejects.toThrow('abort');
  for (const [name, labels] of [
    ['recruiting_requests_total', '{operation="",code="LEFT"}'],
    ['recruiting_upstream_requests_total', '{outcome="left"}'],
  ] as const) {
    await expect.poll(() => grown(name), { interval: 5 }).toEqual({ [labels]: 1 });
  }
});

test('callers cannot create series: all names that they send are one series', async () => {
  expect(await linesAfter('One')).toBe(await linesAfter('Other'));
});

/** The number of lines of the metrics after operations of this name. */
async function linesAfter(name: string): Promise<number> {
  for (const field of ['__typename', `nothing${name}`]) {
    await (await send({ query: `query ${name} { ${field} }` })).text();
  }
  return (await gateway.gateway.metrics.text()).split('\n').length;
}

test('gauges show how many drains run and wait', async () => {
  const gate = Promise.withResolvers<void>();
  gateway.service.answer(after(gate.promise, honest));
  const answers = Array.from({ length: 5 }, (_, at) =>
    send({ query: `{ allPersons(limit: 100) { id n${at}: firstName } }` }),
  );
  await expect.poll(drains, { interval: 5 }).toEqual([4, 1]);
  gate.resolve();
  for (const answer of await Promise.all(answers)) await answer.text();
  expect(await drains()).toEqual([0, 0]);
});

async function drains(): Promise<unknown[]> {
  const now = await samples();
  return ['running', 'waiting'].map((state) => now.get(`recruiting_drains_${state}`));
}

const withId = (id: string, query: string): Situation => ({
  query,
  headers: { 'x-request-id': id },
});

test('a shared upstream request has the id of the request that started it', async () => {
  const query = '{ persons(first: 2) { items { id firstName } } }';
  const arrived = gateway.service.received.length;
  const gate = Promise.withResolvers<void>();
  gateway.service.answer(after(gate.promise, honest));
  const first = send(withId('who-began-it', query));
  await gateway.service.arrived(arrived + 1);
  const second = send(withId('who-joined-it', query));
  const single = send(withId('who-asks-alone', page(3)));
  await gateway.service.arrived(arrived + 2);
  gate.resolve();
  const ids = (await Promise.all([first, second, single])).map(({ headers }) =>
    headers.get('x-request-id'),
  );
  expect(ids).toEqual(['who-began-it', 'who-joined-it', 'who-asks-alone']);
  expect(new Set(upstreamIds(arrived))).toEqual(new Set(['who-began-it', 'who-asks-alone']));
});

/** Sends an operation with a credential, or a GET. */
function send({ query, path, headers, replies }: Situation): Promise<Response> {
  if (replies) gateway.service.answer(...replies);
  if (path !== undefined) return fetch(server.url + path, { headers: headers ?? {} });
  const credential = headers?.['authorization'] === undefined ? { 'x-api-key': KEY } : {};
  return fetch(`${server.url}/graphql?of=Max`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      ...credential,
      ...headers,
    },
    body: JSON.stringify({ query }),
  });
}

const isLine = ({ msg }: Record<string, unknown>) => msg === 'request';

/** The log line of the request. */
async function lineOf(): Promise<Record<string, unknown>> {
  await expect
    .poll(() => gateway.logged.filter(isLine), { interval: 2, timeout: 10_000 })
    .toHaveLength(1);
  return gateway.logged.find(isLine)!;
}

function upstreamIds(from: number): unknown[] {
  return gateway.service.received.slice(from).map(({ headers }) => headers['x-request-id']);
}

async function samples(): Promise<Map<string, number>> {
  return samplesOf(await gateway.gateway.metrics.text());
}

/** How much a metric grew in this test, by its labels. */
async function grown(name: string): Promise<Counts> {
  const growths = [...(await samples())].flatMap(([series, value]) => {
    const growth = value - (before.get(series) ?? 0);
    const [metric, labels = ''] = series.split(/(?=\{)/);
    return metric === name && growth > 0 ? [[labels, growth] as const] : [];
  });
  return Object.fromEntries(growths);
}
