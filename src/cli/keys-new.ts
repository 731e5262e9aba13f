import { createHash, randomBytes } from 'node:crypto';
import { dirname, join } from 'node:path';
import { apiKeyMistakes, SCOPES, unknownScope } from '../config/auth.ts';
import { OperatorMistake } from '../errors.ts';
import { scopesIn } from '../schema/derivation/overrides.ts';
import { readAdaptersFile } from '../setup/operator-files.ts';
import { readSchemaConfig } from './schema-served.ts';
import type { Terminal } from './terminal.ts';

/**
 * Makes an API key for a caller, and says what its scopes allow. The key is shown once, because the gateway knows only its
 * hash.
 */
export async function keysNew(
  { name, scopes }: { name: string; scopes: string },
  terminal: Terminal,
): Promise<void> {
  const { schemaPath } = readSchemaConfig(terminal);
  const ofFields = scopesIn(readAdaptersFile(schemaPath, terminal));
  // By the prefix, people and scanners for leaked secrets recognize it.
  const key = `rsk_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(key).digest('hex');
  const chosen = scopes.split('+');
  const unknown = unknownScope(chosen, ofFields);
  if (unknown !== undefined) {
    const file = join(dirname(schemaPath), 'adapters.json');
    throw new OperatorMistake(
      `The key ${unknown}. Correct --scopes, or add the scope to a field in ${file}; RECRUITING_SCHEMA decides where that is.`,
    );
  }
  const mistakes = apiKeyMistakes({ name, hash, scopes: chosen });
  if (mistakes.length > 0) throw new OperatorMistake(`The key ${mistakes.join(', and ')}.`);
  const known = [
    ...Object.entries(SCOPES),
    ...ofFields.map(
      (scope) => [scope, 'the fields to which adapters.json gives this scope'] as const,
    ),
  ];
  const width = Math.max(...known.map(([scope]) => scope.length)) + 2;
  const lines = known.map(
    ([scope, allows]) =>
      `    ${chosen.includes(scope) ? 'x' : '-'} ${scope.padEnd(width)}${allows}`,
  );
  terminal.stdout.write(`
  The key, shown this once. Its owner sends it as x-api-key:

    ${key}

  The entry for AUTH_API_KEYS, behind a comma if there are others:

    ${name}:${hash}:${scopes}

  Its scopes are marked x. For others, make a key with --scopes, for example --scopes read+drain:

${lines.join('\n')}

`);
}
