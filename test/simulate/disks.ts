/**
 * Takes the place of `node:fs` for rescue files (hooks.ts): disks in memory, one for each machine, that can be full,
 * broken, or cut off in the middle of a write. Only what src/tokens uses of `node:fs` is here.
 */

export interface Disk {
  /** No new file can be created; the file that exists can be overwritten. */
  full: boolean;
  /** Nothing can be written. */
  broken: boolean;
  /** Writes that have failed so far. */
  failures: number;
  /** Called before each write. */
  onWrite: () => void;
  readonly files: Map<string, StoredFile>;
}

interface StoredFile {
  bytes: Buffer;
  nlink: number;
}

interface Opened {
  readonly disk: Disk;
  readonly file: StoredFile;
}

const disks = new Map<string, Disk>();
const opened = new Map<number, Opened>();
let descriptors = 0;

/** @param mount the folder under which it lies, such as `/machine-1` */
export function mountDisk(mount: string): Disk {
  const disk = { full: false, broken: false, failures: 0, onWrite: () => {}, files: new Map() };
  disks.set(mount, disk);
  return disk;
}

export function unmountAll(): void {
  disks.clear();
  opened.clear();
  descriptors = 0;
}

export function openSync(path: string, flags: string): number {
  const disk = diskOf(path);
  let file = disk.files.get(path);
  if (flags.startsWith('w')) {
    if (file) throw failure('EEXIST', path);
    if (disk.full || disk.broken) throw failure('ENOSPC', path, disk);
    file = { bytes: Buffer.alloc(0), nlink: 1 };
    disk.files.set(path, file);
  } else file ??= isFolder(path) ? { bytes: Buffer.alloc(0), nlink: 1 } : undefined;
  if (!file) throw failure('ENOENT', path);
  opened.set((descriptors += 1), { disk, file });
  return descriptors;
}

export function closeSync(descriptor: number): void {
  opened.delete(descriptor);
}

export function writeSync(
  descriptor: number,
  bytes: Buffer,
  offset: number,
  length: number,
  _at: number,
): number {
  const { disk, file } = opened.get(descriptor)!;
  disk.onWrite();
  if (disk.broken) throw failure('EIO', 'write', disk);
  // Most of a reserved file is free space.
  const end = bytes.indexOf('  ', offset);
  file.bytes = Buffer.from(bytes.subarray(offset, end < 0 ? offset + length : end + 1));
  return length;
}

export function readSync(descriptor: number, buffer: Buffer): number {
  return opened.get(descriptor)!.file.bytes.copy(buffer, 0, 0, buffer.length);
}

export function readFileSync(path: string, _encoding: 'utf8'): string {
  return fileAt(path).bytes.toString();
}

export function readdirSync(path: string): string[] {
  const names = [...diskOf(path).files.keys()];
  return names.map((name) => name.slice(path.length + 1));
}

export function unlinkSync(path: string): void {
  const disk = diskOf(path);
  disk.onWrite();
  if (disk.broken) throw failure('EIO', path, disk);
  fileAt(path).nlink = 0;
  disk.files.delete(path);
}

export function fstatSync(descriptor: number) {
  return { nlink: opened.get(descriptor)!.file.nlink, uid: 0, gid: 0 };
}

export function statSync(_path: string) {
  return { uid: 0, gid: 0 };
}

// Everything is on the disk at once.
export const fsyncSync = (): void => {};
export const ftruncateSync = (): void => {};
export const mkdirSync = (): void => {};
export const chownSync = (): void => {};
export const fchownSync = (): void => {};
export const lchownSync = (): void => {};
export const existsSync = (path: string): boolean => diskOf(path).files.has(path);

function fileAt(path: string): StoredFile {
  const file = diskOf(path).files.get(path);
  if (!file) throw failure('ENOENT', path);
  return file;
}

function isFolder(path: string): boolean {
  return disks.has(path);
}

function diskOf(path: string): Disk {
  const end = path.indexOf('/', 1);
  const disk = disks.get(end < 0 ? path : path.slice(0, end));
  if (!disk) throw failure('ENOENT', path);
  return disk;
}

function failure(code: string, what: string, disk?: Disk): Error {
  if (disk) disk.failures += 1;
  return Object.assign(new Error(`${code}: ${what}`), { code });
}
