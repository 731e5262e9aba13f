import { closeSync, existsSync, mkdirSync, openSync, statfsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';
import { OperatorMistake } from '../errors.ts';
import type { Sealer } from './seal.ts';
import type { State } from './state.ts';
import { StoreUnavailable, type TokenStore } from './store.ts';

/** The types of NFS, CIFS and SMB (statfs(2)): locks do not hold there. */
const NETWORK = new Set([0x6969, 0xff534d42, 0xfe534d42, 0x517b]);
/** SQLITE_BUSY. */
const BUSY = 5;
const PATIENCE_MS = 5_000;
const PAUSE_MS = 20;
/** The row always fills whole blocks of this size, so that a save needs no more disk space than its claim did. */
const BLOCK = 16 * 1024;

interface SqliteOptions {
  /** Wall time, ms. Default: Date.now */
  readonly now?: () => number;
  /** The type of the file system of a folder, as statfs(2) numbers it. Default: of the real one */
  readonly fileSystemOf?: (folder: string) => number;
}

/**
 * A store in one file, for any number of processes on one machine.
 *
 * @param path its folder is made (0700) if it is missing; `:memory:` for one process
 */
export function openSqliteStore(
  path: string,
  sealer: Sealer,
  { now = Date.now, fileSystemOf = (folder) => statfsSync(folder).type }: SqliteOptions = {},
): TokenStore {
  const memory = path === ':memory:' ? new DatabaseSync(path) : undefined;
  // A file is opened for each call: since the last one it may have been removed, replaced, or made writable.
  const withDatabase = <T>(work: (database: DatabaseSync) => T): T => {
    if (!memory) makePrivate(path, fileSystemOf);
    using file = memory ? undefined : new DatabaseSync(path, { timeout: 0 });
    const database = file ?? memory!;
    database.exec(CREATE);
    return work(database);
  };
  // One that is missing is an empty store. The first change makes it.
  const isThere = () => memory !== undefined || statSync(path, MAY_BE_MISSING) !== undefined;
  const stateIn = (database: DatabaseSync): State | null => {
    const sealed = database.prepare(READ).get()?.['sealed'];
    return typeof sealed === 'string' ? sealer.open(sealed.trimEnd()) : null;
  };
  return {
    description: `sqlite:${path}`,
    read: () => whenFree(() => ({ state: isThere() ? withDatabase(stateIn) : null, now: now() })),
    update: (rule) =>
      whenFree(() =>
        withDatabase((database) => {
          // Locks at once, and not at the first write: what is read must still hold when it is written.
          database.exec('BEGIN IMMEDIATE');
          try {
            const { next, result } = rule(stateIn(database), now());
            if (next) {
              const sealed = sealer.seal(next);
              const length = Math.ceil(sealed.length / BLOCK) * BLOCK;
              database.prepare(WRITE).run(sealed.padEnd(length));
            }
            database.exec('COMMIT');
            return result;
          } finally {
            if (database.isTransaction) database.exec('ROLLBACK');
          }
        }),
      ),
  };
}

const MAY_BE_MISSING = { throwIfNoEntry: false } as const;

const CREATE = `
  PRAGMA journal_mode = TRUNCATE;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS tokens (id INTEGER PRIMARY KEY CHECK (id = 1), sealed TEXT NOT NULL) STRICT`;
const READ = 'SELECT sealed FROM tokens';
const WRITE =
  'INSERT INTO tokens VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed';

/** Makes the file, if it is missing: SQLite would create it with the umask of the process. */
function makePrivate(path: string, fileSystemOf: (folder: string) => number): void {
  const folder = dirname(resolve(path));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (NETWORK.has(fileSystemOf(folder))) {
    throw new OperatorMistake(
      'it is on a network file system, where the locks of SQLite do not hold. Keep it on a local disk, or use PostgreSQL.',
    );
  }
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
}

/** Waits here while another process has the file locked: the driver would block the event loop. */
async function whenFree<T>(work: () => T): Promise<T> {
  for (const until = performance.now() + PATIENCE_MS; ; await delay(PAUSE_MS)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw explained(error);
      if (performance.now() >= until) {
        throw new StoreUnavailable('another process keeps its file locked', { cause: error });
      }
    }
  }
}

function isBusy(error: unknown): boolean {
  return ((error as { errcode?: number }).errcode ?? 0) % 256 === BUSY;
}

/** SQLite's results (read-only, I/O, full, cannot open) and Node's that end once the operator has freed or mounted the disk. */
const PASSING: ReadonlySet<unknown> = new Set([8, 10, 13, 14, 'EACCES', 'EROFS', 'ENOSPC']);

function explained(error: unknown): unknown {
  const { errcode, code, message } = error as Error & { errcode?: number; code?: string };
  const isPassing = PASSING.has(errcode === undefined ? code : errcode % 256);
  return isPassing ? new StoreUnavailable(message, { cause: error }) : error;
}
