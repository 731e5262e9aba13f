import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const IN_MEMORY = '/dev/shm';
/** Bytes. Containers often have only 64 MB there. */
const ENOUGH = 1024 ** 3;

/** For tests of orders of events, not of power failures: nothing waits for a disk there. */
const QUICK = hasRoom(IN_MEMORY) ? IN_MEMORY : tmpdir();

function hasRoom(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= ENOUGH;
}

/**
 * Makes an empty folder. Leaving its scope removes it.
 *
 * @param place on disk, a gateway does not warn that its token store does not outlive a boot. Default: memory, if
 * possible
 */
export function temporaryFolder(place: 'memory' | 'disk' = 'memory'): Disposable & {
  readonly path: string;
  file(name: string): string;
} {
  const path = mkdtempSync(join(place === 'memory' ? QUICK : tmpdir(), 'recruiting-'));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
