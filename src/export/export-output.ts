import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { open, rename, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../clock.ts';
import { OperatorMistake } from '../errors.ts';
import { syncFolder } from '../sync-folder.ts';
import { ExportState, OtherLayout, type AddedPage, type Begun } from './export-state.ts';
import {
  adoptFile,
  checkLink,
  createPrivateFile,
  isOwnFile,
  isTaken,
  notAFile,
  NotOurs,
  removeFile,
} from './private-files.ts';

/*
 * How an interrupted export loses and repeats no record
 *
 *     people.csv.part         what was written so far, then people.csv
 *     people.csv.part.state   for each page: the cursor behind it, its ids; for each commit: the length of the file
 *
 * A page is appended to the file first, and to the state afterwards. Every second, or 2,000 records, the file is
 * flushed to the disk (fsync), and then the state is committed. So the file has everything that the state counts, at
 * every moment and after a power failure too. When the export is resumed, the rest of the file is cut off, and the
 * records after the cursor are requested.
 *
 *     kill while a page is written    the file is longer than the state says: cut off
 *     ... while the state is written  SQLite keeps the commit before: the same
 *     ... after the last page         the state says finished: the file is renamed
 *     ... after the rename            the file has its name: nothing is left to do
 *
 * The list may change between the two runs. Records that the gateway sends again are recognized by their ids.
 */

/** Where an export is written to. */
interface ExportOutput {
  /** What earlier runs and this one have written. */
  readonly state: Pick<ExportState, 'progress' | 'newOf'>;
  /** Writes the lines of a page. @throws OutputFailure */
  write(lines: string, page: AddedPage): Promise<void>;
  /** Call it when everything is written. @throws OutputFailure */
  finish(): Promise<void>;
  /** Keeps what can be resumed. */
  close(): Promise<void>;
}

/** The file cannot be written, or the output is closed. */
class OutputFailure extends Error {
  override name = 'OutputFailure';
}

/** What an interrupted export left cannot be continued. */
class NotResumable extends OperatorMistake {
  override name = 'NotResumable';
  /** A sentence. */
  readonly reason: string;
  constructor(reason: string, advice: string) {
    super(`${reason} ${advice}`);
    this.reason = reason;
  }
}

interface OutputFile {
  readonly path: string;
  /** What the file begins with. */
  readonly header: string;
}

interface ExportFileOptions extends OutputFile {
  readonly begun: Omit<Begun, 'replaces'>;
  readonly resume: boolean;
  /** Whether an existing file may be replaced. With `resume`: unless they can be continued. */
  readonly force: boolean;
  readonly clock: Clock;
  /** Called if an export that was to be continued begins anew. @param reason a sentence */
  readonly onBeginAnew: (reason: string) => void;
}

const COMMIT_MS = 1_000;
const COMMIT_RECORDS = 2_000;

/** Reports a folder in which nothing can be written, before the first request to the gateway. @throws OperatorMistake */
export function checkFolder(path: string): void {
  if (path === '-' || path.endsWith('/')) {
    throw new OperatorMistake(
      `--output takes the path of a file, which ${path} is not. Leave it out for the standard output.`,
    );
  }
  const folder = dirname(path);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new OperatorMistake(
      `There is no folder ${folder}. Create it, or give --output another path.`,
    );
  }
  try {
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new OperatorMistake(
      `This user cannot write to the folder ${folder} (${(error as NodeJS.ErrnoException).code}). Check its permissions, or give --output another path.`,
    );
  }
}

/** @returns `whole` if nothing is left to resume @throws OperatorMistake, OutputFailure */
export async function openExportFile(options: ExportFileOptions): Promise<ExportOutput | 'whole'> {
  const { header, resume, force } = options;
  const path = targetOf(options.path);
  const file = { path, header };
  const statePath = stateOf(path);
  const exists = existsSync(path);
  const isBegun = [partOf(path), statePath].some(isTaken);
  if (resume) {
    if (exists && !isBegun && !force) return 'whole';
    try {
      if (isBegun) return await continued(file, options);
    } catch (error) {
      if (!force || !(error instanceof NotResumable)) throw error;
      options.onBeginAnew(error.reason);
    }
  }
  if (isBusyState(statePath)) throw isBusyError(path);
  if (!force && (isBegun || exists)) throw alreadyExists(path, isBegun);
  for (const each of [partOf(path), ...filesOf(statePath)]) removeFile(each);
  return await openFile(file, openState(path), options);
}

