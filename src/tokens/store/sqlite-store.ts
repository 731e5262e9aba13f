import { createSealer, SealError, type Sealer } from './seal.ts';
import { fileAt, isBusy, openExchangeLock } from './exchange-lock.ts';
import { openSqliteFile, type OpenFile } from './sqlite-file.ts';
import { moveBack, moveIn, moveOut, UNDER_WAY } from './sqlite-moves.ts';
import { placeOf, type FileSystemType } from './sqlite-place.ts';
import { readStored } from './sqlite-read.ts';
import { reserve } from './sqlite-reserve.ts';
import { prepareTables, type SqliteTables } from './sqlite-tables.ts';
import { inOneView, inTransaction } from './sqlite-transaction.ts';
import {
  holdsPair,
  importSet,
  markSet,
  savePair,
  settleAttempt,
  withdrawSet,
} from './sqlite-writes.ts';
import { StoreGoneError, type StoredTokens, type TokenStore } from './token-store.ts';

export interface SqliteOptions {
  readonly sealer?: Sealer;
  readonly fileSystemType?: FileSystemType;
  /** Opened to be read: not a byte of any file is changed. A file that is missing is an empty store. */
  readonly readOnly?: boolean;
}

const MEMORY = ':memory:';

/**
 * The embedded store: one file, written with `synchronous=FULL`, for any number of processes on one machine.
 * Its mark is guarded by a kernel lock, so that a restart takes over at once from a process that was killed.
 * A lock that is held is never overridden: a process that was stopped keeps it, since an outage can be
 * mended and a lost token cannot.
 *
 * @param path a file (its folder is made, 0700, when missing), or `:memory:`
 * @throws when the file cannot be opened or is not a token store; the file is left as it is
 */
export function openSqliteStore(path: string, options: SqliteOptions = {}): TokenStore {
  const { sealer = createSealer([]), fileSystemType, readOnly } = options;
  const place = path === MEMORY ? path : placeOf(path);
  const lock = openExchangeLock(path === MEMORY ? undefined : `${place}-lock`);
  const settings = { sealer, fileSystemType, readOnly, isBusy: lock.isHeldByOthers };
  let file: OpenFile;
  try {
    file = openSqliteFile(place, { ...settings, create: true });
  } catch (error) {
    lock.close();
    throw error;
  }
  let tables = prepareTables(file.database, sealer);
  let opened = fileAt(place);
  const description = path === MEMORY ? 'in memory' : `sqlite:${path}`;

  return {
    description,
    notices: file.notices,
    read: async () => {
      try {
        if (fileAt(place) === opened) return read();
      } catch (error) {
        if (path === MEMORY || isBusy(error)) throw error;
        // Perhaps another one was written over it.
      }
      follow();
      return read();
    },
    import: (imported) => write((into) => importSet(into, imported, read)),
    withdraw: (set) => write((into) => withdrawSet(into, set)),
    mark: async (mark) => {
      makeWritable();
      if (!(await lock.take(mark.attempt))) return undefined;
      let marked = false;
      try {
        marked = await write((into) => markSet(into, mark));
      } finally {
        if (!marked) lock.release(mark.attempt);
      }
      return marked ? { overExpired: false } : undefined;
    },
    settle: async (attempt, ending) => {
      try {
        await write((into) => settleAttempt(into, attempt, ending));
      } finally {
        // Also when that failed: the mark that stays says that the exchange is in doubt.
        lock.release(attempt);
      }
      makeRoom();
    },
    // While it fails the lock is kept: the pair is in this process, and nobody else may exchange.
    save: async (saved) => {
      const isHead = await write((into) => savePair(into, saved, description));
      lock.release(saved.attempt);
      makeRoom();
      return isHead;
    },
    holds: async (saved) => inOneView(file.database, () => holdsPair(tables, saved)),
    history: async (limit) => tables.attempts.newest(limit),
    moveOut: async (move) => {
      makeWritable();
      const owner = `move to ${move.to}`;
      if (!(await lock.take(owner))) throw new Error(UNDER_WAY);
      try {
        return await write((into) => moveOut(into, move));
      } finally {
        lock.release(owner);
      }
    },
    moveBack: (to) => write((into) => moveBack(into, to)),
    moveIn: (moved) => write((into) => moveIn(into, moved, path)),
    close: async () => {
      lock.close();
      if (file.database.isOpen) file.database.close();
    },
  };

  function read(): StoredTokens | null {
    return readStored(file.database, tables, lock);
  }

  // Asynchronous outside, since stores on a network are; the driver itself blocks.
  async function write<T>(work: (tables: SqliteTables) => T): Promise<T> {
    makeWritable();
    return inTransaction(file.database, () => work(tables));
  }

  /**
   * A store that could not be written before may be writable by now; and a file that was taken away or
   * replaced is not to be written any more, since nobody would find it again.
   */
  function makeWritable(): void {
    if (file.unwritable === undefined && fileAt(place) === opened) return;
    try {
      reopen();
    } catch (error) {
      throw new Error(`the token store cannot be written: ${(error as Error).message}`, {
        cause: error,
      });
    }
    if (file.unwritable !== undefined) {
      throw new Error(`the token store cannot be written (${file.unwritable})`);
    }
  }

  /** What is read of a file that nobody else finds any more is of no use to anybody. */
  function follow(): void {
    try {
      reopen();
    } catch (error) {
      // It is there, and is a token store: only not one that this process has the key of.
      if (error instanceof SealError) throw error;
      throw new StoreGoneError((error as Error).message, { cause: error });
    }
  }

  function reopen(): void {
    // Before it is opened: when it is replaced meanwhile, that is seen the next time.
    const found = fileAt(place);
    const next = openSqliteFile(place, { ...settings, create: false });
    try {
      tables = prepareTables(next.database, sealer);
    } catch (error) {
      next.database.close();
      throw error;
    }
    file.database.close();
    file = next;
    opened = found;
  }

  /** What was written may have used the reserve. */
  function makeRoom(): void {
    if (path === MEMORY) return;
    try {
      reserve(file.database, place);
    } catch {
      // The disk is full, or another process writes: the next time, then.
    }
  }
}
