import { createHash, createHmac, type KeyObject } from 'node:crypto';

/** Hexadecimal digits: two of a million refresh tokens are alike once in forty million stores. */
const LENGTH = 16;

/** Identifies a refresh token without storing it. Only its first digits count: layout 1 kept more of them. */
export function fingerprintOf(key: KeyObject | Uint8Array, refreshToken: string): string {
  return createHmac('sha256', key).update(refreshToken).digest('hex').slice(0, LENGTH);
}

/** Names a store by the key of its own: every copy of the store has the same. */
export function storeIdOf(key: KeyObject | Uint8Array): string {
  return fingerprintOf(key, 'store');
}

/** For people. Without a key, so that one token looks the same in all stores; too short to give it away. */
export function shownFingerprint(refreshToken: string): string {
  return createHash('sha256')
    .update('refresh token\0')
    .update(refreshToken)
    .digest('hex')
    .slice(0, 8);
}
