import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import { OneWriteResponse } from './one-write.ts';

export type Listening = Awaited<ReturnType<typeof listen>>;

interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** The settings that host and port come from, for error messages. */
  readonly variables?: readonly [host: string, port: string];
  /** Called with the number of requests that were cut. */
  readonly onCut?: (requests: number) => void;
  /** The time that requests in flight have to finish, ms. */
  readonly patienceMs?: number;
  readonly timeOuts?: TimeOuts;
  /**
   * How many connections are accepted in one turn of the event loop, where the system allows it (SO_REUSEPORT). Default:
   * one, as Node does. Then a probe waits for all connections that arrived before it, for a turn each.
   */
  readonly acceptors?: number;
  /** Above this number, idle connections are closed to make room for new ones. Default: 10,000. */
  readonly maxConnections?: number;
  /** Called for each new connection that is closed because there are too many, and no idle one. */
  readonly onDropped?: () => void;
  /** Measures which clients have stopped reading. Default: their connections are kept. */
  readonly clock?: Clock;
}

/** The time limits of clients, ms. */
interface TimeOuts {
  /** Between two requests on one connection. */
  readonly keepAliveTimeout: number;
  /** For the headers of a request, and for the whole request. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** The time between two checks of these limits. */
  readonly connectionsCheckingInterval: number;
}

/**
 * A load balancer that reuses a connection just when it is closed here loses a request. So idle connections are kept
 * for longer than the usual load balancers keep them: 60 s at nginx and AWS, 600 s at Google, which recommends 620 s.
 */
const TIME_OUTS: TimeOuts = {
  keepAliveTimeout: 620_000,
  headersTimeout: 30_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 5_000,
};

const PATIENCE_MS = 10_000;

/** The size of a request line and headers, bytes. Node answers 431 for more. */
const MAX_HEADER_BYTES = 16 * 1024;
/** Many short headers take several times their bytes. Browsers and proxies together send up to 50. */
const MAX_HEADERS = 100;
const MAX_CONNECTIONS = 10_000;
/**
 * Connections that are not yet accepted. While more arrive at once, the system ignores them, and their clients try again
 * after a second or three: probes, too. The operating system has its own limit, usually the same.
 */
const BACKLOG = 4_096;
/** The requests of one connection that may wait for their answers before the next ones are read (RFC 9112, 9.3.2). */
const MAX_UNANSWERED = 16;

/** @throws Error with a message for the operator if the address cannot be used */
export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  options: ListenOptions,
) {
  const { host, port, variables = ['HOST', 'PORT'], onCut, patienceMs = PATIENCE_MS } = options;
  const { timeOuts = TIME_OUTS, clock, maxConnections = MAX_CONNECTIONS, onDropped } = options;
  const { acceptors = 1 } = options;
  const connections: Connections = new Map();
  let uses = 0;
  let lastAnswers = false;
  let closing = false;
  // Most requests have the same host as the previous one, and parsing a host costs more than comparing it.
  let lastHost = 'localhost';
  // For repeated headers, Node would use the first and a proxy perhaps the last: a second credential must be noticed.
  const parsing = {
    maxHeaderSize: MAX_HEADER_BYTES,
    joinDuplicateHeaders: true,
    ServerResponse: OneWriteResponse,
  };
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    // This request was read before its connection was cut.
    if (socket.destroyed) return;
    response.shouldKeepAlive &&= !lastAnswers;
    const connection = connections.get(socket)!;
    const { unanswered } = connection;
    unanswered.push(response);
    if (unanswered.length > MAX_UNANSWERED) socket.pause();
    response.on('close', () => {
      unanswered.splice(unanswered.indexOf(response), 1);
      connection.used = ++uses;
      connection.wasUsed = true;
      if (unanswered.length === MAX_UNANSWERED) socket.resume();
      // Its headers may have promised, before the shutdown began, to keep the connection.
      if (closing) setImmediate(closeIdle);
    });
    const refuse = (status: 400 | 431) => {
      // The reply would not be counted.
      if (unanswered.length > MAX_UNANSWERED) return void socket.destroy();
      response.writeHead(status, { connection: 'close' }).end();
    };
    // Node has dropped the other headers, which may include a second credential.
    if (request.rawHeaders.length > 2 * MAX_HEADERS) return refuse(431);
    const { host: requested = lastHost } = request.headers;
    if (requested !== lastHost && !isHost(requested)) return refuse(400);
    lastHost = requested;
    handler(request, response);
  };
  const accept = (socket: Socket) => {
    if (connections.size >= maxConnections && closeIdlest(connections, maxConnections) === 0) {
      onDropped?.();
      return void socket.destroy();
    }
    const unanswered: ServerResponse[] = [];
    connections.set(socket, { unanswered, used: ++uses, wasUsed: false });
    // Node resumes it for the body of each request that was read before it was paused.
    socket.on('resume', () => {
      if (unanswered.length > MAX_UNANSWERED) socket.pause();
    });
    socket.once('close', () => connections.delete(socket));
  };
  const create = () => {
    const server = createServer({ ...timeOuts, ...parsing }, answer).on('connection', accept);
    server.maxHeadersCount = MAX_HEADERS;
    return server;
  };
  const servers = await bind(create, { host, port, acceptors }).catch((error: unknown) => {
    throw explain(error as NodeJS.ErrnoException, { host, port, variables });
  });
  const closeIdle = () => {
    for (const server of servers) server.closeIdleConnections();
  };
  const stopChecking = clock && endStalled(connections, clock);
  const { port: bound } = servers[0]!.address() as AddressInfo;
  // Otherwise connections stay open for the next request of their clients, and the server does not close.
  const keepNoConnections = () => {
    lastAnswers = true;
    for (const response of responsesOf(connections)) response.shouldKeepAlive = false;
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
      const deadline = setTimeout(() => {
        const cut = responsesOf(connections).length;
        if (cut > 0) onCut?.(cut);
        for (const server of servers) server.closeAllConnections();
      }, patienceMs);
      await Promise.all(servers.map((server) => closed(server)));
      clearTimeout(deadline);
      stopChecking?.();
    },
  };
}

