import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  createServer as createNetServer,
  type AddressInfo,
  type Server as NetServer,
  type Socket,
} from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** The time limits of clients, ms. */
const TIME_OUTS = {
  /**
   * Between two requests on one connection. A load balancer that reuses a connection just when it is closed here loses
   * a request. So idle connections are kept for longer than the usual load balancers keep them: 60 s at nginx and AWS,
   * 600 s at Google, which recommends 620 s.
   */
  keepAliveTimeout: 620_000,
  /** For the headers of a request, and for the whole request. */
  headersTimeout: 30_000,
  requestTimeout: 60_000,
  /** The time between two checks of these limits. */
  connectionsCheckingInterval: 5_000,
  /** For reading anything while data is waiting. */
  readTimeout: 60_000,
};

/** The time that requests in flight have to finish when the server closes, ms. */
const PATIENCE_MS = 10_000;
/** The size of a request line and headers, bytes. Node answers 431 for more, and for more headers. */
const MAX_HEADER_BYTES = 16 * 1024;
/** Many short headers take several times their bytes. Browsers and proxies together send up to 50. */
const MAX_HEADERS = 100;
/** Each takes 3 kB of the heap, and up to 16 kB more while a request arrives. */
const MAX_CONNECTIONS = 4_000;
/**
 * Node accepts one connection in a turn of the event loop, and a probe would wait for all that arrived before it, for a
 * turn each: behind 1,500 new connections, `/health` took 1.5 to 11 s with one acceptor, and 0.2 to 0.5 s with these.
 * They need a system that lets listeners share a port (SO_REUSEPORT).
 */
const ACCEPTORS = 64;
/**
 * Connections that are not yet accepted. While more arrive at once, the system ignores them, and their clients try again
 * after a second or three: probes, too. The operating system has its own limit, usually the same.
 */
const BACKLOG = 4_096;
/**
 * The requests of one connection that wait for their answers (RFC 9112, 9.3.2). Each takes 4 kB, and Node reads any
 * number of them, so one client could fill the memory.
 */
const MAX_UNANSWERED = 64;

interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly patienceMs?: number;
  readonly timeOuts?: Partial<typeof TIME_OUTS>;
  /** Above this number, new connections are closed. */
  readonly maxConnections?: number;
  /** Called when a connection is closed for the first time because there are too many. */
  readonly onFull?: () => void;
}

/** @throws the error of Node, with the address, if it cannot be used */
export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  { maxConnections = MAX_CONNECTIONS, patienceMs = PATIENCE_MS, ...options }: ListenOptions,
) {
  const { host, port } = options;
  const { readTimeout, ...timeOuts } = { ...TIME_OUTS, ...options.timeOuts };
  /** The open connections, with the responses in progress on each. */
  const connections = new Map<Socket, ServerResponse[]>();
  let isFull = false;
  let lastAnswers = false;
  let closing = false;
  // Node would use the first of equal headers and a proxy perhaps the last: a second credential must be noticed.
  const joining = { maxHeaderSize: MAX_HEADER_BYTES, joinDuplicateHeaders: true };
  const server = createServer({ ...timeOuts, ...joining }, (request, response) => {
    const { socket } = request;
    // It was read before its connection was cut.
    if (socket.destroyed) return;
    response.shouldKeepAlive &&= !lastAnswers;
    const unanswered = connections.get(socket)!;
    unanswered.push(response);
    if (unanswered.length > MAX_UNANSWERED) return void socket.destroy();
    response.on('close', () => {
      unanswered.splice(unanswered.indexOf(response), 1);
      // Its headers may have promised, before the shutdown began, to keep the connection.
      if (closing) setImmediate(() => server.closeIdleConnections());
    });
    handler(request, response);
  });
  server.maxHeadersCount = MAX_HEADERS;
  server.on('connection', (socket: Socket) => {
    // Node counts only those that it has accepted itself.
    if (connections.size >= maxConnections) {
      if (!isFull) options.onFull?.();
      isFull = true;
      return void socket.destroy();
    }
    connections.set(socket, []);
    socket.once('close', () => connections.delete(socket));
  });
  // Node calls this for connections on which nothing has moved, but not while a large write is being read. A client that
  // has stopped reading must not hold a walk and its pages; one that only waits for its answer is kept.
  server.setTimeout(readTimeout, (socket) => {
    const isWaiting = connections.get(socket)?.length !== 0;
    if (socket.writableLength > 0 || !isWaiting) socket.destroy();
  });
  const acceptors = await bind(server, { host, port });
  const { port: bound } = server.address() as AddressInfo;
  // Otherwise connections stay open for the next request of their clients, and the server does not close.
  const keepNoConnections = () => {
    lastAnswers = true;
    for (const response of [...connections.values()].flat()) response.shouldKeepAlive = false;
  };
  return {
    /** The address to open in a browser, without a final slash. */
    url: `http://${hostInUrl(host)}:${bound}`,
    /** Closes each connection after its next answer. New connections are still accepted. */
    keepNoConnections,
    /** Stops accepting connections, waits for the requests in flight, and cuts those that do not finish in time. */
    close: async (): Promise<void> => {
      keepNoConnections();
      // Requests that have already arrived are read first, so that they count as in flight.
      await nextTurn();
      closing = true;
      const deadline = setTimeout(() => server.closeAllConnections(), patienceMs);
      // It closes idle connections, too, and waits for the others.
      await Promise.all(acceptors.map(closed));
      clearTimeout(deadline);
    },
  };
}

/** Has a server and, where the system allows it, other listeners of its port accept its connections. */
async function bind(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<readonly NetServer[]> {
  // Sharing the port with another process that does the same would be no error, so it is bound without sharing first.
  const alone = createNetServer();
  await listening(alone, { host, port });
  const { port: bound } = alone.address() as AddressInfo;
  await closed(alone);
  const options = { noDelay: true, allowHalfOpen: true };
  const others = Array.from({ length: ACCEPTORS - 1 }, () =>
    createNetServer(options, (socket) => server.emit('connection', socket)),
  );
  const acceptors = [server, ...others];
  const outcomes = await Promise.allSettled(
    acceptors.map((each) => listening(each, { host, port: bound, reusePort: true })),
  );
  if (outcomes.every(({ status }) => status === 'fulfilled')) return acceptors;
  await Promise.all(acceptors.filter((each) => each.listening).map(closed));
  await listening(server, { host, port: bound });
  return [server];
}

async function listening(
  acceptor: NetServer,
  address: { host: string; port: number; reusePort?: boolean },
): Promise<void> {
  acceptor.listen({ ...address, backlog: BACKLOG });
  await once(acceptor, 'listening');
}

/** Accepts no connections any more, and waits for the end of those that are open. */
async function closed(acceptor: NetServer): Promise<void> {
  await once(acceptor.close(), 'close');
}

function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
