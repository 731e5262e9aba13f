import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { IdentitySet, identityHash } from '../paging/identities.ts';

/** What was read and written so far. */
interface ExportProgress {
  readonly records: number;
  readonly pages: number;
  /** Values that could not be read. */
  readonly faults: number;
  /** The cursor behind the last record; undefined before the first page. */
  readonly after: string | undefined;
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

export interface AddedPage {
  /** Of the records; null for a record without an id. */
  readonly ids: readonly (string | null)[];
  readonly faults: number;
  readonly after: string;
}

interface PageToCheck<R> {
  readonly records: readonly R[];
  /** Whether the page may not begin exactly behind the page before. */
  readonly isResumed: boolean;
}

const NOTHING: ExportProgress = { pages: 0, records: 0, faults: 0, after: undefined };

/** Changes with the tables: a state of another version cannot be continued. */
const LAYOUT = 5;
const CREATE = `
  CREATE TABLE export (begun TEXT NOT NULL, lengths TEXT NOT NULL, finished INTEGER NOT NULL);
  CREATE TABLE page (
    number INTEGER PRIMARY KEY, records INTEGER NOT NULL, faults INTEGER NOT NULL, after TEXT NOT NULL, ids TEXT NOT NULL
  );
`;

/** The progress of an export, in a database beside its file. Only one process at a time can open it. */
export class ExportState {
  readonly #database: DatabaseSync;
  readonly #insertPage: StatementSync;
  #progress: ExportProgress;
  /** The ids of all pages. Read only for an export that was interrupted. */
  #seen: IdentitySet | 'not unique' | undefined;
  #begun: Begun | undefined;
  /** Whether the files were whole when the state was opened. */
  readonly isFinished: boolean;
  /** Of the files, as they were committed before the state was opened, bytes. Empty for a new export. */
  readonly lengths: readonly number[];

  /** @param path `:memory:` for an export that cannot be resumed @throws OtherLayout, the errors of SQLite */
  constructor(path: string) {
    const database = openLocked(path);
    this.#database = database;
    this.#insertPage = database.prepare(
      'INSERT INTO page (records, faults, after, ids) VALUES (?, ?, ?, ?)',
    );
    const row = database.prepare('SELECT * FROM export').get();
    const json = (column: string) => JSON.parse(String(row?.[column] ?? null)) as unknown;
    this.#begun = (json('begun') ?? undefined) as Begun | undefined;
    this.lengths = (json('lengths') ?? []) as number[];
    this.isFinished = row?.['finished'] === 1;
    const last = database.prepare(
      'SELECT number AS pages, records, faults, after FROM page ORDER BY number DESC LIMIT 1',
    );
    this.#progress = (last.get() as unknown as ExportProgress | undefined) ?? NOTHING;
    database.exec('BEGIN EXCLUSIVE');
  }

  /** What the export was begun with; undefined for a new export. */
  get begun(): Begun | undefined {
    return this.#begun;
  }

  get progress(): ExportProgress {
    return this.#progress;
  }

  get isOpen(): boolean {
    return this.#database.isOpen;
  }

  /** Forgets everything, and begins. */
  begin(begun: Begun): void {
    const database = this.#database;
    database.exec('DELETE FROM export; DELETE FROM page');
    database.prepare("INSERT INTO export VALUES (?, '[]', 0)").run(JSON.stringify(begun));
    this.#begun = begun;
    this.#progress = NOTHING;
    this.commit([]);
  }

  add({ ids, faults, after }: AddedPage): void {
    const before = this.#progress;
    const records = before.records + ids.length;
    const progress = { pages: before.pages + 1, records, faults: before.faults + faults, after };
    this.#progress = progress;
    this.#insertPage.run(records, progress.faults, after, JSON.stringify(ids));
  }

  /** Keeps what was added, whatever happens from now on. @param lengths of the files, which were flushed before */
  commit(lengths: readonly number[]): void {
    this.#database.prepare('UPDATE export SET lengths = ?').run(JSON.stringify(lengths));
    this.#database.exec('COMMIT; BEGIN EXCLUSIVE');
  }

  /** Records that the files are whole. */
  finish(lengths: readonly number[]): void {
    this.#database.exec('UPDATE export SET finished = 1');
    this.commit(lengths);
  }

  /** Leaves out records that an earlier page had, unless the page begins exactly behind the page before. */
  newOf<R extends { readonly id: string | null }>(page: PageToCheck<R>): readonly R[] {
    const { records, isResumed } = page;
    if (!isResumed) return records;
    this.#seen ??= this.#idsSeen();
    // An id that occurs twice in one page proves that ids do not identify the records of this list.
    if (hasRepeats(records.map(({ id }) => id))) this.#seen = 'not unique';
    const seen = this.#seen;
    if (seen === 'not unique') return records;
    return records.filter(({ id }) => id === null || seen.add(identityHash(id)));
  }

  #idsSeen(): IdentitySet | 'not unique' {
    const seen = new IdentitySet();
    for (const row of this.#database.prepare('SELECT ids FROM page').iterate()) {
      const ids = JSON.parse(String(row['ids'])) as (string | null)[];
      if (hasRepeats(ids)) return 'not unique';
      for (const id of ids) if (id !== null) seen.add(identityHash(id));
    }
    return seen;
  }

  close(): void {
    this.#database.close();
  }
}

function hasRepeats(ids: readonly (string | null)[]): boolean {
  const known = ids.filter((id) => id !== null);
  return new Set(known).size < known.length;
}

/** The database was left by another version of this program, or by another program. */
export class OtherLayout extends Error {
  override name = 'OtherLayout';
}

/** Opens a database that no other process can open until it is closed. @throws OtherLayout, the errors of SQLite */
function openLocked(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // The write-ahead log needs no shared memory, because the database is locked.
    database.exec(`
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      BEGIN EXCLUSIVE;
    `);
    if (database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined) {
      database.exec(`${CREATE} PRAGMA user_version = ${LAYOUT}`);
    }
    const pragma = (name: string) => database.prepare(`PRAGMA ${name}`).get()?.[name];
    if (pragma('application_id') !== 0 || pragma('user_version') !== LAYOUT) {
      throw new OtherLayout();
    }
    // The lock outlives the transaction.
    database.exec('COMMIT');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
