import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { postBare, standstill } from '../support/clients/bare-client.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest } from '../support/imitations/scripted.ts';
import { silence } from '../support/imitations/hostile-sockets.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';

const WIDE = Array.from({ length: 40 }, (_, index) => `id${index}: id`).join(' ');
const config = { drainMaxItems: 1_000_000, maxDrains: 1, maxAliases: 100 };

test('a stream that is not read is cut after 60 s, and its walk ends and frees its slot', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 1_000_000 }, { config });
  await using line = await listening(gateway);
  const requests = () => gateway.sandbox.stats.requests.graphql;
  const socket = postBare(line.server, `{ allPersons @stream { ${WIDE} } }`, 'multipart/mixed');
  await once(socket, 'data');
  socket.pause();
  await standstill(requests);
  const stalled = requests();

  await line.pass(50 * SECOND);
  expect(line.connections()).toBe(1);
  await line.pass(30 * SECOND);
  await expect.poll(line.connections).toBe(0);
  // The only slot for walks is free again. The previous walk, if it had continued, would have requested all other pages.
  const { data } = await gateway.ask<{ allPersons: unknown[] }>('{ allPersons(limit: 99) { id } }');
  expect(data.allPersons).toHaveLength(99);
  expect(requests()).toBeLessThan(stalled + 10);
  socket.destroy();
});

const LARGE = Buffer.alloc(16_000_000, 'x');
const large = {
  gateway: { handler: (_: unknown, response: ServerResponse) => response.end(LARGE) },
};

test('the connection of a client that reads nothing of a large answer is cut after 60 s', async () => {
  await using line = await listening(large);
  const socket = postBare(line.server, '{ large }', 'application/json');
  await once(socket, 'data');
  socket.pause();
  await line.pass(50 * SECOND);
  expect(line.connections()).toBe(1);
  await line.pass(30 * SECOND);
  await expect.poll(line.connections).toBe(0);
  socket.destroy();
});

test('a client that reads a piece every 50 s keeps its connection and gets the whole answer', async () => {
  await using line = await listening(large);
  const socket = postBare(line.server, '{ large }', 'application/json');
  let received = 0;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  const ended = once(socket, 'end');
  await once(socket, 'data');
  for (let piece = 0; piece < 3; piece += 1) {
    socket.pause();
    await line.pass(50 * SECOND);
    const next = received + 3_000_000;
    socket.resume();
    await expect.poll(() => received, { interval: 1 }).toBeGreaterThan(next);
  }
  await ended;
  expect(received).toBeGreaterThan(LARGE.length);
});

test('a client that waits longer than 60 s for an answer keeps its connection', async () => {
  await using gateway = await startGatewayOverFake();
  await using line = await listening(gateway);
  gateway.upstream.answer(silence, honest);
  const socket = postBare(line.server, '{ persons { items { id } } }', 'application/json');
  await gateway.upstream.arrived(1);
  await line.pass(600 * SECOND);
  expect(line.connections()).toBe(1);
  socket.destroy();
});

async function listening({
  gateway,
}: {
  gateway: { handler: (request: IncomingMessage, response: ServerResponse) => unknown };
}) {
  const clock = new ManualClock();
  const sockets = new Set<Socket>();
  const server = await listen(
    (request, response) => {
      sockets.add(request.socket);
      request.socket.once('close', () => sockets.delete(request.socket));
      return gateway.handler(request, response);
    },
    { host: '127.0.0.1', port: 0, clock },
  );
  return {
    server,
    connections: () => sockets.size,
    pass: (ms: number) => clock.pass(ms),
    [Symbol.asyncDispose]: () => server.close(),
  };
}
