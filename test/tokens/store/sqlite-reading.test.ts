/** A command that only reads changes no file of a store. */
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import { bytesIn, closing, folder, mode, used } from './sqlite-support.ts';
import { look, importing, importInto, claiming, saving } from './token-store-contract.ts';

const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

test('a store that is opened for reading shows everything, and no byte of its files changes', async () => {
  const { path, stored } = await used();
  // A process that may write would repair all of this, or create it.
  chmodSync(path, 0o644);
  writeFileSync(`${path}-journal`, '');
  const before = bytesIn(dirname(path));
  const store = openSqliteStore(path, { readOnly: true, sealer: createSealer([NEW]) });
  expect(await look(store)).toEqual(stored);
  expect(await store.history(10)).toHaveLength(2);
  await store.close();
  expect(bytesIn(dirname(path))).toEqual(before);
  expect(mode(path)).toBe(0o644);
});

test('a store that is opened for reading with a new key stays encrypted with the old one', async () => {
  const path = join(folder(), 'tokens.db');
  const made = openSqliteStore(path, { sealer: createSealer([OLD]) });
  await importInto(made, 'link');
  await made.close();
  const { mtimeNs } = statSync(path, { bigint: true });
  const reading = openSqliteStore(path, { readOnly: true, sealer: createSealer([NEW, OLD]) });
  expect(await reading.read()).toMatchObject({ generation: 1 });
  await reading.close();
  expect(statSync(path, { bigint: true }).mtimeNs).toBe(mtimeNs);
  const old = closing(openSqliteStore(path, { sealer: createSealer([OLD]) }));
  expect(await old.read()).toMatchObject({ generation: 1 });
});

test('a store that is opened for reading refuses all writes', async () => {
  const { path, set } = await used();
  const store = closing(openSqliteStore(path, { readOnly: true }));
  const refused = /cannot be written \(it was opened to be read only\)/;
  await expect(store.save(saving(set, 'x', 3))).rejects.toThrow(refused);
  await expect(store.claim(claiming(set, 'x', 3))).rejects.toThrow(refused);
  await expect(store.import(importing(null, 'x'))).rejects.toThrow(refused);
});

test('a missing file and an empty file are read as an empty store, and stay as they are', async () => {
  const path = join(folder(), 'not-made', 'tokens.db');
  const none = closing(openSqliteStore(path, { readOnly: true }));
  expect(await none.read()).toBeNull();
  expect(existsSync(dirname(path))).toBe(false);
  const empty = join(folder(), 'tokens.db');
  writeFileSync(empty, '', { mode: 0o600 });
  const store = closing(openSqliteStore(empty, { readOnly: true }));
  expect(await store.read()).toBeNull();
  expect(bytesIn(dirname(empty))).toEqual({ 'tokens.db': '' });
});
