import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { documentOf, OLD_PROCESS } from '../first-layout.ts';
import type { Sealer } from '../seal.ts';
import { newDocument, openDocument, sealDocument, type TokenDocument } from '../token-document.ts';
import {
  StoreNewerError,
  StoreUnavailableError,
  StoreUnreadableError,
  type StoreLayout,
} from '../token-store.ts';
import { isBusy, makeEmptyFile, SQLITE_BUSY } from './lock.ts';
import {
  checkFileSystem,
  checkMount,
  makeStoreFile,
  repairRights,
  type FileSystemType,
} from './place.ts';

export interface OpenFile {
  readonly database: DatabaseSync;
  readonly notices: readonly string[];
  readonly layout: StoreLayout;
  /** Why it cannot be written; undefined if it can. */
  readonly unwritable: string | undefined;
}

interface FileOptions {
  readonly sealer: Sealer;
  readonly fileSystemType?: FileSystemType | undefined;
  /** Creates, repairs and re-encrypts nothing. */
  readonly readOnly?: boolean | undefined;
  /** Whether a missing file is created. */
  readonly create: boolean;
  /** Whether another process is exchanging the refresh token that the store holds. */
  readonly isExchanging: (document: TokenDocument) => boolean;
  /** Whether this is the last try: then work that can wait is skipped if another process has the file locked. */
  readonly isLast: boolean;
}

/** The driver never waits: see `whenFree` in sqlite-store.ts. */
const timeout = 0;
const READONLY_ROLLBACK = 776;
/** The smallest database, bytes. SQLite treats a shorter file as a new database, and overwrites it. */
const SMALLEST = 512;

/**
 * Opens the file of a store: first inspects it without changing a byte, then prepares it for writing.
 *
 * @throws Error when it cannot be opened, is damaged, or is not a token store that these keys open; `isBusy` when
 *   another process has it locked
 */
