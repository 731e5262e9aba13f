import { chownSync, fchownSync, fstatSync, statSync } from 'node:fs';

/**
 * Gives a new file to the owner of the store, so that a gateway can use what a command left that root ran. Does nothing
 * for any other user.
 *
 * @param file its path, or a descriptor
 * @param like a file or folder that has the right owner
 */
export function giveToOwnerOf(like: string, file: string | number): void {
  const { uid, gid } = statSync(like);
  const owned = typeof file === 'number' ? fstatSync(file) : statSync(file);
  if (owned.uid === uid) return;
  try {
    if (typeof file === 'number') fchownSync(file, uid, gid);
    else chownSync(file, uid, gid);
  } catch {
    // Not root: the file stays as it is.
  }
}
