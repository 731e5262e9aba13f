import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A balancer of TCP connections, which does not read what they carry. */
export interface Balancer extends AsyncDisposable {
  readonly url: string;
  /** The number of connections of each backend. */
  readonly connections: readonly number[];
}

export interface Backend {
  readonly url: string;
}

const PROBE_MS = 20;

/** Distributes new connections by turns over the backends whose last reply to `/ready` was yes. */
export async function startBalancer(backends: readonly Backend[]): Promise<Balancer> {
  const ready = new Set<Backend>();
  const connections = backends.map(() => 0);
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.once('close', () => sockets.delete(socket));
  };
  let turn = 0;

  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client);
    const able = backends.filter((backend) => ready.has(backend));
    const backend = able[(turn += 1) % able.length];
    if (!backend) return void client.destroy();
    connections[backends.indexOf(backend)]! += 1;
    const { hostname, port } = new URL(backend.url);
    const behind = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    keep(behind);
    client.pipe(behind).pipe(client);
    behind.once('error', () => client.destroy());
    client.once('error', () => behind.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');

  const stop = new AbortController();
  const probe = async (backend: Backend) => {
    const says = await fetch(new URL('/ready', backend.url), { signal: stop.signal })
      .then((response) => response.body?.cancel().then(() => response.ok) ?? response.ok)
      .catch(() => false);
    if (says) ready.add(backend);
    else ready.delete(backend);
  };
  await Promise.all(backends.map(probe));
  const probing = Promise.all(
    backends.map(async (backend) => {
      while (!stop.signal.aborted) {
        await new Promise((passed) => setTimeout(passed, PROBE_MS));
        await probe(backend);
      }
    }),
  );

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await probing;
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
