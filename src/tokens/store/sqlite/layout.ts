import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { contexts, type Sealer } from '../seal.ts';
import { inTransaction } from './transaction.ts';

export const LAYOUT = 1;

const TABLES = `
  CREATE TABLE token_set (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, base_url TEXT NOT NULL, head INTEGER NOT NULL,
    lost INTEGER NOT NULL, moved_to TEXT, withdrawn INTEGER NOT NULL, claim TEXT,
    sum TEXT NOT NULL) STRICT;
  CREATE TABLE token_pair (
    set_id INTEGER NOT NULL REFERENCES token_set (id), generation INTEGER NOT NULL,
    attempt TEXT NOT NULL, pair TEXT NOT NULL, saved_at REAL NOT NULL, imported INTEGER NOT NULL,
    was_head INTEGER NOT NULL, sum TEXT NOT NULL, PRIMARY KEY (set_id, generation, attempt)) STRICT;
  CREATE TABLE attempt (
    id INTEGER PRIMARY KEY AUTOINCREMENT, attempt TEXT NOT NULL, set_name TEXT NOT NULL,
    generation INTEGER NOT NULL, at REAL NOT NULL, outcome TEXT NOT NULL,
    latency_ms INTEGER, replica TEXT NOT NULL) STRICT;
  CREATE TABLE ring (id INTEGER PRIMARY KEY, key TEXT NOT NULL) STRICT;
  CREATE TABLE fingerprint (
    ring_id INTEGER NOT NULL REFERENCES ring (id), fingerprint TEXT NOT NULL,
    generation INTEGER NOT NULL, PRIMARY KEY (ring_id, fingerprint)) STRICT;
  CREATE TABLE due (task TEXT PRIMARY KEY) STRICT;`;

/** Within a transaction. */
export function createLayout(database: DatabaseSync, sealer: Sealer): void {
  database.exec(`${TABLES} PRAGMA user_version = ${LAYOUT};`);
  const key = sealer.seal(randomBytes(32).toString('base64'), contexts.ring);
  database.prepare('INSERT INTO ring (key) VALUES (?)').run(key);
}

/** @returns 0 for an empty database @throws Error with a message for the operator */
export function checkLayout(database: DatabaseSync): number {
  const version = layoutOf(database);
  if (version > LAYOUT) throw new Error(`it was written by a newer version (layout ${version})`);
  const names = database.prepare('SELECT name FROM sqlite_schema').all();
  if (names.length === 0 && version === 0) return 0;
  const has = (name: string) => names.some((row) => row['name'] === name);
  if (version < LAYOUT || !has('token_set') || !has('token_pair') || !has('ring')) {
    throw new Error('it is a database of something else');
  }
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

const PAIRS = `
  SELECT p.rowid, s.name, s.base_url AS baseUrl, p.generation, p.pair
  FROM token_pair p JOIN token_set s ON s.id = p.set_id WHERE p.pair <> ''`;

/** Whether everything is encrypted with the newest key. */
export function isSealedWell(database: DatabaseSync, sealer: Sealer): boolean {
  return [
    ...ringRows(database).map(({ key }) => key),
    ...pairRows(database).map(({ pair }) => pair),
  ].every((sealed) => sealer.isCurrent(sealed));
}

/** Encrypts everything with the newest key. Within a transaction. */
export function reseal(database: DatabaseSync, sealer: Sealer): void {
  const writeKey = database.prepare('UPDATE ring SET key = ? WHERE id = ?');
  const writePair = database.prepare('UPDATE token_pair SET pair = ? WHERE rowid = ?');
  const again = (sealed: string, what: string) => sealer.seal(sealer.open(sealed, what), what);
  for (const { id, key } of ringRows(database)) writeKey.run(again(key, contexts.ring), id);
  for (const { rowid, name, baseUrl, generation, pair } of pairRows(database)) {
    writePair.run(again(pair, contexts.pair({ name, baseUrl }, generation)), rowid);
  }
}

function ringRows(database: DatabaseSync) {
  return database.prepare('SELECT id, key FROM ring').all() as { id: number; key: string }[];
}

function pairRows(database: DatabaseSync) {
  return database.prepare(PAIRS).all() as {
    rowid: number;
    name: string;
    baseUrl: string;
    generation: number;
    pair: string;
  }[];
}

const RESERVED_BYTES = 256 * 1024;
const RESERVED_PAGES = 64;

/**
 * Makes room in the file and in its journal, so that claims and saves succeed on a disk that is full: a large row that
 * is written, changed and deleted leaves its pages behind for others.
 *
 * @throws Error if the disk is full already
 */
export function reserve(database: DatabaseSync, path: string): void {
  if (isReserved(database, path)) return;
  inTransaction(database, () => {
    database.exec('CREATE TABLE IF NOT EXISTS reserve (room BLOB)');
    if (database.prepare('SELECT 1 FROM reserve').get()) return;
    database.prepare('INSERT INTO reserve VALUES (zeroblob(?))').run(RESERVED_BYTES);
  });
  inTransaction(database, () => {
    // Another process may have done the rest meanwhile.
    if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'reserve'").get()) return;
    // Only pages that held something are copied to the journal before they change.
    database.prepare('UPDATE reserve SET room = randomblob(?)').run(RESERVED_BYTES);
    database.exec('DROP TABLE reserve');
  });
}

function isReserved(database: DatabaseSync, path: string): boolean {
  const free = database.prepare('PRAGMA freelist_count').get()?.['freelist_count'] as number;
  const journal = `${path}-journal`;
  return free >= RESERVED_PAGES && existsSync(journal) && statSync(journal).size >= RESERVED_BYTES;
}
