import { createHash } from 'node:crypto';
import type { ApiKey } from '../../../src/http/auth/authentication.ts';

/** The entry of a key in the configuration. */
export function entryFor(key: string, name: string, ...scopes: string[]): ApiKey {
  return { name, hash: createHash('sha256').update(key).digest('hex'), scopes };
}
