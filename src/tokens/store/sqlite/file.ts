import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Sealer } from '../seal.ts';
import { OLD_PROCESS } from '../first-layout.ts';
import { StoreUnavailableError } from '../token-store.ts';
import type { TokenDocument } from '../token-document.ts';
import {
  checkLayout,
  createLayout,
  isSealedWell,
  LAYOUT,
  layoutOf,
  readDocument,
  replaceFirstLayout,
  reserve,
  writeDocument,
} from './layout.ts';
import { isBusy, makeEmptyFile, SQLITE_BUSY } from './lock.ts';
import {
  checkFileSystem,
  checkMount,
  makeStoreFile,
  repairRights,
  type FileSystemType,
} from './place.ts';
import { inOneView, inTransaction } from './transaction.ts';

export interface OpenFile {
  readonly database: DatabaseSync;
  readonly notices: readonly string[];
  /** Undefined when it can be written. */
  readonly unwritable: string | undefined;
}

interface FileOptions {
  readonly sealer: Sealer;
  readonly fileSystemType?: FileSystemType | undefined;
  /** Whether it is only read: then nothing is made, repaired, or sealed anew. */
  readonly readOnly?: boolean | undefined;
  /** Whether a file that is missing is made. */
  readonly create: boolean;
  /** Whether another process is exchanging the refresh token of what the store holds. */
  readonly isExchanging: (document: TokenDocument) => boolean;
  /** Whether what could be done the next time is left, where another process has the file locked. */
  readonly isLast: boolean;
}

/** The driver never waits: see `whenFree`. */
const timeout = 0;
const READONLY_ROLLBACK = 776;
/** Bytes: SQLite takes what is shorter for a new database, and writes over it. */
const SMALLEST = 512;

/**
 * Opens the file of a store: looks at it first without changing a byte, then makes it ready to be written.
 *
 * @throws Error when it cannot be opened, is damaged, or is not a token store that these keys open; `isBusy` when
 *   another process has it locked
 */
