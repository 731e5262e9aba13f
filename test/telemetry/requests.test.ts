import { hostname } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import type { Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { post } from '../support/clients/post.ts';
import { ask, partsOf } from '../support/clients/multipart.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { startFront, type Front } from '../support/gateway/front.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { after, honest, json, refusal } from '../service/replies.ts';
import type { Reply } from '../service/service.ts';

// The log line and the metrics of a request.

const KEY = 'rsk_of-the-portal-0123456789012345678901';
/** Nothing that a caller sends is in a log line, and no name of a person. */
const PRIVATE = /Max|mustermann|rsk_|max@|of=/;

/** Serves a path of its own, with the status that stands in it. */
const WITH_A_PATH: Plugin = {
  onRequest: ({ url, endResponse }) => {
    const [, status] = /^\/of-a-plugin\/(\d+)$/.exec(url.pathname) ?? [];
    if (status) endResponse(new Response('', { status: Number(status) }));
  },
};

const failed = json({ errors: [{ message: 'of Max', extensions: { code: 'Max Mustermann' } }] });
const unavailable = json({}, 502);

let gateway: Front;
let before: Map<string, number>;
beforeAll(async () => {
  const auth = { apiKeys: [entryFor(KEY, 'portal', 'read')], jwt: undefined };
  const config = { auth, drainConcurrency: 1 };
  gateway = await startFront({ persons: 260 }, { config, plugins: [WITH_A_PATH] });
});
afterAll(() => gateway[Symbol.asyncDispose]());
beforeEach(async () => {
  gateway.service.answer(honest);
  gateway.logged.length = 0;
  before = await gateway.samples();
});

interface Situation {
  /** Default: the type name. */
  readonly query?: string;
  /** A GET of it is sent with these headers alone, instead of an operation. */
  readonly path?: string;
  readonly headers?: Record<string, string>;
  /** What the service replies, in turn. Default: honest answers. */
  readonly replies?: readonly [Reply, ...Reply[]];
}
type Counts = Record<string, number>;
type Line = Readonly<Record<string, unknown>>;

/** All facts of a line about an operation that succeeds without the service. */
const USUAL = {
  level: 30,
  time: expect.any(Number) as number,
  pid: process.pid,
  hostname: hostname(),
  msg: 'request',
  requestId: expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/),
  method: 'POST',
  path: '/graphql',
  status: 200,
  ms: expect.any(Number) as number,
  operationType: 'query',
  caller: 'portal',
} as const;
/** Of a line about a request that executes nothing. */
const NOTHING = { operationType: undefined };
const STRANGER = { ...NOTHING, caller: undefined };
const DENIED = { ...STRANGER, status: 401, code: 'UNAUTHENTICATED', refused: 'no credential' };

type Row = [
  name: string,
  sent: Situation,
  /** The facts of the log line that are not the usual ones. */
  line: Line,
  /** The upstream requests by their outcome. */
  upstream?: Counts,
];

/** A GET of a path, which is logged only if something is served there. */
const get = (path: string, line: Line, headers: Record<string, string> = {}): Row => [
  `GET ${path}`,
  { path, headers },
  { method: 'GET', path: undefined, ...line },
];
const page = (count: number) => `{ persons(first: ${count}) { items { id } } }`;
const DRAIN = '{ allPersons { id } }';