/** Continues what an earlier run has left. @throws NotResumable, OperatorMistake, OutputFailure */
async function continued(
  file: OutputFile,
  options: ExportFileOptions,
): Promise<ExportOutput | 'whole'> {
  const { path } = file;
  try {
    for (const each of [partOf(path), ...filesOf(stateOf(path))]) adoptFile(each);
  } catch (error) {
    throw error instanceof NotOurs ? new NotResumable(error.message, BEGIN_ANEW) : error;
  }
  const state = openState(path);
  const isRenamed = state.isFinished && !existsSync(partOf(path));
  if (!isRenamed || !existsSync(path)) {
    return await openFile(file, state, options, isRenamed ? undefined : state.begun);
  }
  state.close();
  rmSync(stateOf(path), { force: true });
  // Only the removal of the state was missing.
  return options.force ? openExportFile(options) : 'whole';
}

const BEGIN_ANEW = 'Begin anew with --force.';

/** @param begun what an export that is continued was begun with. Closes the state if it fails */
async function openFile(
  output: OutputFile,
  state: ExportState,
  options: ExportFileOptions,
  begun?: Begun,
): Promise<ExportOutput> {
  const { force, clock } = options;
  const { path } = output;
  const statePath = stateOf(path);
  let file: PartFile;
  try {
    if (begun) checkSame(begun, options.begun, path);
    else state.begin({ ...options.begun, replaces: force });
    const bytes = (begun && state.lengths[0]) ?? 0;
    file = await PartFile.open(output, bytes);
  } catch (error) {
    state.close();
    throw failureOf(error, partOf(path));
  }
  let committedAt = clock.elapsed();
  let uncommitted = 0;

  return {
    state,
    write: (lines, page) =>
      guarded(async () => {
        await file.append(lines);
        state.add(page);
        uncommitted += page.ids.length;
        const isDue = clock.elapsed() - committedAt >= COMMIT_MS || uncommitted >= COMMIT_RECORDS;
        if (isDue) await commit();
      }),
    finish: () =>
      guarded(async () => {
        // An empty list has a header, too.
        await file.append('');
        await commit();
        const isReplaceable = state.begun!.replaces || force;
        if (existsSync(path) && !isReplaceable) throw appeared(path);
        if (await file.isReplaced()) throw replaced(path);
        state.finish([await file.flush()]);
        await file.publish();
        syncFolder(dirname(path));
        state.close();
        rmSync(statePath, { force: true });
      }),
    close: async () => {
      const isNothing = state.isOpen && state.progress.records === 0;
      // What was committed before can be resumed if this fails.
      if (state.isOpen) await commit().catch(() => {});
      if (state.isOpen) state.close();
      await file.close();
      // The files of an export that never began must not prevent the next one.
      if (!isNothing) return;
      for (const left of [partOf(path), statePath]) rmSync(left, { force: true });
    },
  };

  async function commit(): Promise<void> {
    state.commit([await file.flush()]);
    committedAt = clock.elapsed();
    uncommitted = 0;
  }

  async function guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw failureOf(error, partOf(path));
    }
  }
}

/** A file of an export. Its name ends with `.part` until the export is whole. */
class PartFile {
  readonly path: string;
  readonly #file: FileHandle;
  readonly #header: string;
  /** Bytes. */
  #length: number;
  #hasHeader: boolean;

  constructor({ path, header }: OutputFile, file: FileHandle, bytes: number) {
    this.path = path;
    this.#file = file;
    this.#header = header;
    this.#length = bytes;
    this.#hasHeader = bytes > 0;
  }

  /** Opens a file, and cuts off what follows its first `bytes`. @throws NotResumable, OperatorMistake, OutputFailure */
  static async open(output: OutputFile, bytes: number): Promise<PartFile> {
    const part = partOf(output.path);
    let file: FileHandle | undefined;
    try {
      if (!isTaken(part)) createPrivateFile(part);
      file = await open(part, constants.O_RDWR | constants.O_NOFOLLOW);
      if ((await file.stat()).size < bytes) throw isShorter(output.path);
      await file.truncate(bytes);
      return new PartFile(output, file, bytes);
    } catch (error) {
      await file?.close();
      throw failureOf(error, part);
    }
  }

  /** Writes behind the part that was kept, even if an earlier write failed beyond it. */
  async append(text: string): Promise<void> {
    const all = this.#hasHeader ? text : this.#header + text;
    if (all !== '') await this.#write(Buffer.from(all));
    this.#hasHeader = true;
  }

  /** Flushes to the disk. @returns the length of the file, bytes */
  async flush(): Promise<number> {
    await this.#file.sync();
    return this.#length;
  }

  /** Whether another user who can write to the folder has replaced the file. */
  async isReplaced(): Promise<boolean> {
    const part = lstatSync(partOf(this.path), { throwIfNoEntry: false });
    const { ino, dev } = await this.#file.stat();
    return part?.ino !== ino || part.dev !== dev;
  }

