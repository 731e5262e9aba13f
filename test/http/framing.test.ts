import { afterAll, beforeAll, expect, test } from 'vitest';
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

interface Kind {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  /** Default: JSON. */
  readonly accept?: string;
}

const asking = (query: string) => ({ body: JSON.stringify({ query }) });
const inParts = (query: string) => ({ ...asking(query), accept: 'multipart/mixed' });
const STREAM = inParts('{ allCandidates(limit: 60) @stream { id } }');

test.each<[string, Kind]>([
  ['an answer', asking('{ me { id } }')],
  ['a stream', STREAM],
  ['a stream that is whole', inParts('{ allCandidates(limit: 2) @stream(if: false) { id } }')],
  ['a stream whose list is refused', inParts('{ allCandidates(limit: -1) @stream { id } }')],
  ['a refusal', asking('{ nothing }')],
  ['a body that is too large', asking('{ me { id } }'.padEnd(MAX))],
  ['a caller without a key', { ...asking('{ me { id } }'), headers: { 'x-api-key': 'wrong' } }],
  ['another method', { method: 'PUT', body: '{}' }],
  ['HEAD with an operation', { method: 'HEAD', path: '/graphql?query={me{id}}' }],
  ['another path', { path: '/elsewhere', body: '{}' }],
  ['a probe', { method: 'GET', path: '/health' }],
  ['HEAD of a probe', { method: 'HEAD', path: '/health' }],
])('%s has one end that every client finds', async (_, kind) => {
  for (const connection of ['keep-alive', 'close']) {
    using line = new StrictConnection(front);
    const reply = await line.send(textOf(kind, connection));
    const said = reply.headers.get('connection');
    expect(said).toHaveLength(1);
    if (connection === 'close') expect(said).toEqual(['close']);
    if (said![0] === 'close') {
      expect(await line.isClosed()).toBe(true);
      continue;
    }
    // The next bytes on the same connection are another reply.
    const probe = textOf({ method: 'GET', path: '/health' }, connection);
    expect(await line.send(probe)).toMatchObject({ status: 200, body: '' });
  }
});

test.each(['keep-alive', 'close'])(
  'a stream for a client of HTTP/1.0 ends with its connection (%s)',
  async (connection) => {
    using line = new StrictConnection(front);
    const text = textOf(STREAM, connection);
    const reply = await line.send(text.replace('HTTP/1.1', 'HTTP/1.0'));
    expect(reply.framing).toBe('close');
    expect(reply.body).toContain('"hasNext":false');
  },
);

function textOf(
  { method = 'POST', path = '/graphql', headers, body, accept = 'application/json' }: Kind,
  connection: string,
): string {
  const all = {
    host: 'localhost',
    connection,
    'x-api-key': KEY,
    'content-type': 'application/json',
    accept,
    ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const fields = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${fields.join('')}\r\n${body ?? ''}`;
}
