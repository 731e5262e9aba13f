import { createSealer, SealError, type Sealer } from './seal.ts';
import { fileAt, isBusy, openExchangeLock } from './exchange-lock.ts';
import { openSqliteFile, TO_READ, type OpenFile } from './sqlite-file.ts';
import { moveBack, moveIn, moveOut, UNDER_WAY } from './sqlite-moves.ts';
import { placeOf, type FileSystemType } from './sqlite-place.ts';
import { readStored } from './sqlite-read.ts';
import { reserve } from './sqlite-reserve.ts';
import { prepareTables, type SqliteTables } from './sqlite-tables.ts';
import { inOneView, inTransaction, whenFree } from './sqlite-transaction.ts';
import {
  holdsPair,
  importSet,
  claimSet,
  savePair,
  endAttempt,
  withdrawSet,
} from './sqlite-writes.ts';
import { StoreGoneError, type Claim, type StoredTokens, type TokenStore } from './token-store.ts';

export interface SqliteOptions {
  readonly sealer?: Sealer;
  readonly fileSystemType?: FileSystemType;
  /** Opened to be read: not a byte of any file is changed. A file that is missing is an empty store. */
  readonly readOnly?: boolean;
  /** Wall time, ms. */
  readonly now?: () => number;
}

const MEMORY = ':memory:';

/**
 * The embedded store: one file, written with `synchronous=FULL`, for any number of processes on one machine.
 * Its claim is guarded by a kernel lock, so that a restart takes over at once from a process that was killed.
 * A lock that is held is never overridden: a process that was stopped keeps it, since an outage can be
 * mended and a lost token cannot.
 *
 * No call waits within the driver, which blocks: where another process has the file locked, it is tried again
 * for some seconds, and everything else in this process goes on meanwhile.
 *
 * @param path a file (its folder is made, 0700, when missing), or `:memory:`
 * @throws when the file cannot be opened or is not a token store; the file is left as it is. One that is locked
 *   at this moment is opened by the first call that finds it free
 */
export function openSqliteStore(path: string, options: SqliteOptions = {}): TokenStore {
  const { sealer = createSealer([]), fileSystemType, readOnly, now = Date.now } = options;
  const place = path === MEMORY ? path : placeOf(path);
  const lock = openExchangeLock(path === MEMORY ? undefined : `${place}-lock`);
  let opened: Opened | undefined;
  let isClosed = false;
  try {
    opened = openFile(false);
  } catch (error) {
    if (!isBusy(error)) {
      lock.close();
      throw error;
    }
  }
  const description = path === MEMORY ? 'in memory' : `sqlite:${path}`;

  return {
    description,
    behind: 'older',
    get notices() {
      return opened?.notices ?? [];
    },
    get unwritable() {
      // Of a store that was opened to be read, this says nothing.
      return opened?.unwritable === TO_READ ? undefined : opened?.unwritable;
    },
    read: () =>
      whenFree((isLast) => {
        const found = usable(isLast);
        try {
          if (fileAt(place) === found.identity) return read(found);
        } catch (error) {
          if (path === MEMORY || isBusy(error)) throw error;
          // Perhaps another one was written over it.
        }
        return read(follow(isLast));
      }),
    import: (imported) =>
      write((into) => importSet(into.tables, imported, now(), () => read(into))),
    withdraw: (set) => write(({ tables }) => withdrawSet(tables, set)),
    claim: async (claim) => {
      await whenFree(writable);
      if (!(await lock.take(claim.attempt))) return undefined;
      let claimed: Claim | undefined;
      try {
        claimed = await write(({ tables }) => {
          return claimSet(tables, claim, { inode: lock.inode, now: now() });
        });
      } finally {
        if (!claimed) lock.release(claim.attempt);
      }
      return claimed;
    },
    endAttempt: async (attempt, ending) => {
      try {
        await write(({ tables }) => endAttempt(tables, attempt, ending));
      } finally {
        // Also when that failed: the claim that stays says that the exchange is uncertain.
        lock.release(attempt);
      }
      makeRoom();
    },
    // While it fails the lock is kept: the pair is in this process, and nobody else may exchange.
    save: async (saved) => {
      const isHead = await write(({ tables }) => savePair(tables, saved, description));
      lock.release(saved.attempt);
      makeRoom();
      return isHead;
    },
    holds: (saved) =>
      whenFree((isLast) => {
        const { database, tables } = usable(isLast);
        return inOneView(database, () => holdsPair(tables, saved));
      }),
    history: (limit) => whenFree((isLast) => usable(isLast).tables.attempts.newest(limit)),
    moveOut: async (move) => {
      await whenFree(writable);
      const owner = `move to ${move.to}`;
      if (!(await lock.take(owner))) throw new Error(UNDER_WAY);
      try {
        return await write(({ tables }) => moveOut(tables, move, now()));
      } finally {
        lock.release(owner);
      }
    },
    moveBack: (to) => write(({ tables }) => moveBack(tables, to)),
    moveIn: (moved) => write(({ tables }) => moveIn(tables, moved, path, now())),
    close: async () => {
      isClosed = true;
      lock.close();
      opened?.database.close();
      opened = undefined;
    },
  };

  function read({ database, tables }: Opened): StoredTokens | null {
    return readStored(database, tables, lock, now);
  }

  function write<T>(work: (into: Opened) => T): Promise<T> {
    return whenFree((isLast) => {
      const into = writable(isLast);
      return inTransaction(into.database, () => work(into));
    });
  }

  function usable(isLast: boolean): Opened {
    if (isClosed) throw new Error('the token store is closed');
    return (opened ??= openFile(isLast));
  }

  /**
   * A store that could not be written before may be writable by now; and a file that was taken away or
   * replaced is not to be written any more, since nobody would find it again.
   */
  function writable(isLast: boolean): Opened {
    const found = usable(isLast);
    if (found.unwritable === undefined && fileAt(place) === found.identity) return found;
    try {
      const again = reopen(isLast);
      if (again.unwritable === undefined) return again;
      throw new Error(again.unwritable);
    } catch (error) {
      if (isBusy(error)) throw error;
      throw new Error(`the token store cannot be written (${(error as Error).message})`, {
        cause: error,
      });
    }
  }

  /** What is read of a file that nobody else finds any more is of no use to anybody. */
  function follow(isLast: boolean): Opened {
    try {
      return reopen(isLast);
    } catch (error) {
      // It is there, and is a token store: only not one that this process has the key of.
      if (isBusy(error) || error instanceof SealError) throw error;
      throw new StoreGoneError((error as Error).message, { cause: error });
    }
  }

  function reopen(isLast: boolean): Opened {
    const next = openFile(isLast);
    opened?.database.close();
    opened = next;
    return next;
  }

  function openFile(isLast: boolean): Opened {
    // Before it is opened: when it is replaced meanwhile, that is seen the next time.
    const before = fileAt(place);
    const file = openSqliteFile(place, {
      sealer,
      fileSystemType,
      readOnly,
      create: opened === undefined,
      isExchanging: lock.isHeldByOthers,
      isLast,
    });
    try {
      const identity = before ?? fileAt(place);
      return { ...file, identity, tables: prepareTables(file.database, sealer) };
    } catch (error) {
      file.database.close();
      throw error;
    }
  }

  /** What was written may have used the reserve. */
  function makeRoom(): void {
    if (path === MEMORY || !opened) return;
    try {
      reserve(opened.database, place);
    } catch {
      // The disk is full, or another process writes: the next time, then.
    }
  }
}

interface Opened extends OpenFile {
  readonly tables: SqliteTables;
  /** Which file it is. */
  readonly identity: string | undefined;
}
