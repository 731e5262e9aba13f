import { otherMethod } from './operation.ts';
import type { Stage } from './exchange.ts';
import { JSON_TYPE, type Reply } from './reply.ts';

/** What is served at which path: the probes, and GraphQL. */
export function createPaths(isReady: () => boolean) {
  return {
    /** Replies that the process is alive. */
    health: ({ path }) => (path === '/health' ? OK : undefined),
    /** Replies whether requests may be sent to this process, without a reason. */
    readiness: ({ path }) => (path === '/ready' ? readinessReply(isReady()) : undefined),
    /** Replies 404 to every other path than that of GraphQL. */
    graphqlOnly: ({ path }) => (isGraphqlPath(path) ? undefined : NOT_FOUND),
    /** Refuses other methods than POST and GET. */
    knownMethod: ({ method }) => {
      if (method !== 'POST' && method !== 'GET') throw otherMethod('GET, POST', OTHER_METHOD);
      return undefined;
    },
  } satisfies Record<string, Stage>;
}

const OK: Reply = { status: 200, headers: {} };

function readinessReply(ready: boolean): Reply {
  return {
    status: ready ? 200 : 503,
    headers: { 'content-type': JSON_TYPE, 'cache-control': 'no-store' },
    body: JSON.stringify({ ready }),
  };
}

const NOT_FOUND: Reply = {
  status: 404,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'Nothing is served under this path. The path of GraphQL is /graphql.\n',
};

const OTHER_METHOD =
  'This method is not supported. Send the operation with POST, or a query with GET.';

const GRAPHQL: ReadonlySet<string> = new Set(['/graphql', '/graphql/']);

export function isGraphqlPath(path: string): boolean {
  return GRAPHQL.has(path);
}

/** Whether load balancers and orchestrators request this path, which they do continuously. */
export function isProbe(path: string): boolean {
  return path === '/health' || path === '/ready';
}

export function isKnownPath(path: string): boolean {
  return isGraphqlPath(path) || isProbe(path);
}
