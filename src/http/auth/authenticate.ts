import type { Exchange, Reply, Stage } from '../exchange/exchange.ts';
import { identify, type Credentials, type Identity } from './identify.ts';
import { unauthenticated } from './unauthenticated.ts';

/** Turns away who is not known, before any of the body is read. What stages before it answer is open to everybody. */
export function authenticate(credentials: Credentials): Stage {
  const admit = (exchange: Exchange, identity: Identity): Reply | undefined => {
    if (identity.kind !== 'known') return unauthenticated(identity, exchange, credentials);
    exchange.caller = identity.caller;
    // A cache on the way keeps no answer to Authorization (RFC 9111, 3.5), but it does not know x-api-key.
    exchange.replyHeaders['cache-control'] = 'private, no-store';
    return undefined;
  };
  return (exchange) => {
    const identity = identify(exchange, credentials);
    return identity instanceof Promise
      ? identity.then((found) => admit(exchange, found))
      : admit(exchange, identity);
  };
}
