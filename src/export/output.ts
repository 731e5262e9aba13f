import { constants, existsSync, realpathSync, rmSync, statSync } from 'node:fs';
import { open, rename, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { userInfo } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../clock.ts';
import { OperatorMistake } from '../errors.ts';
import { syncFolder } from '../sync-folder.ts';

/*
 * How an interrupted export loses and repeats no record
 *
 *     people.csv.part         what was written so far, then people.csv
 *     people.csv.part.state   JSON, a line each: what the export was begun with; then its progress at each commit, with
 *                             the length of the file, the cursor behind the last record, and the ids since the last one
 *     people.csv.part.lock    locked while a process writes
 *
 * Every second, or 2,000 records, the file is flushed to the disk (fsync), then a line is appended to the state and
 * flushed. So the file has everything that the state counts, at every moment and after a power failure too. When the
 * export is resumed, the rest of both is cut off, and the records behind the cursor are requested.
 *
 *     kill while the file is written  it is longer than the state says: cut off
 *     ... while the state is written  its last line is not whole: as if it were not there
 *     ... after the last page         nothing comes behind the cursor: the file is renamed
 *     ... after the rename            the state says that it is whole: nothing is left to do
 */

/** What was written so far, by earlier runs too. */
interface Progress {
  readonly records: number;
  readonly pages: number;
  /** Values that could not be read. */
  readonly faults: number;
  /** The cursor behind the last record; undefined before the first page. */
  readonly after?: string | undefined;
}

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
  /** Writes the lines of a page. @throws OutputFailure */
  write(lines: string, page: WrittenPage): Promise<void>;
  /** Call it when everything is written. @throws OutputFailure */
  finish(): Promise<void>;
  /** Keeps what can be resumed. */
  close(): Promise<void>;
}

/** Knows records that were written before, by their ids. */
export class WrittenIds {
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

/** Must not change until the export is whole. */
interface Begun {
  /** Where the records come from: the address of the gateway or of the service. */
  readonly source: string;
  readonly format: string;
  /** The operation, with its field, fields, filters and limit. */
  readonly operation: string;
  /** Whether a file of that name may be replaced. */
  readonly force: boolean;
}

interface ExportFileOptions {
  readonly path: string;
  /** What the file begins with. */
  readonly header: string;
  readonly begun: Omit<Begun, 'force'>;
  readonly resume: boolean;
  /** Whether an existing file may be replaced. With `resume`: what an interrupted export left, unless it can be continued. */
  readonly force: boolean;
  readonly clock: Clock;
  /** Called if an export that was to be continued begins anew. @param reason a sentence */
  readonly onBeginAnew: (reason: string) => void;
}

/** The file cannot be written, or the output is closed. */
class OutputFailure extends Error {
  override name = 'OutputFailure';
}

/** What an interrupted export left cannot be continued. */
class NotResumable extends OperatorMistake {
  /** A sentence. */
  readonly reason: string;
  constructor(reason: string, advice = 'Begin anew with --force.') {
    super(`${reason} ${advice}`);
    this.reason = reason;
  }
}

/** @returns `whole` if nothing is left to resume @throws OperatorMistake, OutputFailure */
export async function openExportFile(options: ExportFileOptions): Promise<ExportOutput | 'whole'> {
  const path = targetOf(options.path);
  const { resume, force } = options;
  const names = namesOf(path);
  const lock = await lockOf(path, names.lock);
  try {
    const exists = existsSync(path);
    const isBegun = existsSync(names.part) || existsSync(names.state);
    if (!resume && !force && (exists || isBegun)) throw alreadyExists(path, isBegun);
    if (resume && exists && !isBegun && !force) return end('whole');
    if (resume && isBegun) {
      try {
        const state = await readState(names.state);
        if (state?.isWhole && exists && !existsSync(names.part)) {
          // Only the removal of the state was missing.
          rmSync(names.state);
          if (!force) return end('whole');
        } else {
          if (state) checkSame(state.begun, options.begun, path);
          return await ExportFile.open(path, state, lock, options);
        }
      } catch (error) {
        if (!force || !(error instanceof NotResumable)) throw error;
        options.onBeginAnew(error.reason);
      }
    }
    for (const name of [names.part, names.state]) removeFile(name);
    return await ExportFile.open(path, undefined, lock, options);
  } catch (error) {
    end();
    throw failureOf(error, names.part);
  }

  function end<T>(result?: T): T {
    rmSync(names.lock, { force: true });
    lock.close();
    return result as T;
  }
}

function namesOf(path: string) {
  const part = `${path}.part`;
  return { part, state: `${part}.state`, lock: `${part}.lock` };
}

const COMMIT_MS = 1_000;
const COMMIT_RECORDS = 2_000;

class ExportFile implements ExportOutput {
  progress: Progress;
  readonly written: WrittenIds;
  readonly #path: string;
  readonly #part: AppendedFile;
  readonly #state: AppendedFile;
  readonly #lock: DatabaseSync;
  readonly #clock: Clock;
  readonly #mayReplace: boolean;
  /** What the file still has to begin with. */
  #header: string;
  /** Since the last commit. */
  #ids: (string | null)[] = [];
  #committedAt: number;
  #isFinished = false;

