import { createHash, randomBytes } from 'node:crypto';
import { dirname, join } from 'node:path';
import { apiKeyMistakes, SCOPES, unknownScope } from '../config/auth.ts';
import { OperatorMistake } from '../errors.ts';
import { scopesIn } from '../schema/derivation/overrides.ts';
import { readAdaptersFile } from '../setup/operator-files.ts';
import { readSchemaConfig } from './schema-served.ts';
import type { Terminal } from './terminal.ts';

/** Makes an API key for a caller, and says what its scopes allow. */
export async function keysNew(
  { name, scopes }: { name: string; scopes: string },
  terminal: Terminal,
): Promise<void> {
  const { schemaPath } = readSchemaConfig(terminal);
  const ofFields = scopesIn(readAdaptersFile(schemaPath, terminal));
  const { key, entry } = newApiKey(name, scopes, {
    scopes: ofFields,
    file: join(dirname(schemaPath), 'adapters.json'),
  });
  const has = scopes.split('+');
  const known = Object.entries(SCOPES);
  for (const scope of ofFields) {
    known.push([scope, 'the fields to which adapters.json gives this scope']);
  }
  const width = Math.max(...known.map(([scope]) => scope.length)) + 2;
  const lines = known.map(
    ([scope, allows]) => `    ${has.includes(scope) ? 'x' : '-'} ${scope.padEnd(width)}${allows}`,
  );
  terminal.stdout.write(`
  The key, shown this once. Its owner sends it as x-api-key:

    ${key}

  The entry for AUTH_API_KEYS, behind a comma if there are others:

    ${entry}

  Its scopes are marked x. For others, make a key with --scopes, for example --scopes read+drain:

${lines.join('\n')}

`);
}

interface ScopesOfFields {
  readonly scopes: readonly string[];
  /** The path of adapters.json. */
  readonly file: string;
}

/**
 * @param scopes joined by +
 * @returns the key, which is shown once because the gateway knows only its hash, and its entry for AUTH_API_KEYS
 * @throws OperatorMistake
 */
export function newApiKey(
  name: string,
  scopes: string,
  ofFields: ScopesOfFields = { scopes: [], file: 'adapters.json' },
): { readonly key: string; readonly entry: string } {
  // By the prefix, people and scanners for leaked secrets recognize it.
  const key = `rsk_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(key).digest('hex');
  const each = scopes.split('+');
  const unknown = unknownScope(each, ofFields.scopes);
  if (unknown !== undefined) {
    throw new OperatorMistake(
      `The key ${unknown}. Correct --scopes, or add the scope to a field in ${ofFields.file}; RECRUITING_SCHEMA decides where that is.`,
    );
  }
  const mistakes = apiKeyMistakes({ name, hash, scopes: each });
  if (mistakes.length > 0) throw new OperatorMistake(`The key ${mistakes.join(', and ')}.`);
  return { key, entry: `${name}:${hash}:${scopes}` };
}
