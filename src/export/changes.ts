import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { renameSync, rmSync, statSync } from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { OperatorMistake } from '../errors.ts';
import type { Json } from '../json.ts';
import { ID_KEY } from './export-operation.ts';
import {
  databaseFailure,
  failureOf,
  filesOf,
  publishLeft,
  type ExportOutput,
} from './export-output.ts';
import { openLocked, OtherLayout } from './export-state.ts';
import type { ExportedRecord } from './exported-pages.ts';
import { adoptFile, createPrivateFile, isTaken, NotOurs } from './private-files.ts';
import { jsonLine } from './record-format.ts';

/*
 * How applying all files of changes gives the list, whatever is cut off
 *
 * A run compares each record with the state of the run before. Its changes are useful only together with the next
 * state: a record that was added and removed between two states is in neither, so it would never be deleted. So the
 * changes of a run are published completely, or not at all:
 *
 *     1 changes.ndjson.part    the changes are written and flushed to the disk
 *     2 state                  one transaction: the new digests, and that changes.ndjson is not published yet
 *     3 changes.ndjson.part    is renamed to changes.ndjson
 *     4 state                  the file is published
 *
 *     kill before 2    the old state: --resume continues the file, and without it the changes are written again
 *     ... before 3     the next run with this state renames the file before it does anything else
 *     ... before 4     the file has its name: nothing is left to do
 *
 * A record that a walk did not find may still be in the list: it may have moved from the part that was not read yet to
 * the part that was, and cursors that name positions skip a record when an earlier one is removed. So a record is
 * reported as deleted only after two whole walks did not find it.
 */

/** Which records a state is about. */
interface ChangesList {
  readonly source: string;
  /** The operation, with its list, fields and filters. */
  readonly operation: string;
}

interface StateRow {
  readonly source: string | null;
  readonly operation: string | null;
  readonly key: Uint8Array;
  /** Another one after each run that ended; null before the end of the first run. */
  readonly version: string | null;
  /** A file of changes that this state counts as reported, and that may not have its name yet. */
  readonly unpublished: string | null;
  /** The version of the state that the run of this file began with. */
  readonly since: string | null;
}

/** Stands for the version of a state before the end of the first run. */
const NO_VERSION = 'none';

/** "RSch" */
const APPLICATION = 0x52_53_63_68;
const LAYOUT = 1;
/** `missing`: the number of whole walks in a row in which the record was not found. */
const CREATE = `
  CREATE TABLE state (source TEXT, operation TEXT, key BLOB NOT NULL, version TEXT, unpublished TEXT, since TEXT);
  CREATE TABLE record (id TEXT PRIMARY KEY, digest TEXT NOT NULL, missing INTEGER NOT NULL) WITHOUT ROWID;
`;
const KEY_BYTES = 32;

/**
 * The comparison of a list with what the files of `export --changes-since` have reported of it so far. The state has the
 * id of each record with a keyed digest of its values, and nothing of its contents.
 */
export class Changes {
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #key: Uint8Array;
  readonly #reportedDigest: StatementSync;
  /** The version of the state. */
  readonly since: string;
  /** A file of an earlier run that got its name only now. */
  readonly left: string | undefined;

  /** @param path of the state @throws OperatorMistake unless the state is new, or one of this list */
  constructor(path: string, list: ChangesList) {
    const database = openState(path);
    this.#path = path;
    this.#database = database;
    try {
      const state = database.prepare('SELECT * FROM state').get() as unknown as StateRow;
      if (state.unpublished !== null && state.since !== null) {
        if (publishLeft(state.unpublished, state.since)) this.left = state.unpublished;
        this.#published();
      }
      if (state.version === null) {
        const begin = database.prepare('UPDATE state SET source = ?, operation = ?');
        begin.run(list.source, list.operation);
      } else checkSame(state, list, path);
      this.#key = state.key;
      this.since = state.version ?? NO_VERSION;
      this.#reportedDigest = database.prepare('SELECT digest FROM record WHERE id = ?');
    } catch (error) {
      database.close();
      throw failureOf(error, path);
    }
  }

  /** The changes of these records, each of which is passed once. @throws OperatorMistake for a record without an id */
  of(records: readonly ExportedRecord[]) {
    const digests = new Map<string, string>();
    let lines = '';
    for (const { value, isFaulty } of records) {
      if (value.isNull) continue;
      const id = idOf(value);
      if (id === undefined) throw new OperatorMistake(WITHOUT_ID);
      if (digests.has(id)) throw new OperatorMistake(NOT_UNIQUE);
      const before = this.#reported(id);
      // A value that could not be read is no change.
      const digest = isFaulty ? before : digestOf(this.#key, id, value);
      if (digest === undefined) continue;
      digests.set(id, digest);
      if (digest !== before) lines += `{"op":"upsert","record":${jsonLine(value)}}\n`;
    }
    /** The number of records that could not be compared, because the service did not return all of their values. */
    const leftOut = records.filter(({ value, isFaulty }) => isFaulty || value.isNull).length;
    return { lines, leftOut, digests };
  }

  /**
   * Writes the deletions, keeps the state, and gives the file its name.
   *
   * @param isWhole whether the walk was whole, so that records that it did not find were not in the list
   * @returns how many records were reported
   */
  async finish(output: ExportOutput, isWhole: boolean) {
    const { state } = output;
    // An earlier run may have written the deletions.
    const isProof = state.ending?.isProof ?? isWhole;
    const deleted = isProof ? this.#missingTwice(state) : [];
    let upserts = 0;
    for (const [id, digest] of state.digests()) if (this.#reported(id) !== digest) upserts += 1;
    await output.finish({
      ending: { isProof },
      lines: deleted.map((id) => `{"op":"delete","id":${id}}\n`).join(''),
      onSynced: (file) => this.#advance(state, { isProof, file }),
      onPublished: () => this.#published(),
    });
    return { upserts, deletes: deleted.length };
  }

  async close(): Promise<void> {
    this.#database.close();
  }

  /** The digest of the record with this id, as it was last reported. */
  #reported(id: string): string | undefined {
    return this.#reportedDigest.get(id)?.['digest'] as string | undefined;
  }

  /** The ids of records that neither the last whole walk nor this one has found. */
  #missingTwice(state: ExportOutput['state']): string[] {
    const missing = this.#database.prepare('SELECT id FROM record WHERE missing > 0').all();
    return missing.map(({ id }) => String(id)).filter((id) => !state.hasDigest(id));
  }

