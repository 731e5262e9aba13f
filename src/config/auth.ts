import * as v from 'valibot';
import { COMMAND_LINE, optional, secureUrl } from './values.ts';

const KEYS_NEW = `${COMMAND_LINE} keys new <name>`;

export const authVariables = {
  AUTH_API_KEYS: optional(
    keyEntries(),
    '`name:sha256-hex[:scopes]`, separated by commas; `keys new` makes one',
  ),
  AUTH_JWKS_URL: optional(
    secureUrl(),
    'where the keys of the issuer are; for bearer tokens, all three together',
  ),
  AUTH_ISSUER: optional(v.string(), '`iss` of bearer tokens'),
  AUTH_AUDIENCE: optional(v.string(), '`aud` of bearer tokens'),
};

type AuthSettings = v.InferOutput<v.ObjectSchema<typeof authVariables, undefined>>;

const TOGETHER = ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const;

/** Which callers are admitted, and what each may do; undefined: callers need no credential. */
export function toAuth(settings: AuthSettings) {
  const { AUTH_JWKS_URL: jwksUrl, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = settings;
  const { AUTH_API_KEYS: apiKeys = [] } = settings;
  const acceptsJwts = jwksUrl !== undefined && issuer !== undefined && audience !== undefined;
  if (apiKeys.length === 0 && !acceptsJwts) return undefined;
  /** `jwt` undefined: bearer tokens are not accepted. */
  return { apiKeys, jwt: acceptsJwts ? { jwksUrl, issuer, audience } : undefined };
}

/** Combinations that would admit or refuse every caller by mistake. */
export function authContradictions(settings: Readonly<Record<string, string>>): string[] {
  const isSet = (name: string) => (settings[name] ?? settings[`${name}_FILE`]) !== undefined;
  const isAuthSet = Object.keys(authVariables).some(isSet);
  const isAnonymous = settings['ALLOW_ANONYMOUS'] === 'true';
  const missing = TOGETHER.filter((name) => !isSet(name));
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
  if (missing.length > 0 && missing.length < TOGETHER.length) {
    mistakes.push(
      `AUTH_JWKS_URL, AUTH_ISSUER and AUTH_AUDIENCE must be set together. Set ${missing.join(' and ')} too.`,
    );
  }
  return mistakes;
}

/** Reads entries that are separated by commas or, as in a file, by line breaks. */
function keyEntries() {
  return v.pipe(
    v.string(),
    v.rawTransform(({ dataset, addIssue }) =>
      dataset.value.split(/\s*[,\n]\s*/).map((entry, index) => {
        const [name = '', hash = '', scopes = 'read'] = entry.split(':');
        const granted: readonly string[] = [...new Set(scopes.split('+'))];
        const mistake = ENTRY.test(entry) ? apiKeyMistake(name, granted) : NO_ENTRY;
        // The entry is not shown, because it may be the key itself.
        if (mistake !== undefined) addIssue({ message: `entry ${index + 1} ${mistake}` });
        return { name, hash: hash.toLowerCase(), scopes: granted };
      }),
    ),
  );
}

const ENTRY = /^[^:]+:[\da-f]{64}(:[^:]+)?$/i;
const NO_ENTRY = `is not name:sha256-hex or name:sha256-hex:scopes; the command \`${KEYS_NEW}\` makes one`;

/** Describes a mistake in an entry; the subject of the sentence is the entry, which it does not quote. */
export function apiKeyMistake(name: string, scopes: readonly string[]): string | undefined {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    return 'has a name that does not consist of at most 64 letters, digits, dots, dashes and underscores';
  }
  // Every operation needs one of these two scopes.
  if (scopes.includes('read') || scopes.includes('write')) return undefined;
  return 'has neither the scope read nor write; add one of these two';
}
