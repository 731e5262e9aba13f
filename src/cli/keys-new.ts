import { createHash, randomBytes } from 'node:crypto';
import { apiKeyMistakes, SCOPES } from '../config/auth.ts';
import { CommandError, type Terminal } from './terminal.ts';

/**
 * @param scopes joined by +
 * @returns the key, which is shown once because the gateway knows only its hash, and its entry for AUTH_API_KEYS
 * @throws CommandError
 */
export function newApiKey(
  name: string,
  scopes: string,
): { readonly key: string; readonly entry: string } {
  // The prefix shows people, and scanners for leaked secrets, what it is.
  const key = `rsk_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(key).digest('hex');
  const mistakes = apiKeyMistakes({ name, hash, scopes: scopes.split('+') });
  if (mistakes.length > 0) throw new CommandError(`The key ${mistakes.join(', and ')}.`, 2);
  return { key, entry: `${name}:${hash}:${scopes}` };
}

/** Makes an API key for a caller, and says what its scopes allow. */
export async function keysNew(
  { name, scopes }: { name: string; scopes: string },
  { stdout }: Terminal,
): Promise<void> {
  const { key, entry } = newApiKey(name, scopes);
  const has = scopes.split('+');
  const lines = Object.entries(SCOPES).map(
    ([scope, allows]) => `    ${has.includes(scope) ? 'x' : '-'} ${scope.padEnd(8)}${allows}`,
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
