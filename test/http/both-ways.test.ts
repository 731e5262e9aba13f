import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryFor } from '../support/api-key.ts';
import { startFront, type Body, type Front } from './front.ts';

const LISTED = 'https://people.example.com';
const READER = 'key-of-a-reader';
const GATE = 'key-of-the-router';
const MAX = 2_000;

/** With every check switched on. */
let guarded: Front;
/** Takes trusted documents alone. */
let trusted: Front;
/** Asks nobody who they are. */
let open: Front;
beforeAll(async () => {
  const apiKeys = [
    entryFor(READER, 'reader', 'read'),
    entryFor(GATE, 'gate', 'read', 'write', 'drain'),
  ];
  const auth = { apiKeys, jwt: undefined, routerCallers: ['key:gate'] };
  const config = {
    auth,
    corsOrigins: [LISTED],
    maxBodyBytes: MAX,
    maxAliases: 2,
    maxTokens: 100,
    pagesPerMinute: 1,
    introspection: true,
    graphiql: true,
    mutations: 'all' as const,
  };
  guarded = await startFront({ config });
  trusted = await startFront({
    config: { trustedDocumentsOnly: true },
    trustedDocuments: { known: '{ me { id } }' },
  });
  open = await startFront({ config: { introspection: false } });
});
afterAll(async () => {
  for (const front of [guarded, trusted, open]) await front[Symbol.asyncDispose]();
});

interface Asked {
  readonly to?: () => Front;
  readonly method?: string;
  readonly path?: string;
  readonly host?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

interface Answered {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly text: string;
}

const toTrusted = { to: () => trusted };
const toOpen = { to: () => open };
const query = (text: string, more: object = {}) => ({ body: { query: text, ...more } });
const inAddress = (text: string) => ({
  method: 'GET',
  path: `/graphql?query=${encodeURIComponent(text)}`,
});
const RENAME = 'mutation { rename(id: 1, name: "New") { id } }';

describe.each([
  ['over a socket', overSocket],
  ['through fetch', throughFetch],
])('each check refuses %s', (_, send) => {
  test.each<[check: string, Asked, status: number, code: string | undefined]>([
    ['names of others', { host: 'evil.example', ...query('{ me { id } }') }, 421, 'FORBIDDEN'],
    ['other addresses', { path: '/elsewhere', ...query('{ me { id } }') }, 404, undefined],
    [
      'nobody',
      { headers: { 'x-api-key': 'unknown' }, ...query('{ me { id } }') },
      401,
      'UNAUTHENTICATED',
    ],
    [
      'pages of other sites',
      { headers: { 'sec-fetch-site': 'cross-site' }, ...query('{ me { id } }') },
      403,
      'FORBIDDEN',
    ],
    [
      'a GET of any page',
      { ...toOpen, ...inAddress('{ me { id } }'), headers: { 'x-api-key': '' } },
      400,
      'BAD_USER_INPUT',
    ],
    ['other methods', { method: 'PUT', body: {} }, 405, 'BAD_USER_INPUT'],
    [
      'forms',
      { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'query={me{id}}' },
      415,
      'BAD_USER_INPUT',
    ],
    [
      'compressed bodies',
      { headers: { 'content-encoding': 'gzip' }, body: 'x' },
      415,
      'BAD_USER_INPUT',
    ],
    ['large bodies', query('{ me { id } }'.padEnd(MAX)), 413, 'BAD_USER_INPUT'],
    ['long addresses', inAddress('{ me { id } }'.padEnd(MAX)), 414, 'BAD_USER_INPUT'],
    ['what is no JSON', { body: '{' }, 400, 'BAD_USER_INPUT'],
    ['batches', { body: [{ query: '{ me { id } }' }] }, 400, 'BAD_USER_INPUT'],
    ['no query', { body: {} }, 400, 'BAD_USER_INPUT'],
    ['texts that are not trusted', { ...toTrusted, ...query('{ me { id } }') }, 403, 'FORBIDDEN'],
    ['ids that are not trusted', { ...toTrusted, body: { id: 'x' } }, 400, 'BAD_USER_INPUT'],
    ['syntax errors', query('{'), 400, 'BAD_USER_INPUT'],
    ['unknown names', query('{ me { id } }', { operationName: 'A' }), 400, 'BAD_USER_INPUT'],
    ['mutations in an address', inAddress(RENAME), 405, 'BAD_USER_INPUT'],
    ['too many tokens', query(`{ me { ${'id '.repeat(100)} } }`), 400, 'OPERATION_TOO_COMPLEX'],
    ['too many aliases', query('{ me { a: id b: id c: id } }'), 400, 'OPERATION_TOO_COMPLEX'],
    ['a missing scope', query(RENAME), 403, 'FORBIDDEN'],
    ['router fields', query('{ _service { sdl } }'), 403, 'FORBIDDEN'],
    ['the SDL', { ...toOpen, ...query('{ _service { sdl } }') }, 403, 'FORBIDDEN'],
    [
      'introspection',
      { ...toOpen, ...query('{ __schema { types { name } } }') },
      400,
      'BAD_USER_INPUT',
    ],
    ['invalid operations', query('{ nothing }'), 400, 'BAD_USER_INPUT'],
    ['reserved names', query('{ me { _rs: id } }'), 400, 'BAD_USER_INPUT'],
    [
      'wrong variables',
      query('query ($id: Int!) { candidate(id: $id) { id } }', { variables: { id: 'x' } }),
      400,
      'BAD_USER_INPUT',
    ],
  ])('%s', async (check, asked, status, code) => {
    const before = askedOfServices();
    const answer = await send(asked);
    expect([check, answer.status]).toEqual([check, status]);
    if (code !== undefined) {
      const { data, errors } = JSON.parse(answer.text) as Body;
      expect([data, errors?.[0]?.extensions.code]).toEqual([undefined, code]);
    }
    expect(answer.headers['x-request-id']).toMatch(/^[\w-]{36}$/);
    expect(askedOfServices()).toBe(before);
  });

  test('a caller whose pages are used up', async () => {
    const headers = { 'x-api-key': READER };
    const ask = { headers, ...query('{ candidates(first: 1) { items { id } } }') };
    await overSocket(ask);
    const { errors } = JSON.parse((await send(ask)).text) as Body;
    expect(errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }]);
  });

