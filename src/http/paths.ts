import type { Stage } from './exchange.ts';
import { otherMethod } from './operation.ts';
import { JSON_TYPE, type Reply } from './reply.ts';

/** Replies that the process is alive, or whether requests may be sent to it, without a reason. */
export function probes(isReady: () => boolean): Stage {
  return ({ path }) => {
    if (path === '/health') return { status: 200, headers: {} };
    if (path !== '/ready') return undefined;
    const ready = isReady();
    return {
      status: ready ? 200 : 503,
      headers: { 'content-type': JSON_TYPE, 'cache-control': 'no-store' },
      body: JSON.stringify({ ready }),
    };
  };
}

/** Replies 404 to every other path than that of GraphQL, and refuses other methods than POST and GET. */
export const graphqlOnly: Stage = ({ path, method }) => {
  if (!isGraphqlPath(path)) return NOT_FOUND;
  if (method !== 'POST' && method !== 'GET') throw otherMethod('GET, POST', OTHER_METHOD);
  return undefined;
};

const NOT_FOUND: Reply = {
  status: 404,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'Nothing is served under this path. The path of GraphQL is /graphql.\n',
};

const OTHER_METHOD =
  'This method is not supported. Send the operation with POST, or a query with GET.';

export function isGraphqlPath(path: string): boolean {
  return path === '/graphql' || path === '/graphql/';
}

/** Whether load balancers and orchestrators request this path, which they do continuously. */
export function isProbe(path: string): boolean {
  return path === '/health' || path === '/ready';
}
