import { existsSync, openSync, closeSync, rmSync, statSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { stringify, type Options } from 'csv-stringify/sync';
import { OperatorMistake } from '../errors.ts';
import type { ExportedRecord, Page } from './read.ts';

/*
 * How an interrupted export loses and repeats no record
 *
 *     people.csv.part      what was written so far, then people.csv
 *     people.csv.part.db   what the export was begun with; then for each page the length of the file, the cursor behind
 *                          the last record, and the ids. An SQLite database, locked while a process writes.
 *
 * After each 500 records, the file is flushed to the disk (fsync), then a row is added to the database. So the file has
 * everything that the database counts, at every moment and after a power failure too. When the export is resumed, the rest
 * of the file is cut off, and the records behind the cursor are requested.
 *
 *     kill while the file is written  it is longer than the database says: cut off
 *     ... after the last page         nothing comes behind the cursor: the file is renamed
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
interface Sink {
  /** Writes text for good. `page`: what is complete with it. */
  append(text: string, page?: WrittenPage): Promise<void>;
  /** Called when everything is written. */
  finish?(): Promise<void>;
  /** Keeps what can be resumed. */
  close?(): Promise<void>;
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
  readonly #sink: Sink;

  constructor(format: RecordFormat, sink: Sink, earlier: Iterable<WrittenPage> = []) {
    this.#format = format;
    this.#sink = sink;
    for (const page of earlier) {
      this.#newOf(page.ids.map((id) => ({ id })));
      this.#add(page);
    }
  }

  /** Writes the records of a page that were not written before, by their ids. @throws Error for the operator */
  async write({ records, faults, after }: Page): Promise<void> {
    const written = this.#newOf(records);
    const lines = this.#format.write(written.map(({ values }) => values));
    const page = { ids: written.map(({ id }) => id), faults: faults.length, after };
    await this.#sink.append(this.after === undefined ? this.#format.header + lines : lines, page);
    this.#add(page);
  }

  /** Call it when everything is written. @throws Error for the operator */
  async finish(): Promise<void> {
    // An empty list has a header, too.
    if (this.after === undefined) await this.#sink.append(this.#format.header);
    await this.#sink.finish?.();
  }

  async close(): Promise<void> {
    await this.#sink.close?.();
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
export function streamOutput(stream: NodeJS.WritableStream, format: RecordFormat): Output {
  const append = (text: string) =>
    new Promise<void>((resolve, reject) => {
      stream.write(text, (error) => (error ? reject(error) : resolve()));
    });
  return new Output(format, { append });
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

/** @throws OperatorMistake */
export async function openExportFile(options: ExportFileOptions): Promise<Output> {
  const { path, format, begun, resume, force } = options;
  if (existsSync(path) && statSync(path).isDirectory()) {
    throw new OperatorMistake(`${path} is a folder. Give --output the name of a file in it.`);
  }
  const part = `${path}.part`;
  const isBegun = existsSync(part);
  if (!force && !(resume && isBegun) && (isBegun || existsSync(path))) {
    throw new OperatorMistake(
      isBegun
        ? `An export to ${path} was interrupted, or is still running. Continue it with --resume, or begin anew with --force.`
        : `${path} exists already. Give --output another name, or replace the file with --force.`,
    );
  }
  try {
    await using opening = new AsyncDisposableStack();
    const state = opening.use(openState(path));
    const pages = resume && isBegun ? state.pagesOf(begun) : undefined;
    let bytes = pages?.at(-1)?.bytes ?? 0;
    const isUsable = pages !== undefined && statSync(part).size >= bytes;
    if (resume && isBegun && !isUsable && !force) {
      throw new OperatorMistake(
        `${part} cannot be continued: it was begun from another source, with other options or with another schema, or was changed. ` +
          'Resume it with the same options, or begin anew with --force.',
      );
    }
    if (!isUsable) {
      bytes = 0;
      rmSync(part, { force: true });
      state.begin(begun);
    }
    const file = opening.use(await open(part, 'a', OWNER_ONLY));
    await file.truncate(bytes);
    let isFinished = false;
    const guarded = (work: () => Promise<void>) =>
      work().catch((error: unknown) => {
        throw new Error(unwritable(part, error));
      });
    const sink: Sink = {
      append: (text, page) =>
        guarded(async () => {
          await file.appendFile(text);
          await file.sync();
          bytes += Buffer.byteLength(text);
          if (page) state.add({ ...page, bytes });
        }),
      finish: () =>
        guarded(async () => {
          await rename(part, path);
          isFinished = true;
        }),
      close: async () => {
        // The files of an export that never began must not prevent the next one.
        if (isFinished || bytes === 0) {
          for (const name of [part, `${part}.db`]) rmSync(name, { force: true });
        }
        await opened.disposeAsync();
      },
    };
    const output = new Output(format, sink, isUsable ? pages : []);
    const opened = opening.move();
    return output;
  } catch (error) {
    throw error instanceof OperatorMistake ? error : new OperatorMistake(unwritable(part, error));
  }
}

const OWNER_ONLY = 0o600;

function unwritable(file: string, error: unknown): string {
  return `${file} cannot be written: ${(error as Error).message}. Check the disk and the folder, or give --output another name.`;
}

/** A page in the file, with the length of the file up to its end. */
type StoredPage = WrittenPage & { readonly bytes: number };

/** Opens the state of the export to a file, and locks it: SQLite gives the lock back when the process ends. */
function openState(path: string) {
  const name = `${path}.part.db`;
  closeSync(openSync(name, 'a', OWNER_ONLY));
  const database = new DatabaseSync(name, { timeout: 0 });
  try {
    database.exec(`
      PRAGMA locking_mode = EXCLUSIVE;
      BEGIN EXCLUSIVE;
      CREATE TABLE IF NOT EXISTS begun (what TEXT);
      CREATE TABLE IF NOT EXISTS pages (bytes INTEGER, after TEXT, faults INTEGER, ids TEXT);
      COMMIT`);
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode !== BUSY) throw error;
    throw new OperatorMistake(`Another export is writing ${path}. Wait for it, or stop it first.`);
  }
  return {
    begin: (begun: string): void => {
      database.exec('DELETE FROM begun; DELETE FROM pages');
      database.prepare('INSERT INTO begun VALUES (?)').run(begun);
    },
    add: ({ bytes, after, faults, ids }: StoredPage): void => {
      const row = [bytes, after, faults, JSON.stringify(ids)];
      database.prepare('INSERT INTO pages VALUES (?, ?, ?, ?)').run(...row);
    },
    /** What is written of the export that was begun so; undefined for another one. */
    pagesOf: (begun: string): readonly StoredPage[] | undefined => {
      if (database.prepare('SELECT what FROM begun').get()?.['what'] !== begun) return undefined;
      const rows = database.prepare('SELECT * FROM pages ORDER BY rowid').all();
      return rows.map((row) => ({ ...row, ids: JSON.parse(String(row['ids'])) }) as StoredPage);
    },
    [Symbol.dispose]: (): void => database.close(),
  };
}

/** SQLITE_BUSY. */
const BUSY = 5;
