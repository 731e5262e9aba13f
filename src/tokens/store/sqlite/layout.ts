import { existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { documentOf } from '../first-layout.ts';
import type { Sealer } from '../seal.ts';
import { newDocument, openDocument, sealDocument, type TokenDocument } from '../token-document.ts';
import { StoreUnreadableError } from '../token-store.ts';
import { inTransaction } from './transaction.ts';

/** 1: its content was spread over tables. */
export const LAYOUT = 2;
const FIRST_TABLES = ['token_pair', 'token_set', 'attempt', 'fingerprint', 'ring'];

const TABLES = `
  CREATE TABLE tokens (id INTEGER PRIMARY KEY CHECK (id = 1), document TEXT NOT NULL) STRICT;
  CREATE TABLE due (task TEXT PRIMARY KEY) STRICT;`;

/** Within a transaction. */
export function createLayout(database: DatabaseSync, sealer: Sealer): void {
  database.exec(`${TABLES} PRAGMA user_version = ${LAYOUT};`);
  writeDocument(database, newDocument(), sealer);
}

/**
 * Brings a store of layout 1 to this one. Its tables are removed, so that a process of an older version, which knows no
 * other, can neither claim nor save any more. Within a transaction, and while nobody exchanges.
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

/** Whether it is encrypted with the newest key. */
export function isSealedWell(database: DatabaseSync, sealer: Sealer): boolean {
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
  if (version > LAYOUT) throw new Error(`it was written by a newer version (layout ${version})`);
  const names = database.prepare('SELECT name FROM sqlite_schema').all();
  if (names.length === 0 && version === 0) return 0;
  const has = (name: string) => names.some((row) => row['name'] === name);
  if (version === 1 && FIRST_TABLES.every(has)) return version;
  if (version < LAYOUT || !has('tokens')) throw new Error('it is a database of something else');
  checkTables(database);
  return version;
}

/** A name with one bit changed may differ in case only, and a column would read as if it were not there. */
function checkTables(database: DatabaseSync): void {
  const found = new Set(textsOf(database));
  const isWhole = textsOfLayout().every((text) => found.has(text));
  if (!isWhole) throw new Error('the file is damaged: its tables are not those of its layout');
}

let ofLayout: readonly string[] | undefined;

/** They do not change, and to make them costs more than to compare them. */
function textsOfLayout(): readonly string[] {
  if (ofLayout) return ofLayout;
  const fresh = new DatabaseSync(':memory:');
  try {
    fresh.exec(TABLES);
    return (ofLayout = textsOf(fresh));
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
 * Makes room in the file and in its journal, so that claims and saves succeed on a disk that is full: a large row that
 * is written, changed and deleted leaves its pages behind for others.
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
    // Another process may have done the rest meanwhile.
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
