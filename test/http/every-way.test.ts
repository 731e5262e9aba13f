import { request } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startFront, type Body, type Front } from './front.ts';

// Every request goes through a socket and through `fetch`, to a gateway without plugins, which answers it early, and to
// one with a plugin that has every hook, which sends it through the whole pipeline of Yoga. All four answers are equal.

const LISTED = 'https://people.example.com';
const READER = 'key-of-a-reader';
const GATE = 'key-of-the-router';
const MAX_BODY = 2_000;
/** It is neither in an answer nor in the log. */
const SECRET = 'somebody-private';

const GUARDED: TestGatewayOptions['config'] = {
  auth: {
    apiKeys: [
      entryFor(READER, 'reader', 'read'),
      entryFor(GATE, 'gate', 'read', 'write', 'drain', 'router'),
    ],
    jwt: undefined,
  },
  corsOrigins: [LISTED],
  maxBodyBytes: MAX_BODY,
  maxDepth: 4,
  maxAliases: 2,
  maxTokens: 100,
  pagesPerMinute: 1_000,
  introspection: true,
  graphiql: true,
  mutations: 'all',
};

const GATEWAYS = {
  /** With every check enabled. */
  guarded: { config: GUARDED },
  /** Accepts only trusted documents. */
  trusted: {
    config: { trustedDocumentsOnly: true },
    trustedDocuments: { known: '{ me { id } }' },
  },
  /** Its callers need no credential. */
  open: { config: { introspection: false, mutations: 'off' } },
  /** Its caller has no page left. */
  spent: { config: { pagesPerMinute: 1 } },
  stopping: {},
  closed: {},
} satisfies Record<string, TestGatewayOptions>;

type Fronts = Record<keyof typeof GATEWAYS, Front>;
let plain: Fronts;
let hooked: Fronts;
const hooks: string[] = [];
beforeAll(async () => {
  plain = await startAll({});
  hooked = await startAll({ plugins: [everyHook((hook) => hooks.push(hook))] });
});
afterAll(async () => {
  for (const front of [plain, hooked].flatMap((fronts) => Object.values(fronts))) {
    await front[Symbol.asyncDispose]();
  }
});

async function startAll(options: TestGatewayOptions): Promise<Fronts> {
  const started = Object.entries(GATEWAYS).map(
    async ([name, given]) => [name, await startFront({ ...given, ...options })] as const,
  );
  const fronts = Object.fromEntries(await Promise.all(started)) as Fronts;
  for (const send of [throughFetch, overSocket]) {
    await send(fronts.spent, query('{ candidates(first: 1) { items { id } } }'));
  }
  fronts.stopping.gateway.gateway.sayNotReady();
  await fronts.closed.gateway.gateway.close();
  return fronts;
}

