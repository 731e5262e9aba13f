import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { syncFolder } from '../../sync-folder.ts';
import type { RawAnswer } from '../token-set.ts';
import { giveToOwnerOf, makeFolder } from './owners.ts';
import { contexts, openJson, sealJson, type Sealer } from './seal.ts';
import type { NewPair } from './token-store.ts';

/** The process that created a file of the rescue folder. */
export interface Owner {
  readonly host: string;
  readonly pid: number;
  /** Whether a process of this host is still running. */
  readonly lives: (pid: number) => boolean;
}

export interface RescueFolder {
  directory: string;
  sealer: Sealer;
  owner: Owner;
}

/** An answer of the token endpoint that was not, or not completely, understood. */
export interface UnreadAnswer extends Pick<NewPair, 'set' | 'generation' | 'attempt' | 'at'> {
  readonly home: NonNullable<NewPair['home']>;
  readonly answer: RawAnswer;
  /** Whether it names an access token and a refresh token. */
  readonly namesPair: boolean;
}

/** What a file of each kind holds: a pair that could not be saved, or an answer with its body in base64. */
interface Contents {
  rescue: NewPair;
  answer: Omit<UnreadAnswer, 'answer'> & {
    readonly answer: Omit<RawAnswer, 'body'> & { readonly body: string };
  };
}

export type FileKind = keyof Contents;

/** The part of the contents that is sealed. The rest can be read without the key. */
const SEALED_PART = { rescue: 'pair', answer: 'answer' } as const;

/**
 * A file that is created, filled and synced in advance, and kept open, so that it can be written on a full disk and in a
 * folder that became read-only.
 */
export interface SealedFile<Kind extends FileKind> {
  readonly path: string;
  /** Replaces the contents. On disk when it returns. @throws if it cannot be written */
  put(contents: Contents[Kind]): void;
  clear(): void;
  /** Removes the file if it is empty, and truncates it if not. */
  close(): void;
}

/** The size of a file, bytes: room for a pair of the largest answer that is read (64 KiB), sealed. */
const SIZE = 192 * 1024;
const NAME = /^(?<kind>rescue|answer)-(?<host>.+)-(?<pid>\d+)-[0-9a-f]{8}\.json$/;

/**
 * Creates a file, and removes the empty files of this kind that killed processes left behind.
 *
 * @throws if the folder or the file cannot be created
 */
export function reserveFile<Kind extends FileKind>(
  { directory, sealer, owner }: RescueFolder,
  kind: Kind,
): SealedFile<Kind> {
  for (const path of filesIn(directory, kind)) {
    if (isLeftOver(path, owner)) removeUnchanged(path, '');
  }
  let file = create();
  let isClosed = false;

  return {
    get path() {
      return file.path;
    },
    put: (contents) => {
      expectOpen();
      const text = sealed(kind, contents, sealer);
      write(text);
      // A file that was removed from the folder is never read.
      if (fstatSync(file.descriptor).nlink > 0) return;
      replace();
      write(text);
    },
    clear: () => {
      expectOpen();
      if (fstatSync(file.descriptor).nlink > 0) return write('');
      replace();
    },
    close: () => {
      if (isClosed) return;
      isClosed = true;
      const { path, descriptor, bytes } = file;
      try {
        if (bytes > 0) ftruncateSync(descriptor, bytes);
      } catch {
        // The file only stays larger than necessary.
      }
      closeSync(descriptor);
      if (bytes === 0) removeFile(path);
    },
  };

  /** The number of a closed descriptor may belong to another file or socket by now. */
  function expectOpen(): void {
    if (isClosed) throw new Error('the rescue file was closed');
  }

  /** The number of a closed descriptor may be given to another file at once, so the new one is opened first. */
  function replace(): void {
    const made = create();
    closeSync(file.descriptor);
    file = made;
  }

  function create() {
    makeFolder(directory);
    const name = `${kind}-${owner.host}-${owner.pid}-${randomBytes(4).toString('hex')}.json`;
    const path = join(directory, name);
    const made = { path, descriptor: openSync(path, 'wx+', 0o600), bytes: 0 };
    giveToOwnerOf(directory, made.descriptor);
    fill(made.descriptor, '');
    syncFolder(directory);
    return made;
  }

  function write(text: string): void {
    // If this fails, the previous contents may still be there.
    file.bytes = SIZE;
    fill(file.descriptor, text);
    file.bytes = Buffer.byteLength(text);
  }
}

