import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { Sealer } from './seal.ts';

export const LAYOUT = 1;

/** What a sealed text is about, so that it cannot be moved to another row or another store. */
export const about = {
  token: (set: string, baseUrl: string, generation: number, field: TokenField) =>
    `${set}|${baseUrl}|${generation}|${field}`,
  ring: 'fingerprint key',
};

export type TokenField = 'access_token' | 'refresh_token';

const TABLES = `
  CREATE TABLE token_set (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, base_url TEXT NOT NULL,
    head INTEGER NOT NULL, lost INTEGER NOT NULL DEFAULT 0, moved_to TEXT,
    withdrawn INTEGER NOT NULL DEFAULT 0, claim_attempt TEXT, claim_at INTEGER,
    sum TEXT NOT NULL) STRICT;
  CREATE TABLE token_pair (
    set_id INTEGER NOT NULL REFERENCES token_set (id), generation INTEGER NOT NULL,
    attempt TEXT NOT NULL, access_token TEXT NOT NULL, refresh_token TEXT NOT NULL,
    expires_in REAL NOT NULL, refresh_expires_in REAL NOT NULL, holder TEXT,
    saved_at INTEGER NOT NULL, imported INTEGER NOT NULL, was_head INTEGER NOT NULL,
    sum TEXT NOT NULL, PRIMARY KEY (set_id, generation, attempt)) STRICT;
  CREATE TABLE attempt (
    id INTEGER PRIMARY KEY AUTOINCREMENT, attempt TEXT NOT NULL, set_name TEXT NOT NULL,
    generation INTEGER NOT NULL, at INTEGER NOT NULL, outcome TEXT NOT NULL,
    latency_ms INTEGER, replica TEXT NOT NULL) STRICT;
  CREATE TABLE ring (id INTEGER PRIMARY KEY, key TEXT NOT NULL) STRICT;
  CREATE TABLE fingerprint (
    ring_id INTEGER NOT NULL REFERENCES ring (id), fingerprint TEXT NOT NULL,
    generation INTEGER NOT NULL, PRIMARY KEY (ring_id, fingerprint)) STRICT;
  CREATE TABLE due (task TEXT PRIMARY KEY) STRICT;`;

/** Within a transaction. */
export function createLayout(database: DatabaseSync, sealer: Sealer): void {
  database.exec(`${TABLES} PRAGMA user_version = ${LAYOUT};`);
  const key = sealer.seal(randomBytes(32).toString('base64'), about.ring);
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