test.each<Row>([
  ...['/health', '/ready'].map((path) => get(path, { ...STRANGER, level: 20, path })),
  [
    'a drain with an id of its caller',
    { query: DRAIN, headers: { 'x-request-id': 'from-the-caller_1.2' } },
    { requestId: 'from-the-caller_1.2', upstreamRequests: 6, pages: 6 },
    { ok: 6 },
  ],
  [
    'a named operation, and an error of the service with a code of its own',
    { query: 'query OfMax { Max: persons { items { id } } }', replies: [failed] },
    { code: 'OTHER', upstreamRequests: 1 },
    { graphql_error: 1 },
  ],
  [
    'a token that the service refuses',
    { query: page(3), replies: [refusal('revoked')] },
    { code: 'UPSTREAM_UNAUTHORIZED', upstreamRequests: 1 },
    { UPSTREAM_UNAUTHORIZED: 1 },
  ],
  [
    'a mistake of the caller',
    { query: '{ persons(first: -1) { items { id } } nothing }' },
    { ...NOTHING, code: 'BAD_USER_INPUT' },
  ],
  [
    'two errors, of which the first one counts',
    {
      query:
        '{ a: personsConnection(after: "x") { nodes { id } } b: personsConnection(first: -1) { nodes { id } } }',
    },
    { code: 'CURSOR_INVALID' },
  ],
  [
    'a caller with a wrong key',
    { query: 'mutation { nothing }', headers: { 'x-api-key': 'of Max' } },
    { ...DENIED, refused: 'unknown API key' },
  ],
  ...['/x/health', '//health', '/health/', '/rsk_secret/max@example.com?of=Max'].map((path) =>
    get(path, DENIED),
  ),
  get('/graphql?query=/health', { ...DENIED, path: '/graphql' }),
  get('/elsewhere', { ...NOTHING, status: 404, code: 'BAD_USER_INPUT' }, { 'x-api-key': KEY }),
  ...Object.entries({
    200: undefined,
    500: 'INTERNAL_SERVER_ERROR',
  }).map(([status, code]) =>
    get(
      `/of-a-plugin/${status}`,
      { ...NOTHING, status: Number(status), code },
      { 'x-api-key': KEY },
    ),
  ),
  ...['x'.repeat(65), '{"level":60}', 'a"b'].map((odd): Row => [
    `a request id and an application of an unusual form: ${odd}`,
    { headers: { 'x-request-id': odd, 'graphql-client-name': odd } },
    {},
  ]),
  ...['two words', 'max@example.com'].map((id): Row => [
    `a request id that is replaced: ${id}`,
    { headers: { 'x-request-id': id } },
    {},
  ]),
  ...['graphql-client-name', 'apollographql-client-name'].map((header): Row => [
    header,
    { headers: { [header]: 'people-web' } },
    { client: 'people-web' },
  ]),
])(
  'the log line has these facts and no other, and the metrics count them: %s',
  async (_, sent, facts, upstream = {}) => {
    const arrived = gateway.service.received.length;
    const response = await send(sent);
    await response.text();
    const line = await lineOf();
    expect(line).toEqual({ ...USUAL, ...facts });
    expect(response.headers.get('x-request-id')).toBe(line['requestId']);
    for (const id of upstreamIds(arrived)) expect(id).toBe(line['requestId']);
    // Lines about the service have its words.
    expect(JSON.stringify(gateway.logged.filter(({ level }) => level !== 40))).not.toMatch(PRIVATE);
    const { code = 'OK', operationType: type = 'none' } = line as Record<string, string>;
    const seconds = Number(line['ms']) / 1000;
    const isProbe = line['level'] === 20;
    const outcomes = Object.entries(upstream).map(([outcome, count]) => [
      `upstream_requests_total{outcome="${outcome}"}`,
      count,
    ]);
    expect(await grown(/^(?:upstream_)?requests_total|duration_seconds_count|^pages/)).toEqual({
      ...(!isProbe && {
        [`requests_total{operation="",code="${code}"}`]: 1,
        [`request_duration_seconds_count{type="${type}"}`]: 1,
      }),
      ...Object.fromEntries(outcomes),
      upstream_request_duration_seconds_count: line['upstreamRequests'],
      pages_read_total: line['pages'],
    });
    const sums = await grown(/seconds_sum/);
    const taken = sums[`request_duration_seconds_sum{type="${type}"}`] ?? 0;
    expect(taken).toBeCloseTo(isProbe ? 0 : seconds, 3);
    // Each upstream request is awaited before the next one.
    const { upstream_request_duration_seconds_sum: waited = 0 } = sums;
    expect(waited).toBeLessThanOrEqual(seconds + 0.001);
    expect(await gateway.gateway.metrics.metrics()).not.toMatch(PRIVATE);
  },
);

test('each failure of the service is logged with the request that it concerns', async () => {
  await send({ query: page(2), replies: [unavailable, unavailable, honest] });
  const { requestId } = await lineOf();
  const code = 'UPSTREAM_BAD_RESPONSE';
  const failure = {
    level: 20,
    msg: 'a request to the service got no usable answer',
    err: { extensions: { code } },
  };
  expect(gateway.logged.filter((line) => line['requestId'] === requestId)).toMatchObject([
    failure,
    failure,
    { level: 30, msg: 'request', upstreamRequests: 3 },
  ]);
  expect(await grown(/^upstream_requests_total/)).toEqual({
    [`upstream_requests_total{outcome="${code}"}`]: 2,
    'upstream_requests_total{outcome="ok"}': 1,
  });
});

test('a stream is logged when it ends, with the error that interrupted it', async () => {
  await using front = await startFront({ persons: 260 });
  front.service.answer(honest, honest, json({}, 400));
  const parts = partsOf(await ask(front, '{ allPersons @stream { id firstName } }'));
  await parts.next();
  const lines = () => front.logged.filter(isLine);
  expect(lines()).toEqual([]);
  await Array.fromAsync(parts);
  expect(lines()).toMatchObject([{ status: 200, code: 'DRAIN_INTERRUPTED', pages: 2 }]);
});

