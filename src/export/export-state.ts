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
  /** Keeps what was added, whatever happens from now on. @param lengths of the files, which were flushed before */
  commit(lengths: readonly number[]): void;
  /** The next commit keeps that the list was read to its end, and that the files have all that follows its records. */
  end(ending: Ending): void;
  /** Undefined until then. */
  readonly ending: Ending | undefined;
  /** Keeps that the files are whole. */
  finish(lengths: readonly number[]): void;
  readonly isFinished: boolean;
  /** Of the files, as they were committed. Empty for a new export. */
  readonly lengths: readonly number[];
  /** Leaves out records that an earlier page had, unless the page begins exactly behind the page before. */
  newOf<R extends { readonly id: string | null }>(page: PageToCheck<R>): readonly R[];
  /** The digests of records that were added with their pages. */
  readonly digests: Digests;
  readonly isOpen: boolean;
  close(): void;
}

/** By id. An id that was added twice has its last digest. */
interface Digests extends Iterable<readonly [id: string, digest: string]> {
  get(id: string): string | undefined;
}

interface Ending {
  /** Whether a record that was not met was not in the list. */
  readonly isProof: boolean;
}

/** Must not change until the export is whole. */
export interface Begun {
  /** The operation, with its field, fields and filters. */
  readonly operation: string;
  readonly format: string;
  /** Where the records come from: the address of the gateway or of the service. */
  readonly source: string;
  /** The version of the state with which the records are compared; undefined for an export of all records. */
  readonly since?: string | undefined;
  /** Whether a file of that name may be replaced. */
  readonly replaces: boolean;
}

export interface ExportProgress {
  readonly records: number;
  readonly pages: number;
  /** Values that could not be read; in an export of changes, records that have some. */
  readonly faults: number;
  readonly after: string | undefined;
  /** The least number of records that the service said the list has, with the first and with the latest page. */
  readonly counted: number | undefined;
}

export interface AddedPage {
  /** Of the records; null for one without. */
  readonly ids: readonly (string | null)[];
  readonly faults: number;
  readonly after: string;
  /** How many records the service said that the list has. */
  readonly counted: number | undefined;
  /** By id, for an export of changes. */
  readonly digests?: ReadonlyMap<string, string> | undefined;
}

export interface PageToCheck<R> {
  readonly records: readonly R[];
  /** Whether it is not known to begin exactly behind the page before. */
  readonly isResumed: boolean;
}

const NOTHING = { pages: 0, records: 0, faults: 0, after: undefined };

/** The exclusive lock refuses a second export to the file, and lets the write-ahead log do without shared memory. */
const OPEN = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  BEGIN EXCLUSIVE;
`;
/** Changes with the tables: a state of another version cannot be continued. */
const LAYOUT = 3;
const CREATE = `
  CREATE TABLE export (begun TEXT NOT NULL, lengths TEXT NOT NULL, finished INTEGER NOT NULL, ending TEXT);
  CREATE TABLE page (
    number INTEGER PRIMARY KEY, records INTEGER NOT NULL, faults INTEGER NOT NULL, after TEXT NOT NULL, ids TEXT NOT NULL
  );
  CREATE TABLE counted (first INTEGER NOT NULL);
  CREATE TABLE digest (id TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
  PRAGMA user_version = ${LAYOUT};
`;

/** The state was left by another version of this program. */
export class OtherLayout extends Error {
  override name = 'OtherLayout';
}

/** @param path `:memory:` for an export that cannot be resumed @throws OtherLayout, the errors of SQLite */
export function openExportState(path: string): ExportState {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec(OPEN);
    const isNew = database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined;
    if (isNew) database.exec(CREATE);
    const layout = database.prepare('PRAGMA user_version').get()?.['user_version'];
    if (layout !== LAYOUT) throw new OtherLayout();
  } catch (error) {
    database.close();
    throw error;
  }
  const insert = database.prepare(
    'INSERT INTO page (records, faults, after, ids) VALUES (?, ?, ?, ?)',
  );
  const addDigest = database.prepare('INSERT OR REPLACE INTO digest VALUES (?, ?)');
  const digestOfId = database.prepare('SELECT digest FROM digest WHERE id = ?');
  const row = database.prepare('SELECT * FROM export').get();
  let begun = row && (JSON.parse(String(row['begun'])) as Begun);
  const committed = row ? (JSON.parse(String(row['lengths'])) as number[]) : [];
  const ended = row?.['ending'];
  let ending = typeof ended === 'string' ? (JSON.parse(ended) as Ending) : undefined;
  let progress = (database
    .prepare(
      'SELECT number AS pages, records, faults, after FROM page ORDER BY number DESC LIMIT 1',
    )
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
    lengths: committed,
    begin: (options) => {
      database.exec(
        'DELETE FROM export; DELETE FROM page; DELETE FROM counted; DELETE FROM digest',
      );
      database.prepare("INSERT INTO export VALUES (?, '[]', 0, NULL)").run(JSON.stringify(options));
      begun = options;
      ending = undefined;
      progress = NOTHING;
      firstCount = lastCount = undefined;
      commit([]);
    },
    add: ({ ids, faults, after, counted, digests = [] }) => {
      for (const [id, digest] of digests) addDigest.run(id, digest);
      lastCount = counted;
      if (firstCount === undefined && counted !== undefined) {
        database.prepare('INSERT INTO counted VALUES (?)').run((firstCount = counted));
      }
      progress = {
        pages: progress.pages + 1,
        records: progress.records + ids.length,
        faults: progress.faults + faults,
        after,
      };
      const { records } = progress;
      insert.run(records, progress.faults, after, JSON.stringify(ids));
    },
    commit,
    get ending() {
      return ending;
    },
    end: (next) => {
      ending = next;
      database.prepare('UPDATE export SET ending = ?').run(JSON.stringify(next));
    },
    digests: {
      get: (id) => digestOfId.get(id)?.['digest'] as string | undefined,
      *[Symbol.iterator]() {
        for (const { id, digest } of database.prepare('SELECT * FROM digest').iterate()) {
          yield [String(id), String(digest)] as const;
        }
      },
    },
    finish: (lengths) => {
      database.exec('UPDATE export SET finished = 1');
      commit(lengths);
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

  function commit(lengths: readonly number[]): void {
    database.prepare('UPDATE export SET lengths = ?').run(JSON.stringify(lengths));
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
