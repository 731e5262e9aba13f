import { setTimeout as delay } from 'node:timers/promises';
import type { DatabaseSync } from 'node:sqlite';
import { StoreUnavailableError } from '../token-store.ts';
import { isBusy } from './lock.ts';

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;
const PATIENCE_MS = 5_000;

/**
 * Does what needs the file, as soon as no other process has it locked. The driver would wait for that within a
 * statement, and hold up everything else in this process; so every connection has the time-out 0, and it is tried
 * again from the beginning.
 *
 * @param work leaves nothing behind when it throws; told when it is not tried once more
 * @throws Error when the file is still locked after five seconds
 */
export async function whenFree<T>(work: (isLast: boolean) => T): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const isLast = performance.now() >= until;
    try {
      return work(isLast);
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (error instanceof StoreUnavailableError && isLast) throw error;
      if (isLast) throw new Error(LOCKED, { cause: error });
    }
    await delay(pause);
  }
}

const LOCKED =
  'another process has its file locked, for longer than a transaction takes: a gateway that was stopped, a backup, or an open `sqlite3`';

/** Durable when it returns; undone when it throws. */
export function inTransaction<T>(database: DatabaseSync, work: () => T): T {
  // At once, and not when it writes first: then nothing was done yet where another process is in the way.
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    undo(database);
    throw error;
  }
}

/** What is read within is of one moment. */
export function inOneView<T>(database: DatabaseSync, read: () => T): T {
  if (database.isTransaction) return read();
  database.exec('BEGIN');
  try {
    return read();
  } finally {
    undo(database);
  }
}

/** A failed COMMIT may have rolled back already; and a ROLLBACK that fails must not hide the cause. */
function undo(database: DatabaseSync): void {
  try {
    if (database.isTransaction) database.exec('ROLLBACK');
  } catch {
    // The next one who opens the file rolls it back.
  }
}
