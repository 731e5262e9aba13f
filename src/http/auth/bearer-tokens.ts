import { GraphQLError } from 'graphql';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
} from 'jose';
import type { Logger } from 'pino';
import { fetch as send, type Dispatcher } from 'undici';
import type { Clock } from '../../clock.ts';
import type { Caller } from '../../engine/call.ts';
import { codedError } from '../../errors.ts';
import type { Exchange } from '../exchange.ts';

export interface TrustedIssuer {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
}

export interface BearerTokenParts {
  /** Opens the connections to the issuer, through a proxy if there is one. */
  readonly http: Dispatcher;
  readonly clock: Clock;
  readonly log: Logger;
}

/** No algorithm with a shared secret: an attacker could use the public key as that secret (RFC 8725, 2.1 and 3.1). */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');

/** The accepted difference between the issuer's clock and ours, s (RFC 7519, 4.1.4). */
const LEEWAY = 30;

/**
 * Finds the owner of a bearer token; undefined if the token is not valid.
 *
 * @throws RATE_LIMITED for one that cannot be checked now
 */
export function bearerTokenOwners(
  { jwksUrl, issuer, audience }: TrustedIssuer,
  parts: BearerTokenParts,
): (token: string, caller: Pick<Exchange, 'requestId'>) => Promise<Caller | undefined> {
  const { clock, log } = parts;
  const keys = keySet(jwksUrl, parts);
  return async (token, { requestId }) => {
    try {
      const payload = await verified(token, keys, {
        issuer,
        audience,
        requiredClaims: ['exp'],
        algorithms: ALGORITHMS,
        clockTolerance: LEEWAY,
        currentDate: new Date(clock.now()),
      });
      const subject = typeof payload.sub === 'string' ? payload.sub : '';
      return { name: `sub:${subject}`, scopes: scopesOf(payload) };
    } catch (error) {
      if (error instanceof GraphQLError) throw error;
      // Logs only the kind of fault: messages may contain a piece of the token.
      const { code, claim } = error as { code?: string; claim?: string };
      log.info({ requestId, code, claim }, 'a bearer token was refused');
      return undefined;
    }
  };
}

/** Of several keys that fit, as during a rotation without key ids, any may have signed the token. */
async function verified(
  token: string,
  keys: JWTVerifyGetKey,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (refusal) {
        if (!(refusal instanceof errors.JWSSignatureVerificationFailed)) throw refusal;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

/** `scope` is the standard claim (RFC 8693, 4.2); some issuers write `scp`, as a text or as a list. */
function scopesOf({ scope, scp }: JWTPayload): ReadonlySet<string> {
  const claim = scope ?? scp ?? [];
  return new Set((typeof claim === 'string' ? claim.split(' ') : [claim].flat()) as string[]);
}

/** The time after a failed fetch of the keys until the next one, s. */
export const RETRY_SECONDS = 5;

/** A key is unknown, and it is unclear whether the issuer has it. Not 401, with which clients log their users out. */
function unchecked() {
  const headers = { 'retry-after': String(RETRY_SECONDS) };
  return codedError(
    'RATE_LIMITED',
    'The keys that verify bearer tokens are unavailable, so the token of this request was not checked. ' +
      `Keep it, and try again in ${RETRY_SECONDS} s.`,
    { extensions: { retryAfter: RETRY_SECONDS, http: { status: 503, headers } } },
  );
}

/** What is wrong with a token, and not with the request for the keys. */
const OF_TOKENS = [
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
  errors.JOSENotSupported,
];

/**
 * The keys of an issuer, which jose fetches with the first token, when they are ten minutes old, and when a token names
 * an unknown key. While they cannot be fetched, the known keys remain valid without a limit, because each token expires
 * at its own time.
 *
 * Only the server that the operator named is trusted: jose follows no redirect.
 *
 * @returns finds the key of a token; rejects with RATE_LIMITED if its keys cannot be fetched, or as jose does
 */
export function keySet(address: string, { http, clock, log }: BearerTokenParts): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(new URL(address), {
    [customFetch]: async (url, options) =>
      (await send(url, { ...(options as object), dispatcher: http })) as object as Response,
  });
  let nextFetch = 0;
  return async (header, token) => {
    try {
      if (clock.elapsed() >= nextFetch) return await keys(header, token);
    } catch (error) {
      if (OF_TOKENS.some((kind) => error instanceof kind)) throw error;
      // Many callers may have waited for the same keys.
      if (clock.elapsed() >= nextFetch) {
        const { message, cause } = error as Error & { cause?: { code?: string } };
        log.warn({ reason: cause?.code ?? message }, NOT_FETCHED);
      }
      nextFetch = clock.elapsed() + RETRY_SECONDS * 1000;
    }
    const known = keys.jwks();
    if (!known) throw unchecked();
    return createLocalJWKSet(known)(header, token).catch((error: unknown) => {
      throw error instanceof errors.JWKSNoMatchingKey ? unchecked() : error;
    });
  };
}

const NOT_FETCHED =
  'the keys of AUTH_JWKS_URL could not be fetched. Until they can be, known keys remain valid. Check the URL and its server.';
