import { createHmac, type KeyObject } from 'node:crypto';

/** Recognizes a refresh token without giving it away. */
export function fingerprintOf(key: KeyObject | Uint8Array, refreshToken: string): string {
  return createHmac('sha256', key).update(refreshToken).digest('hex');
}
