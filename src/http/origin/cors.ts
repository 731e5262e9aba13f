import type { Exchange, Reply, Stage } from '../exchange/exchange.ts';

/**
 * Lets the pages of the listed origins ask, and read the answers. Others get no CORS header at all, and with it
 * no leave to send JSON: their preflight is answered like any other method that is not known here.
 *
 * Credentials are never allowed. There are no cookies: callers are known by headers that a page sets itself,
 * from what was given to that page. With credentials a browser would add what it holds for this host on its own.
 */
export function cors(origins: readonly string[]): {
  /** Says in every answer who may read it: this stage comes before whatever answers. */
  readonly corsHeaders: Stage;
  readonly preflights: Stage;
} {
  if (origins.length === 0) return { corsHeaders: () => undefined, preflights: () => undefined };
  const listedOrigin = (exchange: Exchange) => {
    const origin = exchange.header('origin');
    return origin !== undefined && origins.includes(origin) ? origin : undefined;
  };
  return {
    corsHeaders: (exchange) => {
      const { replyHeaders } = exchange;
      // Also where there is no origin: a cache must not give that answer to a page.
      replyHeaders['vary'] = 'Origin';
      const origin = listedOrigin(exchange);
      if (origin === undefined) return undefined;
      replyHeaders['access-control-allow-origin'] = origin;
      replyHeaders['access-control-expose-headers'] = READABLE;
      return undefined;
    },
    preflights: (exchange) => {
      if (exchange.method !== 'OPTIONS') return undefined;
      const isPreflight = exchange.header('access-control-request-method') !== undefined;
      return isPreflight && listedOrigin(exchange) !== undefined ? PREFLIGHT : undefined;
    },
  };
}

const SENDABLE = [
  'content-type',
  'authorization',
  'x-api-key',
  'apollo-require-preflight',
  'x-apollo-operation-name',
  'apollographql-client-name',
  'apollographql-client-version',
  'x-request-id',
  'traceparent',
  'tracestate',
];

const READABLE = 'retry-after, www-authenticate, x-request-id';

const PREFLIGHT: Reply = {
  status: 204,
  headers: {
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': SENDABLE.join(', '),
    // Two hours, the longest that Chromium remembers one.
    'access-control-max-age': '7200',
  },
};