/** One server, or several that share the port: each accepts one connection in a turn. */
async function bind(
  create: () => Server,
  { host, port, acceptors }: { host: string; port: number; acceptors: number },
): Promise<Server[]> {
  const alone = create();
  await listening(alone, { host, port });
  if (acceptors === 1) return [alone];
  // Sharing the port with another process that does the same would be no error, so it was bound without sharing first.
  const { port: bound } = alone.address() as AddressInfo;
  await closed(alone);
  const servers: Server[] = [];
  try {
    while (servers.length < acceptors) {
      const server = create();
      await listening(server, { host, port: bound, reusePort: true });
      servers.push(server);
    }
    return servers;
  } catch {
    await Promise.all(servers.map((server) => closed(server)));
    const server = create();
    await listening(server, { host, port });
    return [server];
  }
}

function listening(
  server: Server,
  address: { host: string; port: number; reusePort?: boolean },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ ...address, backlog: BACKLOG }, resolve);
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}

type Connections = Map<Socket, Connection>;

interface Connection {
  /**
   * The responses in progress. There is no set of all responses, because a set that often grows and shrinks leaves old
   * tables, which keep what was in them until the next full collection.
   */
  readonly unanswered: ServerResponse[];
  /** When it was opened or last used: grows with each use of any connection. */
  used: number;
  /** Whether a request of it was answered. */
  wasUsed: boolean;
}

function responsesOf(connections: Connections): ServerResponse[] {
  return Array.from(connections.values(), ({ unanswered }) => unanswered).flat();
}

/**
 * Closes connections that are idle, or whose request has not yet arrived: those that were not used for longest, but
 * before them those that were never used, which a balancer does not have. A sixteenth of the limit at once, because
 * looking for them takes time.
 *
 * @returns how many
 */
function closeIdlest(connections: Connections, max: number): number {
  const idle = Array.from(connections)
    .filter(([, { unanswered }]) => unanswered.every(({ req }) => !req.complete))
    .toSorted(([, a], [, b]) => Number(a.wasUsed) - Number(b.wasUsed) || a.used - b.used)
    .slice(0, Math.ceil(max / 16));
  for (const [socket] of idle) {
    connections.delete(socket);
    socket.destroy();
  }
  return idle.length;
}

/** A request with an invalid host is answered with 400, whatever it requests (RFC 9112, 3.2). */
function isHost(host: string): boolean {
  return /^[^/?#@\\]+$/.test(host) && URL.canParse(`http://${host}`);
}

function explain(
  error: NodeJS.ErrnoException,
  {
    host,
    port,
    variables: [HOST, PORT],
  }: Required<Pick<ListenOptions, 'host' | 'port' | 'variables'>>,
): Error {
  const reasons: Record<string, string> = {
    EADDRINUSE: `another process listens there. Stop it, or set ${PORT} to another port.`,
    EACCES: `this user may not listen there. Set ${PORT} to a port above 1023.`,
    EADDRNOTAVAIL: `this machine has no such address. Set ${HOST} to one that it has.`,
    ENOTFOUND: `this host name is unknown. Set ${HOST} to an address of this machine.`,
    EAI_AGAIN: `this host name cannot be looked up. Set ${HOST} to an address of this machine.`,
  };
  const reason = reasons[error.code ?? ''] ?? error.code ?? 'unknown error';
  return new Error(`The gateway cannot listen on ${host}:${port}: ${reason}`, { cause: error });
}

function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

/** How long a client may not read anything while data is waiting for it. */
const STALL_MS = 60_000;

const CHECK_MS = 10_000;

/**
 * Cuts the connections of clients that have stopped reading, so that no walk and no pages are held for them. A client
 * that waits for an answer that is not yet written is not one of them.
 *
 * @param connections those that are open, at any time
 * @returns stops the checks
 */
function endStalled(connections: Connections, clock: Clock): () => void {
  const stopping = new AbortController();
  const seen = new WeakMap<Socket, { unread: number; written: number; since: number }>();

  const check = ({ req: { socket } }: ServerResponse) => {
    const unread = unreadOf(socket);
    const written = socket.bytesWritten;
    const before = seen.get(socket);
    const hasMoved = before?.unread !== unread || before.written !== written;
    if (!before || hasMoved || unread === 0) {
      seen.set(socket, { unread, written, since: clock.elapsed() });
    } else if (clock.elapsed() - before.since >= STALL_MS) {
      socket.destroy();
    }
  };

  const checkForever = async () => {
    for (;;) {
      await clock.sleep(CHECK_MS, stopping.signal);
      for (const response of responsesOf(connections)) check(response);
    }
  };
  checkForever().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });
  return () => stopping.abort();
}

/**
 * The bytes that were written but not yet sent. A large answer is one write, and `writableLength` changes only when all
 * of it is sent, so this reads the value that Node's own `socket.setTimeout` uses.
 */
function unreadOf(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? socket.writableLength;
}
