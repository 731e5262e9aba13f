import { chownSync, fchownSync, fstatSync, lchownSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes a private folder and its missing parents. Each new folder belongs to the owner of the nearest existing one.
 *
 * @returns the new folders, the deepest first
 */
export function makeFolder(path: string): string[] {
  const folder = resolve(path);
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return [];
  const made: string[] = [];
  for (let level = folder; level !== dirname(first); level = dirname(level)) made.push(level);
  // lchown does not follow a link that the new owner of a folder has put in its place.
  for (const level of made)
    give(statSync(dirname(first)), (uid, gid) => lchownSync(level, uid, gid));
  return made;
}

/**
 * Gives a new file to the owner of the store, so that a gateway can use files of a command that root ran. Has no effect for
 * other users.
 *
 * @param file its path, or a descriptor
 * @param like a file or folder with the owner of the store
 */
export function giveToOwnerOf(like: string, file: string | number): void {
  const owner = statSync(like);
  const owned = typeof file === 'number' ? fstatSync(file) : statSync(file);
  if (owned.uid === owner.uid) return;
  give(owner, (uid, gid) =>
    typeof file === 'number' ? fchownSync(file, uid, gid) : chownSync(file, uid, gid),
  );
}

function give(
  { uid, gid }: { readonly uid: number; readonly gid: number },
  change: (uid: number, gid: number) => void,
): void {
  try {
    change(uid, gid);
  } catch {
    // Not root.
  }
}
