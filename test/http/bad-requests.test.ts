import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { headOf, openBare } from '../support/clients/bare-client.ts';
import { post, startFront, type Body, type Front } from './front.ts';

let front: Front;
beforeAll(async () => {
  front = await startFront({ config: { mutations: 'all' } });
});
afterAll(() => front[Symbol.asyncDispose]());

const MUTATION = 'mutation { rename(id: 1, name: "New") { id } }';
const inAddress = (query: string) => `/graphql?query=${encodeURIComponent(query)}`;
const PREFLIGHTED = { headers: { 'apollo-require-preflight': 'true' } };

test('a 405 lists the allowed methods', async () => {
  const put = await fetch(`${front.url}/graphql`, { method: 'PUT' });
  expect(put.headers.get('allow')).toBe('GET, POST');
  const mutation = await fetch(front.url + inAddress(MUTATION), PREFLIGHTED);
  expect(mutation.headers.get('allow')).toBe('POST');
});

test.each<[string, object | string, RegExp]>([
  [
    'an unknown name among several operations',
    { query: 'query A { me { id } } query B { me { id } }', operationName: 'C' },
    /there is A, B\.$/,
  ],
  [
    'a very odd name',
    `{"query":"{ me { id } }","operationName":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
    /^The operationName must be a string/,
  ],
])('a refusal says what is wrong: %s', async (_, body, message) => {
  const { errors } = (await (await fetch(`${front.url}/graphql`, post(body))).json()) as Body;
  expect(errors![0]!.message).toMatch(message);
});

describe('a request of an unusual form is answered, and one that is not valid HTTP is refused', () => {
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
    ['an absolute URL', 'GET HTTP://127.0.0.1/graphql HTTP/1.1\r\nHost: a.example\r\n\r\n', 400],
    ['an absolute URL without a path', 'GET http://localhost?x HTTP/1.1\r\nHost: a\r\n\r\n', 404],
    ['an absolute URL with a broken host', 'GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['two slashes', 'GET //graphql HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['a star', 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['no request', 'hello\r\n\r\n', 400],
    [
      'two lengths',
      'POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 2\r\n\r\n{',
      400,
    ],
  ])('%s', async (_, text, status) => {
    const socket = openBare(front, text);
    const answer = await headOf(socket);
    socket.destroy();
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).not.toMatch(/Error|node_modules| at /);
    expect(await life()).toEqual(ALIVE);
  });

  test('a body that ends too early', async () => {
    const head = 'POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
    const socket = openBare(front, `${head}Content-Length: 100\r\n\r\n`);
    await new Promise<void>((resolve) => void socket.end('{"query"', resolve));
    socket.destroy();
    expect(await life()).toEqual(ALIVE);
  });
});

/** The answer of a server that works. */
async function life(): Promise<unknown> {
  const response = await fetch(`${front.url}/graphql`, post({ query: '{ __typename }' }));
  return response.json();
}

const ALIVE = { data: { __typename: 'Query' } };

test('an operation that is nested too deeply for the parser is refused, and not logged as an unexpected error', async () => {
  await using gateway = await startGatewayOverSandbox();
  const query = `{${'a{'.repeat(20_000)}b${'}'.repeat(20_000)}}`;
  const { errors } = await gateway.ask(query);
  expect(errors).toMatchObject([{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }]);
  expect(gateway.logged.filter(({ level }) => Number(level) >= 50)).toEqual([]);
});
