import { type BearerTokenOwner, type TrustedIssuer } from './bearer-tokens.ts';
import { hash as hashOf, timingSafeEqual } from 'node:crypto';
import { OperationTypeNode } from 'graphql';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import { codedError, forbidden } from '../../errors.ts';
import type { CheckedOperation } from '../../operations/operations.ts';
import type { Caller, Exchange, Stage } from '../exchange.ts';
import type { Check } from '../operation.ts';
import { errorReply, type Reply } from '../reply.ts';

/** The credentials that are accepted. A header whose function is undefined is ignored. */
interface Credentials {
  readonly apiKeyOwner?: ((key: string) => Caller | undefined) | undefined;
  readonly bearerTokenOwner?: BearerTokenOwner | undefined;
}

type Identity =
  | { readonly kind: 'known'; readonly caller: Caller }
  /** The request has no credential, or only one of a kind that is not accepted. */
  | { readonly kind: 'anonymous'; readonly ignored: 'An API key' | 'A bearer token' | undefined }
  /** The credential in this header is wrong. */
  | { readonly kind: 'refused'; readonly header: 'x-api-key' | 'authorization' }
  /** It cannot be known now whether the token is valid. */
  | { readonly kind: 'unchecked'; readonly retrySeconds: number };

type Refusal = Extract<Identity, { kind: 'anonymous' | 'refused' }>;

/** Refuses callers without a valid credential, before any of the body is read. */
function authenticate(credentials: Credentials): Stage {
  const admit = (exchange: Exchange, identity: Identity): Reply | undefined => {
    if (identity.kind === 'unchecked') return unchecked(exchange, identity);
    if (identity.kind !== 'known') return unauthenticated(identity, exchange, credentials);
    exchange.authenticated(identity.caller);
    // Shared caches do not store answers to Authorization (RFC 9111, 3.5), but they do not know x-api-key.
    exchange.replyHeaders['cache-control'] = 'private, no-store';
    return undefined;
  };
  return (exchange) => {
    const identity = identify(exchange, credentials);
    return identity instanceof Promise
      ? identity.then((identified) => admit(exchange, identified))
      : admit(exchange, identity);
  };
}

/**
 * Identifies the caller by its headers. If it sends two credentials, both must be valid: ignoring a wrong one would hide
 * from the caller that its token has expired, and would let the other credential act alone.
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
    if (program) return { kind: 'known', caller: program };
    const isKey = !apiKeyOwner && exchange.header('x-api-key') !== undefined;
    const isToken = !bearerTokenOwner && exchange.header('authorization') !== undefined;
    const ignored = isKey ? 'An API key' : isToken ? 'A bearer token' : undefined;
    return { kind: 'anonymous', ignored };
  }
  const token = bearerToken(authorization);
  if (token === undefined) return { kind: 'refused', header: 'authorization' };
  return bearerTokenOwner!(token, exchange).then((person): Identity => {
    if (!person) return { kind: 'refused', header: 'authorization' };
    if ('retrySeconds' in person) return { kind: 'unchecked', ...person };
    return { kind: 'known', caller: program ? onBehalf(program, person) : person };
  });
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

/** Finds the owner of a key. The time that this takes does not show how similar a wrong key is to a right one. */
export function apiKeyOwners(keys: readonly ApiKey[]): (key: string) => Caller | undefined {
  const owners = keys.map(({ name, hash, scopes }) => ({
    hash,
    caller: { name: `key:${name}`, scopes: new Set(scopes) },
  }));
  /** Keys that were found before, so that each is hashed once. Wrong keys are not kept. */
  const known = new Map<string, Caller>();
  const find = (key: string) => {
    const sent = hashOf('sha256', key, 'buffer');
    // Compares all of them, including those after the right one, so that the time is always the same.
    return owners.filter(({ hash }) => timingSafeEqual(hash, sent))[0]?.caller;
  };
  return (key) => {
    const caller = known.get(key) ?? find(key);
    if (caller) known.set(key, caller);
    return caller;
  };
}

/**
 * The 401 reply, with a GraphQL error. It is written here because Yoga would choose its status and format by the
 * `accept` header. It never says what exactly is wrong with a credential.
 */
