import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * A transaction pooler, like PgBouncer in its transaction mode: a client has a connection of the server only from its
 * first message to the end of its transaction, which the server reports in `ReadyForQuery`. Meanwhile the others wait.
 */
export interface Pooler {
  readonly port: number;
  /** Transactions that each connection of the server has carried. */
  readonly carried: readonly number[];
  /** Cuts the client at its next COMMIT: before the server gets it, or after it has committed. Once. */
  cutAtCommit(when: 'before' | 'after'): Promise<void>;
  /** Keeps the next COMMIT, and the transaction open, as a client does that is stopped before it. Once. */
  stopAtCommit(): Promise<void>;
  close(): Promise<void>;
}

interface ServerConnection {
  readonly socket: Socket;
  readonly startup: string;
  readonly greeting: Buffer;
  client: Client | undefined;
  carried: number;
}

interface Client {
  readonly socket: Socket;
  readonly startup: string;
  server: ServerConnection | undefined;
  waiting: Buffer[];
  /** Messages that the server has not yet answered with `ReadyForQuery`. */
  open: number;
}

const SSL_REQUEST = 80_877_103;
/** First bytes of messages: Q, S, X from the client, R, S, Z from the server. */
const [QUERY, SYNC, TERMINATE] = [0x51, 0x53, 0x58];
const [AUTHENTICATION, PARAMETER, READY] = [0x52, 0x53, 0x5a];

/** @param size connections to the server, of each user */
export async function startPooler(serverPort: number, password: string, size = 1): Promise<Pooler> {
  const pool: ServerConnection[] = [];
  const queue: Client[] = [];
  const sockets = new Set<Socket>();
  let cut: { when: 'before' | 'after' | 'never'; done: () => void } | undefined;

  const listener = createServer((socket) => {
    keep(socket);
    let client: Client | undefined;
    const read = messages((message, type) => {
      if (client) return fromClient(client, message, type!);
      if (message.readInt32BE(4) === SSL_REQUEST) return void socket.write('N');
      client = {
        socket,
        startup: message.toString('latin1'),
        server: undefined,
        waiting: [],
        open: 0,
      };
      void greet(client);
    }, true);
    socket.on('data', read);
    socket.on('close', () => client && leave(client));
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));

  return {
    port: (listener.address() as AddressInfo).port,
    get carried() {
      return pool.map(({ carried }) => carried);
    },
    cutAtCommit: (when) => new Promise((done) => void (cut = { when, done })),
    stopAtCommit: () => new Promise((done) => void (cut = { when: 'never', done })),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };

  function keep(socket: Socket): void {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  }

  /**
   * Logs the client in, with the parameters that the server sent on another connection, and with a process id of its
   * own.
   */
  async function greet(client: Client): Promise<void> {
    const server = pool.find(({ startup }) => startup === client.startup) ?? (await open(client));
    const key = Buffer.from([0x4b, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1]);
    client.socket.write(Buffer.concat([server.greeting, key, ready('I')]));
  }

  async function open({ startup }: Client): Promise<ServerConnection> {
    const socket = connect(serverPort, '127.0.0.1');
    keep(socket);
    const greeting: Buffer[] = [];
    const opened = Promise.withResolvers<ServerConnection>();
    let server: ServerConnection | undefined;
    socket.on(
      'data',
      messages((message, type) => {
        if (server) return fromServer(server, message, type!);
        const asksForPassword = type === AUTHENTICATION && message.readInt32BE(5) === 3;
        if (asksForPassword) return void socket.write(passwordMessage(password));
        if (type === AUTHENTICATION || type === PARAMETER) greeting.push(message);
        if (type === 'E'.charCodeAt(0)) opened.reject(new Error(message.toString()));
        if (type !== READY) return;
        server = {
          socket,
          startup,
          greeting: Buffer.concat(greeting),
          client: undefined,
          carried: 0,
        };
        pool.push(server);
        opened.resolve(server);
      }),
    );
    socket.on('close', () => {
      if (!server) return;
      pool.splice(pool.indexOf(server), 1);
      server.client?.socket.destroy();
    });
    socket.write(Buffer.from(startup, 'latin1'));
    return opened.promise;
  }

  function fromClient(client: Client, message: Buffer, type: number): void {
    if (type === TERMINATE) return void client.socket.end();
    client.waiting.push(message);
    if (client.server) forward(client);
    else if (!queue.includes(client)) {
      queue.push(client);
      void serveNext();
    }
  }

  function forward(client: Client): void {
    for (const message of client.waiting.splice(0)) {
      const type = message[0]!;
      const isCommit = type === QUERY && message.toString('utf8', 5).startsWith('COMMIT');
      if (isCommit && cut?.when === 'before') {
        cut.done();
        cut = undefined;
        return void client.socket.destroy();
      }
      if (isCommit && cut?.when === 'never') {
        cut.done();
        cut = undefined;
        // The connection of the server stays taken when the client gives up.
        client.server = undefined;
        return;
      }
      if (type === QUERY || type === SYNC) client.open += 1;
      client.server!.socket.write(message);
    }
  }

  async function serveNext(): Promise<void> {
    for (const client of queue.slice()) {
      const servers = pool.filter(({ startup }) => startup === client.startup);
      const free = servers.find((server) => server.client === undefined);
      const server = free ?? (servers.length < size ? await open(client) : undefined);
      if (!server || server.client || !queue.includes(client)) continue;
      queue.splice(queue.indexOf(client), 1);
      server.client = client;
      client.server = server;
      forward(client);
    }
  }

  function fromServer(server: ServerConnection, message: Buffer, type: number): void {
    const { client } = server;
    if (!client) return;
    const isCommitted =
      type === 'C'.charCodeAt(0) && message.toString('utf8', 5).startsWith('COMMIT');
    if (isCommitted && cut?.when === 'after') {
      cut.done();
      cut = undefined;
      client.socket.destroy();
      return;
    }
    client.socket.write(message);
    if (type !== READY) return;
    client.open -= 1;
    if (message[5] !== 'I'.charCodeAt(0) || client.open > 0) return;
    server.carried += 1;
    release(client);
  }

  function release(client: Client): void {
    if (client.server) client.server.client = undefined;
    client.server = undefined;
    void serveNext();
  }

  /** In the middle of a transaction, the connection to the server is closed with that of the client. */
  function leave(client: Client): void {
    if (queue.includes(client)) queue.splice(queue.indexOf(client), 1);
    const { server } = client;
    if (!server) return;
    client.server = undefined;
    server.client = undefined;
    server.socket.destroy();
  }
}

/**
 * Takes bytes, and calls back with each complete message. @param startsUntyped whether the first messages have no type
 */
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
      const type = isUntyped ? undefined : message[0];
      if (isUntyped && message.readInt32BE(4) !== SSL_REQUEST) isUntyped = false;
      take(message, type);
    }
  };
}

function passwordMessage(password: string): Buffer {
  const text = Buffer.from(`${password}\0`);
  const head = Buffer.from([0x70, 0, 0, 0, 0]);
  head.writeInt32BE(4 + text.length, 1);
  return Buffer.concat([head, text]);
}

function ready(status: string): Buffer {
  return Buffer.from([READY, 0, 0, 0, 5, status.charCodeAt(0)]);
}
