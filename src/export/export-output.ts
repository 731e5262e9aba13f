import {
  accessSync,
  constants,
  existsSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, resolve as absolute } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Clock } from '../clock.ts';
import { OperatorMistake } from '../errors.ts';
import { syncFolder } from '../sync-folder.ts';
import {
  openExportState,
  OtherLayout,
  type AddedPage,
  type Begun,
  type ExportProgress,
  type ExportState,
  type PageToCheck,
} from './export-state.ts';
import { openPartFile, partOf, type PartFile } from './part-file.ts';
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
 *     people.history.csv.part the same for each list below the records; renamed before people.csv
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
  /** What earlier runs have written, and this one. */
  readonly progress: ExportProgress;
  newOf<R extends { readonly id: string | null }>(page: PageToCheck<R>): readonly R[];
  /** Writes the lines of a page to each file. @throws OutputFailure */
  write(lines: readonly string[], page: AddedPage): Promise<void>;
  /** Of the records that were written. */
  readonly digests: ExportState['digests'];
  /** How the list ended, if it was read to its end before. */
  readonly ending: ExportState['ending'];
  /** Everything was written. @throws OutputFailure */
  finish(closing?: Closing): Promise<void>;
  /** Keeps what can be resumed. */
  close(): Promise<void>;
}

/** What an export of changes does when the list was read to its end. */
interface Closing {
  readonly ending: NonNullable<ExportState['ending']>;
  /** Written unless an earlier run has. */
  readonly lines: string;
  /** Called when everything is on the disk, before the file gets its name. @param path of the file */
  readonly onSynced: (path: string) => void;
  readonly onPublished: () => void;
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
  /** What it begins with. */
  readonly header: string;
}

interface ExportFileOptions {
  readonly path: string;
  /** Files that are written, continued and replaced together with the first one. */
  readonly others: readonly OutputFile[];
  readonly begun: Omit<Begun, 'replaces'>;
  /** What a file begins with. */
  readonly header: string;
  readonly isGzip: boolean;
  readonly resume: boolean;
  /** Whether files that are there may be replaced. With `resume`: unless they can be continued. */
  readonly force: boolean;
  /** Whether `force` replaces only what an interrupted export has left: a whole file has changes to apply. */
  readonly keepsWhole: boolean;
  readonly clock: Clock;
  /** Called before an export begins anew that was to be continued. @param reason a sentence */
  readonly onBeginAnew: (reason: string) => void;
}

const COMMIT_MS = 1_000;
const COMMIT_RECORDS = 2_000;
/** Of text that was not flushed: compressed files keep it in memory. */
const COMMIT_CHARACTERS = 8 * 1024 * 1024;

/**
 * Reports a folder where nothing can be written, before the gateway is asked.
 *
 * @param option that gives the path @throws OperatorMistake
 */
export function checkFolder(path: string, option: '--output' | '--changes-since'): void {
  if (path === '-' || path.endsWith('/')) {
    throw new OperatorMistake(
      `${option} takes the path of a file, which ${path} is not.` +
        (option === '--output' ? ' Leave it out for the standard output.' : ''),
    );
  }
  const folder = dirname(path);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new OperatorMistake(
      `There is no folder ${folder}. Create it, or give ${option} another path.`,
    );
  }
  try {
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new OperatorMistake(
      `This user cannot write to the folder ${folder} (${(error as NodeJS.ErrnoException).code}). Check its permissions, or give ${option} another path.`,
    );
  }
}

/** @returns `whole` if there is nothing left to resume @throws OperatorMistake, OutputFailure */
export async function openExportFile(options: ExportFileOptions): Promise<ExportOutput | 'whole'> {
  const { resume, force, keepsWhole } = options;
  const replaces = force && !keepsWhole;
  const path = targetOf(options.path);
  const files = [path, ...options.others.map((other) => targetOf(other.path))];
  const statePath = stateOf(path);
  const isThere = existsSync(path);
  const isBegun = [...files.map(partOf), statePath].some(isTaken);
  const taken = files.find((file) => existsSync(file));
  if (resume) {
    if (isThere && !isBegun && !replaces) return 'whole';
    try {
      if (isBegun) return await continued(files, options);
    } catch (error) {
      if (!force || !(error instanceof NotResumable)) throw error;
      options.onBeginAnew(error.reason);
    }
  }
  if (isBusyState(statePath)) throw isBusyError(path);
  if (isThere && keepsWhole) throw notApplied(path);
  if (!force && (taken !== undefined || isBegun))
    throw alreadyThere(isBegun ? path : taken!, isBegun);
  for (const file of [...files.map(partOf), ...filesOf(statePath)]) removeFile(file);
  return beginExport(files, openState(path), options);
}

