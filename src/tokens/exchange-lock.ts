import { chmodSync, existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';

/**
 * The right to exchange, among all processes on one store: a kernel lock, which ends with its process,
 * whatever ended that. It is an exclusive transaction on a database of its own.
 *
 * The file is never opened with `fs` while the lock may be held: closing any descriptor of a file drops all
 * POSIX locks that the process has on it.
 */
export interface ExchangeLock {
  /** The attempt that this handle holds it for. */
  readonly heldFor: string | undefined;
  /** Waits a moment for those who only look, never for one who holds it. */
  take(attempt: string): Promise<boolean>;
  release(attempt: string): void;
  /** Whether anybody holds it. */
  isHeld(): boolean;
  close(): void;
}

const TRIES = 5;
const BETWEEN_TRIES_MS = 10;
const SQLITE_BUSY = 5;

/** @param path of the lock database; `:memory:` locks nothing but this handle */
export function openExchangeLock(path: string): ExchangeLock {
  const database = new DatabaseSync(path, { timeout: 0 });
  if (path !== ':memory:' && existsSync(path)) chmodSync(path, 0o600);
  let heldFor: string | undefined;

  return {
    get heldFor() {
      return heldFor;
    },
    take: async (attempt) => {
      for (let tries = 1; heldFor === undefined; tries += 1) {
        if (succeeds('BEGIN EXCLUSIVE')) {
          heldFor = attempt;
          return true;
        }
        if (tries === TRIES) return false;
        await delay(BETWEEN_TRIES_MS);
      }
      return false;
    },
    release: (attempt) => {
      if (heldFor !== attempt) return;
      database.exec('ROLLBACK');
      heldFor = undefined;
    },
    isHeld: () => {
      // A shared lock, for the time of one statement.
      return heldFor !== undefined || !succeeds('SELECT count(*) FROM sqlite_schema');
    },
    close: () => database.close(),
  };

  function succeeds(statement: string): boolean {
    try {
      database.exec(statement);
      return true;
    } catch (error) {
      if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
      throw error;
    }
  }
}
