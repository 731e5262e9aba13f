import { badRequest, codedError } from '../errors.ts';
import type { Exchange, Stage } from './exchange.ts';
import type { Reply } from './reply.ts';

/**
 * Allows pages of the listed origins to send requests and read the answers. Pages of other origins get no CORS header,
 * so that browsers do not let them send JSON: their preflight is refused with a message that says what to do, which
 * the `cors` of Yoga, as it answers every preflight, does not.
 *
 * Browser credentials (`access-control-allow-credentials`) are never allowed. The gateway uses no cookies: a page sends
 * its credential in a header that it sets itself. Otherwise a browser would add what it stores for this host.
 *
 * @param corsOrigins the origins whose pages may read answers, as browsers write them
 */
export function createOrigin(corsOrigins: readonly string[]) {
  const isListed = (origin = ''): boolean => corsOrigins.includes(origin);
  return {
    /** Adds to every answer which origin may read it. */
    corsHeaders: (exchange) => {
      const { replyHeaders } = exchange;
      const origin = exchange.header('origin');
      // Also without an origin: a cache must not return that answer to a page.
      if (corsOrigins.length > 0) replyHeaders['vary'] = 'Origin';
      if (origin !== undefined && isListed(origin)) {
        replyHeaders['access-control-allow-origin'] = origin;
        replyHeaders['access-control-expose-headers'] = READABLE;
      }
      return undefined;
    },

    /** Answers preflights. */
    preflights: (exchange) => {
      const origin = exchange.header('origin');
      const isPreflight = exchange.header('access-control-request-method') !== undefined;
      if (exchange.method !== 'OPTIONS' || !isPreflight || origin === undefined) return undefined;
      if (!isListed(origin)) throw otherOrigin();
      return ALLOWED;
    },

    /**
     * Refuses operations from pages of other sites that are not listed, whether they could read the answer or not.
     *
     * Browsers set `Sec-Fetch-Site`, and no page can forge it. `Origin` is not enough: behind a proxy, a page of the
     * gateway's own origin may have another host name than the one that the proxy sends.
     *
     * A page can send a GET without a preflight, even by an image or a link. So a GET must have a header that a browser
     * sends to another origin only after a preflight allowed it. The content type of a POST is such a header.
     */
    crossSite: (exchange) => {
      const site = exchange.header('sec-fetch-site');
      const isOfAnother = site === 'cross-site' || site === 'same-site';
      if (isOfAnother && !isListed(exchange.header('origin'))) throw otherOrigin();
      if (exchange.method === 'GET' && !isPreflighted(exchange)) throw badRequest(NOT_PREFLIGHTED);
      return undefined;
    },
  } satisfies Record<string, Stage>;
}

const SENDABLE = [
  'content-type',
  'authorization',
  'x-api-key',
  'apollo-require-preflight',
  'x-apollo-operation-name',
  'graphql-client-name',
  'graphql-client-version',
  'apollographql-client-name',
  'apollographql-client-version',
  'x-request-id',
  'traceparent',
  'tracestate',
];

const READABLE = 'retry-after, www-authenticate, x-request-id';

const ALLOWED: Reply = {
  status: 204,
  headers: {
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': SENDABLE.join(', '),
    // Two hours, the longest time that Chromium accepts.
    'access-control-max-age': '7200',
  },
};

function otherOrigin() {
  return codedError('FORBIDDEN', OTHER_ORIGIN, { extensions: { http: { status: 403 } } });
}

const OTHER_ORIGIN =
  'This request comes from a web page of an origin that is not allowed. To allow it, the operator of this gateway adds that origin to CORS_ORIGINS.';

const NOT_PREFLIGHTED =
  'A query in the address needs a header that pages of other sites cannot send. Add "apollo-require-preflight: true", or use POST.';

const PREFLIGHTED = ['apollo-require-preflight', 'x-apollo-operation-name', 'x-api-key'];

function isPreflighted(exchange: Exchange): boolean {
  const isJson = /^application\/json\s*(;|$)/i.test(exchange.header('content-type') ?? '');
  // Only this scheme: for others a browser may add a stored password to the request of any page.
  const isBearer = /^Bearer /i.test(exchange.header('authorization') ?? '');
  return isJson || isBearer || PREFLIGHTED.some((name) => exchange.header(name) !== undefined);
}
