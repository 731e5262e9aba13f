import { createHmac, type KeyObject } from 'node:crypto';
import type { KeptPair, SetRow } from './sqlite-rows.ts';

/**
 * Checksums of rows. SQLite finds damage to its pages, not to what is written in them: a wrong token would be
 * sent.
 */
export function setSum(key: KeyObject, set: SetRow): string {
  const { id, name, base_url, head, lost, moved_to, withdrawn, claim_attempt, claim_at } = set;
  const state = [lost, moved_to, withdrawn, claim_attempt, claim_at];
  return sumOf(key, ['set', id, name, base_url, head, ...state]);
}

export function pairSum(key: KeyObject, { name: set }: SetRow, kept: KeptPair): string {
  const { generation, attempt, pair, savedAt, imported, wasHead } = kept;
  const { accessToken, refreshToken, expiresIn, refreshTokenExpiresIn, name } = pair;
  const tokens = [accessToken, refreshToken, expiresIn, refreshTokenExpiresIn, name];
  return sumOf(key, ['pair', set, generation, attempt, savedAt, imported, wasHead, ...tokens]);
}

export function guardSum(key: KeyObject, attempt: string, inode: string, until: number): string {
  return sumOf(key, ['guard', attempt, inode, until]);
}

function sumOf(key: KeyObject, values: readonly unknown[]): string {
  return createHmac('sha256', key).update(JSON.stringify(values)).digest('hex');
}
