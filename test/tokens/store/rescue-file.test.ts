import {
  chownSync,
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect, onTestFinished, test } from 'vitest';
import { reserveFile } from '../../../src/tokens/store/sealed-file.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { BOUND } from '../../support/processes/bound-user.ts';
import { folder } from './sqlite-support.ts';
import { saving } from './token-store-contract.ts';

function opened(directory: string) {
  const owner = { host: 'host', pid: 1, lives: () => true };
  const file = reserveFile({ directory, sealer: createSealer([]), owner }, 'rescue');
  onTestFinished(() => file.close());
  return file;
}

test('a pair is written to the rescue file even if its folder was removed', () => {
  const directory = join(folder(), 'rescue');
  const file = opened(directory);
  rmSync(directory, { recursive: true });
  file.put(saving('the set', 'a'));
  expect(textIn(directory)).toMatch(/the set/);
});

test('a rescue file that cannot be recreated never writes into another file, and works once it can be recreated', () => {
  const directory = join(folder(), 'rescue');
  const file = opened(directory);
  rmSync(directory, { recursive: true });
  const { free, taken } = blocked(directory);
  expect(() => file.put(saving('the set', 'a'))).toThrow(/EEXIST|ENOTDIR/);
  const others = taken();
  expect(() => file.put(saving('the set', 'a'))).toThrow(/EEXIST|ENOTDIR/);
  expect(() => file.clear()).toThrow(/EEXIST|ENOTDIR/);
  expect(others()).toBe('');
  free();
  file.put(saving('the set', 'b'));
  expect(textIn(directory)).toMatch(/the set/);
});

test('a rescue file that was closed writes nothing, whoever has its descriptor by then', () => {
  const file = opened(join(folder(), 'rescue'));
  const { taken } = blocked(join(folder(), 'other'));
  file.close();
  const others = taken();
  expect(() => file.put(saving('the set', 'a'))).toThrow(/was closed/);
  expect(() => file.clear()).toThrow(/was closed/);
  expect(others()).toBe('');
});

test.runIf(process.getuid?.() === 0)(
  'what root leaves in the folder of a gateway belongs to the user of the gateway',
  () => {
    const directory = folder();
    chownSync(directory, BOUND, BOUND);
    opened(directory).put(saving('the set', 'a'));
    const [name] = readdirSync(directory);
    expect(statSync(join(directory, name!))).toMatchObject({ uid: BOUND, gid: BOUND });
  },
);

/** A file with the name of the folder. */
function blocked(directory: string) {
  writeFileSync(directory, '');
  return {
    free: () => rmSync(directory),
    /** Closed descriptors are soon used again, for other files. */
    taken: () => {
      const places = [1, 2, 3].map((index) => `${directory}-${index}`);
      const descriptors = places.map((place) => openSync(place, 'w+'));
      onTestFinished(() => descriptors.forEach((one) => closeSync(one)));
      return () => places.map((place) => readFileSync(place, 'utf8')).join('');
    },
  };
}

function textIn(directory: string): string {
  return readdirSync(directory)
    .map((name) => readFileSync(join(directory, name), 'utf8'))
    .join('');
}