/** Always writes the whole size: a file whose size does not change does not need more disk space. */
function fill(descriptor: number, text: string): void {
  const bytes = Buffer.alloc(Math.max(SIZE, Buffer.byteLength(text)), ' ');
  bytes.write(text);
  let written = 0;
  while (written < bytes.length) {
    written += writeSync(descriptor, bytes, written, bytes.length - written, written);
  }
  ftruncateSync(descriptor, bytes.length);
  fsyncSync(descriptor);
}

/** A file that is not empty. */
export interface FilledFile<Kind extends FileKind> {
  readonly path: string;
  readonly label: Label | undefined;
  /** @throws if it is incomplete, or cannot be decrypted */
  open(): Contents[Kind];
  /** Does nothing if its process has changed the file since it was read. */
  remove(): void;
}

/** What can be read of a file without the key. */
export type Label = Pick<NewPair, 'set' | 'generation' | 'home'> &
  Partial<Pick<UnreadAnswer, 'at' | 'namesPair'>>;

/** Reads each file when it is requested, and skips one that was removed in the meantime. */
export function* filledFiles<Kind extends FileKind>(
  { directory, sealer }: RescueFolder,
  kind: Kind,
): Generator<FilledFile<Kind>> {
  for (const path of filesIn(directory, kind)) {
    try {
      const text = textOf(path);
      if (text === '') continue;
      const open = () => unsealed(kind, text, sealer);
      yield { path, label: labelOf(text), open, remove: () => removeUnchanged(path, text) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
      const open = () => {
        throw error;
      };
      yield { path, label: undefined, open, remove: () => {} };
    }
  }
}

function filesIn(directory: string, kind: FileKind): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => NAME.exec(name)?.groups?.['kind'] === kind)
      .map((name) => join(directory, name));
  } catch {
    return [];
  }
}

function textOf(path: string): string {
  return isBlank(path) ? '' : readFileSync(path, 'utf8').trim();
}

/** Reads only the first byte: most files are blank, and all are checked at each sync. */
function isBlank(path: string): boolean {
  const descriptor = openSync(path, 'r');
  try {
    const first = Buffer.alloc(1, ' ');
    readSync(descriptor, first);
    return first.toString() === ' ';
  } finally {
    closeSync(descriptor);
  }
}

/** Whether its process has ended. Files of other hosts are left to those hosts. */
function isLeftOver(path: string, { host, pid, lives }: Owner): boolean {
  const named = NAME.exec(basename(path))?.groups;
  const other = Number(named?.['pid']);
  return named?.['host'] === host && (other === pid || !lives(other));
}

function sealed<Kind extends FileKind>(
  kind: Kind,
  contents: Contents[Kind],
  sealer: Sealer,
): string {
  const part = SEALED_PART[kind];
  const secret = (contents as unknown as Record<string, unknown>)[part];
  const about = contexts.file(kind, contents);
  return JSON.stringify({ version: 1, ...contents, [part]: sealJson(secret, about, sealer) });
}

/** @throws if the text is incomplete, or cannot be decrypted */
export function unsealed<Kind extends FileKind>(
  kind: Kind,
  text: string,
  sealer: Sealer,
): Contents[Kind] {
  let file: { version: number; set: string; generation: number };
  try {
    file = JSON.parse(text) as typeof file;
  } catch {
    throw new Error('it was not written to its end');
  }
  const { version, ...label } = file;
  if (version !== 1) throw new Error(`it was written by a newer version (layout ${version})`);
  const part = SEALED_PART[kind];
  const secret = (label as unknown as Record<string, string>)[part]!;
  const opened = openJson(secret, contexts.file(kind, label), sealer);
  return { ...label, [part]: opened } as unknown as Contents[Kind];
}

/** Undefined if it is damaged. */
function labelOf(text: string): Label | undefined {
  try {
    const label = JSON.parse(text) as Label;
    const isWhole = typeof label.set === 'string' && typeof label.generation === 'number';
    return isWhole ? label : undefined;
  } catch {
    return undefined;
  }
}

function removeUnchanged(path: string, text: string): void {
  try {
    if (textOf(path) === text) removeFile(path);
  } catch {
    // The next sync tries again.
  }
}

function removeFile(path: string): void {
  try {
    unlinkSync(path);
    syncFolder(dirname(path));
  } catch {
    // It is empty or saved. The next start tries again.
  }
}
