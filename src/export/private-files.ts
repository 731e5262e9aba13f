import { chmodSync, closeSync, lstatSync, openSync, rmSync, statSync, type Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { OperatorMistake } from '../errors.ts';

/*
 * Files of an export in a folder where other users may write too, such as /tmp. Links and files that they have put there
 * are neither followed nor written, and only the owner can read what is exported.
 */

const FOR_OWNER_ONLY = 0o600;

/** @throws the error of the system if the name is taken, even by a link to nothing */
export function createPrivateFile(path: string): void {
  closeSync(openSync(path, 'wx', FOR_OWNER_ONLY));
}

/** Whether the name is taken, even by a link to nothing. */
export function isTaken(path: string): boolean {
  return statusOf(path) !== undefined;
}

/** Removes a file or a link, but not the target of the link. @throws OperatorMistake for a folder */
export function removeFile(path: string): void {
  if (statusOf(path)?.isDirectory()) throw notAFile(path);
  rmSync(path, { force: true });
}

/** Whether only this user can have written this file: it is not a link, and does not have a second name. */
export function isOwnFile(path: string): boolean {
  const stats = statusOf(path);
  return stats !== undefined && stats.isFile() && stats.nlink === 1 && isOfThisUser(stats);
}

/** Another user may have put the file there. */
export class NotOurs extends Error {
  override name = 'NotOurs';
  constructor(path: string) {
    super(
      `${path} was not left by an export of this user: it is a link, has a second name, or belongs to another user.`,
    );
  }
}

/**
 * Lets only the owner read a file that an earlier run has left. Does nothing if it does not exist.
 *
 * @throws NotOurs; OperatorMistake for a folder
 */
export function adoptFile(path: string): void {
  if (!isTaken(path)) return;
  if (!isOwnFile(path)) {
    if (statusOf(path)!.isDirectory()) throw notAFile(path);
    throw new NotOurs(path);
  }
  chmodSync(path, FOR_OWNER_ONLY);
}

/** @throws OperatorMistake for a link of another user, which may lead to a file of this user */
export function checkLink(path: string): void {
  const stats = statusOf(path);
  if (!stats?.isSymbolicLink() || isOfThisUser(stats)) return;
  throw new OperatorMistake(
    `${path} is a link that belongs to another user. Give --output the path of the file itself.`,
  );
}

/** @param path what is there is not a file */
export function notAFile(path: string): OperatorMistake {
  const stats = statSync(path, { throwIfNoEntry: false });
  const isDevice = stats?.isCharacterDevice() === true || stats?.isBlockDevice() === true;
  const kind = stats?.isDirectory() === true ? 'a folder' : isDevice ? 'a device' : 'not a file';
  return new OperatorMistake(`${path} is ${kind}. Give the path of a file instead.`);
}

function statusOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** Always true on Windows, which does not number its users. */
function isOfThisUser({ uid }: Stats): boolean {
  const user = userInfo().uid;
  return user === -1 || uid === user;
}
