import { DatabaseSync } from 'node:sqlite';
import { IdentitySet, identityHash } from '../paging/identities.ts';

/** The progress of an export, in a database beside its file. Only one process at a time can open it. */
export interface ExportState {
  /** What the export was begun with; undefined for a new one. */
  readonly begun: Begun | undefined;
  /** Forgets everything, and begins. */
  begin(begun: Begun): void;
  readonly progress: ExportProgress;
  add(page: AddedPage): void;
  /** Keeps what was added, whatever happens from now on. */
  commit(): void;
  /** Keeps that the file is whole. */
  finish(): void;
  readonly isFinished: boolean;
  /** Leaves out records that an earlier page had, unless the page begins exactly behind the page before. */
  newOf<R extends { readonly id: string | null }>(page: PageToCheck<R>): readonly R[];
  readonly isOpen: boolean;
  close(): void;
}

/** Must not change until the export is whole. */
export interface Begun {
  /** The operation, with its field, fields and filters. */
  readonly operation: string;
  readonly format: string;
  /** Where the records come from: the address of the gateway or of the service. */
  readonly source: string;
  /** Whether a file of that name may be replaced. */
  readonly replaces: boolean;
}

export interface ExportProgress {
  readonly records: number;
  /** Length of the file. */
  readonly bytes: number;
  /** Values that could not be read. */
  readonly faults: number;
  readonly after: string | undefined;
  /** The least number of records that the service said the list has, with the first and with the latest page. */
  readonly counted: number | undefined;
}

export interface AddedPage {
  /** Of the records; null for one without. */
  readonly ids: readonly (string | null)[];
  readonly bytes: number;
  readonly faults: number;
  readonly after: string;
  /** How many records the service said that the list has. */
  readonly counted: number | undefined;
}

export interface PageToCheck<R> {
  readonly records: readonly R[];
  /** Whether it is not known to begin exactly behind the page before. */
  readonly isResumed: boolean;
}

const NOTHING = { records: 0, bytes: 0, faults: 0, after: undefined };

/** The exclusive lock refuses a second export to the file, and lets the write-ahead log do without shared memory. */
const OPEN = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  BEGIN EXCLUSIVE;
  CREATE TABLE IF NOT EXISTS export (begun TEXT NOT NULL, finished INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS page (
    number INTEGER PRIMARY KEY, records INTEGER NOT NULL, bytes INTEGER NOT NULL, faults INTEGER NOT NULL,
    after TEXT NOT NULL, ids TEXT NOT NULL
  );
  CREATE TABLE IF NOT EXISTS counted (first INTEGER NOT NULL);
`;

/** @param path `:memory:` for an export that cannot be resumed @throws the errors of SQLite */
export function openExportState(path: string): ExportState {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec(OPEN);
  } catch (error) {
    database.close();
    throw error;
  }
  const insert = database.prepare(
    'INSERT INTO page (records, bytes, faults, after, ids) VALUES (?, ?, ?, ?, ?)',
  );
  const row = database.prepare('SELECT begun, finished FROM export').get();
  let begun = row && (JSON.parse(String(row['begun'])) as Begun);
  let progress = (database
    .prepare('SELECT records, bytes, faults, after FROM page ORDER BY number DESC LIMIT 1')
    .get() ?? NOTHING) as unknown as Omit<ExportProgress, 'counted'>;
  let firstCount = database.prepare('SELECT first FROM counted').get()?.['first'] as
    number | undefined;
  let lastCount: number | undefined;

  let seen: IdentitySet | 'not unique' | undefined;

  return {
    get begun() {
      return begun;
    },
    get progress() {
      const counts = [firstCount, lastCount].filter((count) => count !== undefined);
      return { ...progress, counted: lastCount === undefined ? undefined : Math.min(...counts) };
    },
    isFinished: row?.['finished'] === 1,
    begin: (given) => {
      database.exec('DELETE FROM export; DELETE FROM page; DELETE FROM counted');
      database.prepare('INSERT INTO export VALUES (?, 0)').run(JSON.stringify(given));
      begun = given;
      progress = NOTHING;
      firstCount = lastCount = undefined;
      commit();
    },
    add: ({ ids, bytes, faults, after, counted }) => {
      lastCount = counted;
      if (firstCount === undefined && counted !== undefined) {
        database.prepare('INSERT INTO counted VALUES (?)').run((firstCount = counted));
      }
      progress = {
        records: progress.records + ids.length,
        bytes: progress.bytes + bytes,
        faults: progress.faults + faults,
        after,
      };
      const { records } = progress;
      insert.run(records, progress.bytes, progress.faults, after, JSON.stringify(ids));
    },
    commit,
    finish: () => {
      database.exec('UPDATE export SET finished = 1');
      commit();
    },
    newOf: ({ records, isResumed }) => {
      if (!isResumed) return records;
      seen ??= idsSeen(database);
      // An id that occurs twice in one page proves that ids do not tell the records of this list apart.
      if (hasRepeats(records.map(({ id }) => id))) seen = 'not unique';
      if (seen === 'not unique') return records;
      const known = seen;
      return records.filter(({ id }) => id === null || known.add(identityHash(id)));
    },
    get isOpen() {
      return database.isOpen;
    },
    close: () => database.close(),
  };

  function commit(): void {
    database.exec('COMMIT');
    database.exec('BEGIN EXCLUSIVE');
  }
}

/** Reads the ids of all pages: only an export that was interrupted needs them in memory. */
function idsSeen(database: DatabaseSync): IdentitySet | 'not unique' {
  const seen = new IdentitySet();
  for (const row of database.prepare('SELECT ids FROM page').iterate()) {
    const ids = JSON.parse(String(row['ids'])) as (string | null)[];
    if (hasRepeats(ids)) return 'not unique';
    for (const id of ids) if (id !== null) seen.add(identityHash(id));
  }
  return seen;
}

function hasRepeats(ids: readonly (string | null)[]): boolean {
  const known = ids.filter((id) => id !== null);
  return new Set(known).size < known.length;
}
