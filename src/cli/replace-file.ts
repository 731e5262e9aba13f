import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { CommandError } from './terminal.ts';

/**
 * Writes a file whole or not at all: a reader finds the old content or the new, even after a crash. A link stays a
 * link.
 */
export function replaceFile(path: string, text: string): void {
  let beside: string | undefined;
  try {
    const there = statSync(path, { throwIfNoEntry: false });
    const target = there ? realpathSync(path) : path;
    beside = `${target}.${randomUUID()}.new`;
    const file = openSync(beside, 'wx', there ? there.mode & 0o777 : 0o666);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(beside, target);
  } catch (error) {
    if (beside !== undefined) rmSync(beside, { force: true });
    const { code } = error as { code?: string };
    throw new CommandError(
      `${path} cannot be written (${code ?? 'unknown error'}). Nothing was changed. ` +
        'Check that the folder is there, that this user may write to it, and that the disk has room.',
    );
  }
}
