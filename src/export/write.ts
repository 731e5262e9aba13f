import { closeSync, existsSync, openSync, rmSync, statSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { stringify, type Options } from 'csv-stringify/sync';
import { OperatorMistake } from '../errors.ts';
import type { ExportedRecord, Page } from './read.ts';

/*
 * How an interrupted export loses and repeats no record
 *
 *     people.csv.part.db   an SQLite database, locked while a process writes: for each page what the export was begun with,
 *                          its lines, the cursor behind its last record, and the ids
 *     people.csv.part      all lines, before it becomes people.csv
 *
 * A page of 500 records is one transaction, so that it is on the disk with its cursor and its ids, or not at all, after a
 * power failure too. When the export is resumed, the records behind the last cursor are requested.
 */

export type FormatName = 'ndjson' | 'csv';

/** How records become lines of a file. */
interface RecordFormat {
  /** The beginning of a file. */
  readonly header: string;
  /** @returns the lines of these records, each with its line break */
  readonly write: (records: readonly ExportedRecord['values'][]) => string;
}

/** @param keys the response keys of a record, in the order of columns */
export function recordFormat(name: FormatName, keys: readonly string[]): RecordFormat {
  if (name === 'ndjson') {
    return {
      header: '',
      write: (records) => records.map((each) => `${JSON.stringify(each)}\n`).join(''),
    };
  }
  const row = (record: ExportedRecord['values']) => keys.map((key) => record?.[key]);
  return { header: stringify([[...keys]]), write: (records) => stringify(records.map(row), CSV) };
}

const CSV: Options = {
  // Cells that are quoted: an empty text, unlike null, and text with a carriage return.
  quoted_match: /^$|\r/,
  // Text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP, CSV injection).
  escape_formulas: true,
  cast: {
    boolean: String,
    // A nested object or list; or a long number, which stays as it is.
    object: (value) => ({ value: JSON.stringify(value), escape_formulas: false }),
  },
};

/** Where lines go. */
interface Target {
  /** The pages that earlier runs have written. */
  readonly earlier: readonly WrittenPage[];
  /** Writes the lines of a page for good. */
  append(lines: string, page: WrittenPage): Promise<void>;
  /** Called when everything is written. */
  finish(): Promise<void>;
  /** Keeps what can be resumed. */
  close(): void;
}

interface WrittenPage {
  /** Of the records; null for one without an id. */
  readonly ids: readonly (string | null)[];
  /** Values that could not be read. */
  readonly faults: number;
  /** The cursor behind the last record. */
  readonly after: string;
}

/** What was written so far, by earlier runs too, and what writes more. */
export class Output {
  records = 0;
  faults = 0;
  /** Undefined before the first page. */
  after: string | undefined;
  /** Undefined for a list whose ids do not identify its records. */
  #ids: Set<string> | undefined = new Set();
  readonly #format: RecordFormat;
  readonly #target: Target;

  constructor(format: RecordFormat, target: Target) {
    this.#format = format;
    this.#target = target;
    for (const page of target.earlier) {
      this.#newOf(page.ids.map((id) => ({ id })));
      this.#add(page);
    }
  }

  /** Writes the records of a page that were not written before, by their ids. @throws Error for the operator */
  async write({ records, faults, after }: Page): Promise<void> {
    const written = this.#newOf(records);
    const lines = this.#format.write(written.map(({ values }) => values));
    const page = { ids: written.map(({ id }) => id), faults: faults.length, after };
    await this.#target.append(lines, page);
    this.#add(page);
  }

  #newOf<R extends { readonly id: string | null }>(records: readonly R[]): readonly R[] {
    const ids = records.map(({ id }) => id).filter((id) => id !== null);
    // An id that occurs twice in one page proves that ids do not identify the records of this list.
    if (new Set(ids).size < ids.length) this.#ids = undefined;
    const known = this.#ids;
    if (!known) return records;
    return records.filter(({ id }) => {
      if (id === null) return true;
      const { size } = known;
      return known.add(id).size > size;
    });
  }

  #add({ ids, faults, after }: WrittenPage): void {
    this.records += ids.length;
    this.faults += faults;
    this.after = after;
  }
}

/** Writes to a stream as fast as it is read. Another run cannot resume it. */
export async function toStream(
  stream: NodeJS.WritableStream,
  { header }: RecordFormat,
): Promise<Target> {
  const append = (text: string) =>
    new Promise<void>((resolve, reject) => {
      stream.write(text, (error) => (error ? reject(error) : resolve()));
    });
  await append(header);
  return { earlier: [], append, finish: async () => {}, close: () => {} };
}

