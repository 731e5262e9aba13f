import { createServer } from 'node:http';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Body, Reply } from '../../src/http/reply.ts';
import type { Handler } from '../../src/http/handler.ts';
import { listen } from '../../src/http/listen.ts';
import { standstill } from '../support/clients/bare-client.ts';
import { handlerOf } from '../support/gateway/stages.ts';

const MEGABYTE = 1024 * 1024;
const large = Array.from({ length: 3_000 }, (_, n) =>
  n % 2 === 0 ? `é${n};`.padEnd(1_000, '.') : Buffer.from(`${n};`.padEnd(700, '-')),
);

test.each<[string, Body, string | null]>([
  ['nothing', '', '0'],
  ['text', 'é', '2'],
  ['bytes', Buffer.from('é'), '2'],
  ['pieces', ['é', Buffer.from('a'), '', 'b'], '4'],
  ['an empty list of pieces', [], '0'],
  ['many pieces', large, String(Buffer.byteLength(textOf(large)))],
])('an answer of %s arrives whole, with its content-length', async (_, body, length) => {
  const handler = handlerFor(() => body);
  const { url } = await start(handler);
  const response = await fetch(url);
  expect(response.headers.get('content-length')).toBe(length);
  expect(await response.text()).toBe(textOf(body));
  expect(await (await handler.fetch(url)).text()).toBe(textOf(body));
});

test('an answer that is produced while it is sent arrives in order', async () => {
  const handler = handlerFor(async function* () {
    yield 'a';
    yield ['b', Buffer.from('c')];
    await Promise.resolve();
    yield* large.slice(0, 200);
  });
  const whole = `abc${textOf(large.slice(0, 200))}`;
  const { url } = await start(handler);
  expect(await (await fetch(url)).text()).toBe(whole);
  expect(await (await handler.fetch(url)).text()).toBe(whole);
});

test('an answer is produced only as far as it is read, and no further after the reader has left', async () => {
  let made = 0;
  const ended = Promise.withResolvers<void>();
  const handler = handlerFor(async function* () {
    try {
      for (;;) {
        made += 1;
        yield Buffer.alloc(MEGABYTE / 4, 'x');
      }
    } finally {
      ended.resolve();
    }
  });
  const { url } = await start(handler);
  const socket = connect(Number(new URL(url).port), '127.0.0.1').pause();
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await standstill(() => made);
  expect(made).toBeLessThan(100);
  socket.destroy();
  await ended.promise;

  made = 0;
  const response = await handler.fetch(url);
  const reader = response.body!.getReader();
  await reader.read();
  expect(made).toBe(1);
  await reader.cancel();
  expect(made).toBe(1);
});

test.each<[string, (pieces: Buffer[]) => Body | AsyncIterable<Body>]>([
  ['in pieces', (pieces) => pieces],
  [
    'while it is produced',
    async function* (pieces) {
      yield* pieces;
    },
  ],
])(
  'other requests get a turn after 256 KB of all answers that are written %s, however fast they are read',
  async (_, bodyOf) => {
    const huge = Array<Buffer>(100).fill(Buffer.alloc(64 * 1024, 'x'));
    const handler = handlerOf([
      ({ path }) => reply(path === '/huge' ? bodyOf(huge) : 'in between'),
    ]);
    const readers = Array.from({ length: 5 }, () => instantReader(handler, '/huge'));
    const read = () => readers.reduce((sum, { bytes }) => sum + bytes(), 0);
    let most = 0;
    let other: InstantReader | undefined;
    for (let before = 0; !readers.every(({ isClosed }) => isClosed()); before = read()) {
      await nextTurn();
      most = Math.max(most, read() - before);
      if (read() > 0) other ??= instantReader(handler, '/other');
    }
    expect(read()).toBeGreaterThan(5 * 100 * 64 * 1024);
    expect(most).toBeLessThanOrEqual(MEGABYTE / 4);
    expect(other!.isClosed()).toBe(true);
  },
);

interface InstantReader {
  /** The bytes that were read so far. */
  readonly bytes: () => number;
  readonly isClosed: () => boolean;
}

/** Sends a request, and reads the answer while it is written, which no reader in another process could do faster. */
function instantReader(handler: Handler, path: string): InstantReader {
  let bytes = 0;
  const socket = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      bytes += chunk.length;
      done();
    },
  });
  createServer(handler).emit('connection', socket);
  socket.push(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
  return { bytes: () => bytes, isClosed: () => socket.writableFinished };
}

function handlerFor(body: () => Body | AsyncIterable<Body>): Handler {
  return handlerOf([() => reply(body())]);
}

function reply(body: Body | AsyncIterable<Body>): Reply {
  return { status: 200, headers: { 'content-type': 'text/plain' }, body };
}

function textOf(body: Body): string {
  return Array.isArray(body) ? body.map(String).join('') : String(body);
}

async function start(handler: Handler): Promise<{ url: string }> {
  const server = await listen(handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  return server;
}
