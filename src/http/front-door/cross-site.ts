import type { Plugin } from 'graphql-yoga';
import { codedError } from '../../errors.ts';

/**
 * Executes nothing for the page of a site that nobody listed, whether it could read the answer or not.
 *
 * A page may send a GET without asking first, by an image or a link even, so a GET has to bring a header that
 * no browser sends to another origin before a preflight allowed it. For a POST its content type is such a header.
 */
export function crossSite(origins: readonly string[]): Plugin {
  return {
    onRequestParse({ request: { method, headers } }) {
      if (isOfAnotherSite(headers) && !origins.includes(headers.get('origin') ?? '')) {
        throw codedError(
          'FORBIDDEN',
          'The page that asks is of another origin. To let it ask, the operator of this gateway adds that origin to CORS_ORIGINS.',
          { extensions: { http: { status: 403 } } },
        );
      }
      if (method !== 'GET' || isPreflighted(headers)) return;
      throw codedError(
        'BAD_USER_INPUT',
        'Send a query in the address together with the header "apollo-require-preflight: true", which keeps other sites from sending it, or use POST.',
        { extensions: { http: { status: 400 } } },
      );
    },
  };
}

/**
 * What browsers say themselves, and no page can forge. `Origin` alone does not tell: behind a proxy the page of
 * the gateway's own origin may have another host name than the one that is sent on.
 */
function isOfAnotherSite(headers: Headers): boolean {
  return ['cross-site', 'same-site'].includes(headers.get('sec-fetch-site') ?? '');
}

const PREFLIGHTED = ['apollo-require-preflight', 'x-apollo-operation-name', 'x-api-key'];

function isPreflighted(headers: Headers): boolean {
  const isJson = /^application\/json\s*(;|$)/i.test(headers.get('content-type') ?? '');
  // With another scheme a browser may send a password that it remembers, for any page.
  const isBearer = /^Bearer /i.test(headers.get('authorization') ?? '');
  return isJson || isBearer || PREFLIGHTED.some((name) => headers.has(name));
}
