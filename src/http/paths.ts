import type { Reply, Stage } from './exchange/exchange.ts';

const GRAPHQL: ReadonlySet<string> = new Set(['/graphql', '/graphql/']);

export function isGraphqlPath(path: string): boolean {
  return GRAPHQL.has(path);
}

/** Asked by balancers, all the time. */
export function isProbe(path: string): boolean {
  return path === '/health' || path === '/ready';
}

export function isKnownPath(path: string): boolean {
  return isGraphqlPath(path) || isProbe(path);
}

/** Says that the process lives. */
export const health: Stage = ({ path }) => (path === '/health' ? YES : undefined);

/** Says whether requests may come; never why not. */
export function readiness(isReady: () => boolean): Stage {
  return ({ path }) => {
    if (path !== '/ready') return undefined;
    return isReady() ? YES : NO;
  };
}

/** Behind this stage there is nothing but GraphQL. */
export const knownPaths: Stage = ({ path }) => (isGraphqlPath(path) ? undefined : NOTHING);

const YES: Reply = { status: 200, headers: {} };
const NO: Reply = { status: 503, headers: {} };
const NOTHING: Reply = {
  status: 404,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'Nothing is served here. The path of GraphQL is /graphql.\n',
};
