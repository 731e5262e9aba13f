import type { BearerTokenOwner, TrustedIssuer } from './bearer-tokens.ts';
import { hash as hashOf } from 'node:crypto';
import { OperationTypeNode, type GraphQLError } from 'graphql';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../clock.ts';
import { codedError, forbidden } from '../../errors.ts';
import type { CheckedOperation } from '../../operations/operations.ts';
import type { Caller, Exchange, Stage } from '../exchange.ts';
import type { Check } from '../operation.ts';

/** The credentials that are accepted. A header whose function is undefined is ignored. */
interface Credentials {
  readonly apiKeyOwner: ((key: string) => Caller | undefined) | undefined;
  readonly bearerTokenOwner: BearerTokenOwner | undefined;
}

/**
 * Refuses callers without a valid credential, before any of the body is read. If a caller sends two credentials, both
 * must be valid: ignoring a wrong one would hide from the caller that its token has expired, and would let the other
 * credential act alone.
 */
function authenticate(credentials: Credentials): Stage {
  const { apiKeyOwner, bearerTokenOwner } = credentials;
  const refusal = refusalOf(credentials);
  return (exchange) => {
    const key = apiKeyOwner && exchange.header('x-api-key');
    const program = key === undefined ? undefined : apiKeyOwner?.(key);
    if (key !== undefined && !program) throw refusal();
    const authorization = bearerTokenOwner && exchange.header('authorization');
    if (authorization === undefined) {
      if (!program) throw refusal();
      return admit(exchange, program);
    }
    const token = bearerToken(authorization);
    if (token === undefined) throw refusal();
    return bearerTokenOwner!(token, exchange).then((person) => {
      if (!person) throw refusal();
      return admit(exchange, program ? onBehalf(program, person) : person);
    });
  };
}

/** Makes the error of callers without a valid credential. It never says what exactly is wrong with one. */
function refusalOf({ apiKeyOwner, bearerTokenOwner }: Credentials): () => GraphQLError {
  const ways = [
    ...(apiKeyOwner ? ['an API key from the operator of this gateway, as "x-api-key: <key>"'] : []),
    ...(bearerTokenOwner
      ? ['the access token of a signed-in user, as "authorization: Bearer <token>"']
      : []),
  ];
  const message =
    `This request has no credential that is valid for this gateway now. Send ${ways.join(', or ')}. ` +
    'If a token is refused again, the operator of this gateway finds the reason in the log.';
  // At least one challenge is required (RFC 9110, 11.6.1). No registered scheme exists for API keys.
  const challenge = `${bearerTokenOwner ? 'Bearer' : 'ApiKey'} realm="recruiting-subgraph"`;
  const http = { status: 401, headers: { 'www-authenticate': challenge } };
  return () => codedError('UNAUTHENTICATED', message, { extensions: { http } });
}

function admit(exchange: Exchange, caller: Caller): undefined {
  exchange.caller = caller;
  // Shared caches do not store answers to Authorization (RFC 9111, 3.5), but they do not know x-api-key.
  exchange.replyHeaders['cache-control'] = 'private, no-store';
}

/** The token of the header (RFC 6750, 2.1). The name of the scheme is case-insensitive (RFC 9110, 11.1). */
function bearerToken(authorization: string): string | undefined {
  return /^Bearer +([\w.~+/-]+=*)$/i.exec(authorization)?.[1];
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

export interface ApiKey {
  readonly name: string;
  /** SHA-256 of the key, without salt and not slow: an attacker would have to guess 32 random bytes, not a password. */
  readonly hash: Uint8Array;
  readonly scopes: readonly string[];
}

/** Finds the owner of a key by its hash, so that the time does not show how similar a wrong key is to a right one. */
function apiKeyOwners(keys: readonly ApiKey[]): (key: string) => Caller | undefined {
  const owners = new Map<string, Caller>();
  for (const { name, hash, scopes } of keys) {
    owners.set(Buffer.from(hash).toString('hex'), { name: `key:${name}`, scopes: new Set(scopes) });
  }
  return (key) => owners.get(hashOf('sha256', key));
}

interface AdmissionSettings {
  readonly apiKeys: readonly ApiKey[];
  /** Undefined: bearer tokens are not accepted. */
  readonly jwt: TrustedIssuer | undefined;
}

interface AdmissionParts {
  /** Opens the connections to the issuer, through a proxy if there is one. */
  readonly http: Dispatcher;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Decides which callers are admitted, and what each caller may do. */
interface Admission {
  readonly authenticate?: Stage;
  readonly enforceScopes?: Check;
  /** Whether the caller is the router of a supergraph. Callers without credentials are not. */
  readonly isRouter: (exchange: Exchange) => boolean;
}

/** @param settings undefined: callers need no credential */
export async function createAdmission(
  settings: AdmissionSettings | undefined,
  parts: AdmissionParts,
): Promise<Admission> {
  if (!settings) return { isRouter: () => false };
  const { apiKeys, jwt } = settings;
  return {
    authenticate: authenticate({
      apiKeyOwner: apiKeys.length > 0 ? apiKeyOwners(apiKeys) : undefined,
      bearerTokenOwner: jwt && (await bearerTokens(jwt, parts)),
    }),
    enforceScopes,
    isRouter: ({ caller }) => caller?.scopes.has(ROUTER) === true,
  };
}

async function bearerTokens(issuer: TrustedIssuer, { http, clock, log }: AdmissionParts) {
  // Imported only if tokens are accepted: the libraries that read them take a visible part of the start.
  const { bearerTokenOwners } = await import('./bearer-tokens.ts');
  const { keySet } = await import('./key-set.ts');
  const keys = keySet(issuer.jwksUrl, { http, clock, log });
  return bearerTokenOwners({ ...issuer, keys, clock, log });
}

/**
 * Refuses operations for which the caller lacks a scope. This comes before validation, whose errors would reveal the
 * schema.
 */
const enforceScopes: Check = ({ exchange: { caller }, operation }) => {
  checkScope(caller!, operation);
  checkRouterFields(caller!, operation);
};

/** Applies to routers too: no scope includes another one. */
function checkScope({ scopes }: Caller, { type }: CheckedOperation): void {
  const needed = type === OperationTypeNode.MUTATION ? 'write' : 'read';
  if (scopes.has(needed)) return;
  const what = needed === 'write' ? 'Mutations need' : 'Queries need';
  throw forbidden(
    `${what} the scope "${needed}", which this credential does not have. The operator of this gateway can grant it.`,
  );
}

/** The scope of the fields `_entities` and `_service`. */
const ROUTER = 'router';

function checkRouterFields({ scopes }: Caller, { routerFields: [field] }: CheckedOperation): void {
  if (field === undefined || scopes.has(ROUTER)) return;
  throw forbidden(
    `The field ${field} is for the router of the supergraph. It needs the scope "${ROUTER}", which this credential does not ` +
      'have. The operator of this gateway can grant it.',
  );
}
