import { closeSync, existsSync, mkdirSync, openSync, statfsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';
import type { Sealer } from './seal.ts';
import type { State } from './state.ts';
import { openState, sealState, StoreUnavailable, type TokenStore } from './store.ts';

/** The types of NFS, CIFS and SMB (statfs(2)): locks do not hold there. */
const NETWORK = new Set([0x6969, 0xff534d42, 0xfe534d42, 0x517b]);
/** SQLITE_BUSY. */
const BUSY = 5;
const PATIENCE_MS = 5_000;
const PAUSE_MS = 20;
/** The row always fills whole blocks of this size, so that a save needs no more disk space than its claim did. */
const BLOCK = 16 * 1024;

interface SqliteOptions {
  /** Neither creates nor changes the file. Default: false */
  readonly readOnly?: boolean;
  /** Wall time, ms. Default: Date.now */
  readonly now?: () => number;
  /** The type of the file system of a folder, as statfs(2) numbers it. Default: of the real one */
  readonly fileSystemOf?: (folder: string) => number;
}

/**
 * A store in one file, for any number of processes on one machine.
 *
 * @param path its folder is made (0700) if it is missing; `:memory:` for one process
 * @throws Error for the operator, for example about a network file system
 */
export function openSqliteStore(
  path: string,
  sealer: Sealer,
  {
    readOnly = false,
    now = Date.now,
    fileSystemOf = (folder) => statfsSync(folder).type,
  }: SqliteOptions = {},
): TokenStore {
  if (path !== ':memory:') refuseNetwork(path, fileSystemOf);
  const file = new SqliteFile(path, readOnly);
  return {
    description: `sqlite:${path}`,
    read: () =>
      whenFree(file, () => {
        const sealed = file.current()?.prepare(READ).get()?.['sealed'];
        return { state: stateIn(sealed, sealer), now: now() };
      }),
    update: (rule) =>
      whenFree(file, () => {
        const database = file.current();
        if (!database) throw new Error('the token store does not exist');
        // Locks at once, and not at the first write: what is read must still hold when it is written.
        database.exec('BEGIN IMMEDIATE');
        try {
          const { next, result } = rule(
            stateIn(database.prepare(READ).get()?.['sealed'], sealer),
            now(),
          );
          if (next) {
            const sealed = sealState(next, sealer);
            const length = Math.ceil(sealed.length / BLOCK) * BLOCK;
            database.prepare(WRITE).run(sealed.padEnd(length));
          }
          database.exec('COMMIT');
          return result;
        } finally {
          if (database.isTransaction) database.exec('ROLLBACK');
        }
      }),
    // Keepers read regularly: a file announces nothing.
    watch: () => {},
    close: async () => file.close(),
  };
}

const CREATE = `
  PRAGMA journal_mode = TRUNCATE;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS tokens (id INTEGER PRIMARY KEY CHECK (id = 1), sealed TEXT NOT NULL) STRICT`;
const READ = 'SELECT sealed FROM tokens';
const WRITE =
  'INSERT INTO tokens VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed';

function stateIn(sealed: unknown, sealer: Sealer): State | null {
  return typeof sealed === 'string' ? openState(sealed.trimEnd(), sealer) : null;
}

/** The database of a path. It follows a file that was removed or replaced: nobody would find what the old one holds. */
class SqliteFile {
  readonly #path: string;
  readonly #readOnly: boolean;
  #open: { readonly database: DatabaseSync; readonly identity: string } | undefined;

  constructor(path: string, readOnly: boolean) {
    this.#path = path;
    this.#readOnly = readOnly;
  }

  /** Undefined if it does not exist and may not be created. */
  current(): DatabaseSync | undefined {
    const identity = this.#identity();
    if (this.#open && this.#open.identity === identity) return this.#open.database;
    this.close();
    if (this.#readOnly && identity === '') return undefined;
    const database = this.#openDatabase();
    this.#open = { database, identity: this.#identity() };
    return database;
  }

  /** Opens it anew next time: what was opened while the file was read-only stays so. */
  forget(): void {
    if (this.#path !== ':memory:') this.close();
  }

  close(): void {
    this.#open?.database.close();
    this.#open = undefined;
  }

  #openDatabase(): DatabaseSync {
    if (this.#readOnly) return new DatabaseSync(this.#path, { timeout: 0, readOnly: true });
    if (this.#path !== ':memory:') makeFile(this.#path);
    const database = new DatabaseSync(this.#path, { timeout: 0 });
    try {
      database.exec(CREATE);
    } catch (error) {
      database.close();
      throw error;
    }
    return database;
  }

  #identity(): string {
    if (this.#path === ':memory:') return 'memory';
    const stat = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    // A file that could not be filled, because the disk was full, holds no tokens yet.
    return stat && stat.size > 0n ? `${stat.dev}/${stat.ino}` : '';
  }
}

function refuseNetwork(path: string, fileSystemOf: (folder: string) => number): void {
  let folder = dirname(resolve(path));
  while (!existsSync(folder)) folder = dirname(folder);
  if (NETWORK.has(fileSystemOf(folder))) {
    throw new Error(
      'it is on a network file system, where the locks of SQLite do not hold: keep it on a local disk, or use PostgreSQL',
    );
  }
}

/** Makes it private before SQLite would create it with the umask of the process. */
function makeFile(path: string): void {
  mkdirSync(dirname(resolve(path)), { recursive: true, mode: 0o700 });
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
}

/** Waits here while another process has the file locked: the driver would block the event loop. */
async function whenFree<T>(file: SqliteFile, work: () => T): Promise<T> {
  for (const until = performance.now() + PATIENCE_MS; ; await delay(PAUSE_MS)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) {
        file.forget();
        throw explained(error);
      }
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
