import { z } from 'zod';

/** The key of a caller, as the gateway knows it. */
export interface ApiKey {
  readonly name: string;
  /** SHA-256 of the key. */
  readonly hash: Uint8Array;
  readonly scopes: readonly string[];
}

export const API_KEY_NAME = '[A-Za-z0-9][A-Za-z0-9._-]{0,63}';

export const SCOPES = ['read', 'drain', 'write', 'router'];
const BETWEEN = /\s*[,\n]\s*/;
const ENTRY = /^(?<name>[^:]*):(?<hash>[^:]*)(:(?<scopes>[^:]*))?$/;

/** Entries with commas or, as in a file, line breaks between. */
export function apiKeys() {
  return z.string().transform((text, context): ApiKey[] => {
    const entries = text.split(BETWEEN).map(readEntry);
    const mistakes = [
      ...entries.flatMap((entry, index) =>
        mistakesOf(entry).map((mistake) => `entry ${index + 1} ${mistake}`),
      ),
      ...twins('name', entries),
      ...twins('hash', entries),
    ];
    for (const message of mistakes) context.addIssue({ code: 'custom', message });
    return entries.filter((entry) => entry !== undefined).map(toApiKey);
  });
}

export interface ApiKeyEntry {
  readonly name: string;
  /** SHA-256 of the key, in hex. */
  readonly hash: string;
  readonly scopes: readonly string[];
}

/** What is wrong with an entry, each to be put behind a word for it. Nothing of the entry itself is shown. */
export function apiKeyMistakes({ name, hash, scopes }: ApiKeyEntry): string[] {
  const mistakes: string[] = [];
  if (!new RegExp(`^${API_KEY_NAME}$`).test(name)) {
    mistakes.push(
      'has a name that is not made of letters, digits, dots, dashes and underscores, 64 at most',
    );
  }
  if (!/^[\da-f]{64}$/.test(hash)) {
    mistakes.push(
      'has a hash that is not SHA-256 in 64 hex digits; the command `keys new` makes one',
    );
  }
  if (scopes.some((scope) => !SCOPES.includes(scope))) {
    mistakes.push(`has a scope that is none of ${SCOPES.join(', ')}; several are joined by +`);
  } else if (!scopes.includes('read') && !scopes.includes('write')) {
    // Every operation needs one of the two, whatever else it needs.
    mistakes.push('may neither read nor write; give it one of these scopes too');
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
    : ['is not name:sha256-hex or name:sha256-hex:scopes; the command `keys new` makes one'];
}

function toApiKey({ name, hash, scopes }: ApiKeyEntry): ApiKey {
  return { name, hash: Buffer.from(hash, 'hex'), scopes: [...new Set(scopes)] };
}

function twins(what: 'name' | 'hash', entries: readonly (ApiKeyEntry | undefined)[]): string[] {
  const values = entries.map((entry) => entry?.[what]);
  return values.flatMap((value, index) => {
    const first = values.indexOf(value);
    const isTwin = value !== undefined && first < index;
    return isTwin ? [`entries ${first + 1} and ${index + 1} have the same ${what}`] : [];
  });
}
