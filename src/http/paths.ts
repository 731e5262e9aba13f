import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Reply, Stage } from './exchange.ts';

/** What is served at which path: the probes, and GraphQL at all that is left. */
export interface Paths {
  /** Replies that the process is alive. */
  readonly health: Stage;
  /** Replies whether requests may be sent to this process; never why not. */
  readonly readiness: Stage;
  /** Replies 404 to every path except that of GraphQL. */
  readonly graphqlOnly: Stage;
}

export function createPaths(isReady: () => boolean): Paths {
  return {
    health: ({ path }) => (path === '/health' ? OK : undefined),
    readiness: ({ path }) => {
      if (path !== '/ready') return undefined;
      return isReady() ? OK : UNAVAILABLE;
    },
    graphqlOnly: ({ path }) => (isGraphqlPath(path) ? undefined : NOT_FOUND),
  };
}

const OK: Reply = { status: 200, headers: {} };
const UNAVAILABLE: Reply = { status: 503, headers: {} };
const NOT_FOUND: Reply = {
  status: 404,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'Nothing is served under this path. The path of GraphQL is /graphql.\n',
};

const GRAPHQL: ReadonlySet<string> = new Set(['/graphql', '/graphql/']);

function isGraphqlPath(path: string): boolean {
  return GRAPHQL.has(path);
}

/** Whether load balancers and orchestrators request this path, which they do all the time. */
export function isProbe(path: string): boolean {
  return path === '/health' || path === '/ready';
}

export function isKnownPath(path: string): boolean {
  return isGraphqlPath(path) || isProbe(path);
}

interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
}

/** The answer to a request under a host name that is not the gateway's. */
export const MISDIRECTED =
  'The host name of this request is not one of this gateway. If it should be, the operator of the gateway adds it to ALLOWED_HOSTS.';

const UNREADABLE = 'The metrics cannot be read. The log of the gateway has the reason.';

/** The handler of the admin address, which serves only GET /metrics. */
export function adminHandler(
  metrics: Metrics,
  isOurHost: (host: string | undefined) => boolean,
  log: Logger,
) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!isOurHost(request.headers.host)) {
      return void response.writeHead(421).end(`${MISDIRECTED}\n`);
    }
    const path = request.url?.split('?', 1)[0];
    if (path !== '/metrics') return void response.writeHead(404).end();
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return void response.writeHead(405, { allow: 'GET, HEAD' }).end();
    }
    try {
      const text = await metrics.text();
      response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
    } catch (error) {
      log.error({ err: error }, 'the metrics cannot be read');
      response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(`${UNREADABLE}\n`);
    }
  };
}