export function openSqliteFile(path: string, options: FileOptions): OpenFile {
  const { sealer, fileSystemType, create, readOnly = false } = options;
  if (path === ':memory:') return openMemory(sealer);
  const notices = checkFileSystem(path, fileSystemType);
  checkMount(path);
  if (existsSync(path)) inspect(path, sealer);
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
    const layoutAtOpen = layoutOf(database) || LAYOUT;
    notices.push(...prepare(database, path, options));
    makeEmptyFile(`${path}-lock`);
    notices.push(...repairRights(path));
    return { database, notices, unwritable, layout: { found: layoutAtOpen, now: LAYOUT } };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Reported as the reason if a store was opened only for reading. */
export const TO_READ = 'it was opened to be read only';

function isEmptyFile(path: string): boolean {
  return !existsSync(path) || statSync(path).size === 0;
}

function openMemory(sealer: Sealer): OpenFile {
  const database = new DatabaseSync(':memory:');
  createLayout(database, sealer);
  const layout = { found: LAYOUT, now: LAYOUT };
  return { database, notices: [], unwritable: undefined, layout };
}

/** Reads only, so that a file that is refused is not changed. */
function inspect(path: string, sealer: Sealer): void {
  const stat = statSync(path);
  if (stat.isDirectory()) throw new Error('it is a folder');
  // The lock is created after the tables, so creating the store was not interrupted.
  if (existsSync(`${path}-lock`) && statSync(path).size < SMALLEST) {
    throw new Error('the file is damaged: all that it held is gone');
  }
  if (stat.size === 0) return;
  if (stat.size < SMALLEST) throw new Error('the file is not a database');
  try {
    inspectContent(path, sealer, true);
  } catch (error) {
    if ((error as { errcode?: number }).errcode !== READONLY_ROLLBACK) throw error;
    // A process ended within a transaction, which the next reader has to roll back.
    const unwritable = whyUnwritable(path);
    if (unwritable !== undefined) {
      throw new Error(
        `a transaction was cut off, and cannot be rolled back without the right to write (${unwritable})`,
        { cause: error },
      );
    }
    inspectContent(path, sealer, false);
  }
}

function inspectContent(path: string, sealer: Sealer, readOnly: boolean): void {
  const database = new DatabaseSync(path, { readOnly, timeout });
  try {
    // Another process may be creating it.
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
    const layout = layoutOf(database);
    if (layout === 0) {
      throw new Error(`it is empty, and cannot be written to change that (${unwritable})`);
    }
    return { database, notices, unwritable, layout: { found: layout, now: layout } };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** @returns notices for the operator */
function prepare(database: DatabaseSync, path: string, options: FileOptions): string[] {
  const { sealer, isExchanging, isLast } = options;
  database.exec(
    'PRAGMA journal_mode = PERSIST; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;',
  );
  const isReady = () => checkLayout(database) === LAYOUT && isSealedWithNewestKey(database, sealer);
  // Usually it is ready, and then a transaction of another process does not matter.
  const isPostponed =
    !inOneView(database, isReady) &&
    inTransaction(database, () => {
      if (isReady()) return false;
      if (layoutOf(database) === 0) {
        createLayout(database, sealer);
        return false;
      }
      const document = readDocument(database, sealer);
      const isOld = layoutOf(database) !== LAYOUT;
      // That process may not know the new key or this layout, and could not save its pair then.
      if (isExchanging(document)) {
        if (isOld) throw new OldProcessError(OLD_PROCESS);
        return true;
      }
      if (isOld) replaceFirstLayout(database, sealer);
      else writeDocument(database, document, sealer);
      return false;
    });
  return [
    ...(isPostponed ? [NOT_SEALED_ANEW] : []),
    ...tried('Its file may still contain tokens in their earlier form', isLast, () => {
      if (database.prepare('SELECT * FROM due').get()) wipe(database);
    }),
    ...tried('Saving may fail when its disk is full', isLast, () => reserve(database, path)),
  ];
}

/** Retried like a locked file. */
class OldProcessError extends StoreUnavailableError {
  readonly errcode = SQLITE_BUSY;
}

const NOT_SEALED_ANEW =
  'The tokens are not encrypted with the newest key yet, since another process is exchanging. The next start does it.';

/** Work that can wait for the next start does not prevent the use of the store. */
function tried(consequence: string, isLast: boolean, work: () => void): string[] {
  try {
    work();
    return [];
  } catch (error) {
    if (isBusy(error) && !isLast) throw error;
    return [
      `The token store could not be made ready (${(error as Error).message}). ${consequence}.`,
    ];
  }
}

/** Removes tokens that were sealed with other keys, or not at all, from free pages and from the journal. */
function wipe(database: DatabaseSync): void {
  database.exec('PRAGMA temp_store = MEMORY; VACUUM;');
  try {
    inTransaction(database, () => {
      // Outside of a transaction, SQLite silently keeps the journal while another process writes.
      database.exec('PRAGMA journal_mode = DELETE; DELETE FROM due;');
    });
  } finally {
    database.exec('PRAGMA journal_mode = PERSIST');
  }
}

/** In layout 1, the content was spread over several tables. */
export const LAYOUT = 2;
const FIRST_TABLES = ['token_pair', 'token_set', 'attempt', 'fingerprint', 'ring'];

const TABLES = `
  CREATE TABLE tokens (id INTEGER PRIMARY KEY CHECK (id = 1), document TEXT NOT NULL) STRICT;
  CREATE TABLE due (task TEXT PRIMARY KEY) STRICT;`;

/** Within a transaction. */
function createLayout(database: DatabaseSync, sealer: Sealer): void {
  database.exec(`${TABLES} PRAGMA user_version = ${LAYOUT};`);
  writeDocument(database, newDocument(), sealer);
}

/**
 * Converts a store of layout 1. Its tables are removed, so that a process of an older version can neither claim nor save
 * any more. Within a transaction, while no process is exchanging.
 */
export function replaceFirstLayout(database: DatabaseSync, sealer: Sealer): void {
  const document = readDocument(database, sealer);
  for (const table of [...FIRST_TABLES, 'due']) database.exec(`DROP TABLE ${table}`);
  database.exec(`${TABLES} PRAGMA user_version = ${LAYOUT};`);
  database.exec("INSERT INTO due VALUES ('wipe')");
  writeDocument(database, document, sealer);
}

/** @throws Error, or SealError, if it is damaged or cannot be decrypted */
export function readDocument(database: DatabaseSync, sealer: Sealer): TokenDocument {
  if (layoutOf(database) === LAYOUT) return openDocument(sealedIn(database), sealer);
  const rows = (table: string, order = 'rowid') =>
    database.prepare(`SELECT * FROM ${table} ORDER BY ${order}`).all();
  return documentOf(
    {
      rings: rows('ring', 'id'),
      sets: rows('token_set', 'id'),
      pairs: rows('token_pair'),
      attempts: rows('attempt', 'id'),
      fingerprints: rows('fingerprint'),
    },
    sealer,
  );
}

/** Within a transaction. What it replaces is wiped from the disk at the next start, unless the newest key sealed it. */
export function writeDocument(
  database: DatabaseSync,
  document: TokenDocument,
  sealer: Sealer,
): void {
  const before = database.prepare('SELECT document FROM tokens').get();
  if (before && !sealer.isCurrent(before['document'] as string)) {
    database.exec("INSERT INTO due VALUES ('wipe') ON CONFLICT DO NOTHING");
  }
  database
    .prepare(
      'INSERT INTO tokens VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET document = excluded.document',
    )
    .run(sealDocument(document, sealer));
}

function isSealedWithNewestKey(database: DatabaseSync, sealer: Sealer): boolean {
  return sealer.isCurrent(sealedIn(database));
}

function sealedIn(database: DatabaseSync): string {
  const row = database.prepare('SELECT document FROM tokens').get();
  if (!row) throw new StoreUnreadableError('the file is damaged: its content was removed');
  return row['document'] as string;
}

/** @returns 0 for an empty database @throws Error with a message for the operator */
export function checkLayout(database: DatabaseSync): number {
  const version = layoutOf(database);
  if (version > LAYOUT) throw new StoreNewerError(version);
  const names = database.prepare('SELECT name FROM sqlite_schema').all();
  if (names.length === 0 && version === 0) return 0;
  const has = (name: string) => names.some((row) => row['name'] === name);
  if (version === 1 && FIRST_TABLES.every(has)) return version;
  if (version < LAYOUT || !has('tokens')) throw new Error('it is a database of something else');
  checkTables(database);
  return version;
}

/** With one bit flipped, a name may differ only in case, and its column would read as undefined. */
function checkTables(database: DatabaseSync): void {
  const texts = new Set(textsOf(database));
  const isWhole = textsOfLayout().every((text) => texts.has(text));
  if (!isWhole) throw new Error('the file is damaged: its tables are not those of its layout');
}

let layoutTexts: readonly string[] | undefined;

/** Cached, because creating the tables takes longer than comparing them. */
function textsOfLayout(): readonly string[] {
  if (layoutTexts) return layoutTexts;
  const fresh = new DatabaseSync(':memory:');
  try {
    fresh.exec(TABLES);
    return (layoutTexts = textsOf(fresh));
  } finally {
    fresh.close();
  }
}

function textsOf(database: DatabaseSync): string[] {
  return database
    .prepare("SELECT type || ' ' || name || ' ' || coalesce(sql, '') AS text FROM sqlite_schema")
    .all()
    .map(({ text }) => (text as string).replaceAll(/\s+/g, ' '));
}

export function layoutOf(database: DatabaseSync): number {
  return database.prepare('PRAGMA user_version').get()?.['user_version'] as number;
}

const RESERVED_BYTES = 256 * 1024;
const PAGE_BYTES = 4096;

/**
 * Reserves room in the file and in its journal, so that claims and saves succeed on a full disk: a large row that is
 * inserted, changed and deleted leaves free pages.
 *
 * @throws Error if the disk is full already
 */
export function reserve(database: DatabaseSync, path: string): void {
  // A call writes the document anew, and the pages of the old one go to the journal.
  const bytes = Math.max(RESERVED_BYTES, 2 * sealedIn(database).length);
  if (isReserved(database, path, bytes)) return;
  inTransaction(database, () => {
    database.exec('CREATE TABLE IF NOT EXISTS reserve (room BLOB)');
    if (database.prepare('SELECT 1 FROM reserve').get()) return;
    database.prepare('INSERT INTO reserve VALUES (zeroblob(?))').run(bytes);
  });
  inTransaction(database, () => {
    // Another process may have finished this in the meantime.
    if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'reserve'").get()) return;
    // Only pages that held something are copied to the journal before they change.
    database.prepare('UPDATE reserve SET room = randomblob(?)').run(bytes);
    database.exec('DROP TABLE reserve');
  });
}

function isReserved(database: DatabaseSync, path: string, bytes: number): boolean {
  const free = database.prepare('PRAGMA freelist_count').get()?.['freelist_count'] as number;
  const journal = `${path}-journal`;
  const hasPages = free >= bytes / PAGE_BYTES;
  return hasPages && existsSync(journal) && statSync(journal).size >= bytes;
}

/** Durable when it returns; undone when it throws. */
export function inTransaction<T>(database: DatabaseSync, work: () => T): T {
  // Locks now and not at the first write, so that nothing was done yet if another process has the lock.
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

/** All reads in it see the same state. */
export function inOneView<T>(database: DatabaseSync, read: () => T): T {
  if (database.isTransaction) return read();
  database.exec('BEGIN');
  try {
    return read();
  } finally {
    undo(database);
  }
}

/** A failed COMMIT may have rolled back already, and a failed ROLLBACK must not hide the cause. */
function undo(database: DatabaseSync): void {
  try {
    if (database.isTransaction) database.exec('ROLLBACK');
  } catch {
    // The next process that opens the file rolls it back.
  }
}
