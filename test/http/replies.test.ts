import { createServer } from 'node:http';
import { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Handler } from '../../src/http/handler.ts';
import { listen } from '../../src/http/listen.ts';
import type { Body, Reply } from '../../src/http/reply.ts';
import { handlerOf } from '../support/gateway/stages.ts';

const GRAPHQL = 'application/graphql-response+json';

/** Two ways to send a request: over a socket, and through fetch. */
async function waysTo(handler: Handler, accept = 'application/json') {
  const server = await listen(handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const init = { headers: { 'x-request-id': 'mine', accept } };
  return [() => fetch(server.url, init), () => handler.fetch('http://localhost/', init)];
}

test.each<[string, number, string, () => NonNullable<Reply['body']>]>([
  ['cannot be made', 200, 'application/json', failing],
  ['cannot be made, in a format with status codes', 500, GRAPHQL, failing],
])(
  'a reply that %s is an error with the id of the request, which is logged with what happened, which the caller does not read',
  async (_, status, accept, body) => {
    const { handler, logged } = replying(body);
    for (const send of await waysTo(handler, accept)) {
      const response = await send();
      expect([response.status, response.headers.get('x-request-id')]).toEqual([status, 'mine']);
      const text = await response.text();
      const { errors } = JSON.parse(text) as { errors: object[] };
      const code = 'INTERNAL_SERVER_ERROR';
      expect(errors).toMatchObject([{ extensions: { code, id: 'mine' } }]);
      const line = logged.findLast(({ requestId, err }) => err && requestId === 'mine');
      expect(line).toMatchObject({ level: 50, err: { message: expect.any(String) as string } });
      expect(text).not.toContain((line!['err'] as Error).message);
      expect(text).not.toMatch(/ENOENT|\.ts|node_modules| {4}at /);
      await expect.poll(() => logged.at(-1)).toMatchObject({ msg: 'request', status, code });
    }
  },
);

test('a reply that throws behind its first byte is cut off and logged', async () => {
  const { handler, logged, work } = replying(() => begunThen(new Error('Nobody expected this.')));
  for (const send of await waysTo(handler)) {
    const reading = send().then((response) => response.text());
    await expect(reading).rejects.toThrow(/terminated|fetch failed|Report this id to its operator/);
    await expect.poll(() => logged.filter(({ msg }) => msg === 'request')).toHaveLength(1);
    const message = expect.stringContaining('An answer was cut off') as string;
    expect(logged.splice(0)).toMatchObject([
      { level: 50, requestId: 'mine', err: { message } },
      { msg: 'request', requestId: 'mine', status: 200, code: 'INTERNAL_SERVER_ERROR' },
    ]);
    expect(work.signal!.aborted).toBe(true);
  }
});

test('a long answer arrives whole', async () => {
  const pieces = ['é', '漢', 'x'].map((letter) => letter.repeat(100_000));
  const { handler } = replying(() => pieces);
  for (const send of await waysTo(handler))
    expect(await (await send()).text()).toBe(pieces.join(''));
});

test.each<[string, (pieces: Body[]) => Body | AsyncIterable<Body>]>([
  ['in pieces', (pieces) => pieces as Buffer[]],
  ['while it is produced', (pieces) => begunThen(...pieces)],
])(
  'other requests get a turn after 256 KB of an answer that is written %s, however fast it is read',
  async (_, bodyOf) => {
    const huge = Array<Buffer>(100).fill(Buffer.alloc(64 * 1024, 'x'));
    const { handler } = handlerOf(() => replyOf(bodyOf(huge)));
    let bytes = 0;
    let most = 0;
    // It reads the answer while it is written, which no reader in another process could do faster.
    const reader = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        bytes += chunk.length;
        done();
      },
    });
    createServer(handler).emit('connection', reader);
    reader.push('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    for (let before = 0; !reader.writableFinished; before = bytes) {
      await nextTurn();
      most = Math.max(most, bytes - before);
    }
    expect(bytes).toBeGreaterThan(100 * 64 * 1024);
    expect(most).toBeLessThanOrEqual(256 * 1024);
  },
);

function failing(): never {
  throw new Error('ENOENT /srv/recruiting/secret.db');
}

async function* begunThen(...others: (Body | Error)[]): AsyncGenerator<Body> {
  yield 'begun';
  for (const each of others) {
    if (each instanceof Error) throw each;
    yield each;
  }
}

function replyOf(body: NonNullable<Reply['body']>): Reply {
  return { status: 200, headers: { 'content-type': 'text/plain' }, body };
}

/** A handler that replies with this body, and the signal of what it does. */
function replying(body: () => NonNullable<Reply['body']>) {
  const work: { signal?: AbortSignal } = {};
  const handling = handlerOf(({ signal }) => {
    work.signal = signal;
    return replyOf(body());
  });
  return { ...handling, work };
}
