import { isProbe, type Reply, type Stage } from './exchange.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';

/** What is served at which path: the probes, and GraphQL at all that is left. */
export function createPaths(isReady: () => boolean) {
  return {
    /** Replies that the process is alive. */
    health: ({ path }) => (path === '/health' ? OK : undefined),
    /** Replies whether requests may be sent to this process; never why not. */
    readiness: ({ path }) => {
      if (path !== '/ready') return undefined;
      return isReady() ? OK : UNAVAILABLE;
    },
    /** Replies 404 to every path except that of GraphQL. */
    graphqlOnly: ({ path }) => (isGraphqlPath(path) ? undefined : NOT_FOUND),
  } satisfies Record<string, Stage>;
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
