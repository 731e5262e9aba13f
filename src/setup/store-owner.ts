import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import process from 'node:process';
import { codesOf } from '../tokens/store/store-advice.ts';

/**
 * If this user may not open the file, names the owner of the deepest place of its path that this user sees, and what to do.
 *
 * @returns a sentence after a space, or nothing
 */
export function ownerAdvice(error: unknown, path: string): string {
  if (!isDenied(error)) return '';
  const file = resolve(path);
  const folder = dirname(file);
  let place = file;
  while (!existsSync(place) && place !== dirname(place)) place = dirname(place);
  const owner = statSync(place).uid;
  const user = process.getuid?.();
  if (user === undefined || owner === user) return '';
  const facts = ` ${place} belongs to user ${owner}${owner === 0 ? ' (root)' : ''}, and this process runs as user ${user}.`;
  return place === file || place === folder
    ? `${facts} If a command made the store as another user, give the folder to this one: chown -R ${user} ${folder}`
    : `${facts} Make the folder ${folder}, and give it to user ${user}.`;
}

const SQLITE_CANTOPEN = 14;

function isDenied(error: unknown): boolean {
  const { code, errcode } = codesOf(error);
  return code === 'EACCES' || code === 'EPERM' || errcode % 256 === SQLITE_CANTOPEN;
}