interface SentRequest {
  readonly to?: keyof typeof GATEWAYS;
  readonly method?: string;
  readonly path?: string;
  readonly host?: string;
  /** In addition to `DEFAULTS`; a header without a value is not sent. */
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

interface Answered {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly text: string;
}

const query = (text: string, more: object = {}) => ({ body: { query: text, ...more } });
const inAddress = (text: string) => ({
  method: 'GET',
  path: `/graphql?query=${encodeURIComponent(text)}`,
});
const ME = query('{ me { id } }');
const BY_ID = 'query ($id: Int!) { candidate(id: $id) { id } }';
const ENTITIES = 'query ($of: [_Any!]!) { _entities(representations: $of) { __typename } }';
const RENAME = 'mutation { rename(id: 1, name: "New") { name } }';
const asGate = { headers: { 'x-api-key': GATE } };
const anonymous = { 'x-api-key': '' };
/** Each fragment spreads the next one seven times: more than 10,000 fields, within the limit of tokens. */
const SPREADS = ['A', 'B', 'C', 'D'].map((name) => `...${name} `.repeat(7));
const FRAGMENTS = [...SPREADS.slice(1), 'id '.repeat(7)].map(
  (inside, at) => `fragment ${'ABCD'[at]} on Named { ${inside}}`,
);

type Row = readonly [name: string, sent: SentRequest, status: number, expected: unknown];

/** Makes a row of each request: they have one status, and one code, or none where the answer is not GraphQL. */
function refused(
  status: number,
  code: string | undefined,
  requests: Readonly<Record<string, SentRequest>>,
): Row[] {
  return Object.entries(requests).map(([name, sent]) => [name, sent, status, code]);
}

const ofType = (type: string, body: unknown = SECRET) => ({
  headers: { 'content-type': type },
  body,
});
const DEEP = `${'{"a":'.repeat(30_000)}1${'}'.repeat(30_000)}`;

/** Refused before the service is asked. */
const REFUSED: readonly Row[] = [
  // Where the request comes from.
  ...refused(421, 'FORBIDDEN', { 'a foreign host name': { host: 'evil.example', ...ME } }),
  ...refused(421, undefined, {
    'GraphiQL under a foreign host name': {
      method: 'GET',
      host: 'evil.example',
      headers: { accept: 'text/html' },
    },
  }),
  ...refused(404, undefined, {
    'an unknown path': { path: '/elsewhere', ...ME },
    'a path above': { path: '/', ...ME },
    'a path below': { path: '/graphql/elsewhere', ...ME },
    'a path in other letters': { path: '/GraphQL', ...ME },
    'a path with a broken escape': { path: '/%zz', ...ME },
    'a path that ends like a probe': { path: '//evil/graphql?x=/health', ...ME },
  }),
  ...refused(401, 'UNAUTHENTICATED', {
    'no credential': { headers: anonymous, ...ME },
    'an unknown API key': { headers: { 'x-api-key': 'unknown' }, ...ME },
  }),
  ...refused(403, 'FORBIDDEN', {
    'a page of another site': { headers: { 'sec-fetch-site': 'cross-site' }, ...ME },
  }),
  ...refused(400, 'BAD_USER_INPUT', {
    'a GET without a header that needs a preflight': {
      to: 'open',
      ...inAddress('{ me { id } }'),
      headers: anonymous,
    },
  }),
  // What form it has.
  ...refused(415, 'BAD_USER_INPUT', {
    'a form': ofType('application/x-www-form-urlencoded', 'query={me{id}}'),
    'a form of parts': ofType('multipart/form-data; boundary=x'),
    'a plain text': ofType('text/plain'),
    'a body without a type': ofType(''),
    'a charset that is not read': ofType('application/json; charset=iso-8859-1', ME.body),
    'a compressed body': { headers: { 'content-encoding': 'gzip' }, body: 'x' },
  }),
  ...refused(413, 'BAD_USER_INPUT', { 'a large body': query('{ me { id } }'.padEnd(MAX_BODY)) }),
  ...refused(414, 'BAD_USER_INPUT', {
    'a long address': inAddress('{ me { id } }'.padEnd(MAX_BODY)),
  }),
  ...refused(400, 'BAD_USER_INPUT', {
    'a body that is not UTF-8': {
      body: Buffer.from('{"query":"{ me { id } }","variables":{"name":"Jos\xe9"}}', 'latin1'),
    },
    'a body that is not JSON': { body: `{"query": "${SECRET}` },
    'a body of plain text': { body: SECRET },
    'a body of nothing': { body: '' },
    'a body of a number': { body: '7' },
    'a body of a string': { body: `"${SECRET}"` },
    'a body of null': { body: 'null' },
    'a body of a batch': { body: [{ query: '{ me { id } }' }, { query: SECRET }] },
    'a body without a query': { body: { variables: { name: SECRET } } },
    'a query that is null': { body: { query: null } },
    'a query that is no text': { body: { query: { [SECRET]: SECRET } } },
    'variables that are a list': query('{ me { id } }', { variables: [SECRET] }),
    'variables that are a text': query('{ me { id } }', { variables: SECRET }),
    'an unknown parameter': query('{ me { id } }', { onError: 'NULL' }),
    'an address without a query': { method: 'GET' },
    'an address with broken variables': {
      method: 'GET',
      path: `/graphql?query={me{id}}&variables=${SECRET}`,
    },
  }),
  ...refused(405, 'BAD_USER_INPUT', {
    'the method PUT': { method: 'PUT', body: {} },
    'the method DELETE': { method: 'DELETE', body: {} },
    'the method OPTIONS': { method: 'OPTIONS', body: {} },
    'a mutation in an address': inAddress(RENAME),
  }),
  ...refused(406, undefined, {
    'a type of answer that is not sent': { headers: { accept: 'text/csv' }, ...ME },
  }),
  // What the operation is.
  ...refused(403, 'FORBIDDEN', {
    'a text that is not trusted': { to: 'trusted', ...ME },
    'a missing scope': query(RENAME),
    'fields of a router': query('{ _service { sdl } }'),
  }),
  ...refused(400, 'PERSISTED_QUERY_NOT_FOUND', {
    'an id that is not trusted': { to: 'trusted', body: { id: 'x' } },
  }),
  ...refused(400, 'BAD_USER_INPUT', {
    'a syntax error': query('{'),
    'an empty text': query(''),
    'a missing argument': query('{ candidate { id } }'),
    'only a fragment': query('fragment F on Query { me { id } }'),
    'a subscription': query('subscription { hired { id } }'),
    'one of two operations without a name': query('query A { me { id } } query B { me { id } }'),
    'a name that is no text': query('{ me { id } }', { operationName: {} }),
    'an unknown operation': query('{ me { id } }', { operationName: 'A' }),
    'an unknown field': query('{ nothing }'),
    'a reserved name': query('{ me { _rs: id } }'),
    'a missing variable': query(BY_ID),
    'a wrong variable': query(BY_ID, { variables: { id: 'x' } }),
    'a variable that is a long integer': {
      body: `{"query":"${BY_ID}","variables":{"id":12345678901234567890}}`,
    },
    'a variable in an address that is a long integer': {
      method: 'GET',
      path: `/graphql?query=${encodeURIComponent(BY_ID)}&variables={"id":[-9007199254740993]}`,
    },
    'a condition that is null': query(
      'query ($is: Boolean = true) { me { id @include(if: $is) } }',
      { variables: { is: null } },
    ),
    introspection: { to: 'open', ...query('{ __schema { types { name } } }') },
  }),
  // How large it is.
  ...refused(400, 'OPERATION_TOO_COMPLEX', {
    tokens: query(`{ me { ${'id '.repeat(100)} } }`),
    levels: query('{ candidate(id: 1) { vacancy { lead { vacancy { id } } } } }'),
    aliases: query('{ me { a: id b: id c: id } }'),
    fields: query(`{ me { ${SPREADS[0]}} } ${FRAGMENTS.join(' ')}`),
    'selections of one field': { to: 'open', ...query(`{ me { ${'id '.repeat(101)} } }`) },
    'a name': query(`{ ${'a'.repeat(256)}: __typename }`),
    'levels of variables': {
      to: 'open',
      body: `{"query":"${ENTITIES}","variables":{"of":[${DEEP}]}}`,
    },
  }),
];

/** Answered with status 200, also with errors. The last part of a row matches the body. */
const ANSWERED: readonly (readonly [name: string, sent: SentRequest, body: object])[] = [
  ['a type name', query('{ __typename }'), { data: { __typename: 'Query' } }],
  ['a field of the service', ME, { data: { me: { id: 1 } } }],
  ['a GET', inAddress('{ me { id } }'), { data: { me: { id: 1 } } }],
  // Yoga's own health check would answer this address.
  [
    'an address that ends like a probe',
    { path: '/graphql?x=/health', ...ME },
    { data: { me: { id: 1 } } },
  ],
  [
    'a charset that is read',
    { headers: { 'content-type': 'application/json;charset="UTF-8"' }, ...ME },
    { data: { me: { id: 1 } } },
  ],
  [
    'variables, and one of two operations',
    query(`query A { __typename } ${BY_ID.replace('query', 'query B')}`, {
      operationName: 'B',
      variables: { id: 7 },
    }),
    { data: { candidate: { id: 7 } } },
  ],
  [
    'a long number that is no integer, and long digits in a text',
    {
      body: `{"query":"{ __typename }","variables":{"n":1.2345678901234567890,"t":"[12345678901234567890]"}}`,
    },
    { data: { __typename: 'Query' } },
  ],
  ['a trusted document', { to: 'trusted', body: { id: 'known' } }, { data: { me: { id: 1 } } }],
  [
    'an error of the service',
    query('{ failing me { id } }'),
    { data: { failing: null, me: { id: 1 } }, errors: [{ path: ['failing'] }] },
  ],
  [
    'a drain that asks for a stream, from a caller that takes no parts',
    query('{ allCandidates(limit: 2) @stream { id } }'),
    { data: { allCandidates: [{ id: 1 }, { id: 2 }] } },
  ],
  [
    'a connection',
    query('{ candidatesConnection(first: 1) { edges { node { id } } pageInfo { hasNextPage } } }'),
    {
      data: {
        candidatesConnection: { edges: [{ node: { id: 1 } }], pageInfo: { hasNextPage: true } },
      },
    },
  ],
  [
    'a cursor that is not one',
    query('{ candidatesConnection(first: 1, after: "x") { nodes { id } } }'),
    { errors: [{ path: ['candidatesConnection'], extensions: { code: 'CURSOR_INVALID' } }] },
  ],
  [
    'introspection',
    query('{ __type(name: "Robot") { name } }'),
    { data: { __type: { name: 'Robot' } } },
  ],
  ['a mutation', { ...asGate, ...query(RENAME) }, { data: { rename: { name: 'New' } } }],
  [
    'a mutation that is switched off',
    { to: 'open', ...query(RENAME) },
    { errors: [{ extensions: { code: 'FORBIDDEN' } }] },
  ],
  [
    'a router',
    { ...asGate, ...query('{ _service { sdl } }') },
    { data: { _service: { sdl: expect.stringContaining('@key') as string } } },
  ],
  [
    'a list without the scope drain',
    query('{ vacancies { items { candidates { __typename } } } }'),
    { data: null, errors: [{ extensions: { code: 'FORBIDDEN', scope: 'drain' } }] },
  ],
  [
    'a caller without budget',
    { to: 'spent', ...query('{ candidates(first: 1) { items { id } } }') },
    { errors: [{ extensions: { code: 'RATE_LIMITED' } }] },
  ],
  ['an operation while the gateway stops', { to: 'stopping', ...ME }, { data: { me: { id: 1 } } }],
  [
    'an operation when its connections are closed',
    { to: 'closed', ...ME },
    { errors: [{ message: 'The gateway is stopping. Send the request again.' }] },
  ],
];

/** No operations. The last part of a row is the content type. */
const OTHERS: readonly Row[] = [
  ['a probe', { method: 'GET', path: '/health', headers: anonymous }, 200, undefined],
  [
    'a probe of readiness',
    { to: 'stopping', method: 'GET', path: '/ready' },
    503,
    'application/json; charset=utf-8',
  ],
  [
    'a preflight',
    {
      method: 'OPTIONS',
      headers: { origin: LISTED, 'access-control-request-method': 'POST', ...anonymous },
    },
    204,
    undefined,
  ],
  [
    'GraphiQL',
    { method: 'GET', headers: { accept: 'text/html', ...anonymous } },
    200,
    'text/html; charset=utf-8',
  ],
];

test.each(REFUSED)('%s is refused alike on every way', async (_, sent, status, code) => {
  const before = upstreamRequests();
  const answer = await answerOnEveryWay(sent);
  expect(answer.status).toBe(status);
  if (code !== undefined) {
    const { data, errors } = JSON.parse(answer.text) as Body;
    expect([data, errors?.[0]?.extensions.code]).toEqual([undefined, code]);
  }
  expect(answer.text).not.toContain(SECRET);
  expect(upstreamRequests()).toBe(before);
});

test('nothing of a refused request is logged', () => {
  for (const { gateway } of [plain, hooked].flatMap((fronts) => Object.values(fronts))) {
    expect(JSON.stringify(gateway.logged)).not.toContain(SECRET);
  }
});

test.each(ANSWERED)('%s is answered alike on every way', async (_, sent, body) => {
  const answer = await answerOnEveryWay(sent);
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.text)).toMatchObject(body);
});

