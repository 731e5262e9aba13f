import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
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

/**
 * Makes an empty folder for the test.
 *
 * @param place on disk, a gateway does not warn that its token store does not outlive a boot. Default: memory, if
 * possible
 */
export function temporaryFolder(place: 'memory' | 'disk' = 'memory'): Disposable & {
  readonly path: string;
  file(name: string): string;
} {
  const path = place === 'memory' ? quickFolder() : mkdtempSync(join(tmpdir(), 'recruiting-'));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
