import { afterAll, beforeAll, expect, test } from 'vitest';
import { headOf, openBare } from '../support/clients/bare-client.ts';
import { post, startFront, type Front } from './front.ts';

let front: Front;
beforeAll(async () => {
  front = await startFront();
});
afterAll(() => front[Symbol.asyncDispose]());

test.each([
  ['no Host', 'GET /health HTTP/1.0\r\n\r\n', 200],
  ['an address of IPv6', 'GET /health HTTP/1.1\r\nHost: [::1]:4000\r\n\r\n', 200],
  ['an absolute URL', 'GET HTTP://127.0.0.1/graphql HTTP/1.1\r\nHost: a.example\r\n\r\n', 400],
  [
    'an absolute URL of others',
    'GET http://a.example/graphql HTTP/1.1\r\nHost: localhost\r\n\r\n',
    421,
  ],
  ['an absolute URL with a broken host', 'GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['a Host that is none', 'GET /graphql HTTP/1.1\r\nHost: ]:x\r\n\r\n', 400],
  ['a Host with a path', 'GET /graphql HTTP/1.1\r\nHost: a/b?c#\r\n\r\n', 400],
  ['two slashes', 'GET //graphql HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
  ['a star', 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
  ['100 headers', `GET /health HTTP/1.1\r\n${headers(99)}Host: localhost\r\n\r\n`, 200],
  // Some versions of Node drop the others, which may include a second credential.
  ['more headers', `GET /health HTTP/1.1\r\n${headers(101)}Host: localhost\r\n\r\n`, 431],
  ['no request', 'hello\r\n\r\n', 400],
])('a request with %s gets its status, and the gateway goes on', async (_, text, status) => {
  const socket = openBare(front, text);
  const answer = await headOf(socket);
  socket.destroy();
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(answer).not.toMatch(/Error|node_modules| at /);
  expect(await isAlive()).toBe(true);
});

test('a client that leaves in the middle of its body does no harm', async () => {
  const head = 'POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  const socket = openBare(front, `${head}Content-Length: 100\r\n\r\n`);
  await new Promise<void>((resolve) => void socket.end('{"query"', resolve));
  socket.destroy();
  expect(await isAlive()).toBe(true);
});

async function isAlive(): Promise<boolean> {
  const response = await fetch(`${front.url}/graphql`, post({ query: '{ __typename }' }));
  return response.ok;
}

function headers(count: number): string {
  return Array.from({ length: count }, (_, at) => `x-${at}: v\r\n`).join('');
}
