import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';
import { giveToOwnerOf } from '../owners.ts';

/**
 * The right to exchange, among all processes on one store: a kernel lock, which is released when its process ends for
 * any reason. It is an exclusive transaction on an empty database beside the store.
 *
 * The file is never opened with `fs` once it exists: closing any descriptor of a file drops all POSIX locks that the
 * process has on it.
 *
 * If the file is deleted while a process holds the lock, another process locks a new file. So a claim records which file
 * its lock was on (`HeldClaim.lock`).
 */
interface ExchangeLock {
  /** The attempt that this handle holds it for. */
  readonly heldFor: string | undefined;
  /** Waits briefly for processes that only check the lock, never for its holder. */
  take(attempt: string): Promise<boolean>;
  release(attempt: string): void;
  /** Also true if that cannot be determined. */
  isHeldByOthers(): boolean;
  /** Inode of the locked file, or of the one that would be locked now. Not reused while a process holds the lock. */
  readonly inode: string | undefined;
  close(): void;
}

const TRIES = 5;
const BETWEEN_TRIES_MS = 10;
export const SQLITE_BUSY = 5;

// SQLite opens a file without write permission for reading, and an exclusive transaction then excludes nobody. Only a
// write shows that. It is rolled back, with its journal in memory because the disk may be full.
const LOCK = 'PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE; PRAGMA user_version = 1;';
const PROBE = 'SELECT count(*) FROM sqlite_schema';

/** @param path of the lock database; undefined if no other process can use the store */
export function openExchangeLock(path: string | undefined): ExchangeLock {
  let connection: Connection | undefined;
  let heldFor: string | undefined;
  let closed = false;

  return {
    get heldFor() {
      return heldFor;
    },
    take: async (attempt) => {
      for (let tries = 1; ; tries += 1) {
        if (heldFor === attempt) return true;
        if (closed || heldFor !== undefined) return false;
        if (path === undefined || isTaken(path)) {
          heldFor = attempt;
          return true;
        }
        if (tries === TRIES) return false;
        await delay(BETWEEN_TRIES_MS);
      }
    },
    release: (attempt) => {
      if (heldFor !== attempt) return;
      if (connection?.database.isTransaction) connection.database.exec('ROLLBACK');
      heldFor = undefined;
    },
    isHeldByOthers: () => {
      if (path === undefined || heldFor !== undefined || !existsSync(path)) return false;
      try {
        // A shared lock, for the time of one statement.
        return !succeeds(connect(path, false), PROBE);
      } catch {
        disconnect();
        return true;
      }
    },
    get inode() {
      if (path === undefined) return undefined;
      const file = heldFor === undefined ? fileAt(path) : connection?.file;
      // The number of the device changes with each boot.
      return file?.split('/')[1];
    },
    close: () => {
      closed = true;
      heldFor = undefined;
      disconnect();
    },
  };

  function isTaken(place: string): boolean {
    makeEmptyFile(place);
    const database = connect(place, true);
    try {
      if (!succeeds(database, LOCK)) return false;
    } catch (error) {
      // The file may become writable, but not for this connection.
      disconnect();
      throw error;
    }
    if (connection?.file === fileAt(place)) return true;
    // The file was replaced in between, so other processes do not find the locked one.
    disconnect();
    return false;
  }

  /**
   * Opens the file again if it was removed or replaced, or if it was opened only to probe the lock: it may not have been writable
   * then.
   */
  function connect(place: string, toLock: boolean): DatabaseSync {
    const file = fileAt(place);
    const last = connection;
    if (last && last.file === file && (last.toLock || !toLock)) return last.database;
    disconnect();
    const database = new DatabaseSync(place, { timeout: 0 });
    connection = { database, file, toLock };
    return database;
  }

  function disconnect(): void {
    connection?.database.close();
    connection = undefined;
  }
}

interface Connection {
  readonly database: DatabaseSync;
  readonly file: string | undefined;
  readonly toLock: boolean;
}

/**
 * Creates an empty file that other users can never read, not even briefly.
 *
 * @param like a file or folder with the owner that it gets; default: this process
 */
export function makeEmptyFile(path: string, like?: string): void {
  if (existsSync(path)) return;
  try {
    const file = openSync(path, 'wx', 0o600);
    if (like !== undefined) giveToOwnerOf(like, file);
    closeSync(file);
  } catch (error) {
    // Another process was first.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Identifies the file at a path; undefined if it does not exist. */
export function fileAt(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && `${stat.dev}/${stat.ino}`;
}

/** Whether another process has the file locked. The higher bits of the code give details. */
export function isBusy(error: unknown): boolean {
  return ((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY;
}

function succeeds(database: DatabaseSync, statements: string): boolean {
  try {
    database.exec(statements);
    return true;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    if (isBusy(error)) return false;
    throw error;
  }
}
