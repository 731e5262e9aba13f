import { setTimeout as delay } from 'node:timers/promises';
import type { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../../../clock.ts';
import { createSealer, SealError, type Sealer } from '../seal.ts';
import * as rules from '../token-document.ts';
import type { HeldClaim, Present, TokenDocument } from '../token-document.ts';
import {
  StoreGoneError,
  StoreUnavailableError,
  StoreUnreadableError,
  type Claim,
  type TokenStore,
} from '../token-store.ts';
import { fileAt, isBusy, openExchangeLock } from './lock.ts';
import { placeOf, type FileSystemType } from './place.ts';
import {
  checkLayout,
  inOneView,
  inTransaction,
  LAYOUT,
  layoutOf,
  openSqliteFile,
  readDocument,
  reserve,
  TO_READ,
  writeDocument,
  type OpenFile,
} from './sqlite-file.ts';

interface SqliteOptions {
  readonly sealer?: Sealer;
  readonly fileSystemType?: FileSystemType;
  /** Changes no byte of any file. A missing file is an empty store. */
  readonly readOnly?: boolean;
  /** Wall time, ms. */
  readonly now?: () => number;
  /** Time that never jumps, ms. */
  readonly elapsed?: () => number;
}

const MEMORY = ':memory:';

/**
 * The embedded store: one file, written with `synchronous=FULL`, for any number of processes on one machine.
 * Its claim is guarded by a kernel lock, so that a restart takes over at once from a process that was killed.
 * A held lock is never overridden, not even that of a process that was stopped: an outage can be repaired, a lost token
 * cannot.
 *
 * No call waits within the driver, which would block the event loop: while another process has the file locked, the call
 * is repeated for some seconds.
 *
 * @param path a file (its folder is made, 0700, when missing), or `:memory:`
 * @throws when the file cannot be opened or is not a token store; the file is left as it is. One that is locked
 *   at this moment is opened by the first call that finds it free
 */
export function openSqliteStore(path: string, options: SqliteOptions = {}): TokenStore {
  const { sealer = createSealer([]), fileSystemType, readOnly } = options;
  const { now, elapsed } = { ...systemClock, ...options };
  const isOver = rules.createClaimEnds(elapsed);
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
    get layout() {
      return opened?.layout;
    },
    get unwritable() {
      // Says nothing about a store that was opened only for reading.
      return opened?.unwritable === TO_READ ? undefined : opened?.unwritable;
    },
    read: () =>
      whenFree((isLast) => {
        const file = usable(isLast);
        try {
          if (fileAt(place) === file.identity) return view(file, rules.readStored);
        } catch (error) {
          if (path === MEMORY || isBusy(error)) throw error;
          // Another file may have been written over it.
        }
        return view(follow(isLast), rules.readStored);
      }),
    import: (imported) => write((document) => rules.importSet(document, present(), imported)),
    withdraw: (set) => write((document) => rules.withdrawSet(document, set)),
    claim: async (claim) => {
      await whenFree(writable);
      if (!(await lock.take(claim.attempt))) return undefined;
      let claimed: Claim | undefined;
      try {
        claimed = await write((document) => rules.claimSet(document, present(), claim));
      } finally {
        if (!claimed) lock.release(claim.attempt);
      }
      return claimed;
    },
    endAttempt: async (attempt, ending) => {
      try {
        await write((document) => rules.endAttempt(document, attempt, ending));
      } finally {
        // Also if that failed: the claim stays, and means that the exchange is uncertain.
        lock.release(attempt);
      }
      makeRoom();
    },
    // While it fails, the lock is kept: this process has the pair, and no other one may exchange.
    save: async (saved) => {
      const isNewest = await write((document) => rules.savePair(document, present(), saved, now()));
      lock.release(saved.attempt);
      makeRoom();
      return isNewest;
    },
    holds: (saved) =>
      whenFree((isLast) => view(usable(isLast), (document) => rules.holdsPair(document, saved))),
    history: (limit) =>
      whenFree((isLast) => view(usable(isLast), (document) => rules.historyIn(document, limit))),
    moveOut: async (move) => {
      await whenFree(writable);
      const owner = `move to ${move.to}`;
      if (!(await lock.take(owner))) throw new Error(rules.UNDER_WAY);
      try {
        return await write((document) => rules.moveOut(document, present(), move));
      } finally {
        lock.release(owner);
      }
    },
    moveBack: (to) => write((document) => rules.moveBack(document, to)),
    moveIn: (moved) => write((document) => rules.moveIn(document, present(), moved, path)),
    close: async () => {
      isClosed = true;
      lock.close();
      opened?.database.close();
      opened = undefined;
    },
  };

  function present(): Present {
    return {
      now: now(),
      lock: lock.inode ?? null,
      isLive: (claim) =>
        lock.heldFor === claim.attempt || lock.isHeldByOthers() || mayBeUnseen(claim),
      isExclusive: (before) => before === null || before.ended || isSeen(before),
    };
  }

  /** Whether the lock that is there now shows whether the claim's process lives: the file may have been deleted since. */
  function isSeen(claim: HeldClaim): boolean {
    return claim.lock === null || claim.lock === lock.inode;
  }

  function mayBeUnseen(claim: HeldClaim): boolean {
    return !claim.ended && !isSeen(claim) && !isOver(claim, now());
  }

  function view<T>(file: Opened, read: (document: TokenDocument, present: Present) => T): T {
    const { database } = file;
    return inOneView(database, () => {
      // Changes of other processes are checked as at a start, which may refuse what this process could still use.
      const changes = changesOf(database);
      if (file.checkedChanges !== changes) checkLayout(database);
      file.checkedChanges = changes;
      return read(readDocument(database, sealer), present());
    });
  }

  function write<T>(work: (document: TokenDocument) => T): Promise<T> {
    return whenFree((isLast) => {
      const { database } = writable(isLast);
      return inTransaction(database, () => {
        const document = readDocument(database, sealer);
        const before = JSON.stringify(document);
        const result = work(document);
        if (JSON.stringify(document) !== before) writeDocument(database, document, sealer);
        return result;
      });
    });
  }

  function usable(isLast: boolean): Opened {
    if (isClosed) throw new Error('the token store is closed');
    return (opened ??= openFile(isLast));
  }

  /**
   * Opens the store again if it could not be written before. A file that was removed or replaced is not written any more,
   * because no other process would find it.
   */
  function writable(isLast: boolean): Opened {
    const file = usable(isLast);
    const isInPlace = file.unwritable === undefined && fileAt(place) === file.identity;
    if (isInPlace && layoutOf(file.database) === LAYOUT) return file;
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

  /** Opens the file that other processes find now. */
  function follow(isLast: boolean): Opened {
    try {
      return reopen(isLast);
    } catch (error) {
      if (isBusy(error) || isOfContent(error)) throw error;
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
    // Read before the file is opened, so that the next call notices a replacement in between.
    const before = fileAt(place);
    const file = openSqliteFile(place, {
      sealer,
      fileSystemType,
      readOnly,
      create: opened === undefined,
      isExchanging: ({ sets }) =>
        lock.isHeldByOthers() || sets.some(({ claim }) => claim !== null && mayBeUnseen(claim)),
      isLast,
    });
    return { ...file, identity: before ?? fileAt(place) };
  }

  /** The last write may have used the reserved room. */
  function makeRoom(): void {
    if (path === MEMORY || !opened) return;
    try {
      reserve(opened.database, place);
    } catch {
      // The disk is full, or another process is writing. The next write tries again.
    }
  }
}

/** Whether the file is a token store that is damaged, or whose key this process lacks. */
function isOfContent(error: unknown): boolean {
  return error instanceof SealError || error instanceof StoreUnreadableError;
}

/** Changes when another connection has written. */
function changesOf(database: DatabaseSync): unknown {
  return database.prepare('PRAGMA data_version').get()?.['data_version'];
}

interface Opened extends OpenFile {
  /** `changesOf` when its layout was checked. */
  checkedChanges?: unknown;
  /** `fileAt` when it was opened. */
  readonly identity: string | undefined;
}

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;
const PATIENCE_MS = 5_000;

/**
 * Repeats the work until no other process has the file locked. The driver would block the event loop while it waits, so
 * every connection has the time-out 0.
 *
 * @param work changes nothing if it throws; `isLast` if it is not repeated
 * @throws Error if the file is still locked after five seconds
 */
async function whenFree<T>(work: (isLast: boolean) => T): Promise<T> {
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