  /** Gives the file its name. */
  async publish(): Promise<void> {
    await rename(partOf(this.path), this.path);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #write(content: Buffer): Promise<void> {
    for (let at = 0; at < content.length;) {
      const position = this.#length + at;
      at += (await this.#file.write(content, at, content.length - at, position)).bytesWritten;
    }
    this.#length += content.length;
  }
}

function partOf(path: string): string {
  return `${path}.part`;
}

function stateOf(path: string): string {
  return `${partOf(path)}.state`;
}

/** The paths of a database and of what SQLite writes beside it. */
function filesOf(statePath: string): string[] {
  return ['', '-wal', '-shm', '-journal'].map((ending) => statePath + ending);
}

/** A link of this user stays a link. @throws OperatorMistake for anything but a file */
function targetOf(path: string): string {
  checkLink(path);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats && !stats.isFile()) throw notAFile(path);
  return stats ? realpathSync(path) : path;
}

/** @throws NotResumable, OperatorMistake, OutputFailure */
function openState(path: string): ExportState {
  const statePath = stateOf(path);
  try {
    if (!isTaken(statePath)) createPrivateFile(statePath);
    return new ExportState(statePath);
  } catch (error) {
    const failure = databaseFailure(error);
    if (failure === 'busy') throw isBusyError(path);
    throw failure === 'unreadable' ? unreadable(statePath) : failureOf(error, partOf(path));
  }
}

/** Whether another export has the state open. The lock ends with its process, whatever ended that. */
function isBusyState(statePath: string): boolean {
  if (!isOwnFile(statePath)) return false;
  try {
    new ExportState(statePath).close();
    return false;
  } catch (error) {
    return databaseFailure(error) === 'busy';
  }
}

function isBusyError(path: string): OperatorMistake {
  return new OperatorMistake(`Another export is writing ${path}. Wait for it, or stop it first.`);
}

/** What prevents a database from being opened; undefined for other errors. */
function databaseFailure(error: unknown): 'busy' | 'unreadable' | undefined {
  if (error instanceof OtherLayout) return 'unreadable';
  // The upper bits are details, such as what another process is doing.
  const code = ((error as { errcode?: number }).errcode ?? 0) % 256;
  if (code === SQLITE_BUSY) return 'busy';
  return [SQLITE_CORRUPT, SQLITE_NOTADB].includes(code) ? 'unreadable' : undefined;
}

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

function checkSame(begun: Begun, now: Omit<Begun, 'replaces'>, path: string): void {
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

function unreadable(statePath: string): NotResumable {
  return new NotResumable(
    `${statePath} is damaged, or was left by another version of this program.`,
    BEGIN_ANEW,
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

function replaced(path: string): OutputFailure {
  return new OutputFailure(
    `${path}.part was replaced while the export wrote it. Export again with --force, into a folder that nobody else ` +
      'can write to.',
  );
}

function isShorter(path: string): NotResumable {
  return new NotResumable(
    `${path}.part is shorter than the export left it, so it cannot be continued.`,
    BEGIN_ANEW,
  );
}

/** @param file the file that cannot be written */
function failureOf(error: unknown, file: string): Error {
  if (error instanceof OperatorMistake || error instanceof OutputFailure) return error;
  const { code, errcode } = error as { code?: string; errcode?: number };
  if (FULL.includes(code) || errcode === SQLITE_FULL) {
    return new OutputFailure(
      `${file} cannot grow, because the disk is full. Free some space, and run the same command with --resume.`,
      { cause: error },
    );
  }
  const reason = errcode === undefined ? (code ?? 'unknown error') : (error as Error).message;
  return new OutputFailure(
    `${file} cannot be written (${reason}). Check that the folder exists, and that this user may write to it; ` +
      'then run the same command with --resume.',
    { cause: error },
  );
}

const FULL: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'EFBIG'];
const SQLITE_FULL = 13;

/** The reader has closed the output, as `head` does. */
export class ReaderLeft extends OutputFailure {
  override name = 'ReaderLeft';
}

/** Writes to a stream as fast as it is read. Another run cannot resume it. */
export function streamOutput(
  stream: NodeJS.WritableStream,
  { header, signal }: { readonly header: string; readonly signal: AbortSignal },
): ExportOutput {
  const state = new ExportState(':memory:');
  let pending = header;

  return {
    state,
    write: async (lines, page) => {
      pending += lines;
      state.add(page);
      await send();
    },
    finish: async () => {
      if (pending !== '') await send();
    },
    close: async () => state.close(),
  };

  /** @throws the reason of the signal */
  async function send(): Promise<void> {
    const text = pending;
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
  const hasLeft = ['EPIPE', 'ERR_STREAM_DESTROYED', 'ECONNRESET'].includes(error.code ?? '');
  if (hasLeft) return new ReaderLeft('Nobody reads the output any more.');
  return new OutputFailure(
    `The output cannot be written (${error.code ?? error.message}). Free some space if the disk is full, and export ` +
      'again; with --output, an export can be resumed.',
  );
}
