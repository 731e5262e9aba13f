import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { Json } from '../json.ts';
import { ID_KEY } from './export-operation.ts';
import { OtherLayout } from './export-state.ts';

/**
 * What the files of `export --changes-since` have reported so far: the id of each record with a keyed digest of its
 * values, and nothing of its contents. Only one process at a time can open it.
 */
export interface ChangesState {
  /** Another one after each run that ended; undefined before the first one has. */
  readonly version: string | undefined;
  /** Undefined for a new state. */
  readonly list: ChangesList | undefined;
  /** Makes a state without records one of this list. */
  begin(list: ChangesList): void;
  /** A file of changes that this state counts as reported, and that may not have its name yet. */
  readonly unpublished: Unpublished | undefined;
  /** @param id as JSON @returns a digest that is the same for equal values: see `canonical` */
  digestOf(id: string, record: Json): string;
  /** The digest of the record with this id, as it was last reported. */
  get(id: string): string | undefined;
  /** The records that a second walk would not have found either. */
  missingBefore(): Iterable<string>;
  /** Keeps, in one transaction, that the changes of a run are reported. */
  advance(digests: Iterable<readonly [id: string, digest: string]>, run: EndedRun): void;
  /** Keeps that the file of changes has its name. */
  published(): void;
  close(): void;
}

/** Which records a state is about. */
export interface ChangesList {
  readonly source: string;
  /** With the list, the fields and the filters. */
  readonly operation: string;
}

interface Unpublished {
  readonly path: string;
  /** The version of the state that the run began with. */
  readonly since: string;
}

interface EndedRun {
  /** Whether the walk was whole, so that records without a digest were not in the list. */
  readonly isProof: boolean;
  /** The path of the file of changes. */
  readonly changes: string;
}

/** Stands for the version of a state before the first run has ended. */
export const NO_VERSION = 'none';

const OPEN = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = DELETE;
  PRAGMA synchronous = FULL;
  BEGIN EXCLUSIVE;
`;
/** "RSch", which tells a state from any other database. */
const APPLICATION = 0x52_53_63_68;
const LAYOUT = 1;
/** `missing`: the number of whole walks, one after the other, in which the record was not met. */
const CREATE = `
  CREATE TABLE state (source TEXT, operation TEXT, key BLOB NOT NULL, version TEXT, unpublished TEXT, since TEXT);
  CREATE TABLE record (id TEXT PRIMARY KEY, digest TEXT NOT NULL, missing INTEGER NOT NULL) WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION};
  PRAGMA user_version = ${LAYOUT};
`;
const KEY_BYTES = 32;

/** @throws OtherLayout, the errors of SQLite */
export function openChangesState(path: string): ChangesState {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec(OPEN);
    if (database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined) {
      database.exec(CREATE);
      database.prepare('INSERT INTO state (key) VALUES (?)').run(randomBytes(KEY_BYTES));
    }
    const pragma = (name: string) => database.prepare(`PRAGMA ${name}`).get()?.[name];
    if (pragma('application_id') !== APPLICATION || pragma('user_version') !== LAYOUT) {
      throw new OtherLayout();
    }
    // The exclusive lock stays without a transaction.
    database.exec('COMMIT');
  } catch (error) {
    database.close();
    throw error;
  }
  const row = () => database.prepare('SELECT * FROM state').get() as unknown as StateRow;
  const digestOfId = database.prepare('SELECT digest FROM record WHERE id = ?');
  const key = Buffer.from(row().key);
  let { version } = row();

  return {
    get version() {
      return version ?? undefined;
    },
    get list() {
      const { source, operation } = row();
      return source === null || operation === null ? undefined : { source, operation };
    },
    begin: ({ source, operation }) =>
      void database.prepare('UPDATE state SET source = ?, operation = ?').run(source, operation),
    get unpublished() {
      const { unpublished, since } = row();
      return unpublished === null || since === null ? undefined : { path: unpublished, since };
    },
    digestOf: (id, record) =>
      createHmac('sha256', key)
        .update(`${id}\n${canonicalRecord(record)}`)
        .digest('base64'),
    get: (id) => digestOfId.get(id)?.['digest'] as string | undefined,
    missingBefore: function* () {
      for (const { id } of database.prepare('SELECT id FROM record WHERE missing > 0').iterate()) {
        yield String(id);
      }
    },
    advance: (digests, { isProof, changes }) => {
      const next = randomUUID();
      database.exec('BEGIN');
      try {
        if (isProof) database.exec('UPDATE record SET missing = missing + 1');
        const report = database.prepare(
          'INSERT INTO record VALUES (?, ?, 0) ON CONFLICT (id) DO UPDATE SET digest = excluded.digest, missing = 0',
        );
        for (const [id, digest] of digests) report.run(id, digest);
        if (isProof) database.exec('DELETE FROM record WHERE missing > 1');
        database
          .prepare('UPDATE state SET version = ?, unpublished = ?, since = ?')
          .run(next, changes, version ?? NO_VERSION);
        database.exec('COMMIT');
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK');
        throw error;
      }
      version = next;
    },
    published: () => database.exec('UPDATE state SET unpublished = NULL, since = NULL'),
    close: () => {
      if (database.isOpen) database.close();
    },
  };
}

interface StateRow {
  readonly source: string | null;
  readonly operation: string | null;
  readonly key: Uint8Array;
  readonly version: string | null;
  readonly unpublished: string | null;
  readonly since: string | null;
}

/** The id of a record as JSON. @returns undefined for a record without one */
export function idOfRecord(record: Json): string | undefined {
  const id = record.get(ID_KEY);
  if (id === undefined || id.isNull) return undefined;
  return id.string === undefined ? id.raw : JSON.stringify(id.string);
}

/** Leaves out the id that only the export selected. */
function canonicalRecord(record: Json): string {
  const members = Array.from(record.members()).filter(([key]) => key !== ID_KEY);
  return canonicalMembers(members);
}

/**
 * Writes equal values as the same text: the order of keys, white space, escapes in strings and the form of a number
 * (`1.50`, `15e-1`) do not count. Everything else does, also the order of a list, and whether a key is there.
 */
function canonical(value: Json): string {
  switch (value.kind) {
    case 'object':
      return canonicalMembers(Array.from(value.members()));
    case 'list':
      return `[${Array.from(value.elements(), canonical).join(',')}]`;
    case 'string':
      return JSON.stringify(value.string);
    case 'number':
      return canonicalNumber(value.raw);
    default:
      return value.raw;
  }
}

function canonicalMembers(members: readonly (readonly [string, Json])[]): string {
  const written = members.map(([key, value]) => `${JSON.stringify(key)}:${canonical(value)}`);
  return `{${written.toSorted().join(',')}}`;
}

/** All digits without the zeros at both ends, and a power of ten: a number of JavaScript would lose some of them. */
function canonicalNumber(raw: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(raw) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  const power =
    BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  return `${sign}${significant}e${power}`;
}