/** Continues what an earlier run has left. @throws NotResumable, OperatorMistake, OutputFailure */
async function continued(
  files: readonly string[],
  options: ExportFileOptions,
): Promise<ExportOutput | 'whole'> {
  const path = files[0]!;
  const part = partOf(path);
  try {
    for (const file of [...files.map(partOf), ...filesOf(stateOf(path))]) adoptFile(file);
  } catch (error) {
    throw error instanceof NotOurs ? new NotResumable(error.message, BEGIN_ANEW) : error;
  }
  const state = openState(path);
  const isRenamed = state.isFinished && !existsSync(part);
  if (isRenamed && existsSync(path)) {
    state.close();
    rmSync(stateOf(path), { force: true });
    if (!options.force) return 'whole';
    // Only the removal of the state was missing.
    return openExportFile(options);
  }
  if (isRenamed || !state.begun) return beginExport(files, state, options);
  try {
    checkSame(state.begun, options.begun, path);
    return await openedFiles(files, state, options);
  } catch (error) {
    if (state.isOpen) state.close();
    throw failureOf(error, partOf(path));
  }
}

const BEGIN_ANEW = 'Begin anew with --force.';

function beginExport(
  files: readonly string[],
  state: ExportState,
  options: ExportFileOptions,
): Promise<ExportOutput> {
  state.begin({ ...options.begun, replaces: options.force && !options.keepsWhole });
  return openedFiles(files, state, options);
}

/** Closes the state if it fails. */
async function openedFiles(
  paths: readonly string[],
  state: ExportState,
  { header, others, isGzip, force, keepsWhole, clock }: ExportFileOptions,
): Promise<ExportOutput> {
  const path = paths[0]!;
  const statePath = stateOf(path);
  const headers = [header, ...others.map((other) => other.header)];
  const files: PartFile[] = [];
  for (const [at, each] of paths.entries()) {
    const bytes = state.lengths[at] ?? 0;
    try {
      // The files of a whole export get their names one after the other, the first one at last.
      if (state.isFinished && !isTaken(partOf(each)) && existsSync(each))
        renameSync(each, partOf(each));
      const opened = await openPartFile(each, { bytes, isGzip });
      if (!opened) throw isShorter(each);
      files.push(opened);
    } catch (error) {
      state.close();
      for (const file of files) await file.close();
      throw failureOf(error, partOf(each));
    }
  }
  const hasHeader = paths.map((_, at) => (state.lengths[at] ?? 0) > 0);
  let committedAt = clock.elapsed();
  let uncommitted = 0;
  /** Whether some files have the lines of a page, and others do not. */
  let isTorn = false;

  return {
    get progress() {
      return state.progress;
    },
    digests: state.digests,
    get ending() {
      return state.ending;
    },
    newOf: (page) => state.newOf(page),
    write: (lines, page) =>
      guarded(async () => {
        await append(lines);
        state.add(page);
        uncommitted += page.ids.length;
        const isDue =
          clock.elapsed() - committedAt >= COMMIT_MS ||
          uncommitted >= COMMIT_RECORDS ||
          files.some((file) => file.unflushed >= COMMIT_CHARACTERS);
        if (isDue) await commit();
      }),
    finish: (closing) =>
      guarded(async () => {
        if (!state.ending) {
          await append([closing?.lines ?? '']);
          // Nothing is awaited in between: the same commit keeps the last lines, and that they are the last ones.
          if (closing) state.end(closing.ending);
        }
        await commit();
        const isReplaceable = !keepsWhole && (state.begun!.replaces || force);
        const there = paths.find((each) => existsSync(each));
        if (there !== undefined && !isReplaceable) {
          throw keepsWhole ? notApplied(there) : appeared(there);
        }
        // Another user who can write to the folder may have replaced the file.
        for (const [at, file] of files.entries()) {
          if (await file.isReplaced()) throw replaced(paths[at]!);
        }
        state.finish(await flushed());
        closing?.onSynced(absolute(path));
        for (const file of files.toReversed()) await file.publish();
        syncFolder(dirname(path));
        closing?.onPublished();
        state.close();
        rmSync(statePath, { force: true });
      }),
    close: async () => {
      const isNothing = state.isOpen && state.progress.records === 0 && !state.ending;
      // What was committed before can be resumed if this fails.
      if (state.isOpen && !isTorn) await commit().catch(() => {});
      if (state.isOpen) state.close();
      for (const file of files) await file.close();
      // The files of an export that never began must not prevent the next one.
      if (!isNothing) return;
      for (const left of [...paths.map(partOf), statePath]) rmSync(left, { force: true });
    },
  };

  async function append(lines: readonly string[]): Promise<void> {
    for (const [at, file] of files.entries()) {
      isTorn = at > 0;
      const text = `${hasHeader[at] ? '' : headers[at]}${lines[at] ?? ''}`;
      if (text !== '') await file.append(text);
      hasHeader[at] = true;
    }
    isTorn = false;
  }

  /** @returns the lengths of the files */
  async function flushed(): Promise<number[]> {
    const lengths: number[] = [];
    for (const file of files) lengths.push(await file.flush());
    return lengths;
  }

  async function commit(): Promise<void> {
    state.commit(await flushed());
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

/**
 * Gives a whole file of changes its name, if the run that wrote it was ended before it could.
 *
 * @param since what the run began with @throws OperatorMistake
 */
export function publishLeft(path: string, since: string): boolean {
  const part = partOf(path);
  if (!isOwnFile(part) || !isOwnFile(stateOf(path))) return false;
  const state = openState(path);
  const isWhole = state.isFinished && state.begun?.since === since;
  state.close();
  if (!isWhole) return false;
  if (isTaken(path)) throw notApplied(path);
  renameSync(part, path);
  syncFolder(dirname(path));
  for (const file of filesOf(stateOf(path))) removeFile(file);
  return true;
}

function stateOf(path: string): string {
  return `${partOf(path)}.state`;
}

/** A database, and what SQLite writes beside it. */
export function filesOf(statePath: string): string[] {
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
    return openExportState(statePath);
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
    openExportState(statePath).close();
    return false;
  } catch (error) {
    return databaseFailure(error) === 'busy';
  }
}

function isBusyError(path: string): OperatorMistake {
  return new OperatorMistake(`Another export is writing ${path}. Wait for it, or stop it first.`);
}

/** What prevents a database from being opened; undefined for other errors. */
export function databaseFailure(error: unknown): 'busy' | 'unreadable' | undefined {
  if (error instanceof OtherLayout) return 'unreadable';
  const code = sqliteCode(error);
  if (code === SQLITE_BUSY) return 'busy';
  return [SQLITE_CORRUPT, SQLITE_NOTADB].includes(code) ? 'unreadable' : undefined;
}

/** The upper bits of the code say more, such as what another process is in the middle of. */
function sqliteCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) % 256;
}

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

