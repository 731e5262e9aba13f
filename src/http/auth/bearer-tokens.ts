import {
  errors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
} from 'jose';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../clock.ts';
import { codedError } from '../../errors.ts';
import type { Caller, Exchange } from '../exchange.ts';
import { keySet, KeysUnavailable, RETRY_MS } from './key-set.ts';

interface BearerTokenParts {
  /** Opens the connections to the issuer. */
  readonly http: Dispatcher;
  readonly clock: Clock;
  readonly log: Logger;
}

/** No algorithm with a shared secret: an attacker could use the public key as that secret (RFC 8725, 2.1 and 3.1). */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');

/** The accepted difference between the issuer's clock and ours, s (RFC 7519, 4.1.4). */
const LEEWAY = 30;

/** Finds the owner of a bearer token; undefined if the token is not valid. */
export function bearerTokenOwners(
  { jwksUrl, issuer, audience }: TrustedIssuer,
  { http, clock, log }: BearerTokenParts,
): BearerTokenOwner {
  const keys = keySet(jwksUrl, { http, clock, log });
  return async (token, caller) => {
    try {
      const payload = await verified(token, keys, {
        issuer,
        audience,
        requiredClaims: ['exp'],
        algorithms: ALGORITHMS,
        clockTolerance: LEEWAY,
        currentDate: new Date(clock.now()),
      });
      return {
        name: `sub:${typeof payload.sub === 'string' ? payload.sub : ''}`,
        scopes: scopesOf(payload),
      };
    } catch (error) {
      // Logs only the kind of fault: messages may contain a piece of the token.
      const { code, claim } = error as { code?: string; claim?: string };
      const { requestId } = caller;
      if (error instanceof KeysUnavailable) {
        log.info({ requestId, code }, 'a bearer token was not checked');
        throw unchecked();
      }
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

/** Not 401, with which clients log their users out. */
function unchecked() {
  const headers = { 'retry-after': String(RETRY_SECONDS) };
  return codedError(
    'RATE_LIMITED',
    'The keys that verify bearer tokens are unavailable, so the token of this request was not checked. ' +
      `Keep it, and try again in ${RETRY_SECONDS} s.`,
    { extensions: { retryAfter: RETRY_SECONDS, http: { status: 503, headers } } },
  );
}

const RETRY_SECONDS = RETRY_MS / 1000;

/**
 * Returns undefined for a token that is not valid.
 *
 * @throws RATE_LIMITED for one that cannot be checked now
 */
export type BearerTokenOwner = (
  token: string,
  caller: Pick<Exchange, 'requestId'>,
) => Promise<Caller | undefined>;

export interface TrustedIssuer {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
}
