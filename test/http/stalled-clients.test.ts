import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { postBare, standstill } from '../support/clients/bare-client.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

const WIDE = Array.from({ length: 40 }, (_, index) => `id${index}: id`).join(' ');
const config = { drainMaxItems: 1_000_000, maxDrains: 1, maxAliases: 100 };

test('a stream that is not read is cut after a while, and its walk ends and frees its slot', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 1_000_000 }, { config });
  await using line = await listening((...messages) => gateway.gateway.handler(...messages));
  const requests = () => gateway.sandbox.stats.requests.graphql;
  const socket = postBare(line.server, `{ allPersons @stream { ${WIDE} } }`, 'multipart/mixed');
  await once(socket, 'data');
  socket.pause();
  await standstill(requests);
  const stalled = requests();
  await expect.poll(line.connections, { timeout: 10_000 }).toBe(0);
  // The only slot for walks is free again. The previous walk, if it had continued, would have requested all other pages.
  const { data } = await gateway.ask<{ allPersons: unknown[] }>('{ allPersons(limit: 99) { id } }');
  expect(data.allPersons).toHaveLength(99);
  expect(requests()).toBeLessThan(stalled + 10);
  socket.destroy();
});

test('a client that does not read a large answer is cut, and one that waits as long for its answer is kept', async () => {
  const large = Buffer.alloc(16_000_000, 'x');
  const answers: ServerResponse[] = [];
  await using line = await listening((request, response) => {
    if (request.method === 'POST') response.end(large);
    else answers.push(response);
  });
  const waiting = fetch(line.server.url);
  await expect.poll(() => answers.length).toBe(1);
  const socket = postBare(line.server, '{ large }', 'application/json');
  await once(socket, 'data');
  socket.pause();
  await expect.poll(line.connections, { timeout: 10_000 }).toBe(1);
  answers[0]!.end('at last');
  expect(await (await waiting).text()).toBe('at last');
  socket.destroy();
});

/** Cuts clients after 300 ms. */
async function listening(handler: (request: IncomingMessage, response: ServerResponse) => unknown) {
  const sockets = new Set<Socket>();
  const server = await listen(
    (request, response) => {
      sockets.add(request.socket);
      request.socket.once('close', () => sockets.delete(request.socket));
      return handler(request, response);
    },
    { host: '127.0.0.1', port: 0, timeOuts: { readTimeout: 300 } },
  );
  return {
    server,
    connections: () => sockets.size,
    [Symbol.asyncDispose]: () => server.close(),
  };
}
