import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { open, readFile, rename, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { OperatorMistake } from '../errors.ts';

/*
 * How an interrupted export loses and repeats no record
 *
 *     people.csv.part         what was written so far, then people.csv
 *     people.csv.part.state   JSON, a line each: what the export was begun with; then its progress at each commit, with
 *                             the length of the file, the cursor behind the last record, and the ids since the last one
 *     people.csv.part.lock    locked while a process writes
 *
 * After each 500 records, the file is flushed to the disk (fsync), then a line is appended to the state and flushed. So the
 * file has everything that the state counts, at every moment and after a power failure too. When the export is resumed,
 * the rest of both is cut off, and the records behind the cursor are requested.
 *
 *     kill while the file is written  it is longer than the state says: cut off
 *     ... while the state is written  its last line is not whole: as if it were not there
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
export interface ExportOutput {
  readonly progress: Progress;
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
  /** As `fileToWrite` returns it. */
  readonly path: string;
  /** What the file begins with. */
  readonly header: string;
  /** What must not change until the export is whole: where the records come from, their format and the operation. */
  readonly begun: readonly string[];
  readonly resume: boolean;
  /** Whether an existing file may be replaced. With `resume`: what an interrupted export left, unless it can be continued. */
  readonly force: boolean;
  /** Called if an export that was to be continued begins anew. @param reason a sentence */
  readonly onBeginAnew: (reason: string) => void;
}

/**
 * Checks a path before the first request to the gateway. A link stays a link: returns the file that it names.
 *
 * @throws OperatorMistake for anything but a file in a folder
 */
export function fileToWrite(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile()) return realpathSync(path);
  const folder = dirname(path);
  const isInFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory();
  if (!stats && path !== '-' && !path.endsWith('/') && isInFolder) return path;
  throw new OperatorMistake(
    `--output takes the path of a file in a folder that exists, which ${path} is not. Leave it out for the standard output.`,
  );
}

/** @returns `whole` if nothing is left to resume @throws OperatorMistake, Error with a message for the operator */
export async function openExportFile(options: ExportFileOptions): Promise<ExportOutput | 'whole'> {
  const { path, resume, force } = options;
  const names = namesOf(path);
  try {
    await using parts = new AsyncDisposableStack();
    parts.use(await lockOf(path));
    const exists = existsSync(path);
    const isBegun = existsSync(names.part);
    if (!resume && !force && (exists || isBegun)) throw alreadyExists(path, isBegun);
    if (resume && !force && exists && !isBegun) {
      rmSync(names.state, { force: true });
      return 'whole';
    }
    const state = resume && isBegun ? await resumable(options) : undefined;
    if (!state) for (const name of [names.part, names.state]) rmSync(name, { force: true });
    const part = parts.use(await openCut(names.part, state?.bytes ?? 0));
    const log = parts.use(await openCut(names.state, state?.length ?? 0));
    if (!state) await log.appendFile(`${JSON.stringify([VERSION, ...options.begun])}\n`);
    await log.sync();
    return fileOutput(options, state, { part, log, parts: parts.move() });
  } catch (error) {
    throw failureOf(error, names.part);
  }
}

function namesOf(path: string) {
  const part = `${path}.part`;
  return { part, state: `${part}.state`, lock: `${part}.lock` };
}

interface OpenFiles {
  readonly part: FileHandle;
  readonly log: FileHandle;
  /** The two files, and the lock. */
  readonly parts: AsyncDisposableStack;
}

function fileOutput(
  { path, header }: ExportFileOptions,
  state: State | undefined,
  { part, log, parts }: OpenFiles,
): ExportOutput {
  const names = namesOf(path);
  let progress = state?.progress ?? NOTHING;
  let bytes = state?.bytes ?? 0;
  let isFinished = false;
  const append = async (lines: string) => {
    const text = bytes === 0 ? header + lines : lines;
    await part.appendFile(text);
    await part.sync();
    bytes += Buffer.byteLength(text);
  };
  const guarded = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      throw failureOf(error, names.part);
    }
  };
  return {
    get progress() {
      return progress;
    },
    written: state?.written ?? new WrittenIds(),
    write: (lines, page) =>
      guarded(async () => {
        await append(lines);
        progress = withPage(progress, page);
        const commit: Commit = { ...progress, bytes, ids: page.ids };
        await log.appendFile(`${JSON.stringify(commit)}\n`);
        await log.sync();
      }),
    finish: () =>
      guarded(async () => {
        // An empty list has a header, too.
        if (bytes === 0) await append('');
        await rename(names.part, path);
        syncFolder(dirname(path));
        rmSync(names.state);
        isFinished = true;
      }),
    close: async () => {
      // The files of an export that never began must not prevent the next one.
      const isNothing = !isFinished && progress.records === 0;
      for (const name of isNothing ? [names.part, names.state] : []) rmSync(name, { force: true });
      await parts.disposeAsync();
    },
  };
}

function withPage({ records, faults }: Progress, page: WrittenPage): Progress {
  return {
    records: records + page.ids.length,
    faults: faults + page.faults,
    after: page.after,
  };
}

