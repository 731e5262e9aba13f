import { z } from 'zod';
import { OperatorMistakes } from '../errors.ts';
import { COMMAND_LINE } from './command-line.ts';
import { secureUrl } from './values.ts';

const API_KEY_NAME = '[A-Za-z0-9][A-Za-z0-9._-]{0,63}';

/** What each scope allows. */
export const SCOPES = {
  read: 'queries that return up to 500 records of lists, and totalCount of any list',
  drain: 'queries that return more records, up to whole lists',
  write: 'mutations that MUTATIONS allows',
  router: 'nothing by itself: marks a router, for ROUTER_CALLERS=scope:router',
};
const SCOPE_NAMES = Object.keys(SCOPES);
const KEYS_NEW = `${COMMAND_LINE} keys new <name>`;
const CREATES_ONE = `the command \`${KEYS_NEW}\` creates one`;
const SEPARATOR = /\s*[,\n]\s*/;
const ENTRY = /^(?<name>[^:]*):(?<hash>[^:]*)(:(?<scopes>[^:]*))?$/;

// Scopes as OAuth writes them (RFC 6749, 3.3), without the comma.
const ROUTER_CALLER = `(key:${API_KEY_NAME}|scope:[!#-+\\--[\\]-~]+)`;

export const authVariables = {
  AUTH_API_KEYS: keyEntries().optional(),
  AUTH_JWKS_URL: secureUrl().optional(),
  AUTH_ISSUER: z.string().optional(),
  AUTH_AUDIENCE: z.string().optional(),
  ROUTER_CALLERS: z
    .string()
    .regex(
      new RegExp(`^${ROUTER_CALLER}(\\s*,\\s*${ROUTER_CALLER})*$`),
      'must be key:<name of an API key> or scope:<scope>; several are separated by commas',
    )
    .transform((text): readonly string[] => text.split(/\s*,\s*/))
    .optional(),
};

const variables = z.object(authVariables);

const TOGETHER = ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const;

