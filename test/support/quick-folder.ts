import { existsSync, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const IN_MEMORY = '/dev/shm';
/** Bytes. Containers often have only 64 MB there. */
const ENOUGH = 1024 ** 3;

const HOME = hasRoom(IN_MEMORY) ? IN_MEMORY : tmpdir();

/**
 * Makes an empty folder, in memory if possible, for tests of orders of events, not of power failures: nothing waits for
 * a disk there. A gateway reports that such a folder does not outlive a boot. The caller removes it.
 */
export function quickFolder(): string {
  return mkdtempSync(join(HOME, 'recruiting-'));
}

function hasRoom(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= ENOUGH;
}
