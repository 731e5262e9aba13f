import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from './support/temporary-folder.ts';

const UNSAFE: readonly [string, (path: string) => void][] = [
  ['that its group can write to', (path) => makeFolder(path, 0o770)],
  ['that everybody can write to', (path) => makeFolder(path, 0o707)],
  [
    'that is a link to another',
    (path) => (makeFolder(`${path}-x`), symlinkSync(`${path}-x`, path)),
  ],
  ['that is a file', (path) => (makeFolder(dirname(path)), writeFileSync(path, ''))],
  ['that cannot be made', (path) => writeFileSync(dirname(path), '')],
];

test('compiled code is kept in a folder that only this user can write to', () => {
  const folder = newPath();
  expect(cacheOf(folder)).toContain(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(cacheOf(folder)).toContain(folder);
});

test.each(UNSAFE)('no compiled code is taken from a folder %s', (_, prepare) => {
  const folder = `${newPath()}/cache`;
  prepare(folder);
  expect(cacheOf(folder)).toBe('none');
});

test('the folder that NODE_COMPILE_CACHE names is used instead, and ours is not created', () => {
  const folder = newPath();
  const other = newPath();
  expect(cacheOf(folder, { NODE_COMPILE_CACHE: other })).toContain(other);
  expect(existsSync(folder)).toBe(false);
});

/** The folder that a process uses when it is given this one; `none` if it uses none. */
function cacheOf(folder: string, env: Record<string, string> = {}): string {
  const script = `
    import { getCompileCacheDir } from 'node:module';
    import { cacheCompiledCode } from ${JSON.stringify(resolve('src/compile-cache.js'))};
    cacheCompiledCode(${JSON.stringify(folder)});
    console.log(getCompileCacheDir() ?? 'none');`;
  const args = ['--input-type=module', '--eval', script];
  const { stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.trim();
}

function newPath(): string {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.file('cache');
}

/** The permissions, whatever umask the process has. */
function makeFolder(path: string, mode = 0o700): void {
  mkdirSync(path, { recursive: true });
  chmodSync(path, mode);
}
