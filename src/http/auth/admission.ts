import { OperationTypeNode } from 'graphql';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import { codedError, forbidden } from '../../errors.ts';
import type { CheckedOperation } from '../../operations/operations.ts';
import type { Caller, Exchange, Stage } from '../exchange.ts';
import { apiKeyOwners, authenticate, type ApiKey } from './authenticate.ts';

export interface AdmissionSettings {
  readonly apiKeys: readonly ApiKey[];
  /** Undefined: bearer tokens are not accepted. */
  readonly jwt: TrustedIssuer | undefined;
  /** Each `key:<name>` or `scope:<scope>`; undefined: every caller with the scope `read` may use the router fields. */
  readonly routerCallers: readonly string[] | undefined;
}

export interface TrustedIssuer {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  /** The scopes that have a meaning here. Others are ignored. */
  readonly scopes: readonly string[];
}

export interface AdmissionParts {
  /** The proxy for a URL; undefined: none. */
  readonly proxyFor: (url: string) => string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Decides which callers are admitted, and what each may do. */
export interface Admission {
  readonly authenticate: Stage;
  readonly enforceScopes: Stage;
  /** Whether the caller is a router: one that ROUTER_CALLERS names. */
  readonly isRouter: (exchange: Exchange) => boolean;
}

/** @param settings undefined: callers need no credential */
export async function createAdmission(
  settings: AdmissionSettings | undefined,
  parts: AdmissionParts,
): Promise<Admission> {
  if (!settings) {
    return { authenticate: passOn, enforceScopes: passOn, isRouter: () => false };
  }
  const { apiKeys, jwt, routerCallers } = settings;
  return {
    authenticate: authenticate({
      apiKeyOwner: apiKeys.length > 0 ? apiKeyOwners(apiKeys) : undefined,
      bearerTokenOwner: jwt && (await bearerTokens(jwt, parts)),
    }),
    enforceScopes: enforceScopes(routerCallers),
    isRouter: ({ caller }) =>
      caller !== undefined && routerCallers !== undefined && isRouter(caller, routerCallers),
  };
}

const passOn: Stage = () => undefined;

async function bearerTokens(issuer: TrustedIssuer, { proxyFor, clock, log }: AdmissionParts) {
  // Imported only if tokens are accepted: the libraries that read them take a visible part of the start.
  const [{ bearerTokenOwners }, { createKeySet, keysAt }] = await Promise.all([
    import('./bearer-tokens.ts'),
    import('./issuer-keys.ts'),
  ]);
  const { jwksUrl } = issuer;
  const fetchKeys = keysAt(jwksUrl, { proxy: proxyFor(jwksUrl) });
  return bearerTokenOwners({
    ...issuer,
    keys: createKeySet({ fetchKeys, clock, log }),
    clock,
    log,
  });
}

/**
 * Refuses operations for which the caller lacks a scope. This comes before validation, whose errors would reveal the
 * schema.
 */
function enforceScopes(routerCallers: readonly string[] | undefined): Stage {
  return ({ caller, operation }) => {
    if (!caller) throw codedError('UNAUTHENTICATED', NOT_AUTHENTICATED);
    if (!operation) return undefined;
    checkScope(caller, operation);
    if (routerCallers && !isRouter(caller, routerCallers)) checkRouterFields(operation);
    return undefined;
  };
}

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

function isRouter({ name, scopes }: Caller, routerCallers: readonly string[]): boolean {
  return routerCallers.some((entry) =>
    entry.startsWith('scope:') ? scopes.has(entry.slice('scope:'.length)) : entry === name,
  );
}

function checkRouterFields({ routerFields: [field] }: CheckedOperation): void {
  if (field === undefined) return;
  throw forbidden(
    `The field ${field} is reserved for the router of the supergraph, and this credential is not a router's. ` +
      'The operator of this gateway can add it to ROUTER_CALLERS.',
  );
}
