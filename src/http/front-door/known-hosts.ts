import type { FetchAPI, Plugin } from 'graphql-yoga';
import { codedError } from '../../errors.ts';
import type { IsOurHost } from './host-names.ts';

export interface KnownHosts {
  /** Turns away what came by a name that is not ours. */
  readonly plugin: Plugin;
  readonly isForUs: (request: Request) => boolean;
}

export function knownHosts(isOurHost: IsOurHost): KnownHosts {
  const isForUs = ({ headers, url }: Request) =>
    isOurHost(headers.get('host') ?? new URL(url).host);
  return {
    isForUs,
    plugin: {
      onRequest({ request, url, fetchAPI, endResponse }) {
        // Probes come by the address of a pod or a target, and are told nothing but yes or no.
        if (PROBES.includes(url.pathname) || isForUs(request)) return;
        endResponse(misdirected(fetchAPI));
      },
    },
  };
}

const PROBES = ['/health', '/ready'];

/** RFC 9110, 15.5.20. It does not say which names would do: those may be internal. */
function misdirected(fetchAPI: FetchAPI): Response {
  const error = codedError('FORBIDDEN', MISDIRECTED);
  return new fetchAPI.Response(JSON.stringify({ errors: [error] }), {
    status: 421,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
    },
  });
}

export const MISDIRECTED =
  'Nothing is served here under the host name of this request. If it is a name of this gateway, its operator adds it to ALLOWED_HOSTS.';
