import { jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { Caller } from './caller.ts';

export interface BearerTokenParts {
  readonly issuer: string;
  readonly audience: string;
  /** Those that mean something here; all others are dropped. */
  readonly scopes: readonly string[];
  readonly keys: JWTVerifyGetKey;
  readonly clock: Clock;
  readonly log: Logger;
}

/** None that uses a secret: a public key would pass for one (RFC 8725, 2.1 and 3.1). */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');

/** By so much the issuer's clock and ours may differ, s (RFC 7519, 4.1.4). */
const LEEWAY = 30;

/** Finds whose a bearer token is; undefined for one that is not to be trusted. */
export function bearerTokenOwners({
  issuer,
  audience,
  scopes,
  keys,
  clock,
  log,
}: BearerTokenParts): (token: string) => Promise<Caller | undefined> {
  return async (token) => {
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        requiredClaims: ['exp'],
        algorithms: ALGORITHMS,
        clockTolerance: LEEWAY,
        currentDate: new Date(clock.now()),
      });
      const carried = scopesOf(payload);
      return {
        name: `sub:${typeof payload.sub === 'string' ? payload.sub : ''}`,
        scopes: new Set(scopes.filter((scope) => carried.includes(scope))),
      };
    } catch (error) {
      // Nothing but the kind of fault: messages may hold a piece of the token.
      const { code, claim } = error as { code?: string; claim?: string };
      log.info({ code, claim }, 'a bearer token was refused');
      return undefined;
    }
  };
}

/** `scope` is the standard (RFC 8693, 4.2); some issuers write `scp`, as a text or as a list. */
function scopesOf({ scope, scp }: JWTPayload): readonly unknown[] {
  return [scope, scp].flatMap((claim) =>
    typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [],
  );
}
