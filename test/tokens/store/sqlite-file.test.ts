import {
  chmodSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
  readdirSync,
  symlinkSync,
  truncateSync,
} from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { readDocument, writeDocument } from '../../../src/tokens/store/sqlite/sqlite-file.ts';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import { bytesIn, closing, databaseOf, folder, mode, used } from './sqlite-support.ts';
import { can } from './other-process.ts';
import { look, ending, importInto, claiming, saving } from './token-store-contract.ts';

const plain = createSealer([]);

test('a store that was closed and opened again has everything that was saved', async () => {
  const { path, stored } = await used();
  const store = closing(openSqliteStore(path));
  expect(await look(store)).toEqual(stored);
  expect(store.notices).toEqual([]);
});

test('only the last spent refresh token and the last replaced set are kept', async () => {
  const place = folder();
  const path = join(place, 'tokens.db');
  const store = openSqliteStore(path);
  for (const name of ['one', 'two', 'three']) {
    const set = await importInto(store, name);
    const { generation } = (await store.read())!;
    for (const step of [0, 1, 2])
      await store.save(saving(set, `${name}-${step}`, generation + step));
  }
  await store.close();
  const written = Object.values(bytesIn(place)).join();
  const kept = [...new Set(written.match(/refresh-(?:one|two|three)(?:-\d)?/g))].toSorted();
  // The journal keeps what the last transactions overwrote.
  const inFile = [...new Set(bytesIn(place)['tokens.db']!.match(/refresh-\w+-\d/g))].toSorted();
  expect(inFile).toEqual(['refresh-three-1', 'refresh-three-2', 'refresh-two-1', 'refresh-two-2']);
  expect(kept).not.toContain('refresh-one-0');
});

test('what is deleted or overwritten leaves nothing in the file', async () => {
  const { path } = await used();
  const { link, a, b } = { link: 'refresh-link', a: 'refresh-a', b: 'refresh-b' };
  const bytes = readFileSync(path, 'latin1');
  expect([bytes.includes(link), bytes.includes(a), bytes.includes(b)]).toEqual([false, true, true]);
});

test('the history has the last thousand events, and every uncertain exchange', async () => {
  const path = join(folder(), 'tokens.db');
  const store = closing(openSqliteStore(path));
  const set = await importInto(store, 'link');
  await store.claim(claiming(set, 'uncertain-one'));
  await store.endAttempt('uncertain-one', ending('uncertain'));
  const database = new DatabaseSync(path);
  const document = readDocument(database, plain);
  for (let number = 0; number < 1500; number += 1) {
    const entry = { set, generation: 1, at: 0, latencyMs: 1, replica: 'r' };
    document.attempts.push({ ...entry, attempt: `limited-${number}`, outcome: 'rate-limited' });
  }
  writeDocument(database, document, plain);
  database.close();
  await store.claim(claiming(set, 'last'));
  const history = await store.history(5000);
  expect(history).toHaveLength(1001);
  expect(history[0]).toMatchObject({ attempt: 'last' });
  expect(history.at(-1)).toMatchObject({ attempt: 'uncertain-one' });
  expect(await store.read()).toMatchObject({ unanswered: 1 });
});

describe('the permissions of its files', () => {
  test('only the owner may access the files of the store', async () => {
    const path = join(folder(), 'made', 'for', 'it', 'tokens.db');
    await used(path);
    const beside = join(path, '..');
    expect(mode(beside)).toBe(0o700);
    expect(readdirSync(beside)).toEqual(['tokens.db', 'tokens.db-journal', 'tokens.db-lock']);
    for (const name of readdirSync(beside)) expect(mode(join(beside, name))).toBe(0o600);
  });

  test('permissions that allow others access are repaired, with a notice', async () => {
    const { path } = await used();
    const place = join(path, '..');
    for (const name of readdirSync(place)) chmodSync(join(place, name), 0o644);
    chmodSync(place, 0o755);
    const { notices } = closing(openSqliteStore(path));
    for (const name of readdirSync(place)) expect(mode(join(place, name))).toBe(0o600);
    expect(mode(place)).toBe(0o700);
    expect(notices).toHaveLength(4);
  });

  test('permissions of a folder that is used for other things too are left unchanged', async () => {
    const { path } = await used();
    const place = join(path, '..');
    writeFileSync(join(place, 'notes'), '');
    chmodSync(place, 0o755);
    expect(closing(openSqliteStore(path)).notices).toEqual([]);
    expect(mode(place)).toBe(0o755);
    chmodSync(place, 0o777);
    expect(closing(openSqliteStore(path)).notices.join()).toMatch(/written by others/);
    expect(mode(place)).toBe(0o777);
  });
});

