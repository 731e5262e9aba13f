import { randomBytes, randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { fingerprintOf } from './fingerprint.ts';
import type { Sealer } from './seal.ts';

export const LAYOUT = 2;

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
    withdrawn INTEGER NOT NULL DEFAULT 0, mark_attempt TEXT, mark_at INTEGER) STRICT;
  CREATE TABLE token_pair (
    set_id INTEGER NOT NULL REFERENCES token_set (id), generation INTEGER NOT NULL,
    attempt TEXT NOT NULL, access_token TEXT NOT NULL, refresh_token TEXT NOT NULL,
    fingerprint TEXT NOT NULL, expires_in REAL NOT NULL, refresh_expires_in REAL NOT NULL,
    set_name TEXT, saved_at INTEGER NOT NULL, imported INTEGER NOT NULL,
    PRIMARY KEY (set_id, generation, attempt)) STRICT;
  CREATE TABLE attempt (
    attempt TEXT PRIMARY KEY, set_id INTEGER NOT NULL, generation INTEGER NOT NULL,
    at INTEGER NOT NULL, outcome TEXT NOT NULL, latency_ms INTEGER, replica TEXT NOT NULL) STRICT;
  CREATE TABLE ring (id INTEGER PRIMARY KEY, key TEXT NOT NULL) STRICT;
  CREATE TABLE fingerprint (
    ring_id INTEGER NOT NULL REFERENCES ring (id), fingerprint TEXT NOT NULL,
    generation INTEGER NOT NULL, PRIMARY KEY (ring_id, fingerprint)) STRICT;`;

/** Makes the tables of this version, or brings those of an older one up to it. Within a transaction. */
export function migrate(database: DatabaseSync, sealer: Sealer): void {
  const version = layoutOf(database);
  if (version === LAYOUT) return;
  if (version === 1) {
    database.exec(
      'ALTER TABLE token_set RENAME TO old_set; ALTER TABLE token_pair RENAME TO old_pair;',
    );
  }
  database.exec(TABLES);
  const key = randomBytes(32);
  database
    .prepare('INSERT INTO ring (id, key) VALUES (1, ?)')
    .run(sealer.seal(key.toString('base64'), about.ring));
  if (version === 1) takeOver(database, sealer, key);
  database.exec(`PRAGMA user_version = ${LAYOUT}`);
}

export function layoutOf(database: DatabaseSync): number {
  return database.prepare('PRAGMA user_version').get()?.['user_version'] as number;
}

interface OldSet {
  id: number;
  base_url: string;
  head: number;
  lost: number;
  mark_attempt: string | null;
}

interface OldPair {
  set_id: number;
  generation: number;
  attempt: string;
  access_token: string;
  refresh_token: string;
  expires_in: number;
  refresh_expires_in: number;
  name: string | null;
  saved_at: number;
}

function takeOver(database: DatabaseSync, sealer: Sealer, key: Uint8Array): void {
  const insertSet = database.prepare(`
    INSERT INTO token_set (id, name, base_url, head, lost, mark_attempt, mark_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const insertPair = database.prepare(
    'INSERT INTO token_pair VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const insertPrint = database.prepare(
    'INSERT INTO fingerprint VALUES (1, ?, ?) ON CONFLICT DO NOTHING',
  );
  const insertAttempt = database.prepare(
    "INSERT INTO attempt VALUES (?, ?, ?, 0, 'begun', NULL, 'an earlier version')",
  );
  const oldPairs = database.prepare('SELECT * FROM old_pair WHERE set_id = ?');
  for (const set of database.prepare('SELECT * FROM old_set').all() as unknown as OldSet[]) {
    const name = randomUUID();
    const { id, base_url: baseUrl, head, lost, mark_attempt: mark } = set;
    insertSet.run(id, name, baseUrl, head, lost, mark, mark === null ? null : 0);
    if (mark !== null) insertAttempt.run(mark, id, head);
    for (const pair of oldPairs.all(id) as unknown as OldPair[]) {
      const sealed = (field: TokenField) =>
        sealer.seal(pair[field], about.token(name, baseUrl, pair.generation, field));
      const fingerprint = fingerprintOf(key, pair.refresh_token);
      insertPrint.run(fingerprint, pair.generation);
      insertPair.run(
        id,
        pair.generation,
        pair.attempt,
        sealed('access_token'),
        sealed('refresh_token'),
        fingerprint,
        pair.expires_in,
        pair.refresh_expires_in,
        pair.name,
        pair.saved_at,
        pair.attempt === 'import' ? 1 : 0,
      );
    }
  }
  database.exec('DROP TABLE old_pair; DROP TABLE old_set;');
}
