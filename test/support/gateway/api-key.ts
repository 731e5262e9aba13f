import { createHash } from 'node:crypto';
import type { ApiKeySetting } from '../../../src/config/auth.ts';

/** The entry for a key, as the configuration has it. */
export function entryFor(key: string, name: string, ...scopes: string[]): ApiKeySetting {
  return { name, hash: createHash('sha256').update(key).digest(), scopes };
}