  static async open(
    path: string,
    state: State | undefined,
    lock: DatabaseSync,
    options: ExportFileOptions,
  ): Promise<ExportFile> {
    const names = namesOf(path);
    const part = await AppendedFile.open(names.part, state?.bytes ?? 0);
    try {
      const kept = await AppendedFile.open(names.state, state?.length ?? 0);
      const output = new ExportFile(path, state, part, kept, lock, options);
      if (!state)
        await kept.append(
          `${JSON.stringify({ ...MARK, ...options.begun, force: options.force })}\n`,
        );
      await kept.flush();
      return output;
    } catch (error) {
      await part.close();
      throw error;
    }
  }

  constructor(
    path: string,
    state: State | undefined,
    part: AppendedFile,
    kept: AppendedFile,
    lock: DatabaseSync,
    { header, force, clock }: ExportFileOptions,
  ) {
    this.progress = state?.progress ?? NOTHING;
    this.written = state?.written ?? new WrittenIds();
    this.#path = path;
    this.#part = part;
    this.#state = kept;
    this.#lock = lock;
    this.#clock = clock;
    this.#mayReplace = force || state?.begun.force === true;
    this.#header = part.length > 0 ? '' : header;
    this.#committedAt = clock.elapsed();
  }

  async write(lines: string, page: WrittenPage): Promise<void> {
    await this.#guarded(async () => {
      await this.#append(lines);
      this.progress = withPage(this.progress, page);
      this.#ids.push(...page.ids);
      const isDue = this.#clock.elapsed() - this.#committedAt >= COMMIT_MS;
      if (isDue || this.#ids.length >= COMMIT_RECORDS) await this.#commit();
    });
  }

