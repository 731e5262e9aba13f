import { createHash } from 'node:crypto';
import type { ApiKeySetting } from '../../../src/config/auth.ts';

/** The entry of a key in the configuration. */
export function entryFor(key: string, name: string, ...scopes: string[]): ApiKeySetting {
  return { name, hash: createHash('sha256').update(key).digest(), scopes };
}
