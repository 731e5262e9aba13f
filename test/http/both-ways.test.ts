import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { startFront, type Body, type Front } from './front.ts';

const LISTED = 'https://people.example.com';
const READER = 'key-of-a-reader';
const GATE = 'key-of-the-router';
const MAX = 2_000;

/** A gateway with every check enabled. */
let guarded: Front;
/** A gateway that accepts only trusted documents. */
let trusted: Front;
/** A gateway whose callers need no credential. */
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
    maxDepth: 4,
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

interface SentRequest {
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
const OPTIONAL = ['id', 'name', 'stage', 'score', 'rank'].map((name) => `${name} @skip(if: false)`);
/** Each fragment spreads the next one seven times: more than 10,000 fields, within the limit of tokens. */
const SPREADS = ['A', 'B', 'C', 'D'].map((name) => `...${name} `.repeat(7));
const FRAGMENTS = [...SPREADS.slice(1), 'id '.repeat(7)].map(
  (inside, at) => `fragment ${'ABCD'[at]} on Named { ${inside}}`,
);

describe.each([
  ['over a socket', overSocket],
  ['through fetch', throughFetch],
])('every check applies to a request %s', (_, send) => {
  test.each<[check: string, SentRequest, status: number, code: string | undefined]>([
    ['a foreign host name', { host: 'evil.example', ...query('{ me { id } }') }, 421, 'FORBIDDEN'],
    ['an unknown path', { path: '/elsewhere', ...query('{ me { id } }') }, 404, undefined],
    [
      'an unknown API key',
      { headers: { 'x-api-key': 'unknown' }, ...query('{ me { id } }') },
      401,
      'UNAUTHENTICATED',
    ],
    [
      'a page of another site',
      { headers: { 'sec-fetch-site': 'cross-site' }, ...query('{ me { id } }') },
      403,
      'FORBIDDEN',
    ],
    [
      'a GET without a header that needs a preflight',
      { ...toOpen, ...inAddress('{ me { id } }'), headers: { 'x-api-key': '' } },
      400,
      'BAD_USER_INPUT',
    ],
    ['another method', { method: 'PUT', body: {} }, 405, 'BAD_USER_INPUT'],
    [
      'a form',
      { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'query={me{id}}' },
      415,
      'BAD_USER_INPUT',
    ],
    [
      'a compressed body',
      { headers: { 'content-encoding': 'gzip' }, body: 'x' },
      415,
      'BAD_USER_INPUT',
    ],
    ['a large body', query('{ me { id } }'.padEnd(MAX)), 413, 'BAD_USER_INPUT'],
    ['a long address', inAddress('{ me { id } }'.padEnd(MAX)), 414, 'BAD_USER_INPUT'],
    ['a body that is not JSON', { body: '{' }, 400, 'BAD_USER_INPUT'],
    ['a batch', { body: [{ query: '{ me { id } }' }] }, 400, 'BAD_USER_INPUT'],
    ['no query', { body: {} }, 400, 'BAD_USER_INPUT'],
    ['a text that is not trusted', { ...toTrusted, ...query('{ me { id } }') }, 403, 'FORBIDDEN'],
    [
      'an id that is not trusted',
      { ...toTrusted, body: { id: 'x' } },
      400,
      'PERSISTED_QUERY_NOT_FOUND',
    ],
    ['a syntax error', query('{'), 400, 'BAD_USER_INPUT'],
    ['unknown names', query('{ me { id } }', { operationName: 'A' }), 400, 'BAD_USER_INPUT'],
    ['mutations in an address', inAddress(RENAME), 405, 'BAD_USER_INPUT'],
    ['too many tokens', query(`{ me { ${'id '.repeat(100)} } }`), 400, 'OPERATION_TOO_COMPLEX'],
    [
      'too many levels',
      query('{ candidate(id: 1) { vacancy { lead { vacancy { id } } } } }'),
      400,
      'OPERATION_TOO_COMPLEX',
    ],
    [
      'too many levels of introspection',
      query(`{ __schema { queryType ${'{ ofType '.repeat(18)} { name } ${'}'.repeat(18)} } }`),
      400,
      'OPERATION_TOO_COMPLEX',
    ],
    ['too many aliases', query('{ me { a: id b: id c: id } }'), 400, 'OPERATION_TOO_COMPLEX'],
    [
      'too many root fields',
      query(`{ ${'__typename '.repeat(51)} }`),
      400,
      'OPERATION_TOO_COMPLEX',
    ],
    [
      'too many directives',
      query(
        `{ candidate(id: 1) { ${'...A '.repeat(21)} } } fragment A on Candidate { ${OPTIONAL.join(' ')} }`,
      ),
      400,
      'OPERATION_TOO_COMPLEX',
    ],
    [
      'too many fields',
      query(`{ me { ${SPREADS[0]}} } ${FRAGMENTS.join(' ')}`),
      400,
      'OPERATION_TOO_COMPLEX',
    ],
    [
      'too many selections of one field',
      { ...toOpen, ...query(`{ me { ${'id '.repeat(101)} } }`) },
      400,
      'OPERATION_TOO_COMPLEX',
    ],
    ['a long name', query(`{ ${'a'.repeat(256)}: __typename }`), 400, 'OPERATION_TOO_COMPLEX'],
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
  ])('%s', async (check, sent, status, code) => {
    const before = upstreamRequests();
    const answer = await send(sent);
    expect([check, answer.status]).toEqual([check, status]);
    if (code !== undefined) {
      const { data, errors } = JSON.parse(answer.text) as Body;
      expect([data, errors?.[0]?.extensions.code]).toEqual([undefined, code]);
    }
    expect(answer.headers['x-request-id']).toMatch(/^[\w-]{36}$/);
    expect(upstreamRequests()).toBe(before);
  });

  test('a caller without budget is refused', async () => {
    const headers = { 'x-api-key': READER };
    const ask = { headers, ...query('{ candidates(first: 1) { items { id } } }') };
    await overSocket(ask);
    const { errors } = JSON.parse((await send(ask)).text) as Body;
    expect(errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }]);
  });

