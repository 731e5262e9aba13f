import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * A transaction pooler, like PgBouncer in its transaction mode: between transactions a client has no connection of the
 * server, and gets one for the next that another client may have had before.
 */
export interface Pooler {
  readonly port: number;
  /** Cuts the client at its next COMMIT: before the server gets it, or after it has committed. Once. */
  cutAtCommit(when: 'before' | 'after'): Promise<void>;
  /** Keeps the next COMMIT, and the transaction open, as a client does that is stopped before it. Once. */
  stopAtCommit(): Promise<void>;
  close(): Promise<void>;
}

interface Client {
  readonly socket: Socket;
  /** Its first message, with its user and database: only equal ones share connections. */
  startup: string;
  server: Socket | undefined;
  /** Messages that the server has not yet answered with `ReadyForQuery`. */
  open: number;
  isStopped: boolean;
}

const [QUERY, SYNC, TERMINATE, READY, COMPLETE, IDLE] = ['Q', 'S', 'X', 'Z', 'C', 'I'].map((name) =>
  name.charCodeAt(0),
);

export async function startPooler(serverPort: number): Promise<Pooler> {
  const free = new Map<string, Socket[]>();
  const clients = new Map<Socket, Client>();
  const sockets = new Set<Socket>();
  let cut: { when: 'before' | 'after' | 'never'; done: () => void } | undefined;
  const cutNow = (when: 'before' | 'after' | 'never') => {
    if (cut?.when !== when) return false;
    cut.done();
    cut = undefined;
    return true;
  };
  const keep = (socket: Socket) => {
    sockets.add(socket.setNoDelay(true));
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    return socket;
  };
  const freeOf = ({ startup }: Client) => {
    if (!free.has(startup)) free.set(startup, []);
    return free.get(startup)!;
  };

  /** Each client brings a connection, on which it logs in. */
  const open = (client: Client): Socket => {
    const server = keep(connect(serverPort, '127.0.0.1'));
    server.on(
      'data',
      messages((message, type) => fromServer(server, message, type)),
    );
    server.on('close', () => {
      clients.get(server)?.socket.destroy();
      free.set(
        client.startup,
        freeOf(client).filter((each) => each !== server),
      );
    });
    return server;
  };

  const fromClient = (client: Client, message: Buffer, type: number | undefined) => {
    if (type === TERMINATE) return void client.socket.end();
    if (type === undefined) client.startup = message.toString('latin1');
    client.server ??= type === undefined ? open(client) : freeOf(client).shift();
    if (!client.server) return void client.socket.destroy();
    clients.set(client.server, client);
    if (type === QUERY && message.toString('utf8', 5).startsWith('COMMIT')) {
      if (cutNow('before')) return void client.socket.destroy();
      if (cutNow('never')) return void (client.isStopped = true);
    }
    if (type === undefined || type === QUERY || type === SYNC) client.open += 1;
    client.server.write(message);
  };

  const fromServer = (server: Socket, message: Buffer, type: number | undefined) => {
    const client = clients.get(server);
    if (!client) return;
    const isCommitted = type === COMPLETE && message.toString('utf8', 5).startsWith('COMMIT');
    if (isCommitted && cutNow('after')) return void client.socket.destroy();
    client.socket.write(message);
    if (type !== READY) return;
    client.open -= 1;
    if (message[5] !== IDLE || client.open > 0) return;
    clients.delete(server);
    client.server = undefined;
    freeOf(client).push(server);
  };

  const listener = createServer((socket) => {
    const client: Client = {
      socket: keep(socket),
      startup: '',
      server: undefined,
      open: 0,
      isStopped: false,
    };
    socket.on(
      'data',
      messages((message, type) => fromClient(client, message, type), true),
    );
    // In the middle of a transaction, the connection of the server is closed with that of the client.
    socket.on('close', () => {
      // The driver of a process that is stopped would not give up.
      if (!client.isStopped) (client.server ?? freeOf(client).shift())?.destroy();
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const cutAt = (when: 'before' | 'after' | 'never') =>
    new Promise<void>((done) => void (cut = { when, done }));
  return {
    port: (listener.address() as AddressInfo).port,
    cutAtCommit: cutAt,
    stopAtCommit: () => cutAt('never'),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** Takes bytes, and calls back with each complete message. The first one of a client has no type. */
function messages(
  take: (message: Buffer, type: number | undefined) => void,
  startsUntyped = false,
) {
  let buffered: Buffer = Buffer.alloc(0);
  let isUntyped = startsUntyped;
  return (bytes: Buffer) => {
    buffered = Buffer.concat([buffered, bytes]);
    for (;;) {
      const start = isUntyped ? 0 : 1;
      if (buffered.length < start + 4) return;
      const length = start + buffered.readInt32BE(start);
      if (buffered.length < length) return;
      const message = buffered.subarray(0, length);
      buffered = buffered.subarray(length);
      take(message, isUntyped ? undefined : message[0]);
      isUntyped = false;
    }
  };
}
