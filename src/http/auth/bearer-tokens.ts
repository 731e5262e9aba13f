import { decodeProtectedHeader, jwtVerify, type JWTPayload } from 'jose';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { BearerTokenOwner } from './authenticate.ts';
import { KeysUnavailable, type KeySet } from './issuer-keys.ts';

export interface BearerTokenParts {
  readonly issuer: string;
  readonly audience: string;
  /** The scopes that have a meaning here. Others are ignored. */
  readonly scopes: readonly string[];
  readonly keys: KeySet;
  readonly clock: Clock;
  readonly log: Logger;
}

/** No algorithm with a shared secret: an attacker could use the public key as that secret (RFC 8725, 2.1 and 3.1). */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');

/** The accepted difference between the issuer's clock and ours, s (RFC 7519, 4.1.4). */
const LEEWAY = 30;

/** Finds the owner of a bearer token; undefined if the token is not valid. */
export function bearerTokenOwners({
  issuer,
  audience,
  scopes,
  keys,
  clock,
  log,
}: BearerTokenParts): BearerTokenOwner {
  return async (token, caller) => {
    try {
      // Nothing but these two waits for keys: the rest of a header may take many times its text.
      const header = namedKey(token);
      if (header) await keys.ready(header, caller);
      const { payload } = await jwtVerify(token, keys.find, {
        issuer,
        audience,
        requiredClaims: ['exp'],
        algorithms: ALGORITHMS,
        clockTolerance: LEEWAY,
        currentDate: new Date(clock.now()),
      });
      const claimed = scopesOf(payload);
      return {
        name: `sub:${typeof payload.sub === 'string' ? payload.sub : ''}`,
        scopes: new Set(scopes.filter((scope) => claimed.includes(scope))),
      };
    } catch (error) {
      // Only the kind of fault: messages may contain a piece of the token.
      const { code, claim } = error as { code?: string; claim?: string };
      const { requestId } = caller;
      if (error instanceof KeysUnavailable) {
        log.info({ requestId, code }, 'a bearer token was not checked');
        return { retrySeconds: error.retrySeconds };
      }
      if (caller.hasLeft) throw error;
      log.info({ requestId, code, claim }, 'a bearer token was refused');
      return undefined;
    }
  };
}

/** Names the key that signed a token; undefined if no key can have done so. */
function namedKey(token: string): { alg: string; kid?: string } | undefined {
  try {
    const { alg, kid } = decodeProtectedHeader(token);
    if (alg === undefined || !ALGORITHMS.includes(alg)) return undefined;
    return { alg, ...(typeof kid === 'string' && { kid }) };
  } catch {
    return undefined;
  }
}

/** `scope` is the standard claim (RFC 8693, 4.2); some issuers write `scp`, as a text or as a list. */
function scopesOf({ scope, scp }: JWTPayload): readonly unknown[] {
  return [scope, scp].flatMap((claim) =>
    typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [],
  );
}