function checkSame(begun: Begun, now: Omit<Begun, 'replaces'>, path: string): void {
  const keys = ['source', 'format', 'operation', 'since'] as const;
  const other = keys.find((key) => begun[key] !== now[key]);
  if (other === undefined) return;
  const was = {
    source: `from ${begun.source}, and this one is from ${now.source}`,
    format: `as ${begun.format}, and this one is ${now.format}`,
    operation: 'with another field, --fields, --args or --limit, or the schema has changed',
    since: 'with another state of --changes-since, or before a later run',
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

function notApplied(path: string): OperatorMistake {
  return new OperatorMistake(
    `${path} has changes of an earlier run. Apply them and remove the file, then run the same command with --resume.`,
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

/** @param file that cannot be written */
export function failureOf(error: unknown, file: string): Error {
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

/** Writes to a stream as fast as it is read. It cannot be resumed by another run. */
export function streamOutput(
  stream: NodeJS.WritableStream,
  {
    header,
    isGzip,
    signal,
  }: { readonly header: string; readonly isGzip: boolean; readonly signal: AbortSignal },
): ExportOutput {
  const state = openExportState(':memory:');
  /** What is not sent yet: a gzip member should not be small. */
  let pending = header;
  let isEmpty = true;

  return {
    get progress() {
      return state.progress;
    },
    digests: state.digests,
    ending: undefined,
    newOf: (page) => state.newOf(page),
    write: async ([lines], page) => {
      pending += lines;
      state.add(page);
      if (!isGzip || pending.length >= MEMBER_CHARACTERS) await send();
    },
    finish: async () => {
      if (pending !== '' || (isGzip && isEmpty)) await send();
    },
    close: async () => state.close(),
  };

  /** @throws the reason of the signal */
  async function send(): Promise<void> {
    const text = pending;
    pending = '';
    isEmpty = false;
    const content = isGzip ? await promisify(gzip)(text) : text;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
    stream.write(content, (error) => (error ? reject(streamFailure(error)) : resolve()));
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

const MEMBER_CHARACTERS = 256 * 1024;

function streamFailure(error: NodeJS.ErrnoException): OutputFailure {
  const hasLeft = ['EPIPE', 'ERR_STREAM_DESTROYED', 'ECONNRESET'].includes(error.code ?? '');
  if (hasLeft) return new ReaderLeft('Nobody reads the output any more.');
  return new OutputFailure(
    `The output cannot be written (${error.code ?? error.message}). Free some space if the disk is full, and export ` +
      'again; with --output, an export can be resumed.',
  );
}