  test('and lets pass what is well, with the headers that every answer has', async () => {
    const origin = { origin: LISTED, 'x-request-id': 'mine' };
    const answer = await send({ headers: { ...origin }, ...query('{ __typename }') });
    expect(JSON.parse(answer.text)).toEqual({ data: { __typename: 'Query' } });
    expect(answer).toMatchObject({
      status: 200,
      headers: {
        'access-control-allow-origin': LISTED,
        'cache-control': 'private, no-store',
        'content-type': 'application/graphql-response+json; charset=utf-8',
        vary: 'Origin',
        'x-request-id': 'mine',
      },
    });
    const line = guarded.gateway.logged.findLast(({ requestId }) => requestId === 'mine');
    expect(line).toMatchObject({ status: 200, caller: 'reader', operationType: 'query' });
    await expect
      .poll(() => guarded.gateway.gateway.metrics.text())
      .toMatch(/recruiting_requests_total\{operation="",code="OPERATION_TOO_COMPLEX"\} \d/);
  });

  test('and answers what is no operation by itself', async () => {
    const anonymous = { 'x-api-key': '' };
    const statusOf = async (asked: Asked) => (await send(asked)).status;
    expect(await statusOf({ method: 'GET', path: '/health', headers: anonymous })).toBe(200);
    await expect
      .poll(() => statusOf({ method: 'GET', path: '/ready', headers: anonymous }))
      .toBe(200);
    const preflight = { origin: LISTED, 'access-control-request-method': 'POST', ...anonymous };
    expect(await statusOf({ method: 'OPTIONS', headers: preflight })).toBe(204);
    const page = await send({ method: 'GET', headers: { accept: 'text/html', ...anonymous } });
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  });
});

/** As many requests as have reached a service. */
function askedOfServices(): number {
  return [guarded, trusted, open].reduce(
    (sum, { service }) => sum + service.stats.requests.graphql,
    0,
  );
}

const DEFAULTS = {
  'content-type': 'application/json',
  accept: 'application/graphql-response+json',
  'x-api-key': READER,
};

function sendable({
  method = 'POST',
  path = '/graphql',
  host = 'localhost',
  headers,
  body,
}: Asked) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const all = Object.entries({ ...DEFAULTS, ...headers }).filter(([, value]) => value !== '');
  const isSafe = method === 'GET' || method === 'OPTIONS';
  return {
    method,
    path,
    host,
    headers: Object.fromEntries(
      // A GET with the type of JSON is one that no page can send.
      all.filter(([name]) => !(isSafe && name === 'content-type')),
    ) as Record<string, string>,
    text: isSafe ? undefined : text,
  };
}

async function throughFetch(asked: Asked): Promise<Answered> {
  const { method, path, host, headers, text: body } = sendable(asked);
  const { handler } = (asked.to?.() ?? guarded).gateway.gateway;
  const init = { method, headers, ...(body !== undefined && { body }) };
  const response = await handler.fetch(new Request(`http://${host}${path}`, init));
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    text: await response.text(),
  };
}

function overSocket(asked: Asked): Promise<Answered> {
  const { method, path, host, headers, text: body } = sendable(asked);
  const { hostname, port } = new URL((asked.to?.() ?? guarded).url);
  return new Promise((resolve, reject) => {
    const options = { hostname, port, method, path, headers: { ...headers, host }, agent: false };
    request(options, (response) => {
      const { statusCode = 0 } = response;
      textOf(response).then(
        (read) => resolve({ status: statusCode, headers: response.headers, text: read }),
        reject,
      );
    })
      .on('error', reject)
      .end(body);
  });
}
