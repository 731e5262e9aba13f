import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../clock.ts';
import { endStalled } from './end-stalled.ts';

export interface Listening {
  /** Where people open it, without a slash at the end. */
  readonly url: string;
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
  /** How long a request may take to arrive, however slowly it is sent. */
  readonly arrival?: { readonly headersMs: number; readonly requestMs: number };
  /** Ends connections whose clients have stopped reading; left out, these are kept. */
  readonly clock?: Clock;
}

const PATIENCE_MS = 10_000;
const ARRIVAL = { headersMs: 20_000, requestMs: 60_000 };

/** @throws Error with a message for the operator when the address cannot be used */
export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  { host, port, variables = ['HOST', 'PORT'], onCut, arrival = ARRIVAL, clock }: ListenOptions,
): Promise<Listening> {
  const answering = new Set<ServerResponse>();
  let closing = false;
  // Of two credentials in headers of one name Node would take the first, and another on the way perhaps the last.
  const server = createServer(
    { joinDuplicateHeaders: true, ...timeouts(arrival) },
    (request, response) => {
      response.shouldKeepAlive &&= !closing;
      answering.add(response);
      response.once('close', () => answering.delete(response));
      if (isHost(request.headers.host)) handler(request, response);
      else response.writeHead(400).end();
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(explain(error, { host, port, variables })),
    );
    server.listen(port, host, resolve);
  });
  const stopLooking = clock && endStalled(answering, clock);
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${hostInUrl(host)}:${bound}`,
    close: async () => {
      closing = true;
      // Otherwise a connection stays open for what its client may ask next, and holds the server up.
      for (const response of answering) response.shouldKeepAlive = false;
      const impatience = setTimeout(() => {
        onCut?.(answering.size);
        server.closeAllConnections();
      }, PATIENCE_MS);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      });
      clearTimeout(impatience);
      stopLooking?.();
    },
  };
}

function timeouts({ headersMs, requestMs }: NonNullable<ListenOptions['arrival']>) {
  return {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    // Node's own, half a minute, would be added to them.
    connectionsCheckingInterval: headersMs / 4,
  };
}

/** Yoga makes an address of it, and answers with a stack trace where that fails. */
function isHost(host = 'localhost'): boolean {
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
