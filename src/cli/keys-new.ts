import { createHash, randomBytes } from 'node:crypto';
import { apiKeyMistakes, SCOPES, unknownScope } from '../config/auth.ts';
import { scopesIn } from '../schema/derivation/adapters.ts';
import { readAdaptersFile } from '../setup/operator-files.ts';
import { readSchemaConfig } from './schema-served.ts';
import { CommandError, type Terminal } from './terminal.ts';

/**
 * @param scopes joined by +
 * @param fieldScopes those of adapters.json
 * @returns the key, which is shown once because the gateway knows only its hash, and its entry for AUTH_API_KEYS
 * @throws CommandError
 */
export function newApiKey(
  name: string,
  scopes: string,
  fieldScopes: readonly string[] = [],
): { readonly key: string; readonly entry: string } {
  // The prefix shows people, and scanners for leaked secrets, what it is.
  const key = `rsk_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(key).digest('hex');
  const each = scopes.split('+');
  const unknown = unknownScope(each, fieldScopes);
  const mistakes =
    unknown === undefined
      ? apiKeyMistakes({ name, hash, scopes: each })
      : [...apiKeyMistakes({ name, hash, scopes: ['read'] }), unknown];
  if (mistakes.length > 0) throw new CommandError(`The key ${mistakes.join(', and ')}.`, 2);
  return { key, entry: `${name}:${hash}:${scopes}` };
}

/** Makes an API key for a caller, and says what its scopes allow. */
export async function keysNew(
  { name, scopes }: { name: string; scopes: string },
  terminal: Terminal,
): Promise<void> {
  const { stdout } = terminal;
  const fieldScopes = scopesOfFields(terminal);
  const { key, entry } = newApiKey(name, scopes, fieldScopes);
  const has = scopes.split('+');
  const known = [
    ...Object.entries(SCOPES),
    ...fieldScopes.map((scope) => [scope, 'the fields to which adapters.json gives this scope']),
  ];
  const width = Math.max(...known.map(([scope]) => scope!.length)) + 2;
  const lines = known.map(
    ([scope, allows]) => `    ${has.includes(scope!) ? 'x' : '-'} ${scope!.padEnd(width)}${allows}`,
  );
  stdout.write(`
  The key, shown this once. Its owner sends it as x-api-key:

    ${key}

  The entry for AUTH_API_KEYS, behind a comma if there are others:

    ${entry}

  Its scopes are marked x. For others, make a key with --scopes, for example --scopes read+drain:

${lines.join('\n')}

`);
}

/** The command needs no configuration, so it ignores one that cannot be read: a start reports that. */
function scopesOfFields(terminal: Terminal): readonly string[] {
  try {
    return scopesIn(readAdaptersFile(readSchemaConfig(terminal).schemaPath, terminal));
  } catch {
    return [];
  }
}
