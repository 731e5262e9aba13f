import { createHash, randomBytes } from 'node:crypto';
import { apiKeyMistakes } from '../config/auth.ts';
import { CommandError, type Terminal } from './terminal.ts';

/** Makes the API key of a caller. Only its hash is for the gateway to know; the key itself is shown this once. */
export function keysNew(name: string, { scopes }: { scopes: string }, { stdout }: Terminal): void {
  // The prefix tells people, and programs that look for secrets in the wrong place, what it is.
  const key = `rsk_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(key).digest('hex');
  const mistakes = apiKeyMistakes({ name, hash, scopes: scopes.split('+') });
  if (mistakes.length > 0) throw new CommandError(`The key ${mistakes.join(', and ')}.`, 2);
  stdout.write(`
  The key, shown this once. Its owner sends it as x-api-key:

    ${key}

  The entry for AUTH_API_KEYS, behind a comma if there are others:

    ${name}:${hash}:${scopes}

`);
}
