import type { Plugin } from 'graphql-yoga';

/**
 * Lets the pages of the listed origins ask, and read the answers. Others get no CORS header at all, and with it
 * no leave to send JSON: their preflight is answered like any other method that is not known here.
 *
 * Credentials are never allowed. There are no cookies: callers are known by headers that a page sets itself,
 * from what was given to that page. With credentials a browser would add what it holds for this host on its own.
 */
export function cors(origins: readonly string[]): Plugin {
  if (origins.length === 0) return {};
  const listedOrigin = ({ headers }: Request) => {
    const origin = headers.get('origin');
    return origin !== null && origins.includes(origin) ? origin : undefined;
  };
  return {
    onRequest({ request, fetchAPI, endResponse }) {
      const { method, headers } = request;
      const isPreflight = method === 'OPTIONS' && headers.has('access-control-request-method');
      if (!isPreflight || listedOrigin(request) === undefined) return;
      endResponse(new fetchAPI.Response(null, { status: 204, headers: PREFLIGHT }));
    },
    onResponse({ request, response: { headers } }) {
      // Also where there is no origin: a cache must not give that answer to a page.
      headers.append('vary', 'Origin');
      const origin = listedOrigin(request);
      if (origin === undefined) return;
      headers.set('access-control-allow-origin', origin);
      headers.set('access-control-expose-headers', READABLE);
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

const PREFLIGHT = {
  'access-control-allow-methods': 'GET, POST',
  'access-control-allow-headers': SENDABLE.join(', '),
  // Two hours, the longest that Chromium remembers one.
  'access-control-max-age': '7200',
};
