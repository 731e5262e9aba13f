import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { post, startFront, type Body, type Front } from './front.ts';

let front: Front;
beforeAll(async () => {
  front = await startFront({ config: { mutations: 'all' } });
});
afterAll(() => front[Symbol.asyncDispose]());

const SECRET = 'somebody-private';
const MUTATION = 'mutation { rename(id: 1, name: "New") { id } }';
const inAddress = (query: string) => `/graphql?query=${encodeURIComponent(query)}`;
const PREFLIGHTED = { headers: { 'apollo-require-preflight': 'true' } };

describe('a request that is not a GraphQL request is refused', () => {
  test.each<[string, number, string, RequestInit]>([
    ['malformed JSON', 400, '/graphql', post(`{"query": "${SECRET}`)],
    ['text that is not JSON', 400, '/graphql', post(SECRET)],
    ['an empty body', 400, '/graphql', post('')],
    ['a number', 400, '/graphql', post('7')],
    ['a string', 400, '/graphql', post(`"${SECRET}"`)],
    ['null', 400, '/graphql', post('null')],
    ['a batch', 400, '/graphql', post([{ query: '{ __typename }' }, { query: SECRET }])],
    ['an empty batch', 400, '/graphql', post([])],
    ['no query', 400, '/graphql', post({ variables: { a: SECRET } })],
    ['a query that is null', 400, '/graphql', post({ query: null })],
    ['a query that is not a string', 400, '/graphql', post({ query: { [SECRET]: SECRET } })],
    [
      'variables that are a list',
      400,
      '/graphql',
      post({ query: '{ __typename }', variables: [SECRET] }),
    ],
    [
      'variables that are a string',
      400,
      '/graphql',
      post({ query: '{ __typename }', variables: SECRET }),
    ],
    ['a GET without a query', 400, '/graphql', PREFLIGHTED],
    ['a GET that any site can send', 400, inAddress('{ __typename }'), {}],
    [
      'a GET with broken variables',
      400,
      `${inAddress('{ __typename }')}&variables=${SECRET}`,
      PREFLIGHTED,
    ],
    [
      'a GET with broken extensions',
      400,
      `${inAddress('{ __typename }')}&extensions=${SECRET}`,
      PREFLIGHTED,
    ],
    ['plain text', 415, '/graphql', post(SECRET, { 'content-type': 'text/plain' })],
    ['XML', 415, '/graphql', post(`<a>${SECRET}</a>`, { 'content-type': 'application/xml' })],
    ['no content type', 415, '/graphql', { method: 'POST', body: new Blob([SECRET]) }],
    ['a form', 415, '/graphql', { method: 'POST', body: new URLSearchParams({ query: MUTATION }) }],
    ['a multipart form', 415, '/graphql', { method: 'POST', body: multipart() }],
    ['a mutation in an address', 405, inAddress(MUTATION), PREFLIGHTED],
    ['PUT', 405, '/graphql', { ...post({ query: SECRET }), method: 'PUT' }],
    ['DELETE', 405, '/graphql', { method: 'DELETE' }],
    ['OPTIONS', 405, '/graphql', { method: 'OPTIONS' }],
  ])('%s', async (_, status, path, init) => {
    const response = await fetch(front.url + path, init);
    const text = await response.text();
    expect(response.status).toBe(status);
    expect(JSON.parse(text)).toEqual({
      errors: [{ message: expect.any(String), extensions: { code: 'BAD_USER_INPUT' } }],
    });
    expect(text).not.toContain(SECRET);
    expect(await life()).toEqual(ALIVE);
  });

  test('a 405 lists the allowed methods', async () => {
    const put = await fetch(`${front.url}/graphql`, { method: 'PUT' });
    expect(put.headers.get('allow')).toBe('GET, POST');
    const mutation = await fetch(front.url + inAddress(MUTATION), PREFLIGHTED);
    expect(mutation.headers.get('allow')).toBe('POST');
  });

  test.each(['application/json', 'application/graphql-response+json', '*/*'])(
    'malformed JSON is answered with 400 to a caller that accepts %s too',
    async (accept) => {
      const response = await fetch(`${front.url}/graphql`, post('{', { accept }));
      expect(response.status).toBe(400);
      expect(((await response.json()) as Body).errors![0]!.extensions.code).toBe('BAD_USER_INPUT');
    },
  );

  test('these requests execute nothing, and nothing of them is logged', () => {
    expect(front.sent.renames).toBe(0);
    expect(JSON.stringify(front.gateway.logged)).not.toContain(SECRET);
    expect(front.gateway.logged.filter(({ msg }) => msg === 'unexpected error')).toEqual([]);
  });
});

