import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { createSealer, SealError } from '../../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import { pairOf } from '../../support/tokens/tokens.ts';
import { bytesIn, closing, folder } from './sqlite-support.ts';
import { HOLDER, otherProcess } from './other-process.ts';
import { claiming, importInto, saving } from './token-store-contract.ts';

const [OLD, NEW] = [randomBytes(32), randomBytes(32)];
const TOKEN = /access-|refresh-/;

async function filled(place: string, ...keys: Uint8Array[]) {
  const path = join(place, 'tokens.db');
  const store = openSqliteStore(path, { sealer: createSealer(keys) });
  const set = await importInto(store, 'link');
  await store.claim(claiming(set, 'a'));
  await store.save(saving(set, 'a'));
  await store.save(saving(set, 'beside'));
  await store.close();
  return { path, set };
}

describe('a store with a key', () => {
  test('a store with a key leaves no readable token on the disk', async () => {
    const place = folder();
    await filled(place, NEW);
    expect(Object.values(bytesIn(place)).join()).not.toMatch(TOKEN);
  });

  test.each([
    ['no key', [], /TOKEN_STORE_KEY is not set/],
    ['another key', [OLD], /none of those in TOKEN_STORE_KEY/],
  ])(
    'a sealed store is refused with %s, and left byte for byte as it was',
    async (_, keys, message) => {
      const place = folder();
      const { path } = await filled(place, NEW);
      const before = bytesIn(place);
      const open = () => openSqliteStore(path, { sealer: createSealer(keys) });
      expect(open).toThrow(SealError);
      expect(open).toThrow(message);
      expect(bytesIn(place)).toEqual(before);
    },
  );

  test('a sealed store is refused with another key even if nothing was ever imported', async () => {
    const path = join(folder(), 'tokens.db');
    await openSqliteStore(path, { sealer: createSealer([NEW]) }).close();
    expect(() => openSqliteStore(path)).toThrow(SealError);
  });

  test('a sealed store is encrypted again with a newer key, and no longer needs the older one', async () => {
    const place = folder();
    const { path, set } = await filled(place, OLD);
    const before = bytesIn(place)['tokens.db']!;
    const oldId = /aes-256-gcm:([0-9a-f]{8}):/.exec(before)![1]!;
    await openSqliteStore(path, { sealer: createSealer([NEW, OLD]) }).close();
    expect(Object.values(bytesIn(place)).join()).not.toContain(oldId);

    const store = closing(openSqliteStore(path, { sealer: createSealer([NEW]) }));
    expect(await store.read()).toMatchObject({ set, generation: 2, pair: pairOf('a'), surplus: 1 });
  });

  test('a store without a key is encrypted when it gets one, and no readable token is left', async () => {
    const place = folder();
    const { path, set } = await filled(place);
    expect(Object.values(bytesIn(place)).join()).toMatch(TOKEN);
    const store = openSqliteStore(path, { sealer: createSealer([NEW]) });
    expect(await store.read()).toMatchObject({ set, generation: 2, pair: pairOf('a'), surplus: 1 });
    await store.close();
    expect(Object.values(bytesIn(place)).join()).not.toMatch(TOKEN);
  });

  test('a store has no readable token after the next start, if encrypting it was interrupted', async () => {
    const place = folder();
    const { path } = await filled(place, NEW);
    // As it is left between the transaction that seals and the cleaning after it.
    const database = new DatabaseSync(path);
    database.exec(`PRAGMA secure_delete = OFF; CREATE TABLE left_over (text TEXT);
      INSERT INTO left_over VALUES ('refresh-left'); DROP TABLE left_over;
      INSERT INTO due VALUES ('wipe');`);
    database.close();
    expect(Object.values(bytesIn(place)).join()).toMatch(TOKEN);
    await openSqliteStore(path, { sealer: createSealer([NEW]) }).close();
    expect(Object.values(bytesIn(place)).join()).not.toMatch(TOKEN);
  });

  test('a sealed store is refused if what is encrypted was altered', async () => {
    const place = folder();
    const { path } = await filled(place, NEW);
    const database = new DatabaseSync(path);
    database.exec(
      "UPDATE tokens SET document = substr(document, 1, 80) || 'AAAA' || substr(document, 85)",
    );
    database.close();
    const before = bytesIn(place);
    expect(() => openSqliteStore(path, { sealer: createSealer([NEW]) })).toThrow(/altered/);
    expect(bytesIn(place)).toEqual(before);
  });

  test('a store is not encrypted while a process that does not know the key has an exchange', async () => {
    const place = folder();
    const { path } = await filled(place);
    const holder = otherProcess(HOLDER, path);
    expect(await holder.line()).toBe('true');
    const sealer = createSealer([NEW]);
    const store = closing(openSqliteStore(path, { sealer }));
    expect(store.notices.join()).toMatch(/another process is exchanging.*next start/);
    holder.tell('save');
    expect(await holder.line()).toBe('true');
    expect(await store.read()).toMatchObject({
      generation: 3,
      pair: { accessToken: 'access-theirs' },
    });
    await store.close();
    holder.signal('SIGKILL');
    await holder.ended;

    const next = openSqliteStore(path, { sealer });
    expect(next.notices).toEqual([]);
    await next.close();
    expect(Object.values(bytesIn(place)).join()).not.toMatch(TOKEN);
  });

  test('no readable token is left after the next start, if a running process was the first to encrypt the store', async () => {
    const place = folder();
    const { path, set } = await filled(place);
    const holder = otherProcess(HOLDER, path);
    expect(await holder.line()).toBe('true');
    const sealer = createSealer([NEW]);
    const store = closing(openSqliteStore(path, { sealer }));
    holder.tell('save');
    expect(await holder.line()).toBe('true');
    holder.signal('SIGKILL');
    await holder.ended;
    expect(await store.claim(claiming(set, 'b', 3))).toBeDefined();
    await store.close();

    await openSqliteStore(path, { sealer }).close();
    expect(Object.values(bytesIn(place)).join()).not.toMatch(TOKEN);
  });
});
