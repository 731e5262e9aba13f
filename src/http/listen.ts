import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import { endStalled } from './end-stalled.ts';

export interface Listening {
  /** Where people open it, without a slash at the end. */
  readonly url: string;
  /** From now on each answer is the last one of its connection. New connections are still taken. */
  keepNoConnections(): void;
  /** Takes no new connection, lets what is in flight finish, and ends what does not in time. */
  close(): Promise<void>;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** The settings that host and port come from, for error messages. */
  readonly variables?: readonly [host: string, port: string];
  /** Told how many requests did not end in time. */
  readonly onCut?: (requests: number) => void;
  /** How long what is in flight has to finish. */
  readonly patienceMs?: number;
  readonly timeOuts?: TimeOuts;
  /** Ends connections whose clients have stopped reading; left out, these are kept. */
  readonly clock?: Clock;
}

/** How long callers may take; ms. */
export interface TimeOuts {
  /** Between two requests on one connection. */
  readonly keepAliveTimeout: number;
  /** For the headers of a request, and for all of it. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** How often is looked for those who took longer. */
  readonly connectionsCheckingInterval: number;
}

/**
 * A balancer that reuses a connection just as it is closed here loses a request, so idle ones are kept for longer
 * than any of the usual keeps them: 60 s at nginx and AWS, 600 s at Google, whose advice 620 s is.
 */
const TIME_OUTS: TimeOuts = {
  keepAliveTimeout: 620_000,
  headersTimeout: 30_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 5_000,
};

const PATIENCE_MS = 10_000;

/** @throws Error with a message for the operator when the address cannot be used */
export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  options: ListenOptions,
): Promise<Listening> {
  const { host, port, variables = ['HOST', 'PORT'], onCut, patienceMs = PATIENCE_MS } = options;
  const { timeOuts = TIME_OUTS, clock } = options;
  const answering = new Set<ServerResponse>();
  let lastAnswers = false;
  let closing = false;
  // Most requests come by the name of the one before, and to read a name costs more than to compare it.
  let lastHost = 'localhost';
  // Of two credentials in headers of one name Node would take the first, and another on the way perhaps the last.
  const server = createServer({ ...timeOuts, joinDuplicateHeaders: true }, (request, response) => {
    response.shouldKeepAlive &&= !lastAnswers;
    answering.add(response);
    response.once('close', () => {
      answering.delete(response);
      // Its headers may have promised to keep the connection before it was known better.
      if (closing) setImmediate(() => server.closeIdleConnections());
    });
    const { host: called = lastHost } = request.headers;
    if (called !== lastHost && !isHost(called)) return void response.writeHead(400).end();
    lastHost = called;
    handler(request, response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(explain(error, { host, port, variables })),
    );
    server.listen(port, host, resolve);
  });
  const stopLooking = clock && endStalled(answering, clock);
  const { port: bound } = server.address() as AddressInfo;
  // Otherwise a connection stays open for what its client may ask next, and holds the server up.
  const keepNoConnections = () => {
    lastAnswers = true;
    for (const response of answering) response.shouldKeepAlive = false;
  };
  return {
    keepNoConnections,
    url: `http://${hostInUrl(host)}:${bound}`,
    close: async () => {
      keepNoConnections();
      // What has arrived already is read, and is in flight then.
      await nextTurn();
      closing = true;
      const impatience = setTimeout(() => {
        if (answering.size > 0) onCut?.(answering.size);
        server.closeAllConnections();
      }, patienceMs);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      });
      clearTimeout(impatience);
      stopLooking?.();
    },
  };
}

/** RFC 9112, 3.2: what is no host is answered with 400, whatever it asks for. */
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