describe('a place', () => {
  test.each([
    [0x6969, /network file system \(NFS\).*local disk/],
    [0xff534d42, /network file system \(CIFS\)/],
    [0xff534d42 | 0, /network file system \(CIFS\)/],
    [0xfe534d42, /network file system \(SMB\)/],
    [0x9fa0, /file system of the kernel/],
    [0x65735546, /handed in.*\(FUSE\).*local disk/],
    [0x01021997, /handed in.*\(9p\)/],
    [0x786f4256, /handed in.*\(vboxsf\)/],
  ])('a file system of type %d is refused before anything is created there', (type, message) => {
    const place = folder();
    const open = () => openSqliteStore(join(place, 'a', 't.db'), { fileSystemType: () => type });
    expect(open).toThrow(message);
    expect(readdirSync(place)).toEqual([]);
  });

  test('a store in /proc is refused at once', () => {
    expect(() => openSqliteStore('/proc/tokens/tokens.db')).toThrow(/kernel/);
  });

  test('a store in memory is used, with a notice that it is lost at the next boot', () => {
    const path = join(folder(), 'tokens.db');
    const store = closing(openSqliteStore(path, { fileSystemType: () => 0x01021994 }));
    expect(store.notices.join()).toMatch(/lost with the next boot/);
  });

  test.runIf(can('unshare', '-m', 'true'))(
    'a store that is mounted as a single file is refused, because its lock would be somewhere else',
    async () => {
      const { path } = await used();
      const mounted = join(folder(), 'the tokens.db');
      writeFileSync(mounted, '');
      const script = `import { openSqliteStore } from '${resolve('src/tokens/store/sqlite/sqlite-store.ts')}';
        try { openSqliteStore(process.argv[1]) } catch (error) { console.log(error.message) }`;
      const words = ['--no-warnings', '--input-type=module-typescript', '-e', script, mounted];
      const shell = ['sh', '-c', 'mount --bind "$0" "$1" && shift && exec "$@"'];
      const args = ['-m', ...shell, path, mounted, process.execPath, ...words];
      expect(execFileSync('unshare', args, { encoding: 'utf8' })).toMatch(/mount the folder/);
      expect(readdirSync(join(mounted, '..'))).toEqual(['the tokens.db']);
    },
  );

  test('a link to a file that does not exist is refused', () => {
    const path = join(folder(), 'tokens.db');
    symlinkSync(join(folder(), 'nothing'), path);
    expect(() => openSqliteStore(path)).toThrow('a link that leads nowhere');
  });

  test('a folder is refused as a store', () => {
    const path = join(folder(), 'tokens.db');
    mkdirSync(path);
    expect(() => openSqliteStore(path)).toThrow('it is a folder');
    expect(readdirSync(path)).toEqual([]);
  });
});

describe('a file', () => {
  test.each([
    ['text', Buffer.from('These are my notes.\n'.repeat(400))],
    ['zeroes', Buffer.alloc(8192)],
    ['half a page', Buffer.from('SQLite format 3\u0000 and no more')],
  ])(
    'a file that is not a database (%s) is refused, and left byte for byte as it was',
    (_, bytes) => {
      const path = join(folder(), 'tokens.db');
      writeFileSync(path, bytes, { mode: 0o640 });
      expect(() => openSqliteStore(path)).toThrow('not a database');
      expect(readFileSync(path).equals(bytes)).toBe(true);
      expect(mode(path)).toBe(0o640);
    },
  );

  test.each([
    [
      'of another program',
      'CREATE TABLE cookies (name TEXT); PRAGMA user_version = 1;',
      /something else/,
    ],
    [
      'of a newer layout',
      'CREATE TABLE token_set (id INTEGER); PRAGMA user_version = 999;',
      /newer version.*999/,
    ],
    ['with half of our tables', 'CREATE TABLE token_set (id INTEGER);', /something else/],
  ])('a database %s is refused, and left byte for byte as it was', (_, sql, message) => {
    const path = databaseOf(sql);
    const before = bytesIn(join(path, '..'));
    expect(() => openSqliteStore(path)).toThrow(message);
    expect(bytesIn(join(path, '..'))).toEqual(before);
  });

  test('a store that was truncated anywhere is refused and left unchanged', async () => {
    const { path } = await used();
    const whole = readFileSync(path);
    for (const size of [
      0,
      1,
      99,
      100,
      512,
      4095,
      4096,
      8192,
      20_000,
      40_960,
      whole.length - 4096,
    ]) {
      truncateSync(path, size);
      expect(() => openSqliteStore(path), `cut at ${size}`).toThrow(
        /damaged|malformed|not a database/,
      );
      expect(readFileSync(path).equals(whole.subarray(0, size))).toBe(true);
      writeFileSync(path, whole);
    }
  });

  test('a store with a flipped bit is refused and left unchanged, or returns exactly the tokens that were saved', async () => {
    const { path, stored } = await used();
    const place = join(path, '..');
    const whole = readFileSync(path);
    const before = bytesIn(place);
    // The rest is reserved space, and zeros are mostly free space.
    const places = [...whole.subarray(0, 17 * 4096).entries()].filter(([, byte]) => byte !== 0);
    let refused = 0;
    for (let tries = 0; tries < 150; tries += 1) {
      const [at] = places[Math.floor(Math.random() * places.length)]!;
      const bit = Math.floor(Math.random() * 8);
      const bytes = Buffer.from(whole);
      bytes[at]! ^= 1 << bit;
      writeFileSync(path, bytes);
      const what = `bit ${bit} of byte ${at}`;
      let store;
      try {
        store = openSqliteStore(path);
      } catch {
        refused += 1;
        expect(readFileSync(path).equals(bytes), what).toBe(true);
      }
      if (store) {
        const { set, generation, pair, lost, movedTo, claim } = stored;
        const same = { set, generation, pair, lost, movedTo, claim };
        expect(await look(store), what).toMatchObject(same);
        await store.close();
      }
      for (const [name, content] of Object.entries(before)) {
        writeFileSync(join(place, name), content, 'latin1');
      }
    }
    expect(refused).toBeGreaterThan(10);
  });

  test.each([
    ['the access token', "replace(document, 'access-b', 'access-x')"],
    ['the refresh token', "replace(document, 'refresh-b', 'refresh-x')"],
    ['the generation', `replace(document, '"head":3', '"head":2')`],
    ['that it was lost', `replace(document, '"lost":false', '"lost":true')`],
    ['its end', 'substr(document, 1, length(document) - 1)'],
    ['all of it', "''"],
  ])('a store in which somebody changed %s is refused', async (_, altered) => {
    const { path } = await used();
    const changed = new DatabaseSync(path);
    changed.exec(`UPDATE tokens SET document = ${altered}`);
    changed.close();
    expect(() => openSqliteStore(path)).toThrow(/damaged|holds no sealed tokens/);
  });
});