  test.each([
    ['costs more pages than a minute has', 'items { id }', 'OPERATION_TOO_COMPLEX'],
    ['needs the scope drain', 'items { friends { id } }', 'FORBIDDEN'],
  ])('an operation that %s is refused', async (_check, selected, code) => {
    const before = upstreamRequests();
    const lists = ['candidates', 'activeCandidates'].map((list) => `${list} { ${selected} }`);
    const answer = await send(query(`{ ${lists.join(' ')} }`));
    const { data, errors } = JSON.parse(answer.text) as Body;
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ extensions: { code } }]);
    expect(upstreamRequests()).toBe(before);
  });

  test('while the gateway stops, /ready replies 503, and operations are still answered', async () => {
    await using stopping = await startFront();
    const to = () => stopping;
    const ready = async () => (await send({ to, method: 'GET', path: '/ready' })).status;
    await expect.poll(ready).toBe(200);
    stopping.gateway.gateway.sayNotReady();
    expect(await ready()).toBe(503);
    const { text } = await send({ to, ...query('{ me { id } }') });
    expect(JSON.parse(text)).toMatchObject({ data: { me: { id: expect.any(Number) as number } } });
  });

  test('what needs the service is refused once its connections are closed', async () => {
    await using closed = await startFront();
    const ask = { to: () => closed, ...query('{ me { id } }') };
    expect(JSON.parse((await send(ask)).text)).not.toHaveProperty('errors');
    await closed.gateway.gateway.close();
    const { errors } = JSON.parse((await send(ask)).text) as Body;
    expect(errors).toMatchObject([{ message: 'The gateway is stopping. Send the request again.' }]);
  });

  test('a valid request is answered, with the headers of every answer', async () => {
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

  test('other paths are answered without an operation', async () => {
    const anonymous = { 'x-api-key': '' };
    const statusOf = async (sent: SentRequest) => (await send(sent)).status;
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

/** The number of requests that have reached a service. */
function upstreamRequests(): number {
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
}: SentRequest) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const all = Object.entries({ ...DEFAULTS, ...headers }).filter(([, value]) => value !== '');
  const isSafe = method === 'GET' || method === 'OPTIONS';
  return {
    method,
    path,
    host,
    headers: Object.fromEntries(
      // A page cannot send a GET with the content type of JSON.
      all.filter(([name]) => !(isSafe && name === 'content-type')),
    ) as Record<string, string>,
    text: isSafe ? undefined : text,
  };
}

async function throughFetch(sent: SentRequest): Promise<Answered> {
  const { method, path, host, headers, text: body } = sendable(sent);
  const { handler } = (sent.to?.() ?? guarded).gateway.gateway;
  const init = { method, headers, ...(body !== undefined && { body }) };
  const response = await handler.fetch(new Request(`http://${host}${path}`, init));
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    text: await response.text(),
  };
}

function overSocket(sent: SentRequest): Promise<Answered> {
  const { method, path, host, headers, text: body } = sendable(sent);
  const { hostname, port } = new URL((sent.to?.() ?? guarded).url);
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
