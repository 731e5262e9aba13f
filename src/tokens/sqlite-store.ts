import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { StoredTokens, TokenStore } from './token-store.ts';

const SCHEMA_VERSION = 1;
const IMPORT = 'import';

/**
 * The embedded store: one file, written with `synchronous=FULL`.
 *
 * @param path a file (its folder is made, 0700, when missing), or `:memory:`
 * @throws when the file cannot be opened or is not a token store; the file is left as it is
 */
export function openSqliteStore(path: string): TokenStore {
  const database = openDatabase(path);
  const head = database.prepare(`
    SELECT s.id, s.base_url, s.head, s.lost, s.mark_attempt, s.mark_until, p.attempt,
           p.access_token, p.refresh_token, p.expires_in, p.refresh_expires_in, p.name, p.saved_at
    FROM token_set s JOIN token_pair p ON p.set_id = s.id AND p.generation = s.head
    ORDER BY s.id DESC, p.rowid DESC LIMIT 1`);
  const insertSet = database.prepare('INSERT INTO token_set (base_url, head) VALUES (?, ?)');
  const newest = database.prepare('SELECT max(generation) AS generation FROM token_pair');
  const setOf = database.prepare('SELECT max(set_id) AS id FROM token_pair WHERE generation = ?');
  const insertPair = database.prepare(`
    INSERT INTO token_pair (set_id, generation, attempt, access_token, refresh_token, expires_in,
                            refresh_expires_in, name, saved_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`);
  const writeMark = database.prepare(`
    UPDATE token_set SET mark_attempt = ?, mark_until = ?
    WHERE id = ? AND head = ? AND (mark_attempt IS NULL OR mark_until <= ?)`);
  const clearMark = database.prepare(
    'UPDATE token_set SET mark_attempt = NULL, mark_until = NULL WHERE mark_attempt = ?',
  );
  const moveHead = database.prepare(`
    UPDATE token_set SET head = ?, lost = 0, mark_attempt = NULL, mark_until = NULL
    WHERE id = ? AND head = ?`);
  const writeLost = database.prepare('UPDATE token_set SET lost = 1 WHERE id = ? AND head = ?');

  const readHead = () => head.get() as HeadRow | undefined;
  const setId = (): number => {
    const row = readHead();
    if (!row) throw new Error('The token store is empty.');
    return row.id;
  };
  // Asynchronous outside, since stores on a network are; the driver itself blocks.
  const transaction = async <T>(work: () => T): Promise<T> => {
    database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      database.exec('COMMIT');
      return result;
    } catch (error) {
      // A failed COMMIT may have rolled back already; then ROLLBACK itself would throw and hide the cause.
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  };

  return {
    description: path === ':memory:' ? 'in memory' : `sqlite:${path}`,
    read: async () => {
      const row = readHead();
      return row ? toStoredTokens(row) : null;
    },
    import: ({ baseUrl, pair, at, after }) =>
      transaction(() => {
        if ((readHead()?.head ?? 0) !== after) return null;
        const generation = ((newest.get()?.['generation'] as number | null) ?? 0) + 1;
        const { lastInsertRowid } = insertSet.run(baseUrl, generation);
        insertPair.run(lastInsertRowid, generation, IMPORT, ...pairColumns(pair), at);
        return toStoredTokens(readHead()!);
      }),
    mark: ({ generation, attempt, until, now }) =>
      transaction(() => writeMark.run(attempt, until, setId(), generation, now).changes === 1),
    unmark: (attempt) =>
      transaction(() => {
        clearMark.run(attempt);
      }),
    save: ({ generation, attempt, pair, at }) =>
      transaction(() => {
        // Not always the newest set: an import may have come between.
        const id = setOf.get(generation)?.['id'] as number | null;
        if (id === null) throw new Error(`The token store does not hold generation ${generation}.`);
        insertPair.run(id, generation + 1, attempt, ...pairColumns(pair), at);
        moveHead.run(generation + 1, id, generation);
      }),
    lose: (generation) =>
      transaction(() => {
        writeLost.run(setId(), generation);
      }),
    close: async () => database.close(),
  };
}

interface HeadRow {
  id: number;
  base_url: string;
  head: number;
  lost: number;
  mark_attempt: string | null;
  mark_until: number | null;
  attempt: string;
  access_token: string;
  refresh_token: string;
  expires_in: number;
  refresh_expires_in: number;
  name: string | null;
  saved_at: number;
}

function openDatabase(path: string): DatabaseSync {
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(path, { timeout: 5000 });
  try {
    checkLayout(database);
    database.exec('PRAGMA journal_mode = PERSIST; PRAGMA synchronous = FULL;');
    database.exec(`
      BEGIN IMMEDIATE;
      CREATE TABLE IF NOT EXISTS token_set (
        id INTEGER PRIMARY KEY AUTOINCREMENT, base_url TEXT NOT NULL, head INTEGER NOT NULL,
        lost INTEGER NOT NULL DEFAULT 0, mark_attempt TEXT, mark_until INTEGER) STRICT;
      CREATE TABLE IF NOT EXISTS token_pair (
        set_id INTEGER NOT NULL REFERENCES token_set (id), generation INTEGER NOT NULL,
        attempt TEXT NOT NULL, access_token TEXT NOT NULL, refresh_token TEXT NOT NULL,
        expires_in REAL NOT NULL, refresh_expires_in REAL NOT NULL, name TEXT,
        saved_at INTEGER NOT NULL, PRIMARY KEY (set_id, generation, attempt)) STRICT;
      PRAGMA user_version = ${SCHEMA_VERSION};
      COMMIT;`);
    // The journal stays between transactions, and holds what was overwritten last.
    for (const file of [path, `${path}-journal`]) if (existsSync(file)) chmodSync(file, 0o600);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Reads only: what is refused stays as it is. */
function checkLayout(database: DatabaseSync): void {
  const version = database.prepare('PRAGMA user_version').get()?.['user_version'] as number;
  if (version > SCHEMA_VERSION) {
    throw new Error(`it was written by a newer version (layout ${version})`);
  }
  const names = database
    .prepare('SELECT name FROM sqlite_schema')
    .all()
    .map(({ name }) => name);
  if (names.length > 0 && !names.includes('token_set')) {
    throw new Error('it is a database of something else');
  }
}

function pairColumns(pair: StoredTokens['pair']) {
  const { accessToken, refreshToken, expiresIn, refreshTokenExpiresIn, name } = pair;
  return [accessToken, refreshToken, expiresIn, refreshTokenExpiresIn, name] as const;
}

function toStoredTokens(row: HeadRow): StoredTokens {
  return {
    baseUrl: row.base_url,
    generation: row.head,
    pair: {
      accessToken: row.access_token,
      refreshToken: row.refresh_token,
      expiresIn: row.expires_in,
      refreshTokenExpiresIn: row.refresh_expires_in,
      name: row.name,
    },
    savedAt: row.saved_at,
    lost: row.lost === 1,
    imported: row.attempt === IMPORT,
    mark:
      row.mark_attempt === null
        ? null
        : { attempt: row.mark_attempt, until: row.mark_until ?? Number.POSITIVE_INFINITY },
  };
}
