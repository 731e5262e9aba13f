import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server on a free port. Leaving its scope closes it with its connections. */
export interface Listening extends AsyncDisposable {
  readonly port: number;
  /** The address of an HTTP server. */
  readonly url: string;
}

/** Starts a server on a free port, by default of all addresses. */
export async function listening(server: Server, host?: string): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) =>
    sockets.add(socket.on('close', () => sockets.delete(socket))),
  );
  await once(server.listen(0, host), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://${host ?? 'localhost'}:${port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Starts an HTTP server. */
export function serveHttp(listener: RequestListener): Promise<Listening> {
  return listening(createServer(listener), '127.0.0.1');
}

/** Returns an address that refuses connections. */
export async function refusingAddress(): Promise<string> {
  await using server = await serveHttp(() => {});
  return server.url;
}

/** Starts an HTTP server, and closes it after the test. Returns its address. */
export async function startServer(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listenForTest(createServer(listener), '127.0.0.1')}`;
}

/** Starts a server as `listening` does, and closes it after the test. Returns its port. */
export async function listenForTest(server: Server, host?: string): Promise<number> {
  const started = await listening(server, host);
  onTestFinished(() => started[Symbol.asyncDispose]());
  return started.port;
}
