import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../sync-folder.ts';
import { giveToOwnerOf } from './file-owner.ts';
import { contexts, openPair, sealPair, type Sealer } from './seal.ts';
import type { NewPair } from './token-store.ts';

/** The process that a rescue file belongs to. */
export interface Owner {
  readonly host: string;
  readonly pid: number;
  /** Whether a process of this host still lives. */
  readonly lives: (pid: number) => boolean;
}

export interface RescueFolder {
  directory: string;
  sealer: Sealer;
  owner: Owner;
}

/**
 * A place for the one pair that could not be saved: a file that is made, filled and synced in advance, and
 * kept open, so that it can be written on a full disk and in a folder that became read-only.
 */
export interface RescueFile {
  readonly path: string;
  /** Resolved on disk when it returns. Replaces what was put before. */
  put(pair: NewPair): void;
  clear(): void;
  /** Takes the file away, unless it holds a pair. */
  close(): void;
}

/** Room for a pair of the largest answer that is read (64 KiB), sealed. */
const SIZE = 192 * 1024;
const NAME = /^(?<kind>rescue|answer)-(?<host>.+)-(?<pid>\d+)-[0-9a-f]{8}\.json$/;

/** `rescue` holds a pair that could not be saved, `answer` an answer that was not understood. */
export type FileKind = 'rescue' | 'answer';

/** @throws when the folder or the file cannot be made */
export function openRescueFile(folder: RescueFolder): RescueFile {
  const file = openReservedFile(folder, 'rescue');
  return {
    get path() {
      return file.path;
    },
    put: (pair) => file.put(JSON.stringify(sealed(pair, folder.sealer))),
    clear: file.clear,
    close: file.close,
  };
}

/** @throws when the folder or the file cannot be made */
export function openReservedFile({ directory, owner }: RescueFolder, kind: FileKind) {
  for (const { name, path } of filesIn(directory, kind)) {
    if (isOf(owner.host, owner.pid, name) && textOf(path) === '') removeFile(path);
  }
  let file = create();
  let isClosed = false;

  return {
    get path() {
      return file.path;
    },
    /** Resolved on disk when it returns. Replaces what was put before. */
    put: (text: string): void => {
      expectOpen();
      write(text);
      // Somebody removed it from the folder; what is written into it is read by nobody.
      if (fstatSync(file.descriptor).nlink > 0) return;
      replace();
      write(text);
    },
    clear: (): void => {
      expectOpen();
      if (fstatSync(file.descriptor).nlink > 0) return write('');
      replace();
    },
    close: (): void => {
      if (isClosed) return;
      isClosed = true;
      const empty = file.empty;
      closeSync(file.descriptor);
      if (empty) removeFile(file.path);
    },
  };

  /** What is written to a closed descriptor may end up in the file or socket that has its number by then. */
  function expectOpen(): void {
    if (isClosed) throw new Error('the rescue file was closed');
  }

  /** A descriptor that is closed may be somebody else's the next moment: not before there is another one. */
  function replace(): void {
    const made = create();
    closeSync(file.descriptor);
    file = made;
  }

  function create() {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const name = `${kind}-${owner.host}-${owner.pid}-${randomBytes(4).toString('hex')}.json`;
    const path = join(directory, name);
    const made = { path, descriptor: openSync(path, 'wx+', 0o600), empty: true };
    giveToOwnerOf(directory, made.descriptor);
    fill(made.descriptor, '');
    syncFolder(directory);
    return made;
  }

  function write(text: string): void {
    file.empty = false;
    fill(file.descriptor, text);
    file.empty = text === '';
  }
}

export function filesIn(directory: string, kind: FileKind): { path: string; name: string }[] {
  try {
    return readdirSync(directory)
      .filter((name) => NAME.exec(name)?.groups?.['kind'] === kind)
      .map((name) => ({ name, path: join(directory, name) }));
  } catch {
    return [];
  }
}

export function textOf(path: string): string {
  return isBlank(path) ? '' : readFileSync(path, 'utf8').trim();
}

/** As most are, and all of them are looked at whenever the store is: their first byte says it. */
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

/** Of a process that was killed before it had anything to rescue. Those of other hosts are theirs to judge. */
export function isLeftOver(name: string, { host, pid, lives }: Owner): boolean {
  const other = Number(NAME.exec(name)?.groups?.['pid']);
  return other !== pid && isOf(host, other, name) && !lives(other);
}

function isOf(host: string, pid: number, name: string): boolean {
  const named = NAME.exec(name)?.groups;
  return named?.['host'] === host && Number(named['pid']) === pid;
}

function sealed({ pair, ...rest }: NewPair, sealer: Sealer) {
  const about = contexts.rescue(rest.set, rest.generation);
  return { version: 1, ...rest, pair: sealPair(pair, about, sealer) };
}

export type Label = Pick<NewPair, 'set' | 'generation' | 'home'>;

/** What a file says of its pair without the key; undefined when that is damaged. */
export function labelOf(text: string): Label | undefined {
  try {
    const label = JSON.parse(text) as Label;
    const isWhole = typeof label.set === 'string' && typeof label.generation === 'number';
    return isWhole ? label : undefined;
  } catch {
    return undefined;
  }
}

/** Which store this is, as far as it is known. */
export interface StoreIdentity {
  readonly description: string;
  /** Undefined if it is empty, or is not there; so is its current set. */
  readonly storeId: string | undefined;
  readonly set: string | undefined;
  readonly baseUrl: string | undefined;
}

/** Whether a pair is of this store. An empty store has nothing that shows which one it is: then its address does. */
export function belongsTo({ set, home }: Label, store: StoreIdentity): boolean {
  if (set === store.set) return true;
  // Then only a store that knows the set can say.
  if (!home) return store.set !== undefined;
  const { description, storeId, baseUrl = home.baseUrl } = store;
  const isHere = storeId === undefined ? home.store === description : home.storeId === storeId;
  return isHere && home.baseUrl === baseUrl;
}

/** @throws when the text is not whole, or cannot be opened */
export function rescuedPair(text: string, sealer: Sealer): NewPair {
  let rescued: ReturnType<typeof sealed>;
  try {
    rescued = JSON.parse(text) as ReturnType<typeof sealed>;
  } catch {
    throw new Error('it was not written to its end');
  }
  const { version, pair, ...rest } = rescued;
  if (version !== 1) throw new Error(`it was written by a newer version (layout ${version})`);
  return { ...rest, pair: openPair(pair, contexts.rescue(rest.set, rest.generation), sealer) };
}

/** Always the whole size: a file whose size does not change needs no new room. */
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

export function removeFile(path: string): void {
  try {
    unlinkSync(path);
    syncFolder(dirname(path));
  } catch {
    // It is empty or saved; the next start looks at it again.
  }
}