/** Which callers are admitted, and what each may do; undefined: callers need no credential. */
export function toAuth(settings: z.output<typeof variables>) {
  const { AUTH_JWKS_URL: jwksUrl, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = settings;
  const { AUTH_API_KEYS: apiKeys = [], ROUTER_CALLERS: routerCallers } = settings;
  const acceptsJwts = jwksUrl !== undefined && issuer !== undefined && audience !== undefined;
  if (apiKeys.length === 0 && !acceptsJwts) return undefined;
  /** The scopes of a token that have a meaning here. */
  const scopes: readonly string[] = [...SCOPE_NAMES, ...scopesOf(routerCallers ?? [])];
  return {
    apiKeys,
    /** Undefined: bearer tokens are not accepted. */
    jwt: acceptsJwts ? { jwksUrl, issuer, audience, scopes } : undefined,
    /** Each `key:<name>` or `scope:<scope>`; undefined: every caller with the scope `read` may use the router fields. */
    routerCallers,
  };
}

function scopesOf(routerCallers: readonly string[]): string[] {
  return routerCallers.flatMap((caller) => /^scope:(.+)$/.exec(caller)?.[1] ?? []);
}

/** Combinations that would admit or refuse every caller by mistake. */
export function authContradictions(settings: Readonly<Record<string, string>>): string[] {
  const isSet = (name: string) => (settings[name] ?? settings[`${name}_FILE`]) !== undefined;
  const isAuthSet = ['AUTH_API_KEYS', ...TOGETHER].some(isSet);
  const isAnonymous = settings['ALLOW_ANONYMOUS'] === 'true';
  const mistakes: string[] = [];
  if (isAuthSet && isAnonymous) {
    mistakes.push(
      'ALLOW_ANONYMOUS=true admits every caller, but the AUTH_… settings admit only some. Remove one of the two.',
    );
  }
  if (!isAuthSet && !isAnonymous) {
    mistakes.push(
      'RECRUITING_URL is set, but no caller needs a credential: real data would be served to everyone who can reach this address. ' +
        `Set AUTH_API_KEYS (\`${KEYS_NEW}\` makes a key) or AUTH_JWKS_URL, or set ALLOW_ANONYMOUS=true if something in front of the gateway authenticates callers.`,
    );
  }
  const missing = TOGETHER.filter((name) => !isSet(name));
  if (missing.length > 0 && missing.length < TOGETHER.length) {
    mistakes.push(
      `AUTH_JWKS_URL, AUTH_ISSUER and AUTH_AUDIENCE must be set together. Set ${missing.join(' and ')} too.`,
    );
  }
  if (isSet('ROUTER_CALLERS') && !isAuthSet) {
    mistakes.push(
      'ROUTER_CALLERS is set, but callers have no credentials that could identify a router. ' +
        'Set AUTH_API_KEYS or AUTH_JWKS_URL, or remove ROUTER_CALLERS.',
    );
  }
  return isAuthSet ? [...mistakes, ...unknownRouters(settings)] : mistakes;
}

/** Returns no mistakes if AUTH_API_KEYS or another of these settings is wrong, which must be corrected first. */
function unknownRouters(settings: Readonly<Record<string, string>>): string[] {
  const { success, data } = variables.safeParse(settings);
  const isUnread = 'AUTH_API_KEYS_FILE' in settings && !('AUTH_API_KEYS' in settings);
  if (!success || isUnread) return [];
  const { AUTH_API_KEYS: keys = [], ROUTER_CALLERS: callers = [] } = data;
  const names = keys.map(({ name }) => `key:${name}`);
  const scopes = keys.flatMap((key) => key.scopes.map((scope) => `scope:${scope}`));
  return callers.flatMap((caller, index) => {
    const entry = `ROUTER_CALLERS entry ${index + 1} names`;
    if (caller.startsWith('key:')) {
      return names.includes(caller)
        ? []
        : [`${entry} an API key that is not in AUTH_API_KEYS. Correct the name, or add the key.`];
    }
    return data.AUTH_JWKS_URL !== undefined || scopes.includes(caller)
      ? []
      : [
          `${entry} a scope that no caller can have: no API key has it, and AUTH_JWKS_URL is not set. Give it to a key, or remove the entry.`,
        ];
  });
}

/** Reads entries that are separated by commas or, as in a file, by line breaks. */
function keyEntries() {
  return z.string().transform((text, context) => {
    const entries = text.split(SEPARATOR).map(readEntry);
    const mistakes = [
      ...entries.flatMap((entry, index) =>
        mistakesOf(entry).map((mistake) => `entry ${index + 1} ${mistake}`),
      ),
      ...duplicates('name', entries),
      ...duplicates('hash', entries),
    ];
    for (const message of mistakes) context.addIssue({ code: 'custom', message });
    return entries.filter((entry) => entry !== undefined).map(toApiKey);
  });
}

interface ApiKeyEntry {
  readonly name: string;
  /** SHA-256 of the key, in hex. */
  readonly hash: string;
  readonly scopes: readonly string[];
}

const KEY_SCOPE = /^[!#-*\-.-9;-[\]-~]+$/;

/** Describes unknown scopes; the subject of the sentence is the key. @param fieldScopes the scopes in adapters.json */
export function unknownScope(
  scopes: readonly string[],
  fieldScopes: Iterable<string>,
): string | undefined {
  const known = [...SCOPE_NAMES, ...fieldScopes];
  const unknown = scopes.filter((scope) => !known.includes(scope));
  if (unknown.length === 0) return undefined;
  const names = `the unknown scope${unknown.length > 1 ? 's' : ''} ${unknown.map((scope) => `"${scope}"`).join(' and ')}`;
  return `has ${unknown.every(canBeShown) ? names : 'an unknown scope'}; the scopes are ${known.join(', ')}, and several are joined by +`;
}

/** Whether this is printable, and cannot be a key or a hash in the wrong place. */
function canBeShown(name: string): boolean {
  return /^[ -~]*$/.test(name) && !/^rsk_|[\w-]{32}/.test(name);
}

/**
 * Lets callers have the scopes of fields, too.
 *
 * @param fieldScopes the scopes in adapters.json
 * @throws OperatorMistakes for an API key with an unknown scope
 */
export function withFieldScopes(
  auth: ReturnType<typeof toAuth>,
  fieldScopes: ReadonlySet<string>,
): ReturnType<typeof toAuth> {
  if (!auth) return undefined;
  const { apiKeys, jwt, routerCallers = [] } = auth;
  const known = [...fieldScopes, ...scopesOf(routerCallers)];
  const mistakes = apiKeys.flatMap(({ name, scopes }, index) => {
    const mistake = unknownScope(scopes, new Set(known));
    if (mistake === undefined) return [];
    const entry = `entry ${index + 1}${canBeShown(name) ? ` (${name})` : ''}`;
    return [
      `${entry} ${mistake}. Correct the entry, or add the scope to a field in adapters.json.`,
    ];
  });
  if (mistakes.length > 0) throw new OperatorMistakes('AUTH_API_KEYS', mistakes);
  return { ...auth, jwt: jwt && { ...jwt, scopes: [...new Set([...jwt.scopes, ...known])] } };
}

/** Describes the mistakes in an entry; the subject of each sentence is the entry. They do not quote it. */
export function apiKeyMistakes({ name, hash, scopes }: ApiKeyEntry): string[] {
  const mistakes: string[] = [];
  if (!new RegExp(`^${API_KEY_NAME}$`).test(name)) {
    mistakes.push(
      'has a name that does not consist of at most 64 letters, digits, dots, dashes and underscores',
    );
  }
  if (!/^[\da-f]{64}$/.test(hash)) {
    mistakes.push(`has a hash that is not SHA-256 in 64 hex digits; ${CREATES_ONE}`);
  }
  if (scopes.some((scope) => !KEY_SCOPE.test(scope))) {
    mistakes.push(
      'has a scope that is empty, or contains spaces, commas or colons; several scopes are joined by +',
    );
  } else if (!scopes.includes('read') && !scopes.includes('write')) {
    // Every operation needs one of these two scopes.
    mistakes.push(
      'has neither the scope read nor write; correct its scopes, or add one of these two',
    );
  }
  return mistakes;
}

function readEntry(text: string): ApiKeyEntry | undefined {
  const parts = ENTRY.exec(text)?.groups;
  if (!parts) return undefined;
  const { name = '', hash = '', scopes = 'read' } = parts;
  return { name, hash: hash.toLowerCase(), scopes: scopes.split('+') };
}

function mistakesOf(entry: ApiKeyEntry | undefined): string[] {
  return entry
    ? apiKeyMistakes(entry)
    : [`is not name:sha256-hex or name:sha256-hex:scopes; ${CREATES_ONE}`];
}

/** An API key as the gateway knows it: by its hash. */
function toApiKey({ name, hash: hex, scopes }: ApiKeyEntry) {
  /** SHA-256 of the key. */
  const hash: Uint8Array = Buffer.from(hex, 'hex');
  return { name, hash, scopes: [...new Set(scopes)] as readonly string[] };
}

function duplicates(
  what: 'name' | 'hash',
  entries: readonly (ApiKeyEntry | undefined)[],
): string[] {
  const values = entries.map((entry) => entry?.[what]);
  return values.flatMap((value, index) => {
    const first = values.indexOf(value);
    const isDuplicate = value !== undefined && first < index;
    return isDuplicate ? [`entries ${first + 1} and ${index + 1} have the same ${what}`] : [];
  });
}
