import { readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openCustody } from '../../src/setup/custody.ts';
import { emergencyIn } from '../../src/tokens/emergency.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { successor } from '../../src/tokens/state.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { exchanged, NOON, pairOf } from './values.ts';

const KEYS = [1, 2].map((byte) => Buffer.alloc(32, byte));
const sealed = createSealer([KEYS[0]!]);
const other = createSealer([KEYS[1]!]);
const received = successor(exchanged(), pairOf('3'), NOON);

test('a pair in an emergency file is sealed with TOKEN_STORE_KEY, private, and returned as it was received', () => {
  using home = temporaryFolder();
  const folder = home.file('made/when needed');
  const { emergency } = openCustody({
    tokenStore: { kind: 'sqlite', path: join(folder, 'tokens.db') },
    tokenStoreKeys: KEYS,
    tokenRescueDir: undefined,
  });
  expect(emergency.read()).toEqual([]);
  expect(emergency.put(received)).toBe(true);
  const path = emergency.pathOf(received);
  expect(readdirSync(folder).map((file) => join(folder, file))).toEqual([path]);
  expect(readFileSync(path, 'utf8')).not.toMatch(/(access|refresh)-/);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(emergency.read()).toEqual([{ path, received }]);
  emergency.remove(path);
  expect(readdirSync(folder)).toEqual([]);
});

test.each<[string, (path: string) => void, typeof sealed, why: string | undefined]>([
  ['is damaged', (path) => writeFileSync(path, 'plain:{"access-3'), sealed, 'is damaged'],
  ['is sealed with another key', () => {}, other, 'not among the keys'],
  // Listed like a file, and not there once it is opened.
  ['another process has removed', (path) => symlinkSync('nowhere', path), sealed, undefined],
  ['was not finished in a crash', (path) => writeFileSync(`${path}.part`, ''), sealed, undefined],
])('an emergency file that %s counts as nothing, or its reason is reported', (...row) => {
  const [, harm, sealer, why] = row;
  using folder = temporaryFolder();
  const emergency = emergencyIn(folder.path, sealed);
  emergency.put(received);
  const path = emergency.pathOf(received);
  if (why === undefined) rmSync(path);
  harm(path);
  const files = emergencyIn(folder.path, sealer).read();
  expect(files).toEqual(why === undefined ? [] : [{ path, why: expect.stringContaining(why) }]);
  expect(JSON.stringify(files)).not.toContain('access-3');
});

test('a folder that cannot be written is reported, and throws nothing', () => {
  using folder = temporaryFolder();
  const file = folder.file('a file');
  writeFileSync(file, '');
  expect(emergencyIn(file, sealed).put(received)).toBe(false);
});
