import { constants, existsSync, lstatSync, realpathSync, rmSync, statSync } from 'node:fs';
import { open, rename, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../clock.ts';
import { OperatorMistake } from '../errors.ts';
import { syncFolder } from '../sync-folder.ts';
import {
  openExportState,
  type AddedPage,
  type Begun,
  type ExportProgress,
  type ExportState,
  type PageToCheck,
} from './export-state.ts';
import {
  adoptFile,
  checkLink,
  createPrivateFile,
  isOwnFile,
  isTaken,
  notAFile,
  removeFile,
} from './private-files.ts';

/*
 * How an interrupted export loses and repeats no record
 *
 *     people.csv.part         what was written so far, then people.csv
 *     people.csv.part.state   for each page: the length of the file behind it, the cursor behind it, its ids
 *
 * A page is appended to the file first, and to the state afterwards. Every second, or 2,000 records, the file is
 * flushed to the disk (fsync), and then the state is committed. So what the state says is in the file, at every moment
 * and after a power failure too. What the file has beyond that is cut off when the export is resumed, and the gateway
 * is asked for what follows the cursor.
 *
 *     kill while a page is written    the file is longer than the state says: cut off
 *     ... while the state is written  SQLite keeps the commit before: the same
 *     ... behind the last page        the state says finished: the file is renamed
 *     ... behind the rename           the file has its name: nothing is left to do
 *
 * The list may change between the two runs. Records that the gateway sends again are recognized by their ids.
 */

/** Where an export is written to. */
export interface ExportOutput {
  /** What earlier runs have written. */
  readonly progress: ExportProgress;
  newOf<R extends { readonly id: string | null }>(page: PageToCheck<R>): readonly R[];
  /** Writes the lines of a page. @throws OutputFailure */
  write(lines: string, page: Omit<AddedPage, 'bytes'>): Promise<void>;
  /** Everything was written. @throws OutputFailure */
  finish(): Promise<void>;
  /** Keeps what can be resumed. */
  close(): Promise<void>;
}

/** The file cannot be written, or the output is closed. */
class OutputFailure extends Error {
  override name = 'OutputFailure';
}

interface ExportFileOptions {
  readonly path: string;
  readonly begun: Omit<Begun, 'replaces'>;
  /** What a file begins with. */
  readonly header: string;
  readonly resume: boolean;
  /** Whether files that are there may be replaced. */
  readonly force: boolean;
  readonly clock: Clock;
}

const COMMIT_MS = 1_000;
const COMMIT_RECORDS = 2_000;

/** @returns `whole` if there is nothing left to resume @throws OperatorMistake, OutputFailure */
export async function openExportFile(options: ExportFileOptions): Promise<ExportOutput | 'whole'> {
  const { header, resume, force, clock } = options;
  const path = targetOf(options.path);
  const [part, statePath] = [`${path}.part`, `${path}.part.state`];
  const isThere = existsSync(path);
  const isBegun = isTaken(part) || isTaken(statePath);
  if (resume && isThere && !isBegun) return 'whole';
  const files = [part, statePath, ...STATE_LOGS.map((ending) => statePath + ending)];
  if (!resume) {
    if (isWritten(statePath)) throw isBusyError(path);
    if (!force && (isThere || isBegun)) throw alreadyThere(path, isBegun);
  }
  for (const file of files) (resume ? adoptFile : removeFile)(file);
  const state = openState(statePath, path);
  let opened: FileHandle | undefined;
  try {
    const isRenamed = state.isFinished && !existsSync(part);
    if (resume && isRenamed && isThere) {
      close();
      rmSync(statePath, { force: true });
      return 'whole';
    }
    if (resume && state.begun && !isRenamed) checkSame(state.begun, options.begun, path);
    else state.begin({ ...options.begun, replaces: force });
    if (!isTaken(part)) createPrivateFile(part);
    opened = await open(part, constants.O_RDWR | constants.O_NOFOLLOW);
    const { bytes } = state.progress;
    if ((await opened.stat()).size < bytes) throw isShorter(path);
    await opened.truncate(bytes);
  } catch (error) {
    await opened?.close();
    close();
    throw failureOf(error, path);
  }
  const file = opened;
  let length = state.progress.bytes;
  let committedAt = clock.elapsed();
  let uncommitted = 0;

  return {
    get progress() {
      return state.progress;
    },
    newOf: (page) => state.newOf(page),
    write: (lines, page) =>
      guarded(async () => {
        const bytes = await append(length === 0 ? header + lines : lines);
        state.add({ ...page, bytes });
        uncommitted += page.ids.length;
        const isDue = clock.elapsed() - committedAt >= COMMIT_MS || uncommitted >= COMMIT_RECORDS;
        if (isDue) await commit();
      }),
    finish: () =>
      guarded(async () => {
        if (length === 0) await append(header);
        await commit();
        if (existsSync(path) && !state.begun!.replaces && !force) throw appeared(path);
        await checkStillThere();
        state.finish();
        await rename(part, path);
        syncFolder(dirname(path));
        close();
        rmSync(statePath, { force: true });
      }),
    close: async () => {
      const isNothing = state.isOpen && state.progress.records === 0;
      // What was committed before can be resumed if this fails.
      if (state.isOpen) await commit().catch(() => {});
      close();
      await file.close();
      // The files of an export that never began must not prevent the next one.
      if (isNothing) for (const left of [part, statePath]) rmSync(left, { force: true });
    },
  };

  /** Writes after the part that the state knows of, even if an earlier write failed beyond it. */
  async function append(text: string): Promise<number> {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await file.write(bytes, at, bytes.length - at, length + at);
      at += bytesWritten;
    }
    length += bytes.length;
    return bytes.length;
  }

  async function commit(): Promise<void> {
    await file.sync();
    state.commit();
    committedAt = clock.elapsed();
    uncommitted = 0;
  }

  /** Another user who can write to the folder may have replaced the file. */
  async function checkStillThere(): Promise<void> {
    const [ours, theirs] = [await file.stat(), lstatSync(part, { throwIfNoEntry: false })];
    if (theirs?.ino !== ours.ino || theirs.dev !== ours.dev) throw replaced(path);
  }

  async function guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw failureOf(error, path);
    }
  }

  function close(): void {
    if (state.isOpen) state.close();
  }
}

