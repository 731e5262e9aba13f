import { codedError } from '../../errors.ts';
import type { Exchange, Stage } from '../exchange/exchange.ts';
import { UNLISTED_ORIGIN } from './cors.ts';

/**
 * Executes nothing for the page of a site that nobody listed, whether it could read the answer or not.
 *
 * A page may send a GET without asking first, by an image or a link even, so a GET has to bring a header that
 * no browser sends to another origin before a preflight allowed it. For a POST its content type is such a header.
 */
export function crossSite(origins: readonly string[]): Stage {
  return (exchange) => {
    if (isOfAnotherSite(exchange) && !origins.includes(exchange.header('origin') ?? '')) {
      throw codedError('FORBIDDEN', UNLISTED_ORIGIN, { extensions: { http: { status: 403 } } });
    }
    if (exchange.method !== 'GET' || isPreflighted(exchange)) return undefined;
    throw codedError(
      'BAD_USER_INPUT',
      'Send a query in the address together with the header "apollo-require-preflight: true", which keeps other sites from sending it, or use POST.',
      { extensions: { http: { status: 400 } } },
    );
  };
}

/**
 * What browsers say themselves, and no page can forge. `Origin` alone does not tell: behind a proxy the page of
 * the gateway's own origin may have another host name than the one that is sent on.
 */
function isOfAnotherSite(exchange: Exchange): boolean {
  const site = exchange.header('sec-fetch-site');
  return site === 'cross-site' || site === 'same-site';
}

const PREFLIGHTED = ['apollo-require-preflight', 'x-apollo-operation-name', 'x-api-key'];

function isPreflighted(exchange: Exchange): boolean {
  const isJson = /^application\/json\s*(;|$)/i.test(exchange.header('content-type') ?? '');
  // With another scheme a browser may send a password that it remembers, for any page.
  const isBearer = /^Bearer /i.test(exchange.header('authorization') ?? '');
  return isJson || isBearer || PREFLIGHTED.some((name) => exchange.header(name) !== undefined);
}