function unauthenticated(refusal: Refusal, exchange: Exchange, credentials: Credentials): Reply {
  const message = messageFor(refusal, credentials);
  const graphql = 'application/graphql-response+json';
  const type = exchange.header('accept')?.includes(graphql) ? graphql : 'application/json';
  return {
    status: 401,
    headers: {
      'content-type': `${type}; charset=utf-8`,
      'www-authenticate': challenges(refusal, credentials).join(', '),
      'cache-control': 'no-store',
    },
    body: JSON.stringify({ errors: [{ message, extensions: { code: 'UNAUTHENTICATED' } }] }),
  };
}

/** Not 401, with which clients log their users out. */
function unchecked(exchange: Exchange, { retrySeconds }: { readonly retrySeconds: number }): Reply {
  const error = codedError(
    'RATE_LIMITED',
    'The keys that verify bearer tokens are unavailable, so the token of this request was not checked. ' +
      `Keep it, and try again in ${retrySeconds} s.`,
    { extensions: { retryAfter: retrySeconds } },
  );
  exchange.notes.outcome = 'RATE_LIMITED';
  const reply = errorReply(503, error);
  return { ...reply, headers: { ...reply.headers, 'retry-after': String(retrySeconds) } };
}

function messageFor(refusal: Refusal, { apiKeyOwner, bearerTokenOwner }: Credentials): string {
  if (refusal.kind === 'anonymous') {
    const ways = [
      ...(apiKeyOwner
        ? ['an API key from the operator of this gateway, as "x-api-key: <key>"']
        : []),
      ...(bearerTokenOwner
        ? ['the access token of a signed-in user, as "authorization: Bearer <token>"']
        : []),
    ];
    const { ignored } = refusal;
    const what = ignored
      ? `${ignored} is not accepted by this gateway.`
      : 'This request has no credential.';
    return `${what} Send ${ways.join(', or ')}.`;
  }
  return refusal.header === 'x-api-key'
    ? 'The API key in x-api-key is not valid. Check that it is complete and sent only once, or request a new one from the operator of this gateway.'
    : 'The authorization header has no bearer token that is valid for this gateway now. Get a new token and send it once, ' +
        'as "authorization: Bearer <token>"; if that is refused too, the operator of this gateway finds the reason in the log.';
}

/** At least one challenge is required (RFC 9110, 11.6.1). No registered scheme exists for API keys. */
function challenges(
  refusal: Refusal,
  { apiKeyOwner, bearerTokenOwner }: Credentials,
): readonly string[] {
  const isRefused = refusal.kind === 'refused' && refusal.header === 'authorization';
  return [
    ...(apiKeyOwner ? [`ApiKey ${REALM}, header="x-api-key"`] : []),
    // An error code is allowed only if a token was sent (RFC 6750, 3.1).
    ...(bearerTokenOwner ? [`Bearer ${REALM}${isRefused ? ', error="invalid_token"' : ''}`] : []),
  ];
}

const REALM = 'realm="recruiting-subgraph"';

export interface AdmissionSettings {
  readonly apiKeys: readonly ApiKey[];
  /** Undefined: bearer tokens are not accepted. */
  readonly jwt: TrustedIssuer | undefined;
}

export interface AdmissionParts {
  /** The proxy for a URL; undefined: none. */
  readonly proxyFor: (url: string) => string | undefined;
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

async function bearerTokens(issuer: TrustedIssuer, { proxyFor, clock, log }: AdmissionParts) {
  // Imported only if tokens are accepted: the libraries that read them take a visible part of the start.
  const { bearerTokenOwners } = await import('./bearer-tokens.ts');
  const { keySet } = await import('./key-set.ts');
  const keys = keySet(issuer.jwksUrl, { proxy: proxyFor(issuer.jwksUrl), clock, log });
  return bearerTokenOwners({ ...issuer, keys, clock, log });
}

/**
 * Refuses operations for which the caller lacks a scope. This comes before validation, whose errors would reveal the
 * schema.
 */
const enforceScopes: Check = ({ exchange: { caller }, operation }) => {
  if (!caller) throw codedError('UNAUTHENTICATED', NOT_AUTHENTICATED);
  checkScope(caller, operation);
  checkRouterFields(caller, operation);
};

const NOT_AUTHENTICATED = 'This request was not authenticated. Send it with a credential.';

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
