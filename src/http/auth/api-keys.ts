import { hash as hashOf, timingSafeEqual } from 'node:crypto';
import type { Caller } from './caller.ts';

export interface ApiKey {
  readonly name: string;
  /** SHA-256 of the key. No salt and no slow hash: what is to be guessed are 32 random bytes, and no password. */
  readonly hash: Uint8Array;
  readonly scopes: readonly string[];
}

/** Finds whose a key is. How long this takes says nothing about which key came how near. */
export function apiKeyOwners(keys: readonly ApiKey[]): (key: string) => Caller | undefined {
  const owners = keys.map(({ name, hash, scopes }) => ({
    hash,
    caller: { name: `key:${name}`, scopes: new Set(scopes) },
  }));
  /** Keys that were found before: each is hashed once. A wrong one is never kept. */
  const known = new Map<string, Caller>();
  const find = (key: string) => {
    const sent = hashOf('sha256', key, 'buffer');
    // Each is looked at, also behind the right one.
    return owners.filter(({ hash }) => timingSafeEqual(hash, sent))[0]?.caller;
  };
  return (key) => {
    const caller = known.get(key) ?? find(key);
    if (caller) known.set(key, caller);
    return caller;
  };
}