test.each(OTHERS)('%s is answered alike on every way', async (_, sent, status, type) => {
  const answer = await answerOnEveryWay(sent);
  expect([answer.status, answer.headers['content-type']]).toEqual([status, type]);
});

test('an answer has its headers on every way, and a line in the log', async () => {
  const headers = { origin: LISTED, 'x-request-id': 'mine' };
  expect((await answerOnEveryWay({ headers, ...query('{ __typename }') })).headers).toEqual({
    'access-control-allow-origin': LISTED,
    'access-control-expose-headers': expect.stringContaining('x-request-id') as string,
    'cache-control': 'private, no-store',
    'content-type': 'application/graphql-response+json; charset=utf-8',
    vary: 'Origin',
  });
  for (const { guarded } of [plain, hooked]) {
    const lines = guarded.gateway.logged.filter(({ requestId }) => requestId === 'mine');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatchObject({ status: 200, caller: 'reader', operationType: 'query' });
  }
});

/** The answer to a request, which is the same on all ways. */
async function answerOnEveryWay(sent: SentRequest): Promise<Answered> {
  const called = hooks.length;
  const to = sent.to ?? 'guarded';
  const early = comparable(await throughFetch(plain[to], sent));
  expect(comparable(await overSocket(plain[to], sent))).toEqual(early);
  expect(comparable(await throughFetch(hooked[to], sent))).toEqual(early);
  expect(comparable(await overSocket(hooked[to], sent))).toEqual(early);
  expect(hooks.slice(called)).toContain('onResponse');
  return early;
}