/** Lets one process at a time write a file. The lock is one of the operating system: it ends with the process. */
async function lockOf(path: string): Promise<Disposable> {
  const { lock: name } = namesOf(path);
  await (await openCut(name)).close();
  const lock = new DatabaseSync(name, { timeout: 0 });
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (((error as { errcode?: number }).errcode ?? 0) % 256 !== SQLITE_BUSY) throw error;
    throw new OperatorMistake(`Another export is writing ${path}. Wait for it, or stop it first.`);
  }
  return {
    [Symbol.dispose]: () => {
      rmSync(name, { force: true });
      lock.close();
    },
  };
}

const SQLITE_BUSY = 5;

/**
 * Opens a file for its owner only, to append to it. In a folder such as /tmp, somebody else may have put a link there,
 * which is not followed.
 *
 * @param bytes what follows them is cut off; undefined: nothing is
 */
async function openCut(path: string, bytes?: number): Promise<FileHandle> {
  const { O_RDWR, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
  const file = await open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
  if (bytes !== undefined) await file.truncate(bytes);
  return file;
}

/** Of the form of a state. One of another version cannot be continued. */
const VERSION = 'export 9';

interface Commit extends Progress {
  /** The length of the file. */
  readonly bytes: number;
  readonly ids: readonly (string | null)[];
}

interface State {
  readonly begun: readonly string[];
  readonly progress: Progress;
  readonly written: WrittenIds;
  /** The length of the file. */
  readonly bytes: number;
  /** The length of the whole lines of the state, bytes. */
  readonly length: number;
}

/** @returns undefined if the export has to begin anew @throws OperatorMistake if only --force may do that */
async function resumable(options: ExportFileOptions): Promise<State | undefined> {
  const { path, begun, force, onBeginAnew } = options;
  const { part, state: name } = namesOf(path);
  const state = stateIn(await readFile(name, 'utf8').catch(() => ''));
  const isSame = state?.begun.join('\n') === begun.join('\n');
  const isShorter = state && statSync(part).size < state.bytes;
  if (isSame && !isShorter) return state;
  const reason = !state
    ? `${name} is damaged, or was left by another version of this program.`
    : isShorter
      ? `${part} is shorter than the export left it.`
      : `The export to ${path} was begun from another source, with other options, or with another schema.`;
  if (state && !force) {
    throw new OperatorMistake(
      `${reason} Resume it with the same options, or begin anew with --force.`,
    );
  }
  onBeginAnew(reason);
  return undefined;
}

/** @returns undefined for a text that is not a state */
function stateIn(text: string): State | undefined {
  const [first = '', ...lines] = text.split('\n').slice(0, -1);
  const [version, ...begun] = (parsed(first) ?? []) as readonly string[];
  if (version !== VERSION) return undefined;
  const written = new WrittenIds();
  let last: Commit = { ...NOTHING, bytes: 0, ids: [] };
  let length = Buffer.byteLength(first) + 1;
  for (const line of lines) {
    const commit = parsed(line) as Commit | undefined;
    // After a power failure, the last line may have its length without its text.
    if (!commit) break;
    written.newOf(commit.ids, (id) => id);
    last = commit;
    length += Buffer.byteLength(line) + 1;
  }
  const { bytes, ids: _, ...progress } = last;
  return { begun, progress, written, bytes, length };
}

/** @returns undefined for a text that is not JSON */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

function alreadyExists(path: string, isBegun: boolean): OperatorMistake {
  return new OperatorMistake(
    isBegun
      ? `An export to ${path} was interrupted. Continue it with --resume, or begin anew with --force.`
      : `${path} exists already. Give --output another name, or replace the file with --force.`,
  );
}

/** @param file the file that cannot be written */
function failureOf(error: unknown, file: string): Error {
  const { code } = error as { code?: string };
  if (code === undefined) return error as Error;
  const why = ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code)
    ? 'cannot grow, because the disk is full. Free some space, and'
    : `cannot be written (${code}). Check that the folder exists, and that this user may write to it; then`;
  return new Error(`${file} ${why} run the same command with --resume.`, { cause: error });
}

/** The reader has closed the output, as `head` does. */
export class ReaderLeft extends Error {
  override name = 'ReaderLeft';
}

/** Writes to a stream as fast as it is read. Another run cannot resume it. */
export function streamOutput(
  stream: NodeJS.WritableStream,
  header: string,
  signal: AbortSignal,
): ExportOutput {
  let pending = header;
  let progress = NOTHING;
  return {
    get progress() {
      return progress;
    },
    written: new WrittenIds(),
    write: async (lines, page) => {
      await send(lines);
      progress = withPage(progress, page);
    },
    finish: () => send(''),
    close: async () => {},
  };

  /** @throws Error with a message for the operator; the reason of the signal */
  async function send(lines: string): Promise<void> {
    const text = pending + lines;
    pending = '';
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
    stream.write(text, (error) => (error ? reject(streamFailure(error)) : resolve()));
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

function streamFailure(error: NodeJS.ErrnoException): Error {
  const code = error.code ?? error.message;
  if (['EPIPE', 'ERR_STREAM_DESTROYED', 'ECONNRESET'].includes(code)) return new ReaderLeft();
  return new Error(
    `The output cannot be written (${code}). Free some space if the disk is full, and export again; with --output, an ` +
      'export can be resumed.',
  );
}

/** Makes the names of the files in a folder durable: a synced file may still lose a new name. */
function syncFolder(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
