import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** An empty folder for the test. */
export function temporaryFolder(): Disposable & {
  readonly path: string;
  file(name: string): string;
} {
  const path = mkdtempSync(join(tmpdir(), 'recruiting-'));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
