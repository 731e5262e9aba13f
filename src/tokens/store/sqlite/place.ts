import {
  chmodSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { syncFolder } from '../../../sync-folder.ts';
import { giveToOwnerOf, makeFolder } from '../owners.ts';
import { makeEmptyFile } from './lock.ts';

/** The type of the file system that a path is on, as `statfs` says. */
export type FileSystemType = (path: string) => number;

/** File systems where locks do not work, or only within one machine. */
const NETWORK = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x564c, 'NCP'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x73757245, 'Coda'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0xaad7aaea, 'PanFS'],
  [0x19830326, 'BeeGFS'],
  [0x20030528, 'OrangeFS'],
]);

/**
 * Provided by a program or another machine. Some of them do not share locks between machines or processes, and some
 * report a write as durable that is not (sshfs, gcsfuse, GlusterFS, ceph-fuse; folders of a host in a virtual machine).
 * The type does not say which.
 */
const FOREIGN = new Map([
  [0x65735546, 'FUSE'],
  [0x01021997, '9p'],
  [0x786f4256, 'vboxsf'],
]);

/** proc, sysfs, debugfs, tracefs, cgroup (both), devpts, securityfs, bpf, efivarfs, configfs. */
const PSEUDO = new Set([
  0x9fa0, 0x62656572, 0x64626720, 0x74726163, 0x27e0eb, 0x63677270, 0x1cd1, 0x73636673, 0xcafe4a11,
  0xde5e81e4, 0x62656570,
]);

/** tmpfs, ramfs. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

/** In such a folder, users cannot replace files of other users. */
const STICKY = 0o1000;

/**
 * Checks whether a store can be kept there, before anything is created: creating a folder in /proc may hang.
 *
 * @returns notices for the operator
 * @throws Error with a message for the operator
 */
export function checkFileSystem(path: string, typeOf: FileSystemType = statfsType): string[] {
  let place = resolve(path);
  while (!existsSync(place) && place !== dirname(place)) place = dirname(place);
  const type = typeOf(place) >>> 0;
  const network = NETWORK.get(type);
  if (network !== undefined) {
    throw new Error(
      `it is on a network file system (${network}), where its locks do not hold: keep it on a local disk`,
    );
  }
  const foreign = FOREIGN.get(type);
  if (foreign !== undefined) {
    throw new Error(
      `it is on a file system that is handed in by a program or another machine (${foreign}), where locks may not hold: ` +
        'keep it on a local disk, or, in a container, on a volume instead of a folder of the host',
    );
  }
  if (PSEUDO.has(type)) {
    throw new Error(
      'that is a file system of the kernel, where files cannot be kept: choose a local disk',
    );
  }
  return IN_MEMORY.has(type)
    ? [`${place} is in memory: the tokens are lost with the next boot. Keep the store on a disk.`]
    : [];
}

/**
 * Refuses a file that is mounted by itself into a container: its journal and lock would be inside the container, where no
 * other process finds them, and would be lost with it.
 */
export function checkMount(path: string): void {
  let mounts: string;
  try {
    mounts = readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    // Not Linux.
    return;
  }
  const points = mounts.split('\n').map((line) => line.split(' ')[4] ?? '');
  const isMounted = points.some((point) => unescaped(point) === resolve(path));
  if (isMounted && !statSync(path).isDirectory()) {
    throw new Error('it is mounted as a single file: mount the folder that it is in');
  }
}

/**
 * Resolves links, because the name of the lock depends on the path.
 *
 * @throws Error for a broken link
 */
export function placeOf(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  // Another process may be making the file.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) {
    throw new Error('it is a link that leads nowhere');
  }
  return path;
}

/**
 * Creates the file as private, before SQLite would create it with the umask, and for the owner of its folder: the gateway
 * has to open a store that root made.
 */
export function makeStoreFile(path: string): void {
  const folder = dirname(resolve(path));
  const made = makeFolder(folder);
  makeEmptyFile(path, folder);
  // SQLite syncs only the folder of the file, and not the new folders above it.
  for (const each of made) syncFolder(dirname(each));
}

/** Makes the files private, and the folder too if it contains nothing else. @returns notices for the operator */
export function repairRights(path: string): string[] {
  const notices: string[] = [];
  for (const file of [path, `${path}-journal`, `${path}-lock`]) {
    if (existsSync(file)) repair(file, 0o600, notices);
  }
  // The gateway cannot take a lock that root created.
  giveToOwnerOf(path, `${path}-lock`);
  const folder = dirname(resolve(path));
  const foreign = readdirSync(folder).filter((name) => !isOurs(name, basename(path)));
  if (foreign.length === 0) repair(folder, 0o700, notices);
  else if ((statSync(folder).mode & 0o022) !== 0 && (statSync(folder).mode & STICKY) === 0) {
    notices.push(
      `${folder} can be written by others, who could put another token store there. Give the store a folder of its own.`,
    );
  }
  return notices;
}

function repair(place: string, mode: number, notices: string[]): void {
  if ((statSync(place).mode & 0o077) === 0) return;
  try {
    chmodSync(place, mode);
    notices.push(`${place} was open to other users; now only its owner can use it.`);
  } catch {
    notices.push(
      `${place} is open to other users, and this user cannot change that: have its permissions corrected.`,
    );
  }
}

function isOurs(name: string, store: string): boolean {
  const names = ['', '-journal', '-lock'].map((end) => store + end);
  return names.includes(name) || /^(?:rescue|answer)-.+\.json$/.test(name);
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(\d{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

/** On 32-bit systems the number is signed, and exceeds a double once it is widened. */
function statfsType(path: string): number {
  return Number(BigInt.asUintN(32, statfsSync(path, { bigint: true }).type));
}
