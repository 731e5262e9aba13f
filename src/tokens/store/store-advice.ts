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
  if (isDiskFull(error)) return 'There is no space left on its disk. Free some, and try again.';
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

const SQLITE_FULL = 13;

function isDiskFull(error: unknown): boolean {
  const { code, errcode } = codesOf(error);
  return code === 'ENOSPC' || code === 'EDQUOT' || errcode % 256 === SQLITE_FULL;
}

/** The code of Node, and that of SQLite. */
export function codesOf(error: unknown): { code?: string | undefined; errcode: number } {
  const codes = (error as Error).cause ?? error;
  const { code, errcode = 0 } = codes as { code?: string; errcode?: number };
  return { code, errcode };
}
