import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { headOf, openBare } from '../support/clients/bare-client.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import type { Reply } from '../service/service.ts';
import { post, startFront, type Body, type Front } from './front.ts';

const MAX = 100_000;
const ASK = JSON.stringify({ query: '{ me { id } }' });
const HEAD = 'POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';

let front: Front;
beforeAll(async () => {
  front = await startFront({ config: { maxBodyBytes: MAX } });
});
afterAll(() => front[Symbol.asyncDispose]());

test('a body of the allowed size is accepted, and one byte more is refused, over a socket and through fetch', async () => {
  const streamed = { body: new Blob([ASK, ' '.repeat(MAX)]).stream(), duplex: 'half' };
  const larger = post(ASK.padEnd(MAX + 1));
  for (const [body, status] of [
    [await fetch(`${front.url}/graphql`, post(ASK.padEnd(MAX))), 200],
    [await front.gateway.fetch('/graphql', post(ASK.padEnd(MAX))), 200],
    [await fetch(`${front.url}/graphql`, larger), 413],
    [await front.gateway.fetch('/graphql', larger), 413],
    [await front.gateway.fetch('/graphql', { ...post(''), ...streamed }), 413],
  ] as const) {
    expect(body.status).toBe(status);
    const { data, errors } = (await body.json()) as Body;
    if (status === 200) expect(data).toEqual({ me: { id: 1 } });
    else expect(errors![0]!.message).toMatch(/larger than 100000 bytes\..*MAX_BODY_BYTES\.$/);
  }
});

test('a body is refused by its content-length before any of it is sent', async () => {
  const socket = openBare(front, `${HEAD}Content-Length: 5000000000\r\n\r\n`);
  expect(await headOf(socket)).toMatch(/^HTTP\/1.1 413 /);
  socket.destroy();
});

test('an endless chunked body is refused at the limit, and the rest of it is discarded', async () => {
  const socket = openBare(front, `${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
  const answer = headOf(socket);
  const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
  const send = () => new Promise((sent) => socket.write(chunk, sent));
  for (let sent = 0; sent < MAX; sent += 65_536) await send();
  expect(await answer).toMatch(/^HTTP\/1.1 413 /);
  // More than its connection holds.
  for (let more = 0; more < 200; more += 1) await send();
  socket.destroy();
});

test('a client that sends the whole body before it reads can still read the refusal', async () => {
  const body = Buffer.alloc(8_000_000, ' ');
  const socket = openBare(front, `${HEAD}Content-Length: ${body.length}\r\n\r\n`).pause();
  await new Promise((sent) => socket.write(body, sent));
  const answer = headOf(socket);
  socket.resume();
  expect(await answer).toMatch(/^HTTP\/1.1 413 [^]*"code":"BAD_USER_INPUT"/);
});

/** No two places of it are equal, and parts of it end inside of letters. */
const LONG = Array.from({ length: 40_000 }, (_, at) => `é${at}`).join(' ');
const SIZES = [1, 1, 3_000, 1, 0, 700, 1_500, 2, 70_000, 5, 20_000, 999, 66_000, 1];

test('a body in parts of any sizes is read as it was sent, and so is an answer of the service', async () => {
  await using gateway = await startGatewayOverFake();
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const { upstream } = gateway;
  upstream.answer(inParts);
  const query = 'query ($after: String) { persons(after: $after) { items { firstName } } }';
  const variables = { after: LONG };
  const request = () => ({
    ...post(''),
    body: streamOf(partsOf(JSON.stringify({ query, variables }))),
    duplex: 'half',
  });
  for (const answer of [
    fetch(`${server.url}/graphql`, request()),
    gateway.fetch('/graphql', request()),
  ]) {
    const { data } = (await (await answer).json()) as Body;
    expect(data).toEqual({ persons: { items: [{ firstName: LONG }] } });
    expect(JSON.parse(upstream.received.at(-1)!.body)).toMatchObject({ variables });
  }
});

test.each<[string, () => Iterable<unknown> | AsyncIterable<unknown>]>([
  ['fails', failing],
  ['gives text', () => ['{', '}']],
])('a body through fetch whose stream %s is refused, and the next one is read', async (_, body) => {
  const asking = post({ query: '{ __typename }' });
  const broken = { ...asking, body: streamOf(body()), duplex: 'half' };
  const refused = (await (await front.gateway.fetch('/graphql', broken)).json()) as Body;
  expect(refused.errors![0]!.extensions.code).toBe('BAD_USER_INPUT');
  expect(await (await front.gateway.fetch('/graphql', asking)).json()).toEqual({
    data: { __typename: 'Query' },
  });
});

async function* failing() {
  yield Buffer.from('{');
  await Promise.resolve();
  throw new Error('The stream failed.');
}

const inParts: Reply = async (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const answer = JSON.stringify({ data: { persons: { items: [{ firstName: LONG }] } } });
  for (const part of partsOf(answer)) if (!response.write(part)) await once(response, 'drain');
  response.end();
};

function* partsOf(text: string): Generator<Buffer> {
  const bytes = Buffer.from(text);
  let from = 0;
  for (const size of SIZES) yield bytes.subarray(from, (from += size));
  for (; from < bytes.length; from += 7) yield bytes.subarray(from, from + 7);
}

function streamOf(parts: Iterable<unknown> | AsyncIterable<unknown>): ReadableStream {
  return Readable.toWeb(Readable.from(parts)) as ReadableStream;
}