  /** Records, in one transaction, that the changes in this file are reported. */
  #advance(
    state: ExportOutput['state'],
    run: { readonly isProof: boolean; readonly file: string },
  ): void {
    const database = this.#database;
    try {
      database.exec('BEGIN');
      if (run.isProof) database.exec('UPDATE record SET missing = missing + 1');
      const report = database.prepare(
        'INSERT INTO record VALUES (?, ?, 0) ON CONFLICT (id) DO UPDATE SET digest = excluded.digest, missing = 0',
      );
      for (const [id, digest] of state.digests()) report.run(id, digest);
      if (run.isProof) database.exec('DELETE FROM record WHERE missing > 1');
      database
        .prepare('UPDATE state SET version = ?, unpublished = ?, since = ?')
        .run(randomUUID(), run.file, this.since);
      database.exec('COMMIT');
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw failureOf(error, this.#path);
    }
  }

  #published(): void {
    this.#database.exec('UPDATE state SET unpublished = NULL, since = NULL');
  }
}

const WITHOUT_ID =
  'A record of this list has no id, so its changes cannot be reported. Export the list without --changes-since.';
const NOT_UNIQUE =
  'The list has an id twice in one page, so its records cannot be told apart. Export the list without --changes-since.';

/** @throws OperatorMistake */
function openState(path: string): DatabaseSync {
  try {
    for (const file of filesOf(path)) adoptFile(file);
    if (!isTaken(path)) createState(path);
    // SQLite takes an empty file for a new database, and the records that were deleted would never be reported.
    else if (statSync(path).size === 0) throw new OtherLayout();
    return openDatabase(path);
  } catch (error) {
    if (error instanceof NotOurs) throw new OperatorMistake(`${error.message} ${OTHER_PATH}`);
    const failure = databaseFailure(error);
    if (failure === 'busy') {
      throw new OperatorMistake(`Another export uses ${path}. Wait for it, or stop it first.`);
    }
    if (failure !== 'unreadable') throw failureOf(error, path);
    throw new OperatorMistake(
      `${path} is damaged, is not a state of --changes-since, or is one of another version of this program. ` +
        `Take its copy of the same day as the table that the changes were applied to. ${OTHER_PATH}`,
    );
  }
}

function openDatabase(path: string): DatabaseSync {
  const key = randomBytes(KEY_BYTES).toString('hex');
  return openLocked(path, {
    // With one file, a copy of it is a copy of the state.
    journal: 'DELETE',
    create: `${CREATE} INSERT INTO state (key) VALUES (x'${key}');`,
    layout: LAYOUT,
    application: APPLICATION,
  });
}

/** Under another name first, so that a run that is killed leaves no empty state. */
function createState(path: string): void {
  const unnamed = `${path}.new`;
  rmSync(unnamed, { force: true });
  createPrivateFile(unnamed);
  openDatabase(unnamed).close();
  renameSync(unnamed, path);
}

const OTHER_PATH =
  'Or give --changes-since another path, and empty the table: the first run writes every record.';

/** @throws OperatorMistake */
function checkSame(state: StateRow, now: ChangesList, path: string): void {
  if (state.source === now.source && state.operation === now.operation) return;
  const was =
    state.source === now.source
      ? 'with another list, --fields or --args, or the schema has changed'
      : `from ${state.source}, and this one is from ${now.source}`;
  throw new OperatorMistake(
    `The changes in ${path} were exported ${was}. Run it with the same options. ${OTHER_PATH}`,
  );
}

/** The id of a record as JSON; undefined for a record without one. */
function idOf(record: Json): string | undefined {
  const id = record.get(ID_KEY);
  if (id === undefined || id.isNull) return undefined;
  return id.string === undefined ? id.raw : JSON.stringify(id.string);
}

/**
 * Makes a digest that is the same for equal values: see `canonical`. The id that only the export selected is left out.
 *
 * @param id as JSON
 */
export function digestOf(key: Uint8Array, id: string, record: Json): string {
  const members = Array.from(record.members()).filter(([name]) => name !== ID_KEY);
  return createHmac('sha256', key)
    .update(`${id}\n${canonicalMembers(members)}`)
    .digest('base64');
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
