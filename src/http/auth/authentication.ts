import { hash as hashOf } from 'node:crypto';
import type { GraphQLError } from 'graphql';
import type { Caller } from '../../engine/call.ts';
import { codedError } from '../../errors.ts';
import type { Exchange, Stage } from '../exchange.ts';
import { ROUTER } from '../operation.ts';
import type { BearerTokenParts, TrustedIssuer } from './bearer-tokens.ts';

export interface ApiKey {
  readonly name: string;
  /** SHA-256 of the key, in hex. Without salt and not slow, because an attacker has 32 random bytes to guess. */
  readonly hash: string;
  readonly scopes: readonly string[];
}

/** The credentials that are accepted. The header of others is ignored. */
interface AcceptedCredentials {
  readonly apiKeys: readonly ApiKey[];
  /** Undefined: bearer tokens are not accepted. */
  readonly jwt: TrustedIssuer | undefined;
}

/**
 * Refuses callers without a valid credential, before any of the body is read. If a caller sends two credentials, both
 * must be valid: ignoring a wrong one would hide from the caller that its token has expired, and would let the other
 * credential act alone.
 */
export async function authentication(
  { apiKeys, jwt }: AcceptedCredentials,
  parts: BearerTokenParts,
): Promise<Stage> {
  const refusal = refusalOf(apiKeys.length > 0, jwt !== undefined);
  // By their hashes, so that the time does not show how similar a wrong key is to a right one.
  const programs = new Map<string, Caller>(
    apiKeys.map(({ name, hash, scopes }) => [
      hash,
      { name: `key:${name}`, scopes: new Set(scopes) },
    ]),
  );
  // Imported only if tokens are accepted: the libraries that read them take a visible part of the start.
  const personOf = jwt && (await import('./bearer-tokens.ts')).bearerTokenOwners(jwt, parts);
  const refused = (exchange: Exchange, reason: string) => {
    exchange.refused = reason;
    return refusal();
  };
  return (exchange) => {
    const key = apiKeys.length > 0 ? exchange.header('x-api-key') : undefined;
    const program = key === undefined ? undefined : programs.get(hashOf('sha256', key));
    if (key !== undefined && !program) throw refused(exchange, 'unknown API key');
    const authorization = personOf && exchange.header('authorization');
    if (authorization === undefined) {
      if (!program) throw refused(exchange, 'no credential');
      return admit(exchange, program);
    }
    // RFC 6750, 2.1. The name of the scheme is case-insensitive (RFC 9110, 11.1).
    const [, token] = /^Bearer +([\w.~+/-]+=*)$/i.exec(authorization) ?? [];
    if (token === undefined) throw refused(exchange, 'not "Bearer <token>"');
    return personOf!(token, exchange).then((person) => {
      if (!person) throw refused(exchange, 'bearer token');
      return admit(exchange, program ? onBehalf(program, person) : person);
    });
  };
}

/** Makes the error of callers without a valid credential. It never says what exactly is wrong with one. */
function refusalOf(hasApiKeys: boolean, hasTokens: boolean): () => GraphQLError {
  const ways = [
    hasApiKeys ? 'an API key from the operator of this gateway, as "x-api-key: <key>"' : [],
    hasTokens ? 'the access token of a signed-in user, as "authorization: Bearer <token>"' : [],
  ].flat();
  const message =
    `This request has no credential that is valid for this gateway now. Send ${ways.join(', or ')}. ` +
    'If it is refused again, the operator of this gateway finds the reason in the log.';
  // At least one challenge is required (RFC 9110, 11.6.1). No registered scheme exists for API keys.
  const challenge = `${hasTokens ? 'Bearer' : 'ApiKey'} realm="recruiting-subgraph"`;
  const http = { status: 401, headers: { 'www-authenticate': challenge } };
  return () => codedError('UNAUTHENTICATED', message, { extensions: { http } });
}

function admit(exchange: Exchange, caller: Caller): undefined {
  exchange.caller = caller;
  // Shared caches do not store answers to Authorization (RFC 9111, 3.5), but they do not know x-api-key.
  exchange.replyHeaders['cache-control'] = 'private, no-store';
}

/**
 * Combines a program that acts for a person, such as a router, with the person: it may do only what both of them may
 * do. A router remains one for each of its clients, whose tokens do not have its scope.
 */
function onBehalf(program: Caller, person: Caller): Caller {
  const scopes = [...program.scopes].filter(
    (scope) => scope === ROUTER || person.scopes.has(scope),
  );
  return { name: program.name, scopes: new Set(scopes) };
}
