import { readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { emergencyIn } from '../../src/tokens/emergency.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { successor } from '../../src/tokens/state.ts';
import { quickFolder } from '../support/quick-folder.ts';
import { exchanged, NOON, pairOf } from './values.ts';

const sealed = createSealer([Buffer.alloc(32, 1)]);
const received = successor(exchanged(), pairOf('3'));

test('a pair in an emergency file is sealed, private, and returned as it was received', () => {
  const folder = join(newFolder(), 'made', 'when needed');
  const emergency = emergencyIn(folder, sealed);
  expect(emergency.read()).toEqual([]);
  expect(emergency.put(received, NOON)).toBe(true);
  const path = emergency.pathOf(received);
  expect(readdirSync(folder).map((file) => join(folder, file))).toEqual([path]);
  expect(readFileSync(path, 'utf8')).not.toMatch(/(access|refresh)-/);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(emergency.read()).toEqual([{ path, received, at: NOON }]);
  emergency.remove(path);
  expect(emergency.read()).toEqual([]);
});

test.each([
  [
    'is damaged',
    (path: string) => writeFileSync(path, 'plain:{"access-3'),
    sealed,
    'it is damaged',
  ],
  ['was altered', alter, sealed, 'was altered'],
  [
    'is sealed with another key',
    () => {},
    createSealer([Buffer.alloc(32, 2)]),
    'not among the keys',
  ],
])(
  'an emergency file that %s is reported with its reason, without tokens',
  (_, harm, sealer, why) => {
    const folder = newFolder();
    emergencyIn(folder, sealed).put(received, NOON);
    const path = emergencyIn(folder, sealed).pathOf(received);
    harm(path);
    expect(emergencyIn(folder, sealer).read()).toEqual([
      { path, why: expect.stringContaining(why) },
    ]);
    expect(JSON.stringify(emergencyIn(folder, sealer).read())).not.toContain('access-3');
  },
);

test('what a crash leaves of a file that it was writing counts as nothing', () => {
  const folder = newFolder();
  const emergency = emergencyIn(folder, sealed);
  writeFileSync(`${emergency.pathOf(received)}.part`, 'aes-256-gcm:');
  expect(emergency.read()).toEqual([]);
  expect(emergency.put(received, NOON)).toBe(true);
  expect(emergency.read()).toHaveLength(1);
});

test('a file that another process removes while the folder is read counts as nothing', () => {
  const folder = newFolder();
  // Listed like a file, and not there once it is opened.
  symlinkSync(join(folder, 'removed'), emergencyIn(folder, sealed).pathOf(received));
  expect(readdirSync(folder)).toHaveLength(1);
  expect(emergencyIn(folder, sealed).read()).toEqual([]);
});

test('nothing of a pair stays once it is saved: also what a crash left of its file', () => {
  const folder = newFolder();
  const emergency = emergencyIn(folder, sealed);
  writeFileSync(`${emergency.pathOf(received)}.part`, '');
  emergency.remove(emergency.pathOf(received));
  expect(readdirSync(folder)).toEqual([]);
});

test('a folder that cannot be written is reported, and throws nothing', () => {
  const file = join(newFolder(), 'a file');
  writeFileSync(file, '');
  expect(emergencyIn(file, sealed).put(received, NOON)).toBe(false);
});

function alter(path: string): void {
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, `${text.slice(0, -6)}${text.at(-6) === 'A' ? 'B' : 'A'}${text.slice(-5)}`);
}

function newFolder(): string {
  const folder = quickFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
