import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import process from 'node:process';
import { SealError } from './seal.ts';
import { StoreNewerError } from './token-store.ts';

/**
 * What the operator can do about a store that cannot be opened, read or written.
 *
 * @param isFile whether it is a file
 */
export function adviceOn(error: unknown, isFile = false): string {
  if (isKeyMissing(error)) {
    return (
      'Set TOKEN_STORE_KEY as it is set for the gateway on this store. While the key is being changed, ' +
      'that is both keys, the new one first.'
    );
  }
  if (error instanceof StoreNewerError) {
    return 'Start the newer version again (docs/running.md, "Upgrades and rollbacks"): it reads that store, and saves what waits in rescue files.';
  }
  if (hasCode(error, ['ENOSPC', 'EDQUOT'], SQLITE_FULL))
    return 'There is no space left on its disk. Free some, and try again.';
  if (!isFile) return 'Check TOKEN_STORE.';
  if (/damaged|malformed|not a database/i.test((error as Error).message)) {
    return (
      'Check that TOKEN_STORE names the token store. If it does, the store is damaged: move the file away, and run ' +
      '`tokens recover`, which saves a pair that waits in a rescue file into a new store. If it finds none, have an ' +
      'administrator make a new token, and run `tokens import <link>`.'
    );
  }
  return 'Check TOKEN_STORE, and that this user may read and write there.';
}

/** Whether no key of TOKEN_STORE_KEY opens it. A restart does not change that. */
export function isKeyMissing(error: unknown): boolean {
  return error instanceof SealError && !error.isAltered;
}

/**
 * If this user may not open the file of a store, names the owner of the deepest part of its path that this user can
 * see, and what to do.
 *
 * @returns a sentence after a space, or nothing
 */
export function ownerAdvice(error: unknown, path: string): string {
  if (!hasCode(error, ['EACCES', 'EPERM'], SQLITE_CANTOPEN)) return '';
  const file = resolve(path);
  const folder = dirname(file);
  let place = file;
  while (!existsSync(place) && place !== dirname(place)) place = dirname(place);
  const owner = statSync(place).uid;
  const user = process.getuid?.();
  if (user === undefined || owner === user) return '';
  const facts = ` ${place} belongs to user ${owner}${owner === 0 ? ' (root)' : ''}, and this process runs as user ${user}.`;
  return place === file || place === folder
    ? `${facts} If a command made the store as another user, give the folder to this one: chown -R ${user} ${folder}`
    : `${facts} Make the folder ${folder}, and give it to user ${user}.`;
}

const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;

/** Whether the error or its cause has one of these Node.js codes, or this SQLite code. */
function hasCode(error: unknown, codes: readonly string[], sqliteCode: number): boolean {
  const coded = ((error as Error).cause ?? error) as { code?: string; errcode?: number };
  return codes.includes(coded.code ?? '') || (coded.errcode ?? 0) % 256 === sqliteCode;
}
