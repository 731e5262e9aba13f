import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { LAYOUT, layoutOf, migrate } from './sqlite-layout.ts';
import { checkKeys, reseal } from './sqlite-seal.ts';
import type { Sealer } from './seal.ts';

export interface OpenFile {
  readonly database: DatabaseSync;
  readonly notices: readonly string[];
  /** Undefined when it can be written. */
  readonly unwritable: string | undefined;
}

export interface FileOptions {
  readonly sealer: Sealer;
  /** The type of the file system that a path is on, as `statfs` says. */
  readonly fileSystemType?: (path: string) => number;
}

const MEMORY = ':memory:';
const BUSY_TIMEOUT_MS = 5000;
const RESERVE_BYTES = 256 * 1024;
const RESERVE_PAGES = 64;

/** Where locks do not hold, or hold for one machine only. */
const NETWORK = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
]);

/** Where nothing can be kept; making a folder there may even hang. */
const PSEUDO = new Set([0x9fa0, 0x62656572, 0x64626720, 0x63677270, 0x27e0eb]);

/**
 * Opens the file of a store: looks at it first without changing a byte, then makes it ready to be written.
 *
 * @throws Error when it cannot be opened, is damaged, or is not a token store that these keys open
 */
export function openSqliteFile(path: string, options: FileOptions): OpenFile {
  if (path === MEMORY) return { ...memory(options.sealer), notices: [], unwritable: undefined };
  checkFileSystem(path, options.fileSystemType ?? typeOf);
  const exists = existsSync(path) && statSync(path).size > 0;
  if (exists) look(path, options.sealer);
  const unwritable = exists ? whyUnwritable(path) : undefined;
  if (unwritable !== undefined) {
    const notice = `The token store cannot be written (${unwritable}): from here nothing is rotated, and the tokens serve as long as they work.`;
    return {
      database: new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS }),
      notices: [notice],
      unwritable,
    };
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // SQLite itself would make it as the process' umask says.
  if (!existsSync(path)) closeSync(openSync(path, 'wx', 0o600));
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    const notices = [...prepare(database, path, options.sealer), ...repairRights(path)];
    return { database, notices, unwritable };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Why an existing store cannot be written; undefined when it can. */
export function whyUnwritable(path: string): string | undefined {
  for (const place of [dirname(path), path, `${path}-journal`]) {
    try {
      if (existsSync(place)) accessSync(place, constants.W_OK);
    } catch (error) {
      return `${place}: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`;
    }
  }
  return undefined;
}

function memory(sealer: Sealer): { database: DatabaseSync } {
  const database = new DatabaseSync(MEMORY);
  migrate(database, sealer);
  return { database };
}

function checkFileSystem(path: string, fileSystemType: (path: string) => number): void {
  let place = resolve(path);
  while (!existsSync(place)) place = dirname(place);
  const type = fileSystemType(place) >>> 0;
  const network = NETWORK.get(type);
  if (network !== undefined) {
    throw new Error(
      `it is on a network file system (${network}), where its locks do not hold: keep it on a local disk`,
    );
  }
  if (PSEUDO.has(type)) throw new Error('that is no place for files');
}

function typeOf(path: string): number {
  return statfsSync(path).type;
}

/** Reads only: what is refused stays as it is, byte for byte. */
function look(path: string, sealer: Sealer): void {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    const version = layoutOf(database);
    if (version > LAYOUT) throw new Error(`it was written by a newer version (layout ${version})`);
    const names = database.prepare('SELECT name FROM sqlite_schema').all();
    if (names.length > 0 && !names.some(({ name }) => name === 'token_set')) {
      throw new Error('it is a database of something else');
    }
    const [check] = database.prepare('PRAGMA quick_check(1)').all();
    if (check?.['quick_check'] !== 'ok') throw new Error('the file is damaged');
    if (version === LAYOUT) checkKeys(database, sealer);
  } finally {
    database.close();
  }
}

function prepare(database: DatabaseSync, path: string, sealer: Sealer): string[] {
  database.exec(
    'PRAGMA journal_mode = PERSIST; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;',
  );
  const before = layoutOf(database);
  let resealed = false;
  inTransaction(database, () => {
    migrate(database, sealer);
    resealed = reseal(database, sealer);
  });
  if (resealed || before === 1) forgetJournal(database);
  return reserve(database, path);
}

/** The journal stays between transactions, and holds what was overwritten last. */
function forgetJournal(database: DatabaseSync): void {
  database.exec('PRAGMA journal_mode = DELETE; PRAGMA journal_mode = PERSIST;');
}

/**
 * Makes room once, in the file and in its journal, so that marks and saves succeed on a disk that is full:
 * a large row that is written, changed and deleted leaves its pages behind for others.
 */
function reserve(database: DatabaseSync, path: string): string[] {
  const { freelist_count: free } = database.prepare('PRAGMA freelist_count').get() as {
    freelist_count: number;
  };
  const journal = `${path}-journal`;
  if (free >= RESERVE_PAGES && existsSync(journal) && statSync(journal).size >= RESERVE_BYTES)
    return [];
  try {
    database.exec('CREATE TABLE reserve (room BLOB)');
    database.prepare('INSERT INTO reserve VALUES (zeroblob(?))').run(RESERVE_BYTES);
    database.prepare('UPDATE reserve SET room = randomblob(?)').run(RESERVE_BYTES);
    database.exec('DROP TABLE reserve');
    return [];
  } catch (error) {
    return [
      `No room could be reserved for the token store (${(error as Error).message}): free the disk that it is on.`,
    ];
  }
}

function repairRights(path: string): string[] {
  const notices: string[] = [];
  const repair = (place: string, mode: number) => {
    if ((statSync(place).mode & 0o077) === 0) return;
    try {
      chmodSync(place, mode);
      notices.push(`${place} could be read by others; it is for its owner alone now.`);
    } catch {
      notices.push(
        `${place} can be read by others, and is not ours to change: have its rights corrected.`,
      );
    }
  };
  for (const file of [path, `${path}-journal`]) if (existsSync(file)) repair(file, 0o600);
  const folder = dirname(resolve(path));
  const foreign = readdirSync(folder).filter((name) => !isOurs(name, basename(path)));
  if (foreign.length === 0) repair(folder, 0o700);
  else if ((statSync(folder).mode & 0o022) !== 0) {
    notices.push(
      `${folder} can be written by others, who could put another token store there. Give the store a folder of its own.`,
    );
  }
  return notices;
}

function isOurs(name: string, store: string): boolean {
  return name.startsWith(store) || name.startsWith('rescue-');
}

export function inTransaction<T>(database: DatabaseSync, work: () => T): T {
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
}
