import type { Logger } from 'pino';
import { codedError } from '../../errors.ts';
import type { Exchange, Reply, Stage } from '../exchange/exchange.ts';

export interface CorsSettings {
  /** As browsers write them. */
  readonly corsOrigins: readonly string[];
  /** Request headers that pages may send beside those that the gateway knows, in lower case. */
  readonly corsHeaders: readonly string[];
}

/**
 * Lets the pages of the listed origins ask, and read the answers. Others get no CORS header at all, and with it
 * no leave to send JSON: their preflight is refused, with what is to be done about it.
 *
 * Credentials are never allowed. There are no cookies: callers are known by headers that a page sets itself,
 * from what was given to that page. With credentials a browser would add what it holds for this host on its own.
 */
export function cors(
  { corsOrigins, corsHeaders: further }: CorsSettings,
  log: Logger,
): {
  /** Says in every answer who may read it: this stage comes before whatever answers. */
  readonly corsHeaders: Stage;
  /** A browser sends no credential with a preflight: this stage comes before callers are asked who they are. */
  readonly preflights: Stage;
} {
  const isListed = (origin: string | undefined) =>
    origin !== undefined && corsOrigins.includes(origin);
  const report = reportOnce(log);
  const allowed = allowedPreflight([...SENDABLE, ...further]);
  return {
    corsHeaders: (exchange) => {
      if (corsOrigins.length === 0) return undefined;
      const { replyHeaders } = exchange;
      // Also where there is no origin: a cache must not give that answer to a page.
      replyHeaders['vary'] = 'Origin';
      const origin = exchange.header('origin');
      if (origin === undefined || !isListed(origin)) return undefined;
      replyHeaders['access-control-allow-origin'] = origin;
      replyHeaders['access-control-expose-headers'] = READABLE;
      return undefined;
    },
    preflights: (exchange) => {
      if (!isPreflight(exchange)) return undefined;
      const origin = exchange.header('origin')!;
      if (isListed(origin)) return allowed;
      report(origin);
      return REFUSED;
    },
  };
}

function isPreflight(exchange: Exchange): boolean {
  return (
    exchange.method === 'OPTIONS' &&
    exchange.header('access-control-request-method') !== undefined &&
    exchange.header('origin') !== undefined
  );
}

/** Anybody can send any origin, as often as they like: each is reported once, and no more than some. */
function reportOnce(log: Logger): (origin: string) => void {
  const reported = new Set<string>();
  return (origin) => {
    const isOrigin = URL.canParse(origin) && new URL(origin).origin === origin;
    if (!isOrigin || reported.has(origin) || reported.size >= MOST_REPORTED) return;
    reported.add(origin);
    log.warn(
      { origin },
      'a page of this origin may not ask: its preflight was refused. To let it ask, add the origin to CORS_ORIGINS.',
    );
  };
}

const MOST_REPORTED = 20;

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

function allowedPreflight(sendable: readonly string[]): Reply {
  return {
    status: 204,
    headers: {
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': [...new Set(sendable)].join(', '),
      // Two hours, the longest that Chromium remembers one.
      'access-control-max-age': '7200',
    },
  };
}

export const UNLISTED_ORIGIN =
  'The page that asks is of another origin. To let it ask, the operator of this gateway adds that origin to CORS_ORIGINS.';

const REFUSED: Reply = {
  status: 403,
  headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
  body: JSON.stringify({ errors: [codedError('FORBIDDEN', UNLISTED_ORIGIN)] }),
};
