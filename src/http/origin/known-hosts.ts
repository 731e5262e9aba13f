import { codedError } from '../../errors.ts';
import type { Reply, Stage } from '../exchange/exchange.ts';
import { isProbe } from '../paths.ts';
import type { IsOurHost } from './host-names.ts';

/** Turns away what came by a name that is not ours. */
export function knownHosts(isOurHost: IsOurHost): Stage {
  return ({ path, host }) => {
    // Probes come by the address of a pod or a target, and are told nothing but yes or no.
    if (isOurHost(host) || isProbe(path)) return undefined;
    return misdirected();
  };
}

/** RFC 9110, 15.5.20. It does not say which names would do: those may be internal. */
function misdirected(): Reply {
  return {
    status: 421,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
    },
    body: JSON.stringify({ errors: [codedError('FORBIDDEN', MISDIRECTED)] }),
  };
}

export const MISDIRECTED =
  'Nothing is served here under the host name of this request. If it is a name of this gateway, its operator adds it to ALLOWED_HOSTS.';
