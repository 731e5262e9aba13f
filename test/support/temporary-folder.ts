import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { quickFolder } from './quick-folder.ts';

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
