import { createHash } from 'node:crypto';
import type { ApiKey } from '../../src/config/api-keys.ts';

/** The entry for a key, as the configuration has it. */
export function entryFor(key: string, name: string, ...scopes: string[]): ApiKey {
  return { name, hash: createHash('sha256').update(key).digest(), scopes };
}
