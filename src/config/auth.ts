import { z } from 'zod';
import { API_KEY_NAME, apiKeys, SCOPES, type ApiKey } from './api-keys.ts';
import { secureUrl } from './values.ts';

/** Who may ask, and what. */
export interface AuthSettings {
  readonly apiKeys: readonly ApiKey[];
  /** Undefined: bearer tokens are not taken. */
  readonly jwt: JwtSettings | undefined;
  /** `key:<name>` or `scope:<scope>` each; undefined: the fields of routers are for everybody who may read. */
  readonly routerCallers: readonly string[] | undefined;
}

export interface JwtSettings {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  /** Those of a token that mean something here. */
  readonly scopes: readonly string[];
}

// Scopes as OAuth writes them (RFC 6749, 3.3), but for the comma.
const ROUTER_CALLER = `(key:${API_KEY_NAME}|scope:[!#-+\\--[\\]-~]+)`;

export const authVariables = {
  AUTH_API_KEYS: apiKeys().optional(),
  AUTH_JWKS_URL: secureUrl().optional(),
  AUTH_ISSUER: z.string().optional(),
  AUTH_AUDIENCE: z.string().optional(),
  ROUTER_CALLERS: z
    .string()
    .regex(
      new RegExp(`^${ROUTER_CALLER}(\\s*,\\s*${ROUTER_CALLER})*$`),
      'must be key:<name of an API key> or scope:<scope>, several with commas between',
    )
    .transform((text) => text.split(/\s*,\s*/))
    .optional(),
};

const variables = z.object(authVariables);

const TOGETHER = ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const;

/** Undefined: callers are not asked who they are. */
export function toAuth(given: z.output<typeof variables>): AuthSettings | undefined {
  const { AUTH_JWKS_URL: jwksUrl, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = given;
  const { AUTH_API_KEYS: keys = [], ROUTER_CALLERS: routerCallers } = given;
  const takesJwts = jwksUrl !== undefined && issuer !== undefined && audience !== undefined;
  if (keys.length === 0 && !takesJwts) return undefined;
  const scopes = [...SCOPES, ...scopesOf(routerCallers ?? [])];
  const jwt = takesJwts ? { jwksUrl, issuer, audience, scopes } : undefined;
  return { apiKeys: keys, jwt, routerCallers };
}

function scopesOf(routerCallers: readonly string[]): string[] {
  return routerCallers.flatMap((caller) => /^scope:(.+)$/.exec(caller)?.[1] ?? []);
}

/** What would let in everybody, or keep out everybody, by mistake. */
export function authContradictions(given: Readonly<Record<string, string>>): string[] {
  const isGiven = (name: string) => (given[name] ?? given[`${name}_FILE`]) !== undefined;
  const isAuthGiven = ['AUTH_API_KEYS', ...TOGETHER].some(isGiven);
  const isOpen = given['ALLOW_ANONYMOUS'] === 'true';
  const mistakes: string[] = [];
  if (isAuthGiven && isOpen) {
    mistakes.push(
      'ALLOW_ANONYMOUS=true lets in everybody, and AUTH_… says who may come in: remove one of them.',
    );
  }
  if (!isAuthGiven && !isOpen) {
    mistakes.push(
      'With a RECRUITING_URL, real data would be served to anybody who reaches this address: ' +
        'say with AUTH_API_KEYS or AUTH_JWKS_URL who may ask, or set ALLOW_ANONYMOUS=true if something else in front of the gateway decides that.',
    );
  }
  const missing = TOGETHER.filter((name) => !isGiven(name));
  if (missing.length > 0 && missing.length < TOGETHER.length) {
    mistakes.push(
      `AUTH_JWKS_URL, AUTH_ISSUER and AUTH_AUDIENCE belong together: set ${missing.join(' and ')} too.`,
    );
  }
  if (isGiven('ROUTER_CALLERS') && !isAuthGiven) {
    mistakes.push(
      'ROUTER_CALLERS is set, but nothing tells callers apart: the fields of routers would be closed to everybody. ' +
        'Set AUTH_API_KEYS or AUTH_JWKS_URL, or remove it.',
    );
  }
  return isAuthGiven ? [...mistakes, ...unknownRouters(given)] : mistakes;
}

/** Nothing, where what the entries refer to is wrong itself: that is to be mended first. */
function unknownRouters(given: Readonly<Record<string, string>>): string[] {
  const { success, data } = variables.safeParse(given);
  const isUnread = 'AUTH_API_KEYS_FILE' in given && !('AUTH_API_KEYS' in given);
  if (!success || isUnread) return [];
  const { AUTH_API_KEYS: keys = [], ROUTER_CALLERS: callers = [] } = data;
  const names = keys.map(({ name }) => `key:${name}`);
  const scopes = keys.flatMap((key) => key.scopes.map((scope) => `scope:${scope}`));
  return callers.flatMap((caller, index) => {
    const entry = `ROUTER_CALLERS entry ${index + 1} names`;
    if (caller.startsWith('key:')) {
      return names.includes(caller) ? [] : [`${entry} an API key that is not in AUTH_API_KEYS.`];
    }
    return data.AUTH_JWKS_URL !== undefined || scopes.includes(caller)
      ? []
      : [`${entry} a scope that nobody can have: no API key has it, and AUTH_JWKS_URL is not set.`];
  });
}
