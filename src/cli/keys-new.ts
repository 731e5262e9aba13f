import { createHash, randomBytes } from 'node:crypto';
import { apiKeyMistake } from '../config/auth.ts';
import { OperatorMistake } from '../errors.ts';
import type { Terminal } from './terminal.ts';

/** Makes an API key for a caller. The key is shown once, because the gateway knows only its hash. */
export async function keysNew(
  name: string,
  { scopes }: { scopes: string },
  { stdout }: Terminal,
): Promise<void> {
  // By the prefix, people and scanners for leaked secrets recognize it.
  const key = `rsk_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(key).digest('hex');
  const mistake = apiKeyMistake(name, scopes.split('+'));
  if (mistake !== undefined) throw new OperatorMistake(`The key ${mistake}.`);
  stdout.write(`
  The key, shown this once. Its owner sends it as x-api-key:

    ${key}

  The entry for AUTH_API_KEYS, behind a comma if there are others:

    ${name}:${hash}:${scopes}

`);
}
