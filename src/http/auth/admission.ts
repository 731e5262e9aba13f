import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { Exchange, Stage } from '../exchange/exchange.ts';
import { apiKeyOwners, type ApiKey } from './api-keys.ts';
import { authenticate } from './authenticate.ts';
import { bearerTokenOwners } from './bearer-tokens.ts';
import { enforceScopes, isRouter } from './enforce-scopes.ts';
import { keysAt } from './fetch-keys.ts';
import { createKeySet } from './key-set.ts';

export interface AdmissionParts {
  readonly apiKeys: readonly ApiKey[];
  /** Undefined: bearer tokens are not taken. */
  readonly jwt: TrustedIssuer | undefined;
  /** `key:<name>` or `scope:<scope>` each; undefined: the fields of routers are for everybody who may read. */
  readonly routerCallers: readonly string[] | undefined;
  /** The proxy for an address, if there is one. */
  readonly proxyFor: (url: string) => string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface TrustedIssuer {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  /** Those that mean something here; all others are dropped. */
  readonly scopes: readonly string[];
}

/** Who is let in, and what each may do. */
export interface Admission {
  readonly authenticate: Stage;
  readonly enforceScopes: Stage;
  /** Whether it came with the credential of a router: one that ROUTER_CALLERS names. */
  readonly isRouter: (exchange: Exchange) => boolean;
}

/** A key comes to its scopes through api-keys, a token through key-set and bearer-tokens, and both through authenticate. */
export function createAdmission(parts: AdmissionParts): Admission {
  const { apiKeys, jwt, routerCallers } = parts;
  return {
    authenticate: authenticate({
      apiKeyOwner: apiKeys.length > 0 ? apiKeyOwners(apiKeys) : undefined,
      bearerTokenOwner: jwt && ownersBy(jwt, parts),
    }),
    enforceScopes: enforceScopes(routerCallers),
    isRouter: ({ caller }) =>
      caller !== undefined && routerCallers !== undefined && isRouter(caller, routerCallers),
  };
}

function ownersBy(issuer: TrustedIssuer, { proxyFor, clock, log }: AdmissionParts) {
  const { jwksUrl } = issuer;
  const fetchKeys = keysAt(jwksUrl, { proxy: proxyFor(jwksUrl) });
  return bearerTokenOwners({
    ...issuer,
    keys: createKeySet({ fetchKeys, clock, log }),
    clock,
    log,
  });
}
