import type { IncomingHttpHeaders } from 'node:http';

export type RouteName = 'tokenLink' | 'authCheck' | 'oauthToken' | 'graphql' | 'unknown';

export interface Stats {
  /** Requests that arrived, whatever came of them. */
  requests: Record<RouteName, number>;
  /** Refresh tokens exchanged. */
  refreshes: number;
  /** GraphQL operations executed. */
  graphql: number;
  /** Requests to /graphql not yet answered. */
  inFlight: number;
  maxInFlight: number;
  /** Of the latest request to /graphql. */
  lastHeaders: IncomingHttpHeaders | undefined;
}

export function countRequests(): Stats {
  return {
    requests: { tokenLink: 0, authCheck: 0, oauthToken: 0, graphql: 0, unknown: 0 },
    refreshes: 0,
    graphql: 0,
    inFlight: 0,
    maxInFlight: 0,
    lastHeaders: undefined,
  };
}
