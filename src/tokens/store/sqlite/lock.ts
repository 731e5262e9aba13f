import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';

/**
 * The right to exchange, among all processes on one store: a kernel lock, which ends with its process,
 * whatever ended that. It is an exclusive transaction on a database of its own, in which nothing is kept.
 *
 * The file is never opened with `fs` once it exists: closing any descriptor of a file drops all POSIX locks
 * that the process has on it.
 *
 * Somebody may delete the file under the one who holds it, and then the lock on the next file says nothing of him.
 * So the claim remembers which file its lock was on (`HeldClaim.lock`).
 */
interface ExchangeLock {
  /** The attempt that this handle holds it for. */
  readonly heldFor: string | undefined;
  /** Waits a moment for those who only look, never for one who holds it. */
  take(attempt: string): Promise<boolean>;
  release(attempt: string): void;
  /** Whether anybody else holds it, or may hold it, since that cannot be seen. */
  isHeldByOthers(): boolean;
  /** The number of the file that it is on, or would be on now; not given to another file while somebody holds it. */
  readonly inode: string | undefined;
  close(): void;
}

const TRIES = 5;
const BETWEEN_TRIES_MS = 10;
export const SQLITE_BUSY = 5;

// SQLite opens a file that it may not write for reading, and then an exclusive transaction excludes nobody.
// Only a write shows that. It is rolled back, and its journal is none on the disk, which may be full.
const LOCK = 'PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE; PRAGMA user_version = 1;';
const LOOK = 'SELECT count(*) FROM sqlite_schema';

/** @param path of the lock database; undefined: nobody else is on this store */
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
        return !succeeds(connect(path, false), LOOK);
      } catch {
        disconnect();
        return true;
      }
    },
    get inode() {
      if (path === undefined) return undefined;
      const file = heldFor === undefined ? fileAt(path) : connection?.file;
      // The device has another number after each boot.
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
      // It may be writable by the next time, but not for this connection.
      disconnect();
      throw error;
    }
    if (connection?.file === fileAt(place)) return true;
    // Replaced at this very moment: what is locked is a file that nobody else can find.
    disconnect();
    return false;
  }

  /**
   * Again, when the file was taken away or replaced since, and when it was opened to look only: it may not
   * have been writable then.
   */
  function connect(place: string, toLock: boolean): DatabaseSync {
    const file = fileAt(place);
    const is = connection;
    if (is && is.file === file && (is.toLock || !toLock)) return is.database;
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

/** For its owner alone, from its first moment on. */
export function makeEmptyFile(path: string): void {
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    // Another process was first.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Which file lies there now, if any. */
export function fileAt(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && `${stat.dev}/${stat.ino}`;
}

/** Another process is at the file. The other bits of the code say what it is in the middle of. */
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
