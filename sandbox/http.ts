import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Answer {
  readonly status: number;
  /** A text is sent as it is, anything else as JSON. Without it, the answer has no body. */
  readonly body?: unknown;
}

export type Route = (request: IncomingMessage) => Answer | Promise<Answer>;

export type Listener = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export interface Listening {
  /** Without a slash at the end. */
  readonly url: string;
  /** Stops listening and ends open connections too. */
  readonly close: () => Promise<void>;
}

/**
 * The value of common proxies. With Node's 5 s, a client may send on a connection that is just being closed, and a
 * mutation is not sent again.
 */
const KEEP_ALIVE_MS = 75_000;

/** @param port 0 takes any free port */
export async function listen(listener: Listener, port: number): Promise<Listening> {
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS },
    (request, response) => void listener(request, response),
  ).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        // The callback's only error is that the server is closed already, which is fine.
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Answers requests by `POST /path` and the like, and says so if there is nothing. */
export function router(routeFor: (name: string) => Route | undefined): Listener {
  const answer = async (request: IncomingMessage): Promise<Answer> => {
    try {
      const route = routeFor(`${request.method} ${pathOf(request)}`);
      return route ? await route(request) : problem(404, 'There is nothing at this address.');
    } catch (error) {
      return problem(500, (error as Error).message);
    }
  };
  return async (request, response) => {
    const { status, body } = await answer(request);
    const isText = typeof body === 'string';
    const type = isText ? 'text/plain' : 'application/json';
    if (body !== undefined) response.setHeader('content-type', `${type}; charset=utf-8`);
    response.writeHead(status).end(isText ? body : JSON.stringify(body));
  };
}

/** The path of a request, without its query. */
export function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0]!;
}

/** A failure whose body the interface does not show. It has the shape of a GraphQL error, on every path. */
export function problem(status: number, message: string): Answer {
  return { status, body: { errors: [{ message }] } };
}
