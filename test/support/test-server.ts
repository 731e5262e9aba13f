import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Starts an HTTP server on a free port, and closes it after the test. Returns its address. */
export async function startServer(handler: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listenForTest(createServer(handler), '127.0.0.1')}`;
}

/** Starts a server on a free port, by default of all addresses, and closes it with its connections after the test. */
export async function listenForTest(server: Server, host?: string): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) =>
    sockets.add(socket.on('close', () => sockets.delete(socket))),
  );
  await once(server.listen(0, host), 'listening');
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  return (server.address() as AddressInfo).port;
}

/** Returns an address that refuses connections. */
export async function refusingAddress(): Promise<string> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

/** Writes a body of 100 MB, as fast as it is read. */
export function writeHugeBody(response: ServerResponse): void {
  const megabyte = 'x'.repeat(1024 * 1024);
  let left = 100;
  const more = () => {
    while (left > 0 && !response.destroyed) {
      left -= 1;
      if (!response.write(megabyte)) return void response.once('drain', more);
    }
    response.end();
  };
  more();
}
