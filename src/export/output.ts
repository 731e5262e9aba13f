import { existsSync, openSync, closeSync, rmSync, statSync } from 'node:fs';
import { open, rename, type FileHandle } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { OperatorMistake } from '../errors.ts';

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

interface WrittenPage {
  /** Of the records; null for one without an id. */
  readonly ids: readonly (string | null)[];
  /** Values that could not be read. */
  readonly faults: number;
  /** The cursor behind the last record. */
  readonly after: string;
}

/** What was written so far, by earlier runs too. */
class Written {
  records = 0;
  faults = 0;
  /** Undefined before the first page. */
  after: string | undefined;
  /** Undefined for a list whose ids do not identify its records. */
  #ids: Set<string> | undefined = new Set();

  /** Returns which records of a page were not written before, by their ids. */
  newOf<R>(records: readonly R[], idOf: (record: R) => string | null): readonly R[] {
    const ids = records.map(idOf).filter((id) => id !== null);
    // An id that occurs twice in one page proves that ids do not identify the records of this list.
    if (new Set(ids).size < ids.length) this.#ids = undefined;
    const known = this.#ids;
    if (!known) return records;
    return records.filter((record) => {
      const id = idOf(record);
      if (id === null) return true;
      const { size } = known;
      return known.add(id).size > size;
    });
  }

  add({ ids, faults, after }: WrittenPage): void {
    this.records += ids.length;
    this.faults += faults;
    this.after = after;
  }
}

/** Where an export is written to. */
interface ExportOutput {
  readonly written: Written;
  /** Writes the lines of a page. @throws Error with a message for the operator */
  write(lines: string, page: WrittenPage): Promise<void>;
  /** Call it when everything is written. @throws Error with a message for the operator */
  finish(): Promise<void>;
  /** Keeps what can be resumed. */
  close(): Promise<void>;
}

interface ExportFileOptions {
  readonly path: string;
  /** What the file begins with. */
  readonly header: string;
  /** What must not change until the export is whole: where the records come from, their format and the operation. */
  readonly begun: string;
  readonly resume: boolean;
  /** Whether an existing file may be replaced. With `resume`: what an interrupted export left, unless it can be continued. */
  readonly force: boolean;
}

/** @throws OperatorMistake */
export async function openExportFile(options: ExportFileOptions): Promise<ExportOutput> {
  const { path, begun, resume, force } = options;
  const part = `${path}.part`;
  const isBegun = existsSync(part);
  if (!force && !(resume && isBegun) && (isBegun || existsSync(path))) {
    throw alreadyExists(path, isBegun);
  }
  try {
    await using parts = new AsyncDisposableStack();
    const state = parts.use(openState(path));
    const left = resume && isBegun ? state.read() : undefined;
    const isUsable = left?.begun === begun && statSync(part).size >= left.bytes;
    if (left && !isUsable && !force) throw notContinued(path);
    if (!isUsable) {
      rmSync(part, { force: true });
      state.begin(begun);
    }
    const { written, bytes } = isUsable ? left : { written: new Written(), bytes: 0 };
    const file = await open(part, 'a', OWNER_ONLY);
    parts.defer(() => file.close());
    await file.truncate(bytes);
    return fileOutput(options, { part, file, state, written, bytes, parts: parts.move() });
  } catch (error) {
    throw error instanceof OperatorMistake ? error : new OperatorMistake(unwritable(part, error));
  }
}

const OWNER_ONLY = 0o600;

interface OpenFile {
  /** The path of `file`. */
  readonly part: string;
  readonly file: FileHandle;
  readonly state: ReturnType<typeof openState>;
  readonly written: Written;
  /** The length of the file. */
  readonly bytes: number;
  readonly parts: AsyncDisposableStack;
}

function fileOutput(
  { path, header }: ExportFileOptions,
  { part, file, state, written, bytes: before, parts }: OpenFile,
): ExportOutput {
  let bytes = before;
  let isFinished = false;
  const append = async (lines: string) => {
    const text = bytes === 0 ? header + lines : lines;
    await file.appendFile(text);
    await file.sync();
    bytes += Buffer.byteLength(text);
  };
  const guarded = (work: () => Promise<void>) =>
    work().catch((error: unknown) => {
      throw new Error(unwritable(part, error));
    });
  return {
    written,
    write: (lines, page) =>
      guarded(async () => {
        await append(lines);
        state.add(page, bytes);
        written.add(page);
      }),
    finish: () =>
      guarded(async () => {
        // An empty list has a header, too.
        if (bytes === 0) await append('');
        await rename(part, path);
        isFinished = true;
      }),
    close: async () => {
      // The files of an export that never began must not prevent the next one.
      if (isFinished || bytes === 0) state.remove();
      if (bytes === 0) rmSync(part, { force: true });
      await parts.disposeAsync();
    },
  };
}

function unwritable(file: string, error: unknown): string {
  return `${file} cannot be written: ${(error as Error).message}. Check the disk and the folder, or give --output another name.`;
}

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
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
    throw new OperatorMistake(`Another export is writing ${path}. Wait for it, or stop it first.`);
  }
  return {
    begin: (begun: string): void => {
      database.exec('DELETE FROM begun; DELETE FROM pages');
      database.prepare('INSERT INTO begun VALUES (?)').run(begun);
    },
    /** @param bytes the length of the file with the page */
    add: ({ ids, faults, after }: WrittenPage, bytes: number): void => {
      const row = [bytes, after, faults, JSON.stringify(ids)];
      database.prepare('INSERT INTO pages VALUES (?, ?, ?, ?)').run(...row);
    },
    read: () => {
      const begun = database.prepare('SELECT what FROM begun').get()?.['what'];
      const written = new Written();
      let bytes = 0;
      for (const row of database.prepare('SELECT * FROM pages ORDER BY rowid').iterate()) {
        const page = { ...row, ids: JSON.parse(String(row['ids'])) } as WrittenPage;
        written.newOf(page.ids, (id) => id);
        written.add(page);
        bytes = Number(row['bytes']);
      }
      return { begun, written, bytes };
    },
    remove: (): void => rmSync(name, { force: true }),
    [Symbol.dispose]: (): void => database.close(),
  };
}

const SQLITE_BUSY = 5;

function alreadyExists(path: string, isBegun: boolean): OperatorMistake {
  return new OperatorMistake(
    isBegun
      ? `An export to ${path} was interrupted, or is still running. Continue it with --resume, or begin anew with --force.`
      : `${path} exists already. Give --output another name, or replace the file with --force.`,
  );
}

function notContinued(path: string): OperatorMistake {
  return new OperatorMistake(
    `${path}.part cannot be continued: it was begun from another source, with other options or with another schema, or was changed. ` +
      'Resume it with the same options, or begin anew with --force.',
  );
}

/** Writes to a stream as fast as it is read. Another run cannot resume it. */
export function streamOutput(stream: NodeJS.WritableStream, header: string): ExportOutput {
  const written = new Written();
  const send = async (text: string): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    stream.write(text, (error) => (error ? reject(error) : resolve()));
    await promise;
  };
  return {
    written,
    write: async (lines, page) => {
      await send(written.records === 0 ? header + lines : lines);
      written.add(page);
    },
    finish: async () => {
      if (written.records === 0) await send(header);
    },
    close: async () => {},
  };
}