export function openSqliteFile(path: string, options: FileOptions): OpenFile {
  const { sealer, fileSystemType, create, readOnly = false } = options;
  if (path === ':memory:') return openMemory(sealer);
  const notices = checkFileSystem(path, fileSystemType);
  checkMount(path);
  if (existsSync(path)) look(path, sealer);
  else if (create && !readOnly) makeStoreFile(path);
  else if (!readOnly) throw new Error('the file is gone');
  if (readOnly && isEmptyFile(path)) return { ...openMemory(sealer), unwritable: TO_READ };
  const unwritable = whyUnwritable(path);
  if (unwritable !== undefined) {
    const notice = `The token store cannot be written (${unwritable}): nothing is refreshed from here until it can.`;
    return openReadOnly(path, unwritable, [...notices, notice]);
  }
  if (readOnly) return openReadOnly(path, TO_READ, notices);

  const database = new DatabaseSync(path, { timeout });
  try {
    notices.push(...prepare(database, path, options));
    makeEmptyFile(`${path}-lock`);
    notices.push(...repairRights(path));
    return { database, notices, unwritable };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Why a store that was opened to be read is not written. */
export const TO_READ = 'it was opened to be read only';

function isEmptyFile(path: string): boolean {
  return !existsSync(path) || statSync(path).size === 0;
}

function openMemory(sealer: Sealer): OpenFile {
  const database = new DatabaseSync(':memory:');
  createLayout(database, sealer);
  return { database, notices: [], unwritable: undefined };
}

/** Reads only: what is refused stays as it is, byte for byte. */
function look(path: string, sealer: Sealer): void {
  const stat = statSync(path);
  if (stat.isDirectory()) throw new Error('it is a folder');
  // The lock is made after the tables, so that this is no beginning that was cut off.
  if (existsSync(`${path}-lock`) && statSync(path).size < SMALLEST) {
    throw new Error('the file is damaged: all that it held is gone');
  }
  if (stat.size === 0) return;
  if (stat.size < SMALLEST) throw new Error('the file is not a database');
  try {
    lookInto(path, sealer, true);
  } catch (error) {
    if ((error as { errcode?: number }).errcode !== READONLY_ROLLBACK) throw error;
    // A process ended within a transaction: whoever reads the file next has to roll it back.
    const unwritable = whyUnwritable(path);
    if (unwritable !== undefined) {
      throw new Error(
        `a transaction was cut off, and cannot be rolled back without the right to write (${unwritable})`,
        { cause: error },
      );
    }
    lookInto(path, sealer, false);
  }
}

function lookInto(path: string, sealer: Sealer, readOnly: boolean): void {
  const database = new DatabaseSync(path, { readOnly, timeout });
  try {
    // Another process may be making it.
    inOneView(database, () => {
      const version = checkLayout(database);
      const [check] = database.prepare('PRAGMA integrity_check(1)').all();
      if (check?.['integrity_check'] !== 'ok') throw new Error('the file is damaged');
      if (version !== 0) readDocument(database, sealer);
    });
  } finally {
    database.close();
  }
}

function whyUnwritable(path: string): string | undefined {
  for (const place of [dirname(path), path, `${path}-journal`, `${path}-lock`]) {
    try {
      if (existsSync(place)) accessSync(place, constants.W_OK);
    } catch (error) {
      return `${place}: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`;
    }
  }
  return undefined;
}

function openReadOnly(path: string, unwritable: string, notices: readonly string[]): OpenFile {
  const database = new DatabaseSync(path, { readOnly: true, timeout });
  try {
    if (layoutOf(database) === 0) {
      throw new Error(`it is empty, and cannot be written to change that (${unwritable})`);
    }
  } catch (error) {
    database.close();
    throw error;
  }
  return { database, notices, unwritable };
}

/** @returns what the operator should know */
function prepare(database: DatabaseSync, path: string, options: FileOptions): string[] {
  const { sealer, isExchanging, isLast } = options;
  database.exec(
    'PRAGMA journal_mode = PERSIST; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;',
  );
  const isReady = () => checkLayout(database) === LAYOUT && isSealedWell(database, sealer);
  // Mostly it is, and then another process may be in the middle of a transaction.
  const isLeft =
    !inOneView(database, isReady) &&
    inTransaction(database, () => {
      if (isReady()) return false;
      if (layoutOf(database) === 0) {
        createLayout(database, sealer);
        return false;
      }
      const document = readDocument(database, sealer);
      const isOld = layoutOf(database) !== LAYOUT;
      // It may not know the new key or this layout, and could not save its pair.
      if (isExchanging(document)) {
        if (isOld) throw new OldProcessError(OLD_PROCESS);
        return true;
      }
      if (isOld) replaceFirstLayout(database, sealer);
      else writeDocument(database, document, sealer);
      return false;
    });
  return [
    ...(isLeft ? [LEFT] : []),
    ...tried('Tokens as they were kept before may be left in its file', isLast, () => {
      if (database.prepare('SELECT * FROM due').get()) wipe(database);
    }),
    ...tried('Saving may fail when its disk is full', isLast, () => reserve(database, path)),
  ];
}

/** Passes like a lock: it is tried again. */
class OldProcessError extends StoreUnavailableError {
  readonly errcode = SQLITE_BUSY;
}

const LEFT =
  'The tokens are not encrypted with the newest key yet, since another process is exchanging. The next start does it.';

/** What can be done the next time as well does not keep the store from its work. */
function tried(otherwise: string, isLast: boolean, work: () => void): string[] {
  try {
    work();
    return [];
  } catch (error) {
    if (isBusy(error) && !isLast) throw error;
    return [`The token store could not be made ready (${(error as Error).message}). ${otherwise}.`];
  }
}

/** Tokens as they were kept before may be left in free pages, and in the journal. */
function wipe(database: DatabaseSync): void {
  database.exec('PRAGMA temp_store = MEMORY; VACUUM;');
  try {
    inTransaction(database, () => {
      // Outside of a transaction SQLite leaves the journal without a word while another process writes.
      database.exec('PRAGMA journal_mode = DELETE; DELETE FROM due;');
    });
  } finally {
    database.exec('PRAGMA journal_mode = PERSIST');
  }
}
