import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { headOf, openBare } from '../support/clients/bare-client.ts';
import { post, startFront, type Front } from './front.ts';

const MAX = 100_000;
const ASK = JSON.stringify({ query: '{ me { id } }' });
const HEAD = 'POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
const TOO_LARGE = {
  errors: [
    {
      message: expect.stringMatching(
        /^The request is larger than 100000 bytes\..*MAX_BODY_BYTES\.$/,
      ),
      extensions: { code: 'BAD_USER_INPUT' },
    },
  ],
};

let front: Front;
beforeAll(async () => {
  front = await startFront({ config: { maxBodyBytes: MAX } });
});
afterAll(() => front[Symbol.asyncDispose]());

test('a body of the allowed size is accepted, and one byte more is refused', async () => {
  const fitting = await fetch(`${front.url}/graphql`, post(ASK.padEnd(MAX)));
  expect(await fitting.json()).toEqual({ data: { me: { id: 1 } } });
  const larger = await fetch(`${front.url}/graphql`, post(ASK.padEnd(MAX + 1)));
  expect(larger.status).toBe(413);
  expect(larger.headers.get('connection')).toBe('close');
  expect(await larger.json()).toEqual(TOO_LARGE);
});

test('the limit also applies to requests through fetch, without a socket', async () => {
  const { status, body } = await statusAndBody(
    front.gateway.fetch('/graphql', post(ASK.padEnd(MAX + 1))),
  );
  expect([status, body]).toEqual([413, TOO_LARGE]);
  const stream = new Blob([ASK, ' '.repeat(MAX)]).stream();
  const streaming = { ...post(''), body: stream, duplex: 'half' };
  const streamed = front.gateway.fetch('/graphql', streaming);
  expect(await statusAndBody(streamed)).toEqual({ status: 413, body: TOO_LARGE });
});

test('a body is refused by its content-length before any of it is sent', async () => {
  const socket = openBare(front, `${HEAD}Content-Length: 5000000000\r\n\r\n`);
  expect(await headOf(socket)).toMatch(/^HTTP\/1.1 413 [^]*\r\nconnection: close\r\n/i);
  socket.destroy();
});

test('an endless chunked body is refused at the limit, and its connection is closed soon', async () => {
  const socket = openBare(front, `${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
  const answer = headOf(socket);
  const closed = new Promise((done) => socket.once('close', done));
  const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
  const sending = setInterval(() => socket.writable && socket.write(chunk), 5);
  expect(await answer).toMatch(/^HTTP\/1.1 413 [^]*\r\nconnection: close\r\n/i);
  await closed;
  clearInterval(sending);
});

test('a client that sends the whole body before it reads can still read the refusal', async () => {
  const body = Buffer.alloc(8_000_000, ' ');
  const socket = openBare(front, `${HEAD}Content-Length: ${body.length}\r\n\r\n`).pause();
  await new Promise((sent) => socket.write(body, sent));
  const answer = headOf(socket);
  socket.resume();
  expect(await answer).toMatch(/^HTTP\/1.1 413 [^]*"code":"BAD_USER_INPUT"/);
});

test('an encoded body is not decoded', async () => {
  const encoded = post('', { 'content-encoding': 'identity, GZIP' });
  const response = await fetch(`${front.url}/graphql`, { ...encoded, body: gzipSync(ASK) });
  expect(response.status).toBe(415);
  expect(response.headers.get('accept-encoding')).toBe('identity');
});

async function statusAndBody(
  answer: Promise<Response>,
): Promise<{ status: number; body: unknown }> {
  const response = await answer;
  return { status: response.status, body: await response.json() };
}
