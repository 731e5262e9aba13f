import { spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { temporaryFolder } from '../support/temporary-folder.ts';

test.each([
  ['node src/main.ts', ['src/main.ts']],
  ['npm start', manifest.scripts.start.split(' ').slice(2)],
])('a Node that is too old says which one is needed: %s', (_name, args) => {
  const { status, stdout, stderr } = runByOlderNode([...args, 'tokens', 'status']);
  expect(stderr).toMatch(/^The gateway needs Node 24 or newer, and this is Node 20\.1\.2\. .*\n$/);
  expect(stderr).toContain('`npm start`');
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
});

test('a Node that is too old for the installed package says how npx gets the right one', () => {
  using folder = temporaryFolder();
  // The package has no TypeScript beside it.
  copyFileSync('src/main.cjs', folder.file('main.cjs'));
  const { status, stderr } = runByOlderNode([folder.file('main.cjs')]);
  expect(stderr).toMatch(
    /After `npm install node@24` in the same folder, `npx recruiting-subgraph`/,
  );
  expect(status).toBe(2);
});

/** Runs this Node, but it reports an older version, and refuses TypeScript files as that version does. */
function runByOlderNode(args: readonly string[]) {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const older = folder.file('older.cjs');
  writeFileSync(
    older,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.2' } });`,
  );
  return spawnSync(process.execPath, ['--no-strip-types', '--require', older, ...args], {
    env: {},
    encoding: 'utf8',
  });
}
