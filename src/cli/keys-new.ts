import { createHash, randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { apiKeyMistakes, SCOPES, unknownScope } from '../config/auth.ts';
import { OperatorMistake } from '../errors.ts';
import { scopesIn } from '../schema/derivation/overrides.ts';
import { readAdaptersFile } from '../setup/operator-files.ts';
import { readSchemaConfig } from './schema-served.ts';
import type { Terminal } from './terminal.ts';

/**
 * @param scopes joined by +
 * @param fieldScopes the scopes in adapters.json. Default: none
 * @returns the key, which is shown once because the gateway knows only its hash, and its entry for AUTH_API_KEYS
 * @throws OperatorMistake
 */
export function newApiKey(
  name: string,
  scopes: string,
  fieldScopes: ScopesOfFields = { scopes: [] },
): { readonly key: string; readonly entry: string } {
  // By the prefix, people and scanners for leaked secrets recognize it.
  const key = `rsk_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(key).digest('hex');
  const each = scopes.split('+');
  const unknown = unknownScope(each, fieldScopes.scopes);
  const mistakes =
    unknown === undefined
      ? apiKeyMistakes({ name, hash, scopes: each })
      : [...apiKeyMistakes({ name, hash, scopes: ['read'] }), unknown];
  if (mistakes.length > 0) {
    const { source = '' } = fieldScopes;
    const advice = ` Correct --scopes, or add the scope to a field in adapters.json. ${source}`;
    const message = `The key ${mistakes.join(', and ')}.${unknown === undefined ? '' : advice}`;
    throw new OperatorMistake(message);
  }
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
    ...fieldScopes.scopes.map((scope) => [
      scope,
      'the fields to which adapters.json gives this scope',
    ]),
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

interface ScopesOfFields {
  readonly scopes: readonly string[];
  /** Where adapters.json was looked for, or why it could not be read, as a sentence. */
  readonly source?: string;
}

/** The command needs no configuration, so one that cannot be read matters only if a scope is unknown. */
function scopesOfFields(terminal: Terminal): ScopesOfFields {
  try {
    const { schemaPath } = readSchemaConfig(terminal);
    return {
      scopes: scopesIn(readAdaptersFile(schemaPath, terminal)),
      source: `It was looked for in ${dirname(schemaPath)}: set RECRUITING_SCHEMA if yours is elsewhere.`,
    };
  } catch (error) {
    return { scopes: [], source: `It could not be read: ${(error as Error).message}` };
  }
}