interface ExportFileOptions {
  readonly path: string;
  readonly format: RecordFormat;
  /** What must not change until the export is whole: where the records come from, their format and the operation. */
  readonly begun: string;
  readonly resume: boolean;
  /** Whether the file, or what an interrupted export has left of it, may be replaced. Not together with `resume`. */
  readonly force: boolean;
}

/** Writes to a file, when everything is written. @throws OperatorMistake */
export function toFile({ path, format, begun, resume, force }: ExportFileOptions): Target {
  const part = `${path}.part`;
  const { database, written } = openState(part, force);
  let hasPages = written.length > 0;
  const close = () => {
    database.close();
    // The state of an export that is whole, or never began, must not prevent the next one.
    if (!hasPages) removeState(part);
  };
  const refuse = (why: string) => {
    close();
    throw new OperatorMistake(why);
  };
  if (existsSync(path) && statSync(path).isDirectory()) {
    refuse(`${path} is a folder. Give --output the name of a file in it.`);
  }
  if (!force && !hasPages && existsSync(path)) {
    refuse(`${path} exists already. Give --output another name, or replace the file with --force.`);
  }
  if (!force && !resume && hasPages) {
    refuse(
      `An export to ${path} was interrupted. Continue it with --resume, or begin anew with --force.`,
    );
  }
  if (resume && hasPages && written[0]!['begun'] !== begun) {
    refuse(
      `${part}.db was begun from another source, with other options or with another schema. ` +
        'Resume it with the same options, or begin anew with --force.',
    );
  }
  const insert = database.prepare('INSERT INTO written VALUES (?, ?, ?, ?, ?)');
  return {
    earlier: hasPages
      ? written.map((row) => ({ ...row, ids: JSON.parse(String(row['ids'])) }) as WrittenPage)
      : [],
    append: (lines, { ids, faults, after }) =>
      writing(path, async () => {
        insert.run(begun, lines, JSON.stringify(ids), faults, after);
        hasPages = true;
      }),
    finish: () =>
      writing(path, async () => {
        const lines = wholeText(format.header, database);
        await writeFile(part, lines, { mode: OWNER_ONLY, flush: true });
        await rename(part, path);
        hasPages = false;
      }),
    close,
  };
}

const OWNER_ONLY = 0o600;
const SQLITE_BUSY = 5;

/**
 * Opens the state of the export to a file, and locks it: SQLite gives the lock back when the process ends.
 *
 * @param force whether what another export has left is removed, and a state that cannot be read
 */
function openState(part: string, force: boolean) {
  const state = `${part}.db`;
  try {
    const found = opened(state);
    if (!force || found.written.length === 0) return found;
    found.database.close();
  } catch (error) {
    const { errcode, message } = error as { errcode?: number; message: string };
    if (!force || errcode === SQLITE_BUSY || !existsSync(state)) {
      throw new OperatorMistake(
        `${state} cannot be used: ${message}. If another export is writing it, wait for that one; ` +
          'otherwise check the disk and the folder, give --output another name, or remove the file.',
      );
    }
  }
  // Not emptied: on a full disk, SQLite cannot do that.
  removeState(part);
  return opened(state);
}

function opened(state: string) {
  closeSync(openSync(state, 'a', OWNER_ONLY));
  const database = new DatabaseSync(state, { timeout: 0 });
  database.exec(`
    PRAGMA locking_mode = EXCLUSIVE;
    BEGIN EXCLUSIVE;
    CREATE TABLE IF NOT EXISTS written
      (begun TEXT, lines TEXT, ids TEXT, faults INTEGER, after TEXT);
    COMMIT`);
  const pages = database.prepare('SELECT begun, ids, faults, after FROM written ORDER BY rowid');
  return { database, written: pages.all() };
}

async function writing(path: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    const { message } = error as Error;
    const advice = 'Check the disk and the folder, or give --output another name.';
    throw new Error(`${path} cannot be written: ${message}. ${advice}`, { cause: error });
  }
}

/** A kill may have left the journal, and a full disk a part of the file. */
function removeState(part: string): void {
  for (const end of ['', '.db', '.db-journal']) rmSync(part + end, { force: true });
}

function* wholeText(header: string, database: DatabaseSync): Generator<string> {
  yield header;
  const rows = database.prepare('SELECT lines FROM written ORDER BY rowid').iterate();
  for (const { lines } of rows) yield String(lines);
}
