import { closeSync, existsSync, openSync, rmSync, statSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { stringify, type Options } from 'csv-stringify/sync';
import { OperatorMistake } from '../errors.ts';
import type { ExportedRecord, Page } from './read.ts';

/*
 * How an interrupted export loses and repeats no record
 *
 *     people.csv.part.db   an SQLite database, locked while a process writes: what the export was begun with; then for each
 *                          page its lines, the cursor behind its last record, and the ids
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
export interface Target {
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
  /** Whether an existing file may be replaced. With `resume`: what an interrupted export left, unless it can be continued. */
  readonly force: boolean;
}

/** Writes to a file, when everything is written. @throws OperatorMistake */
export function toFile({ path, format, begun, resume, force }: ExportFileOptions): Target {
  if (existsSync(path) && statSync(path).isDirectory()) {
    throw new OperatorMistake(`${path} is a folder. Give --output the name of a file in it.`);
  }
  const part = `${path}.part`;
  const state = `${part}.db`;
  const guarded = async (work: () => unknown) => {
    try {
      await work();
    } catch (error) {
      throw new Error(unwritable(path, error), { cause: error });
    }
  };
  try {
    using opening = new DisposableStack();
    const database = opening.use(openState(state, path, force));
    const found = database.prepare('SELECT what, isWhole FROM begun').get();
    // A kill behind the last step of a whole export left its state, which must not be continued.
    const before = found?.['isWhole'] === 1 && !existsSync(part) ? undefined : found?.['what'];
    if (before === undefined) opening.defer(() => removeState(state));
    if (!force && !(resume && before !== undefined) && (before !== undefined || existsSync(path))) {
      throw new OperatorMistake(
        before === undefined
          ? `${path} exists already. Give --output another name, or replace the file with --force.`
          : `An export to ${path} was interrupted, or is still running. Continue it with --resume, or begin anew with --force.`,
      );
    }
    const isContinued = resume && before === begun;
    if (resume && before !== undefined && !isContinued && !force) {
      throw new OperatorMistake(
        `${state} cannot be continued: it was begun from another source, with other options or with another schema. ` +
          'Resume it with the same options, or begin anew with --force.',
      );
    }
    if (!isContinued) {
      database.exec('DELETE FROM begun; DELETE FROM written');
      database.prepare('INSERT INTO begun VALUES (?, 0)').run(begun);
    }
    const earlier = database.prepare('SELECT ids, faults, after FROM written ORDER BY rowid').all();
    const insert = database.prepare('INSERT INTO written VALUES (?, ?, ?, ?)');
    let hasPages = earlier.length > 0;
    opening.move();
    return {
      earlier: earlier.map(
        (page) => ({ ...page, ids: JSON.parse(String(page['ids'])) }) as WrittenPage,
      ),
      append: (lines, { ids, faults, after }) =>
        guarded(() => {
          insert.run(lines, JSON.stringify(ids), faults, after);
          hasPages = true;
        }),
      finish: () =>
        guarded(async () => {
          const text = wholeText(format.header, database);
          await writeFile(part, text, { mode: OWNER_ONLY, flush: true });
          database.exec('UPDATE begun SET isWhole = 1');
          await rename(part, path);
          hasPages = false;
        }),
      close: () => {
        database.close();
        // The state of an export that is whole, or never began, must not prevent the next one.
        if (!hasPages) removeState(state);
      },
    };
  } catch (error) {
    throw error instanceof OperatorMistake ? error : new OperatorMistake(unwritable(path, error));
  }
}

const OWNER_ONLY = 0o600;

function unwritable(file: string, error: unknown): string {
  return `${file} cannot be written: ${(error as Error).message}. Check the disk and the folder, or give --output another name.`;
}

/**
 * Opens the state of the export to a file, and locks it: SQLite gives the lock back when the process ends.
 *
 * @param force whether one that is damaged may be removed
 */
function openState(state: string, path: string, force: boolean): DatabaseSync {
  closeSync(openSync(state, 'a', OWNER_ONLY));
  const database = new DatabaseSync(state, { timeout: 0 });
  try {
    database.exec(`
      PRAGMA locking_mode = EXCLUSIVE;
      BEGIN EXCLUSIVE;
      CREATE TABLE IF NOT EXISTS begun (what TEXT, isWhole INTEGER);
      CREATE TABLE IF NOT EXISTS written (lines TEXT, ids TEXT, faults INTEGER, after TEXT);
      COMMIT`);
    return database;
  } catch (error) {
    database.close();
    const { errcode, message } = error as Error & { errcode?: number };
    if (errcode === BUSY) {
      throw new OperatorMistake(
        `Another export is writing ${path}. Wait for it, or stop it first.`,
      );
    }
    if (!DAMAGED.includes(errcode)) throw error;
    if (!force) {
      throw new OperatorMistake(`${state} is damaged: ${message}. Begin anew with --force.`);
    }
    removeState(state);
    return openState(state, path, false);
  }
}

/** A kill may have left the journal beside it. */
function removeState(state: string): void {
  for (const file of [state, `${state}-journal`]) rmSync(file, { force: true });
}

/** SQLITE_BUSY. */
const BUSY = 5;
/** SQLITE_CORRUPT and SQLITE_NOTADB. */
const DAMAGED: readonly unknown[] = [11, 26];

function* wholeText(header: string, database: DatabaseSync): Generator<string> {
  yield header;
  const rows = database.prepare('SELECT lines FROM written ORDER BY rowid').iterate();
  for (const { lines } of rows) yield String(lines);
}
