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
 *     ... after the rename            there is no .part, so the file is whole
 */

/** What was written so far, by earlier runs too. */
interface Progress {
  readonly records: number;
  /** Values that could not be read. */
  readonly faults: number;
  /** The cursor behind the last record; undefined before the first page. */
  readonly after?: string | undefined;
}

const NOTHING: Progress = { records: 0, faults: 0 };

interface WrittenPage {
  /** Of the records; null for one without an id. */
  readonly ids: readonly (string | null)[];
  readonly faults: number;
  readonly after: string;
}

/** Where an export is written to. */
interface ExportOutput {
  /** What earlier runs have written. */
  readonly before: Progress;
  /** The ids of everything that was written. */
  readonly written: WrittenIds;
  /** Writes the lines of a page. @throws Error with a message for the operator */
  write(lines: string, page: WrittenPage): Promise<void>;
  /** Call it when everything is written. @throws Error with a message for the operator */
  finish(): Promise<void>;
  /** Keeps what can be resumed. */
  close(): Promise<void>;
}

/** Knows records that were written before, by their ids. */
class WrittenIds {
  /** Undefined for a list whose ids do not identify its records. */
  #ids: Set<string> | undefined = new Set();

  /** Returns which records of a page are new, and adds them. */
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

/** @returns `whole` if nothing is left to resume @throws OperatorMistake */
export async function openExportFile(options: ExportFileOptions): Promise<ExportOutput | 'whole'> {
  const { path, begun, resume, force } = options;
  const part = `${path}.part`;
  const exists = existsSync(path);
  const isBegun = existsSync(part);
  if (exists && !statSync(path).isFile()) {
    throw new OperatorMistake(`${path} is not a file. ${RENAME}`);
  }
  if (!resume && !force && (exists || isBegun)) throw alreadyExists(path, isBegun);
  if (resume && !force && exists && !isBegun) return 'whole';
  try {
    await using parts = new AsyncDisposableStack();
    const state = parts.use(openState(path));
    const left = resume && isBegun ? state.read() : undefined;
    const isUsable = left?.begun === begun && statSync(part).size >= left.bytes;
    if (left && !isUsable && !force) throw notContinued(path);
    const before = isUsable ? left : undefined;
    if (!before) {
      rmSync(part, { force: true });
      state.begin(begun);
    }
    const file = await open(part, 'a', OWNER_ONLY);
    parts.defer(() => file.close());
    await file.truncate(before?.bytes ?? 0);
    return fileOutput(options, before, { part, file, state, parts: parts.move() });
  } catch (error) {
    if (error instanceof OperatorMistake) throw error;
    throw new OperatorMistake(`${part} cannot be written: ${(error as Error).message}. ${RENAME}`);
  }
}

const OWNER_ONLY = 0o600;
const RENAME = 'Give --output the name of a new file, or leave it out for the standard output.';

interface OpenFiles {
  /** The path of `file`. */
  readonly part: string;
  readonly file: FileHandle;
  readonly state: ReturnType<typeof openState>;
  readonly parts: AsyncDisposableStack;
}

function fileOutput(
  { path, header }: ExportFileOptions,
  before: State | undefined,
  { part, file, state, parts }: OpenFiles,
): ExportOutput {
  let bytes = before?.bytes ?? 0;
  let isFinished = false;
  const append = async (lines: string) => {
    const text = bytes === 0 ? header + lines : lines;
    await file.appendFile(text);
    await file.sync();
    bytes += Buffer.byteLength(text);
  };
  const guarded = (work: () => Promise<void>) =>
    work().catch((error: unknown) => {
      throw failureOf(error, part);
    });
  return {
    before: before?.progress ?? NOTHING,
    written: before?.written ?? new WrittenIds(),
    write: (lines, page) =>
      guarded(async () => {
        await append(lines);
        state.add(page, bytes);
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

export function withPage({ records, faults }: Progress, page: WrittenPage): Progress {
  return {
    records: records + page.ids.length,
    faults: faults + page.faults,
    after: page.after,
  };
}

interface State {
  /** Undefined for an empty state. */
  readonly begun: string | undefined;
  readonly progress: Progress;
  readonly written: WrittenIds;
  /** The length of the file. */
  readonly bytes: number;
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
    add: ({ ids, faults, after }: WrittenPage, bytes: number): void => {
      const row = [bytes, after, faults, JSON.stringify(ids)];
      database.prepare('INSERT INTO pages VALUES (?, ?, ?, ?)').run(...row);
    },
    read: (): State => {
      const begun = database.prepare('SELECT what FROM begun').get()?.['what'];
      const written = new WrittenIds();
      let progress = NOTHING;
      let bytes = 0;
      for (const row of database.prepare('SELECT * FROM pages ORDER BY rowid').iterate()) {
        const page = { ...row, ids: JSON.parse(String(row['ids'])) } as Commit;
        written.newOf(page.ids, (id) => id);
        progress = withPage(progress, page);
        ({ bytes } = page);
      }
      return { begun: begun as string | undefined, progress, written, bytes };
    },
    remove: (): void => rmSync(name, { force: true }),
    [Symbol.dispose]: (): void => database.close(),
  };
}

interface Commit extends WrittenPage {
  /** The length of the file with the page. */
  readonly bytes: number;
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

/** @param file the file that cannot be written */
function failureOf(error: unknown, file: string): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined) return error as Error;
  return new Error(`${file} cannot be written: ${message}. Check the disk and the folder.`, {
    cause: error,
  });
}

/** Writes to a stream as fast as it is read. Another run cannot resume it. */
export function streamOutput(stream: NodeJS.WritableStream, header: string): ExportOutput {
  let pending = header;
  const write = (lines: string): Promise<void> => {
    const text = pending + lines;
    pending = '';
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    stream.write(text, (error) => {
      if (error) reject(new Error(`The output cannot be written: ${error.message}.`));
      else resolve();
    });
    return promise;
  };
  return {
    before: NOTHING,
    written: new WrittenIds(),
    write,
    finish: () => write(''),
    close: async () => {},
  };
}