/** What SQLite writes beside a database. */
const STATE_LOGS = ['-wal', '-shm', '-journal'];

/** A link of this user stays a link. @throws OperatorMistake for anything but a file */
function targetOf(path: string): string {
  checkLink(path);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats && !stats.isFile()) throw notAFile(path);
  return stats ? realpathSync(path) : path;
}

function openState(statePath: string, path: string): ExportState {
  try {
    if (!isTaken(statePath)) createPrivateFile(statePath);
    return openExportState(statePath);
  } catch (error) {
    throw isBusy(error) ? isBusyError(path) : failureOf(error, path);
  }
}

/** Whether another export has the state open. The lock ends with its process, whatever ended that. */
function isWritten(statePath: string): boolean {
  if (!isOwnFile(statePath)) return false;
  try {
    openExportState(statePath).close();
    return false;
  } catch (error) {
    return isBusy(error);
  }
}

function isBusyError(path: string): OperatorMistake {
  return new OperatorMistake(`Another export is writing ${path}. Wait for it, or stop it first.`);
}

/** The upper bits of the code say what the other process is in the middle of. */
function isBusy(error: unknown): boolean {
  return ((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY;
}

const SQLITE_BUSY = 5;

function checkSame(begun: Begun, now: Omit<Begun, 'replaces'>, path: string): void {
  const keys = ['source', 'format', 'operation'] as const;
  const other = keys.find((key) => begun[key] !== now[key]);
  if (other === undefined) return;
  const was = {
    source: `from ${begun.source}, and this one is from ${now.source}`,
    format: `as ${begun.format}, and this one is ${now.format}`,
    operation: 'with another field, --fields or --args, or the schema has changed',
  }[other];
  throw new OperatorMistake(
    `The export to ${path} was begun ${was}. Resume it with the same options, or begin anew with --force.`,
  );
}

function alreadyThere(path: string, isBegun: boolean): OperatorMistake {
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

function isShorter(path: string): OperatorMistake {
  return new OperatorMistake(
    `${path}.part is shorter than the export left it, so it cannot be continued. Begin anew with --force.`,
  );
}

function failureOf(error: unknown, path: string): Error {
  if (error instanceof OperatorMistake || error instanceof OutputFailure) return error;
  const { code, errcode } = error as { code?: string; errcode?: number };
  if (FULL.includes(code) || errcode === SQLITE_FULL) {
    return new OutputFailure(
      `${path}.part cannot grow, because the disk is full. Free some space, and run the same command with --resume.`,
      { cause: error },
    );
  }
  const reason = errcode === undefined ? (code ?? 'unknown error') : (error as Error).message;
  return new OutputFailure(
    `${path}.part cannot be written (${reason}). Check that the folder exists, and that this user may write to it; ` +
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

/** Writes to a stream as fast as it is read. It cannot be resumed by another run. */
export function streamOutput(
  stream: NodeJS.WritableStream,
  { header, signal }: { readonly header: string; readonly signal: AbortSignal },
): ExportOutput {
  const state = openExportState(':memory:');
  let isBegun = false;

  return {
    get progress() {
      return state.progress;
    },
    newOf: (page) => state.newOf(page),
    write: async (lines, page) => {
      await send(lines);
      state.add({ ...page, bytes: 0 });
    },
    finish: () => send(''),
    close: async () => state.close(),
  };

  /** @throws the reason of the signal */
  async function send(lines: string): Promise<void> {
    const text = isBegun ? lines : header + lines;
    isBegun = true;
    if (text === '') return;
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
