import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { StrictConnection } from '../support/clients/strict-http.ts';
import { startFront, type Front } from './front.ts';

const KEY = 'key-of-a-reader';
const MAX = 2_000;

let front: Front;
beforeAll(async () => {
  const apiKeys = [entryFor(KEY, 'reader', 'read', 'drain')];
  const auth = { apiKeys, jwt: undefined };
  const config = { auth, maxBodyBytes: MAX, graphiql: false, introspection: true };
  front = await startFront({ config });
});
afterAll(() => front[Symbol.asyncDispose]());

const ACCEPTED = [
  undefined,
  '*/*',
  'application/json',
  'application/graphql-response+json',
  'application/json;q=0, */*',
  'multipart/mixed',
  'multipart/mixed;deferSpec=20220824',
  'multipart/mixed;deferSpec=20230101',
  'multipart/mixed, application/json;q=0.5',
  'text/event-stream',
  'text/html',
  'text/html, */*;q=0.8',
  '*/*;q=0',
];

interface Kind {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

const asking = (query: string) => ({ body: JSON.stringify({ query }) });
const inAddress = (query: string) => `/graphql?query=${encodeURIComponent(query)}`;
const KINDS: readonly (readonly [string, Kind])[] = [
  ['an answer', asking('{ me { id } }')],
  ['an answer from an address', { method: 'GET', path: inAddress('{ me { id } }') }],
  ['a stream', asking('{ allCandidates(limit: 60) @stream { id } }')],
  ['a stream that is whole', asking('{ allCandidates(limit: 2) @stream(if: false) { id } }')],
  ['a stream whose list is refused', asking('{ allCandidates(limit: -1) @stream { id } }')],
  ['an invalid operation', asking('{ nothing }')],
  ['a syntax error', asking('{')],
  ['a body that is not JSON', { body: '{' }],
  ['a body without an operation', { body: '{}' }],
  ['another type of body', { body: '{}', headers: { 'content-type': 'text/plain' } }],
  ['a body that is too large', asking('{ me { id } }'.padEnd(MAX))],
  ['a caller without a key', { ...asking('{ me { id } }'), headers: { 'x-api-key': 'wrong' } }],
  ['a foreign host', { ...asking('{ me { id } }'), headers: { host: 'evil.example' } }],
  [
    'a page of another site',
    { ...asking('{ me { id } }'), headers: { 'sec-fetch-site': 'cross-site' } },
  ],
  [
    'a mutation in an address',
    { method: 'GET', path: inAddress('mutation { rename(id: 1, name: "A") { id } }') },
  ],
  ['another method', { method: 'PUT', body: '{}' }],
  ['HEAD', { method: 'HEAD' }],
  ['HEAD with an operation', { method: 'HEAD', path: inAddress('{ me { id } }') }],
  ['OPTIONS', { method: 'OPTIONS' }],
  [
    'a preflight',
    {
      method: 'OPTIONS',
      headers: { origin: 'https://a.example', 'access-control-request-method': 'POST' },
    },
  ],
  ['another path', { path: '/elsewhere', body: '{}' }],
  ['an address without an operation', { method: 'GET', path: '/graphql' }],
  ['a probe', { method: 'GET', path: '/health' }],
  ['HEAD of a probe', { method: 'HEAD', path: '/health' }],
];

describe.each(KINDS)('%s', (_, kind) => {
  test.each(ACCEPTED)('has one end that every client finds, with accept: %s', async (accept) => {
    for (const connection of ['keep-alive', 'close']) {
      using line = new StrictConnection(front);
      const reply = await line.send(textOf(kind, { connection, accept }));
      const said = reply.headers.get('connection');
      expect(said).toHaveLength(1);
      if (connection === 'close') expect(said).toEqual(['close']);
      if (said![0] === 'close') {
        expect(await line.isClosed()).toBe(true);
        continue;
      }
      // The next bytes on the same connection are another reply.
      const probe = textOf({ method: 'GET', path: '/health' }, { connection, accept });
      expect(await line.send(probe)).toMatchObject({ status: 200, body: '' });
    }
  });
});

test.each(['keep-alive', 'close'])(
  'a stream for a client of HTTP/1.0 ends with its connection (%s)',
  async (connection) => {
    using line = new StrictConnection(front);
    const text = textOf(asking('{ allCandidates(limit: 60) @stream { id } }'), {
      connection,
      accept: 'multipart/mixed',
    });
    const reply = await line.send(text.replace('HTTP/1.1', 'HTTP/1.0'));
    expect(reply.framing).toBe('close');
    expect(reply.body).toContain('"hasNext":false');
  },
);

test('curl with the headers of the README prints why its stream is refused', async () => {
  using line = new StrictConnection(front);
  const request = textOf(asking('{ allCandidates @stream { nothing } }'), {
    connection: 'keep-alive',
    accept: 'multipart/mixed',
  });
  const { status, headers, body, framing } = await line.send(request);
  expect([status, framing]).toEqual([400, 'content-length']);
  expect(headers.get('content-type')).toEqual([
    'multipart/mixed; boundary="-"; deferSpec=20220824',
  ]);
  const [, , , json, end] = body.split('\r\n').filter((text) => text !== '');
  expect(JSON.parse(json!)).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
  expect(end).toBe('-----');
});

test.each(['text/html', 'multipart/mixed', 'application/json'])(
  'a body that is refused unread ends its connection, with accept: %s',
  async (accept) => {
    using line = new StrictConnection(front);
    const kind = { ...asking(''), headers: { 'content-length': String(2 * MAX) } };
    const reply = await line.send(textOf(kind, { connection: 'keep-alive', accept }));
    expect(reply.status).toBe(413);
    expect(reply.headers.get('connection')).toEqual(['close']);
    expect(reply.body).toContain('MAX_BODY_BYTES');
    expect(await line.isClosed()).toBe(true);
  },
);

function textOf(
  { method = 'POST', path = '/graphql', headers, body }: Kind,
  { connection, accept }: { connection: string; accept: string | undefined },
): string {
  const all = {
    host: 'localhost',
    connection,
    'x-api-key': KEY,
    'content-type': 'application/json',
    ...(accept !== undefined && { accept }),
    ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const fields = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${fields.join('')}\r\n${body ?? ''}`;
}
