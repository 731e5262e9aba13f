/** Files that replace the file of a store, or are removed, while it is open. */
import { copyFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createSealer, SealError } from '../../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import { StoreGoneError } from '../../../src/tokens/store/token-store.ts';
import { pairOf } from '../../support/tokens/tokens.ts';
import { closing, used } from './sqlite-support.ts';
import { look, BASE_URL, importInto, saving } from './token-store-contract.ts';

/** At generation 4, with a copy of generation 3 beside it. */
async function copied() {
  const { path, set } = await used();
  const backup = `${path}-backup`;
  copyFileSync(path, backup);
  const store = closing(openSqliteStore(path));
  await store.save(saving(set, 'c', 3));
  expect(await store.read()).toMatchObject({ generation: 4 });
  return { path, set, backup, store };
}

test.each([
  ['written over it', copyFileSync],
  ['moved to its place', renameSync],
])('an older copy that was %s is what is read, and the pair is saved into it', async (_, put) => {
  const { path, set, backup, store } = await copied();
  put(backup, path);
  expect(await store.read()).toMatchObject({ set, generation: 3, pair: pairOf('b') });
  expect(await store.save(saving(set, 'c', 3))).toBe(true);
  const other = closing(openSqliteStore(path));
  expect(await other.read()).toMatchObject({ set, generation: 4, pair: pairOf('c') });
});

test.each([
  ['written over it', copyFileSync],
  ['moved to its place', renameSync],
])('a store of another set that was %s is what is read', async (_, put) => {
  const { path, store } = await copied();
  const elsewhere = `${path}-elsewhere`;
  const made = openSqliteStore(elsewhere);
  const set = await importInto(made, 'other');
  await made.close();
  put(elsewhere, path);
  expect(await store.read()).toMatchObject({ set, generation: 1, pair: pairOf('other') });
});

test('a removed file is reported as gone, and read again once it is back', async () => {
  const { path, store } = await copied();
  const before = await look(store);
  renameSync(path, `${path}-away`);
  await expect(store.read()).rejects.toThrow(StoreGoneError);
  await expect(store.read()).rejects.toThrow('the file is gone');
  renameSync(`${path}-away`, path);
  expect(await look(store)).toEqual(before);
});

test('a store that is encrypted with another key is reported as such, not as gone', async () => {
  const { path, store } = await copied();
  const sealer = createSealer([Buffer.alloc(32, 1)]);
  await openSqliteStore(path, { sealer }).close();
  await expect(store.read()).rejects.toThrow(SealError);
  await expect(store.read()).rejects.toThrow('TOKEN_STORE_KEY is not set');
});

test('if an empty store is written over the file, the pair is saved into that', async () => {
  const { path, set, store } = await copied();
  const home = { store: store.description, storeId: 'replaced', baseUrl: BASE_URL };
  await openSqliteStore(`${path}-empty`).close();
  copyFileSync(`${path}-empty`, path);
  expect(await store.read()).toBeNull();
  await store.save({ ...saving(set, 'c', 3), home });
  const other = closing(openSqliteStore(path));
  expect(await other.read()).toMatchObject({ set, generation: 4, pair: pairOf('c') });
});

test('another file in its place is refused as not being a store, and left unchanged', async () => {
  const { path, set, store } = await copied();
  rmSync(path);
  writeFileSync(path, 'These are my notes.\n'.repeat(400));
  await expect(store.read()).rejects.toThrow(StoreGoneError);
  await expect(store.read()).rejects.toThrow('not a database');
  await expect(store.save(saving(set, 'd', 4))).rejects.toThrow('not a database');
});

test('a file that was overwritten with something else is refused as not being a store', async () => {
  const { path, store } = await copied();
  writeFileSync(path, 'These are my notes.\n'.repeat(400));
  await expect(store.read()).rejects.toThrow(StoreGoneError);
  await expect(store.read()).rejects.toThrow('not a database');
});