/** Without what is different for each request, and what HTTP has of its own. */
function comparable({ status, headers, text }: Answered): Answered {
  const { 'x-request-id': id, ...others } = headers;
  expect(id).toMatch(/^(?:[\w-]{36}|mine)$/);
  for (const name of ['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding']) {
    delete others[name];
  }
  // Seconds pass between two of the requests.
  return { status, headers: others, text: text.replaceAll(/(in |"retryAfter":)\d+/g, '$1 0') };
}

/** The number of requests that have reached a service. */
function upstreamRequests(): number {
  const all = [plain, hooked].flatMap((fronts) => Object.values(fronts));
  return all.reduce((sum, { service }) => sum + service.stats.requests.graphql, 0);
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
  const isSafe = ['GET', 'OPTIONS', 'DELETE'].includes(method);
  const all = Object.entries({ ...DEFAULTS, ...headers }).filter(
    // A page cannot send a GET with the content type of JSON.
    ([name, value]) => value !== '' && !(isSafe && name === 'content-type'),
  );
  return {
    method,
    path,
    host,
    headers: Object.fromEntries(all),
    text: isSafe ? undefined : textOf(body),
  };
}

function textOf(body: unknown): string | Buffer<ArrayBuffer> {
  const isText = typeof body === 'string' || Buffer.isBuffer(body);
  return isText ? (body as string | Buffer<ArrayBuffer>) : JSON.stringify(body);
}

async function throughFetch({ gateway }: Front, sent: SentRequest): Promise<Answered> {
  const { method, path, host, headers, text: body } = sendable(sent);
  const init = { method, headers, ...(body !== undefined && { body }) };
  const response = await gateway.gateway.handler.fetch(new Request(`http://${host}${path}`, init));
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    text: await response.text(),
  };
}

function overSocket({ url }: Front, sent: SentRequest): Promise<Answered> {
  const { method, path, host, headers, text: body } = sendable(sent);
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const options = { hostname, port, method, path, headers: { ...headers, host }, agent: false };
    request(options, (response) => {
      const { statusCode = 0 } = response;
      readText(response).then(
        (read) => resolve({ status: statusCode, headers: response.headers, text: read }),
        reject,
      );
    })
      .on('error', reject)
      .end(body);
  });
}
