import { constants, lstatSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { createPrivateFile, isTaken } from './private-files.ts';

/** A file of an export. Its name ends with `.part` until the export is whole. */
export interface PartFile {
  /** Bytes that were written and not flushed. */
  readonly unflushed: number;
  /** Writes behind the part that was kept, even if an earlier write failed beyond it. */
  append(text: string): Promise<void>;
  /** Flushes to the disk. @returns the length of the file */
  flush(): Promise<number>;
  /** Whether another user who can write to the folder has replaced the file. */
  isReplaced(): Promise<boolean>;
  /** Gives the file its name. */
  publish(): Promise<void>;
  close(): Promise<void>;
}

const compressed = promisify(gzip);

/**
 * Opens a file, and cuts off what is behind its first `bytes`. A compressed file gets a gzip member with each flush, so
 * that it can be cut there and continued: gunzip reads members one after the other.
 *
 * @returns undefined if the file is shorter
 */
export async function openPartFile(
  path: string,
  { bytes, isGzip }: { readonly bytes: number; readonly isGzip: boolean },
): Promise<PartFile | undefined> {
  const part = partOf(path);
  if (!isTaken(part)) createPrivateFile(part);
  const file = await open(part, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    if ((await file.stat()).size < bytes) {
      await file.close();
      return undefined;
    }
    await file.truncate(bytes);
  } catch (error) {
    await file.close();
    throw error;
  }
  let length = bytes;
  let unflushed = 0;
  /** Text of the next gzip member. */
  let member: string[] = [];

  return {
    get unflushed() {
      return unflushed;
    },
    append: async (text) => {
      unflushed += text.length;
      if (isGzip) member.push(text);
      else await write(Buffer.from(text));
    },
    flush: async () => {
      // A file without any member is not a gzip file.
      if (isGzip && (member.length > 0 || length === 0)) {
        await write(await compressed(member.join('')));
        member = [];
      }
      await file.sync();
      unflushed = 0;
      return length;
    },
    isReplaced: async () => {
      const [ours, theirs] = [await file.stat(), lstatSync(part, { throwIfNoEntry: false })];
      return theirs?.ino !== ours.ino || theirs.dev !== ours.dev;
    },
    publish: () => rename(part, path),
    close: () => file.close(),
  };

  async function write(content: Buffer): Promise<void> {
    for (let at = 0; at < content.length;) {
      const { bytesWritten } = await file.write(content, at, content.length - at, length + at);
      at += bytesWritten;
    }
    length += content.length;
  }
}

export function partOf(path: string): string {
  return `${path}.part`;
}
