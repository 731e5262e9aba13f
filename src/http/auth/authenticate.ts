import type { Exchange, Reply, Stage } from '../exchange/exchange.ts';
import type { Caller, Credentials, Identity } from './caller.ts';
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

/**
 * Goes by the credentials in the headers. Of two, both have to be valid: to pass over a wrong one would hide from a
 * caller that a token has expired, and let the other credential answer for whoever sent it.
 */
function identify(
  exchange: Exchange,
  { apiKeyOwner, bearerTokenOwner }: Credentials,
): Identity | Promise<Identity> {
  const key = apiKeyOwner && exchange.header('x-api-key');
  const program = key === undefined ? undefined : apiKeyOwner?.(key);
  if (key !== undefined && !program) return { kind: 'refused', header: 'x-api-key' };
  const authorization = bearerTokenOwner && exchange.header('authorization');
  if (authorization === undefined) {
    return program ? { kind: 'known', caller: program } : { kind: 'nobody' };
  }
  const token = bearerToken(authorization);
  if (token === undefined) return { kind: 'refused', header: 'authorization' };
  return bearerTokenOwner!(token).then((person): Identity => {
    if (!person) return { kind: 'refused', header: 'authorization' };
    return { kind: 'known', caller: program ? onBehalf(program, person) : person };
  });
}

/** RFC 6750, 2.1; the name of a scheme may be written in small letters too (RFC 9110, 11.1). */
function bearerToken(authorization: string): string | undefined {
  return /^Bearer +([\w.~+/-]+=*)$/i.exec(authorization)?.[1];
}

/** A program that asks for somebody, such as a router, may do what both may: neither lends its rights to the other. */
function onBehalf(program: Caller, person: Caller): Caller {
  const scopes = [...program.scopes].filter((scope) => person.scopes.has(scope));
  return { name: program.name, scopes: new Set(scopes) };
}