test('a caller who leaves is logged and counted as LEFT', async () => {
  const begun = Promise.withResolvers<void>();
  const begins: Reply = (response) => void response.write('{', () => begun.resolve());
  gateway.service.answer(begins);
  const leaving = new AbortController();
  const answer = fetch(`${gateway.url}/graphql?query={persons(first:7){items{id}}}`, {
    signal: leaving.signal,
    headers: { 'x-api-key': KEY },
  });
  await begun.promise;
  // The gateway reads in these turns of the event loop what has been written.
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  leaving.abort();
  await expect(answer).rejects.toThrow('abort');
  const { status: _, ...line } = USUAL;
  expect(await lineOf()).toEqual({ ...line, method: 'GET', code: 'LEFT', upstreamRequests: 1 });
  expect(await grown(/^(?:upstream_)?requests_total/)).toEqual({
    'requests_total{operation="",code="LEFT"}': 1,
    'upstream_requests_total{outcome="left"}': 1,
  });
});

test('gauges show how many drains run and wait, and how many requests wait for their turn', async () => {
  const config = { drainConcurrency: 1, upstreamConcurrency: 2 };
  await using busy = await startGatewayOverService({ persons: 100 }, { config });
  const gauges = async () =>
    [...(await busy.samples())].filter(([series]) => /_waiting|drains_running/.test(series));
  const gate = Promise.withResolvers<void>();
  busy.service.answer(after(gate.promise, honest));
  const answers = Array.from({ length: 5 }, (_, at) => [
    busy.ask(`{ allPersons(limit: 100) { id n${at}: firstName } }`),
    busy.ask(page(at + 1)),
  ]);
  await expect.poll(gauges, { interval: 5 }).toEqual([
    ['recruiting_upstream_requests_waiting{priority="interactive"}', 4],
    ['recruiting_upstream_requests_waiting{priority="drain"}', 3],
    ['recruiting_drains_running', 4],
    ['recruiting_drains_waiting', 1],
  ]);
  gate.resolve();
  await Promise.all(answers.flat());
  expect((await gauges()).map(([, value]) => value)).toEqual([0, 0, 0, 0]);
});

const sendAs = (id: string, count: number) =>
  send({ query: page(count), headers: { 'x-request-id': id } });

test('a shared upstream request has the id of the request that started it', async () => {
  const arrived = gateway.service.received.length;
  const gate = Promise.withResolvers<void>();
  gateway.service.answer(after(gate.promise, honest));
  const first = sendAs('who-began-it', 2);
  await gateway.service.arrived(arrived + 1);
  const others = [sendAs('who-joined-it', 2), sendAs('who-asks-alone', 3)];
  await gateway.service.arrived(arrived + 2);
  gate.resolve();
  const answers = await Promise.all([first, ...others]);
  const ids = answers.map(({ headers }) => headers.get('x-request-id'));
  expect(ids).toEqual(['who-began-it', 'who-joined-it', 'who-asks-alone']);
  expect(new Set(upstreamIds(arrived))).toEqual(new Set(['who-began-it', 'who-asks-alone']));
});

/** Sends an operation with a credential, or a GET. */
function send({ query = '{ __typename }', path, headers, replies }: Situation): Promise<Response> {
  if (replies) gateway.service.answer(...replies);
  if (path !== undefined) return fetch(gateway.url + path, { headers: headers ?? {} });
  const all = { accept: 'application/json', 'x-api-key': KEY, ...headers };
  return fetch(`${gateway.url}/graphql?of=Max`, post({ query }, all));
}

const isLine = ({ msg }: Line) => msg === 'request';

/** The log line of the request. */
async function lineOf(): Promise<Line> {
  await expect
    .poll(() => gateway.logged.filter(isLine), { interval: 2, timeout: 10_000 })
    .toHaveLength(1);
  return gateway.logged.find(isLine)!;
}

function upstreamIds(from: number): unknown[] {
  return gateway.service.received.slice(from).map(({ headers }) => headers['x-request-id']);
}

/** How much the series of some metrics of the gateway grew in this test. */
async function grown(names: RegExp): Promise<Counts> {
  const growths = [...(await gateway.samples())].flatMap(([series, value]) => {
    const growth = value - (before.get(series) ?? 0);
    const name = series.replace('recruiting_', '');
    return names.test(name) && growth > 0 ? [[name, growth] as const] : [];
  });
  return Object.fromEntries(growths);
}