describe('an operation that cannot be executed is refused', () => {
  const candidate = 'query ($id: Int!) { candidate(id: $id) { id } }';

  test.each<[string, object | string, RegExp]>([
    ['a syntax error', { query: '{ candidates {' }, /^Syntax Error/],
    ['an empty query', { query: '' }, /^Syntax Error/],
    ['an unknown field', { query: '{ nothing }' }, /Cannot query field "nothing"/],
    [
      'a missing argument',
      { query: '{ candidate { id } }' },
      /argument "(id|Query\.candidate\(id:\))"/i,
    ],
    ['a wrong variable', { query: candidate, variables: { id: 'x' } }, /Variable "\$id"/],
    ['a variable too large', { query: candidate, variables: { id: 2 ** 40 } }, /32-bit/],
    ['a missing variable', { query: candidate }, /Variable "\$id"/],
    ['an unknown name', { query: 'query A { me { id } }', operationName: 'B' }, /there is A\.$/],
    [
      'an unknown name among several operations',
      { query: 'query A { me { id } } query B { me { id } }', operationName: 'C' },
      /there is A, B\.$/,
    ],
    [
      'several operations without an operationName',
      { query: 'query A { me { id } } query B { me { id } }' },
      /^Say with operationName which operation to run; there is A, B\.$/,
    ],
    ['only a fragment', { query: 'fragment F on Query { me { id } }' }, /there is none\.$/],
    ['a subscription', { query: 'subscription { hired { id } }' }, /subscription/],
    [
      'an odd name',
      { query: '{ me { id } }', operationName: { a: 1 } },
      /^The operationName must be a string/,
    ],
    [
      'a very odd name',
      `{"query":"{ me { id } }","operationName":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
      /^The operationName must be a string/,
    ],
  ])('%s', async (_, body, message) => {
    const before = front.service.stats.requests.graphql;
    const strict = { accept: 'application/graphql-response+json' };
    const response = await fetch(`${front.url}/graphql`, post(body, strict));
    expect(response.status).toBe(400);
    const { data, errors, ...rest } = (await response.json()) as Body;
    expect({ data, rest }).toEqual({ data: undefined, rest: {} });
    expect(errors!.map(({ extensions }) => extensions)).toEqual([{ code: 'BAD_USER_INPUT' }]);
    expect(errors![0]!.message).toMatch(message);
    expect(front.service.stats.requests.graphql).toBe(before);
    expect(await life()).toEqual(ALIVE);
  });
});

describe('an unknown path is answered with 404', () => {
  test.each<[string, RequestInit]>([
    ['/', {}],
    ['/', { method: 'POST', headers: { accept: 'text/html' } }],
    ['/elsewhere', {}],
    ['/elsewhere', post({ query: '{ __typename }' })],
    ['/elsewhere/graphql', post({ query: '{ __typename }' })],
    ['/elsewhere?to=/graphql', post({ query: '{ __typename }' })],
    ['/graphql/elsewhere', post({ query: '{ __typename }' })],
    ['/GraphQL', post({ query: '{ __typename }' })],
    ['/metrics', {}],
    ['/%zz', {}],
  ])('%s %j', async (path, init) => {
    const response = await fetch(front.url + path, init);
    expect(response.status).toBe(404);
    expect(await response.text()).toMatch(/^Nothing is served under this path[^\n]*\/graphql\.\n$/);
    expect(await life()).toEqual(ALIVE);
  });
});

describe('a request that is not valid HTTP is refused', () => {
  test.each([
    ['a Host that is none', 'GET /graphql HTTP/1.1\r\nHost: ]:x\r\n\r\n', 400],
    ['a Host with a path', 'GET /graphql HTTP/1.1\r\nHost: a/b?c#\r\n\r\n', 400],
    ['a Host with a password', 'GET /graphql HTTP/1.1\r\nHost: a:b@c\r\n\r\n', 400],
    ['a Host of others', 'POST /graphql HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n', 421],
    ['no Host', 'GET /health HTTP/1.0\r\n\r\n', 200],
    ['an address of IPv6', 'GET /health HTTP/1.1\r\nHost: [::1]:4000\r\n\r\n', 200],
    [
      'an absolute URL of others',
      'GET http://elsewhere.example/graphql HTTP/1.1\r\nHost: localhost\r\n\r\n',
      421,
    ],
    ['two slashes', 'GET //graphql HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['a star', 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['no request', 'hello\r\n\r\n', 400],
    [
      'two lengths',
      'POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 2\r\n\r\n{',
      400,
    ],
  ])('%s', async (_, text, status) => {
    const answer = await speak(text);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).not.toMatch(/Error|node_modules| at /);
    expect(await life()).toEqual(ALIVE);
  });

  test('a body that ends too early', async () => {
    const head = 'POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
    const socket = connect(Number(new URL(front.url).port), '127.0.0.1');
    await new Promise<void>((resolve) => {
      socket.end(`${head}Content-Length: 100\r\n\r\n{"query"`, resolve);
    });
    socket.destroy();
    expect(await life()).toEqual(ALIVE);
  });
});

test('valid requests are answered: POST, GET, with an operationName, with a charset', async () => {
  const answers = await Promise.all([
    fetch(`${front.url}/graphql`, post({ query: '{ me { id } }' })),
    fetch(front.url + inAddress('{ me { id } }'), PREFLIGHTED),
    fetch(
      `${front.url}/graphql`,
      post({ query: 'query A { me { id } } query B { failing }', operationName: 'A' }),
    ),
    fetch(
      `${front.url}/graphql`,
      post({ query: '{ me { id } }' }, { 'content-type': 'application/json; charset=utf-8' }),
    ),
    fetch(`${front.url}/graphql/`, post({ query: '{ me { id } }' })),
    fetch(
      `${front.url + inAddress('query ($id: Int!) { me: candidate(id: $id) { id } }')}&variables=${encodeURIComponent('{"id":1}')}`,
      PREFLIGHTED,
    ),
  ]);
  for (const answer of answers) {
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ data: { me: { id: 1 } } });
  }
});

/** The answer of a server that works. */
async function life(): Promise<unknown> {
  const response = await fetch(`${front.url}/graphql`, post({ query: '{ __typename }' }));
  return response.json();
}

const ALIVE = { data: { __typename: 'Query' } };

function multipart(): FormData {
  const form = new FormData();
  form.set('operations', JSON.stringify({ query: MUTATION }));
  form.set('map', '{}');
  return form;
}

/** The response, until the server closes the connection or has sent a head and a body. */
function speak(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(front.url).port), '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      answer += chunk;
      if (/\r\n\r\n/.test(answer)) socket.end();
    });
    socket.once('close', () => resolve(answer));
    socket.once('error', reject);
  });
}

test('an operation that is nested too deeply for the parser is refused, and not logged as an unexpected error', async () => {
  await using gateway = await startGatewayOverSandbox();
  const query = `{${'a{'.repeat(20_000)}b${'}'.repeat(20_000)}}`;
  const { errors } = await gateway.ask(query);
  expect(errors).toMatchObject([{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }]);
  expect(gateway.logged.filter(({ level }) => Number(level) >= 50)).toEqual([]);
});
