import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { headOf, openBare } from '../support/clients/bare-client.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { honest } from '../service/replies.ts';
import type { Reply } from '../service/service.ts';
import { post } from '../support/clients/post.ts';
import type { GraphqlAnswer } from '../support/gateway/ask-at.ts';
import { startFront, startFullFront, type Front } from '../support/gateway/front.ts';

// Bytes that arrive on a socket, and the status and the end of what is sent back.

const KEY = 'key-of-a-reader';
const MAX = 100_000;

let front: Front;
beforeAll(async () => {
  const auth = { apiKeys: [entryFor(KEY, 'reader', 'read', 'drain')], jwt: undefined };
  front = await startFullFront({
    config: { auth, maxBodyBytes: MAX, graphiql: false, introspection: true },
  });
});
afterAll(() => front[Symbol.asyncDispose]());

/** The text of a request. Its end of line is followed by these headers, in addition to the usual ones. */
function sent(line: string, headers: Record<string, string> = {}, body = ''): string {
  const all = {
    host: 'localhost',
    'x-api-key': KEY,
    'content-type': 'application/json',
    accept: 'application/json',
    ...(body !== '' && { 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const fields = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${fields.join('')}\r\n${body}`;
}
const asking = (query: string, headers: Record<string, string> = {}) =>
  sent('POST /graphql', headers, JSON.stringify({ query }));
const inParts = (query: string) => asking(query, { accept: 'multipart/mixed' });
const bare = (line: string, host: string) => `${line} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
const headers = (count: number) =>
  Array.from({ length: count }, (_, at) => `x-${at}: v\r\n`).join('');
const ASK = JSON.stringify({ query: '{ me { id } }' });
const STREAM = inParts('{ allCandidates(limit: 60) @stream { id } }');
const PROBE = bare('GET /health', 'localhost');

test.each<[string, number, string]>([
  ['an operation', 200, asking('{ me { id } }')],
  ['a stream', 200, STREAM],
  ['a stream that is whole', 200, inParts('{ allCandidates(limit: 2) @stream(if: false) { id } }')],
  ['an invalid operation', 200, asking('{ nothing }')],
  ['a body of the allowed size', 200, sent('POST /graphql', {}, ASK.padEnd(MAX))],
  ['a body of one byte more', 413, sent('POST /graphql', {}, ASK.padEnd(MAX + 1))],
  ['a wrong key', 401, asking('{ me { id } }', { 'x-api-key': 'wrong' })],
  ['HEAD with an operation', 405, sent('HEAD /graphql?query={me{id}}')],
  ['a probe', 200, PROBE],
  ['HEAD of a probe', 200, bare('HEAD /health', 'localhost')],
  ['a stream for a client of HTTP/1.0', 200, STREAM.replace('HTTP/1.1', 'HTTP/1.0')],
  ['an address of IPv6', 200, bare('GET /health', '[::1]:4000')],
  ['an absolute URL', 401, bare('GET HTTP://127.0.0.1/graphql', 'a.example')],
  ['an absolute URL of others', 421, bare('GET http://a.example/graphql', 'localhost')],
  ['a Host that is none', 421, bare('GET /graphql', ']:x')],
  ['a star', 404, sent('OPTIONS *')],
  ['100 headers', 200, `GET /health HTTP/1.1\r\n${headers(98)}Host: localhost\r\n\r\n`],
  // Some versions of Node drop the others, which may include a second credential.
  ['more headers', 431, `GET /health HTTP/1.1\r\n${headers(101)}Host: localhost\r\n\r\n`],
  ['no request', 400, 'hello\r\n\r\n'],
])('%s gets %i, with one end that every client finds', async (name, status, text) => {
  for (const connection of ['keep-alive', 'close']) {
    const first = text.replace('\r\n', `\r\nconnection: ${connection}\r\n`);
    const [reply, ...others] = await repliesTo(first, connection === 'close' ? '' : PROBE);
    expect(reply!.status).toBe(status);
    expect(reply!.body).not.toMatch(/Error\b|node_modules| at /);
    if (name.startsWith('a stream')) expect(reply!.body).toMatch(/"hasNext":false|"data"/);
    if (connection === 'close') expect(reply!.isLast).toBe(true);
    // The next bytes on the same connection are another reply.
    expect(others).toMatchObject(reply!.isLast ? [] : [{ status: 200, body: '' }]);
  }
  expect(await repliesTo(PROBE)).toHaveLength(1);
});

/** Sends requests on one connection, of which the last one ends it. No body contains a line of status. */
async function repliesTo(...requests: string[]) {
  const texts = requests.filter((text) => text !== '');
  const last = texts.at(-1)!;
  if (!/^connection: close/im.test(last)) {
    texts[texts.length - 1] = last.replace('\r\n', '\r\nconnection: close\r\n');
  }
  const written = (await buffer(openBare(front, texts.join('')))).toString('latin1');
  const replies = written.split(/(?=HTTP\/1\.1 \d{3} [\w -]+\r\n)/);
  return replies.map((reply, at) => readReply(reply, texts[at]!.startsWith('HEAD')));
}

/** One way to find the end of the body is allowed (RFC 9112, 6), and it must be right. */
function readReply(text: string, isHead: boolean) {
  const [head = ''] = text.split('\r\n\r\n', 1);
  const body = text.slice(head.length + 4);
  const valuesOf = (name: string) =>
    [...head.matchAll(new RegExp(`^${name}: (.*)$`, 'gim'))].map(([, value]) => value);
  const [connection, ...others] = valuesOf('connection');
  expect(others).toEqual([]);
  const ends = [...valuesOf('content-length'), ...valuesOf('transfer-encoding')];
  const isLast = connection === 'close';
  if (isHead) expect(body).toBe('');
  else if (ends[0] === 'chunked') expect(body).toMatch(/^(?:[\da-f]+\r\n[^]*\r\n)?0\r\n\r\n$/);
  else if (ends.length > 0) expect(ends[0]).toBe(String(body.length));
  else expect(isLast).toBe(true);
  expect(ends.length).toBeLessThan(2);
  return { status: Number(head.slice(9, 12)), body, isLast };
}

const HEAD = sent('POST /graphql').slice(0, -2);

test('an endless chunked body is refused at the limit, and the rest of it is discarded', async () => {
  const socket = openBare(front, `${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
  const answer = headOf(socket);
  const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
  const send = () => new Promise((done) => socket.write(chunk, done));
  for (let bytes = 0; bytes < MAX; bytes += 65_536) await send();
  expect(await answer).toMatch(/^HTTP\/1.1 413 /);
  // More than its connection holds.
  for (let more = 0; more < 200; more += 1) await send();
  socket.destroy();
});

test('a client that sends all of a large body before it reads can read that it is too large', async () => {
  const length = 8_000_000;
  const socket = openBare(front, `${HEAD}Content-Length: ${length}\r\n\r\n`).pause();
  await new Promise((done) => socket.write(Buffer.alloc(length, ' '), done));
  expect(await headOf(socket.resume())).toMatch(
    /^HTTP\/1.1 413 [^]*larger than 100000 bytes\.[^"]*MAX_BODY_BYTES\..*"BAD_USER_INPUT"/,
  );
  socket.destroy();
});

test('a client that leaves in the middle of its body does no harm', async () => {
  const socket = openBare(front, `${HEAD}Content-Length: 100\r\n\r\n`);
  await new Promise<void>((done) => void socket.end('{"query"', done));
  socket.destroy();
  expect(await repliesTo(asking('{ me { id } }'))).toMatchObject([{ status: 200 }]);
});

/** No two places of it are equal, and parts of it end inside of letters. */
const LONG = Array.from({ length: 24_000 }, (_, at) => `é${at}`).join(' ');

test('a body in parts of any sizes is read as it was sent, and so is an answer of the service', async () => {
  await using other = await startFront();
  const { service } = other;
  service.answer(answerInParts);
  const query = 'query ($after: String) { persons(after: $after) { items { firstName } } }';
  const variables = { after: LONG };
  const request = () => withBody(partsOf(JSON.stringify({ query, variables })));
  for (const answer of [
    fetch(`${other.url}/graphql`, request()),
    other.fetch('/graphql', request()),
  ]) {
    const { data } = (await (await answer).json()) as GraphqlAnswer;
    expect(data).toEqual({ persons: { items: [{ firstName: LONG }] } });
    expect(JSON.parse(service.received.at(-1)!.body)).toMatchObject({ variables });
  }
  service.answer(honest);
  const page = post({ query: '{ persons { items { firstName } } }' });
  const { data } = (await (await fetch(`${other.url}/graphql`, page)).json()) as GraphqlAnswer;
  const names = service.persons.slice(0, 50).map(({ firstName }) => ({ firstName }));
  expect(data).toEqual({ persons: { items: names } });
});

const answerInParts: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const answer = JSON.stringify({ data: { persons: { items: [{ firstName: LONG }] } } });
  Readable.from(partsOf(answer)).pipe(response);
};

function* partsOf(text: string): Generator<Buffer> {
  const bytes = Buffer.from(text);
  let from = 0;
  for (let size = 1; from < bytes.length; size = (size * 7) % 9_973) {
    yield bytes.subarray(from, (from += size));
  }
}

function withBody(parts: Iterable<unknown> | AsyncIterable<unknown>) {
  const body = Readable.toWeb(Readable.from(parts)) as ReadableStream;
  return { ...post('', { 'x-api-key': KEY }), body, duplex: 'half' };
}