  async finish(): Promise<void> {
    await this.#guarded(async () => {
      // An empty list has a header, too.
      await this.#append('');
      if (existsSync(this.#path) && !this.#mayReplace) throw appeared(this.#path);
      await this.#commit(true);
      await rename(namesOf(this.#path).part, this.#path);
      syncFolder(dirname(this.#path));
      rmSync(namesOf(this.#path).state);
      this.#isFinished = true;
    });
  }

  async close(): Promise<void> {
    // What was committed before can be resumed if this fails.
    if (!this.#isFinished) await this.#commit().catch(() => {});
    await this.#part.close();
    await this.#state.close();
    const { part, state, lock } = namesOf(this.#path);
    // The files of an export that never began must not prevent the next one.
    const isNothing = !this.#isFinished && this.progress.records === 0;
    for (const name of isNothing ? [part, state, lock] : [lock]) rmSync(name, { force: true });
    this.#lock.close();
  }

  async #append(lines: string): Promise<void> {
    await this.#part.append(this.#header + lines);
    this.#header = '';
  }

  async #commit(isWhole = false): Promise<void> {
    await this.#part.flush();
    const { progress } = this;
    const commit: Commit = { ...progress, bytes: this.#part.length, ids: this.#ids, isWhole };
    await this.#state.append(`${JSON.stringify(commit)}\n`);
    await this.#state.flush();
    this.#ids = [];
    this.#committedAt = this.#clock.elapsed();
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw failureOf(error, namesOf(this.#path).part);
    }
  }
}

const NOTHING: Progress = { records: 0, pages: 0, faults: 0 };

function withPage({ records, pages, faults }: Progress, page: WrittenPage): Progress {
  return {
    records: records + page.ids.length,
    pages: pages + 1,
    faults: faults + page.faults,
    after: page.after,
  };
}

/** A file that only its owner can read, to which text is appended. */
class AppendedFile {
  readonly #file: FileHandle;
  /** Bytes. */
  length: number;

  private constructor(file: FileHandle, length: number) {
    this.#file = file;
    this.length = length;
  }

  /** Opens a file, and cuts off what follows its first `bytes`. @throws NotResumable, OperatorMistake */
  static async open(path: string, bytes: number): Promise<AppendedFile> {
    const file = await openPrivate(path);
    try {
      if ((await file.stat()).size < bytes) {
        throw new NotResumable(
          `${path} is shorter than the export left it, so it cannot be continued.`,
        );
      }
      await file.truncate(bytes);
      return new AppendedFile(file, bytes);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Writes behind what was appended before, even if an earlier write failed beyond it. */
  async append(text: string): Promise<void> {
    const content = Buffer.from(text);
    for (let at = 0; at < content.length;) {
      const position = this.length + at;
      at += (await this.#file.write(content, at, content.length - at, position)).bytesWritten;
    }
    this.length += content.length;
  }

  async flush(): Promise<void> {
    await this.#file.sync();
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

/**
 * Opens a file for its owner only. In a folder such as /tmp, somebody else may have put a link or a file of its own
 * there: nothing is written to it.
 *
 * @throws NotResumable, OperatorMistake
 */
async function openPrivate(path: string): Promise<FileHandle> {
  const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
  const file = await open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EISDIR') throw notAFile(path);
      throw error.code === 'ELOOP' ? notOurs(path) : error;
    },
  );
  const { nlink, uid } = await file.stat();
  const user = userInfo().uid;
  // Windows does not number its users.
  if (nlink === 1 && (user === -1 || uid === user)) {
    await file.chmod(0o600);
    return file;
  }
  await file.close();
  throw notOurs(path);
}

function notOurs(path: string): NotResumable {
  return new NotResumable(
    `${path} was not left by an export of this user: it is a link, has a second name, or belongs to another user.`,
  );
}

/** What the first line of a state begins with. Changes with its form: that of another version cannot be continued. */
const MARK = { export: 6 };

interface Commit extends Progress {
  /** The length of the file. */
  readonly bytes: number;
  readonly ids: readonly (string | null)[];
  readonly isWhole: boolean;
}

interface State {
  readonly begun: Begun;
  readonly progress: Progress;
  readonly written: WrittenIds;
  /** The length of the file. */
  readonly bytes: number;
  readonly isWhole: boolean;
  /** The length of the whole lines of the state, bytes. */
  readonly length: number;
}

/** @returns undefined if the export was not begun, or not even that was written whole @throws NotResumable */
async function readState(path: string): Promise<State | undefined> {
  const file = await openPrivate(path);
  let text: string;
  try {
    text = await file.readFile('utf8');
  } finally {
    await file.close();
  }
  const lines = text.split('\n').slice(0, -1);
  const [first, ...commits] = lines;
  const start = JSON.stringify(MARK).slice(0, -1);
  if (first === undefined && start.startsWith(text.slice(0, start.length))) return undefined;
  const begun = first?.startsWith(start) ? (parsed(first) as Begun | undefined) : undefined;
  if (!begun) {
    throw new NotResumable(`${path} is damaged, or was left by another version of this program.`);
  }
  const written = new WrittenIds();
  let last: Commit = { ...NOTHING, bytes: 0, ids: [], isWhole: false };
  let length = Buffer.byteLength(first!) + 1;
  for (const line of commits) {
    const commit = parsed(line) as Commit | undefined;
    // After a power failure, the last line may have its length without its text.
    if (!commit) break;
    written.newOf(commit.ids, (id) => id);
    last = commit;
    length += Buffer.byteLength(line) + 1;
  }
  const { bytes, isWhole, ids: _, ...progress } = last;
  return { begun, progress, written, bytes, isWhole, length };
}

/** @returns undefined for a text that is not JSON */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

/** Lets one process at a time write a file. The lock is one of the operating system: it ends with the process. */
async function lockOf(path: string, name: string): Promise<DatabaseSync> {
  await (await openPrivate(name)).close();
  const lock = new DatabaseSync(name, { timeout: 0 });
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    if (((error as { errcode?: number }).errcode ?? 0) % 256 !== SQLITE_BUSY) throw error;
    throw new OperatorMistake(`Another export is writing ${path}. Wait for it, or stop it first.`);
  }
}

const SQLITE_BUSY = 5;

/** A link stays a link: the file that it names is replaced. @throws OperatorMistake for anything but a file in a folder */
function targetOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats && !stats.isFile()) throw notAFile(path);
  return stats ? realpathSync(path) : path;
}

/** Reports a folder in which nothing can be written, before the first request to the gateway. @throws OperatorMistake */
export function checkFolder(path: string): void {
  if (path === '-' || path.endsWith('/')) {
    throw new OperatorMistake(
      `--output takes the path of a file, which ${path} is not. Leave it out for the standard output.`,
    );
  }
  const folder = dirname(path);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new OperatorMistake(
    `There is no folder ${folder}. Create it, or give --output another path.`,
  );
}

function removeFile(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_FS_EISDIR' ? notAFile(path) : error;
  }
}

function notAFile(path: string): OperatorMistake {
  const stats = statSync(path, { throwIfNoEntry: false });
  const kind = stats?.isDirectory() === true ? 'a folder' : 'not a file';
  return new OperatorMistake(`${path} is ${kind}. Give the path of a file instead.`);
}

function checkSame(begun: Begun, now: Omit<Begun, 'force'>, path: string): void {
  const keys = ['source', 'format', 'operation'] as const;
  const other = keys.find((key) => begun[key] !== now[key]);
  if (other === undefined) return;
  const was = {
    source: `from ${begun.source}, and this one is from ${now.source}`,
    format: `as ${begun.format}, and this one is ${now.format}`,
    operation: 'with another field, --fields, --args or --limit, or the schema has changed',
  }[other];
  throw new NotResumable(
    `The export to ${path} was begun ${was}.`,
    'Resume it with the same options, or begin anew with --force.',
  );
}

function alreadyExists(path: string, isBegun: boolean): OperatorMistake {
  return new OperatorMistake(
    isBegun
      ? `An export to ${path} was interrupted. Continue it with --resume, or begin anew with --force.`
      : `${path} exists already. Give --output another name, or replace the file with --force.`,
  );
}

function appeared(path: string): OutputFailure {
  return new OutputFailure(
    `The export is whole, but ${path} appeared meanwhile. Move that file away and run the same command with ` +
      '--resume, or replace it with --resume --force.',
  );
}

/** @param file the file that cannot be written */
function failureOf(error: unknown, file: string): Error {
  if (error instanceof OperatorMistake || error instanceof OutputFailure) return error;
  const { code = 'unknown error' } = error as { code?: string };
  const why = ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code)
    ? 'cannot grow, because the disk is full. Free some space, and'
    : `cannot be written (${code}). Check that the folder exists, and that this user may write to it; then`;
  return new OutputFailure(`${file} ${why} run the same command with --resume.`, { cause: error });
}

/** The reader has closed the output, as `head` does. */
export class ReaderLeft extends OutputFailure {
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

  /** @throws OutputFailure; the reason of the signal */
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

function streamFailure(error: NodeJS.ErrnoException): OutputFailure {
  const code = error.code ?? error.message;
  if (['EPIPE', 'ERR_STREAM_DESTROYED', 'ECONNRESET'].includes(code))
    return new ReaderLeft('Nobody reads the output any more.');
  return new OutputFailure(
    `The output cannot be written (${code}). Free some space if the disk is full, and export again; with --output, an ` +
      'export can be resumed.',
  );
}
