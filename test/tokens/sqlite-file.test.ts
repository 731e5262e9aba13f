import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { readdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/sqlite-store.ts';
import { pairOf } from '../support/tokens.ts';
import { bytesIn, closing, folder, mode, otherProcess } from './sqlite-support.ts';
import { AT, BASE_URL, importing, importInto, mark, saving } from './token-store-contract.ts';

/** A store that has seen some life, closed. */
async function used(path = join(folder(), 'tokens.db')) {
  const store = openSqliteStore(path);
  const set = await importInto(store, 'link');
  await store.save(saving(set, 'a', 1));
  await store.save(saving(set, 'b', 2));
  await store.mark(mark(set, 'c', 3));
  const stored = (await store.read())!;
  await store.close();
  return {
    path,
    set,
    stored: { ...stored, mark: { ...stored.mark!, live: false }, unanswered: 1 },
  };
}

function databaseOf(sql: string): string {
  const path = join(folder(), 'tokens.db');
  const made = new DatabaseSync(path);
  made.exec(sql);
  made.close();
  return path;
}

test('after it was closed and opened again it has all that was saved', async () => {
  const { path, stored } = await used();
  const store = closing(openSqliteStore(path));
  expect(await store.read()).toEqual(stored);
  expect(store.notices).toEqual([]);
});

test('of spent refresh tokens only the last one stays, and of replaced sets the last one', async () => {
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
  // The journal keeps what the last transactions wrote over.
  const inFile = [...new Set(bytesIn(place)['tokens.db']!.match(/refresh-\w+-\d/g))].toSorted();
  expect(inFile).toEqual(['refresh-three-1', 'refresh-three-2', 'refresh-two-1', 'refresh-two-2']);
  expect(kept).not.toContain('refresh-one-0');
});

describe('the rights of its files', () => {
  test('are for its owner alone, with all that lies beside it', async () => {
    const path = join(folder(), 'made', 'for', 'it', 'tokens.db');
    await used(path);
    const beside = join(path, '..');
    expect(mode(beside)).toBe(0o700);
    expect(readdirSync(beside)).toEqual(['tokens.db', 'tokens.db-journal', 'tokens.db-lock']);
    for (const name of readdirSync(beside)) expect(mode(join(beside, name))).toBe(0o600);
  });

  test('are repaired when they were opened up, and that is said', async () => {
    const { path } = await used();
    const place = join(path, '..');
    for (const name of readdirSync(place)) chmodSync(join(place, name), 0o644);
    chmodSync(place, 0o755);
    const { notices } = closing(openSqliteStore(path));
    for (const name of readdirSync(place)) expect(mode(join(place, name))).toBe(0o600);
    expect(mode(place)).toBe(0o700);
    expect(notices).toHaveLength(4);
  });

  test('are left alone where the folder is for other things too', async () => {
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
  ])('on a file system of type %d is refused before anything is made there', (type, message) => {
    const place = folder();
    const open = () => openSqliteStore(join(place, 'a', 't.db'), { fileSystemType: () => type });
    expect(open).toThrow(message);
    expect(readdirSync(place)).toEqual([]);
  });

  test('in /proc is refused at once', () => {
    expect(() => openSqliteStore('/proc/tokens/tokens.db')).toThrow(/kernel/);
  });

  test('in memory is used, and said to be lost with the next boot', () => {
    const path = join(folder(), 'tokens.db');
    const store = closing(openSqliteStore(path, { fileSystemType: () => 0x01021994 }));
    expect(store.notices.join()).toMatch(/lost with the next boot/);
  });

  test('that is a folder is refused', () => {
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
  ])('that is no database (%s) is refused, and left byte for byte as it was', (_, bytes) => {
    const path = join(folder(), 'tokens.db');
    writeFileSync(path, bytes, { mode: 0o640 });
    expect(() => openSqliteStore(path)).toThrow('not a database');
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(mode(path)).toBe(0o640);
  });

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
  ])('%s is refused, and left byte for byte as it was', (_, sql, message) => {
    const path = databaseOf(sql);
    const before = bytesIn(join(path, '..'));
    expect(() => openSqliteStore(path)).toThrow(message);
    expect(bytesIn(join(path, '..'))).toEqual(before);
  });

  test('that was cut off is refused wherever it was cut, and left as it was', async () => {
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

  test('with a flipped bit is refused and left as it was, or gives the very tokens that were saved', async () => {
    const { path, stored } = await used();
    const place = join(path, '..');
    const whole = readFileSync(path);
    const before = bytesIn(place);
    // What is beyond lies in reserve, and what is zero is mostly room.
    const places = [...whole.subarray(0, 17 * 4096).entries()].filter(([, byte]) => byte !== 0);
    let refused = 0;
    for (let tries = 0; tries < 250; tries += 1) {
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
        const { set, generation, pair, lost, movedTo, mark: marked } = stored;
        expect(await store.read(), what).toMatchObject({
          set,
          generation,
          pair,
          lost,
          movedTo,
          mark: marked,
        });
        await store.close();
      }
      for (const [name, content] of Object.entries(before)) {
        writeFileSync(join(place, name), content, 'latin1');
      }
    }
    expect(refused).toBeGreaterThan(10);
  });

  test.each([
    [
      'the access token',
      "UPDATE token_pair SET access_token = 'plain:access-x' WHERE generation = 3",
    ],
    [
      'the refresh token',
      "UPDATE token_pair SET refresh_token = 'plain:refresh-x' WHERE generation = 3",
    ],
    ['the generation', 'UPDATE token_set SET head = 2'],
    ['that it was lost', 'UPDATE token_set SET lost = 1'],
    ['the mark', 'UPDATE token_set SET mark_attempt = NULL'],
    ['all its pairs', 'DELETE FROM token_pair'],
  ])('in which somebody changed %s is refused', async (_, sql) => {
    const { path } = await used();
    const changed = new DatabaseSync(path);
    changed.exec(sql);
    changed.close();
    expect(() => openSqliteStore(path)).toThrow(/damaged/);
  });
});

describe('a store of the first version', () => {
  const LAYOUT_1 = `
    CREATE TABLE token_set (
      id INTEGER PRIMARY KEY AUTOINCREMENT, base_url TEXT NOT NULL, head INTEGER NOT NULL,
      lost INTEGER NOT NULL DEFAULT 0, mark_attempt TEXT, mark_until INTEGER) STRICT;
    CREATE TABLE token_pair (
      set_id INTEGER NOT NULL REFERENCES token_set (id), generation INTEGER NOT NULL,
      attempt TEXT NOT NULL, access_token TEXT NOT NULL, refresh_token TEXT NOT NULL,
      expires_in REAL NOT NULL, refresh_expires_in REAL NOT NULL, name TEXT,
      saved_at INTEGER NOT NULL, PRIMARY KEY (set_id, generation, attempt)) STRICT;
    PRAGMA user_version = 1;
    INSERT INTO token_set (base_url, head, lost) VALUES ('${BASE_URL}', 1, 1);
    INSERT INTO token_pair VALUES (1, 1, 'import', 'access-x', 'refresh-x', 1, 2, 'X', 5);
    INSERT INTO token_set (base_url, head, mark_attempt, mark_until) VALUES ('${BASE_URL}', 3, 'b', ${AT});
    INSERT INTO token_pair VALUES (2, 2, 'import', 'access-link', 'refresh-link', 1, 2, 'Test', 5);
    INSERT INTO token_pair VALUES (2, 3, 'a', 'access-a', 'refresh-a', 86400, 10368000, 'Test', 6);`;

  test('is taken over with its tokens, its mark and its history', async () => {
    const path = databaseOf(LAYOUT_1);
    const store = closing(openSqliteStore(path));
    const stored = (await store.read())!;
    expect(stored).toMatchObject({
      baseUrl: BASE_URL,
      generation: 3,
      pair: pairOf('a'),
      savedAt: 6,
      lost: false,
      movedTo: null,
      imported: false,
      mark: { attempt: 'b', at: AT, live: false },
      unanswered: 1,
      surplus: 0,
    });
    expect((await store.history(9)).map(({ outcome }) => outcome)).toEqual([
      'begun',
      'rotated',
      'imported',
      'imported',
    ]);
    for (const [name, generation, current] of [
      ['x', 1, false] as const,
      ['link', 2, false] as const,
      ['a', 3, true] as const,
    ]) {
      expect(await store.import(importing(stored, name))).toEqual({
        kind: 'known',
        generation,
        current,
      });
    }
    expect(await store.mark(mark(stored.set, 'c', 3))).toEqual({ overExpired: false });
    expect(await store.save(saving(stored.set, 'c', 3))).toBe(true);
    expect(await store.read()).toMatchObject({ generation: 4, pair: pairOf('c') });
  });

  test('is refused and left as it was when its tables are not those of that version', () => {
    const path = databaseOf(
      'CREATE TABLE token_set (id); CREATE TABLE token_pair (id); PRAGMA user_version = 1;',
    );
    const before = readFileSync(path);
    expect(() => openSqliteStore(path)).toThrow(/no such column/);
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});

test('a move that was cut off between the stores is finished by the same command, and undone by none', async () => {
  const place = folder();
  const [source, target] = ['a', 'b'].map((name) => closing(openSqliteStore(join(place, name))));
  await importInto(source!, 'link');
  const move = { to: 'b', at: AT, replica: 'r' };
  await source!.moveOut(move);
  const again = { ...(await source!.moveOut(move)), at: AT, replica: 'r' };
  await target!.moveIn(again);
  const { set, generation } = (await target!.read())!;
  await target!.save(saving(set, 'next', generation));
  const rotated = await target!.read();

  // Were this refused, the source would take the set back: a spent token.
  await target!.moveIn({ ...(await source!.moveOut(move)), at: AT, replica: 'r' });
  expect(await target!.read()).toEqual(rotated);
  await target!.moveOut({ ...move, to: 'c' });
  await target!.moveIn({ ...(await source!.moveOut(move)), at: AT, replica: 'r' });
  expect(await target!.read()).toEqual({ ...rotated, movedTo: 'c' });
});

test('a set can be moved there and back without an exchange between', async () => {
  const place = folder();
  const [one, other] = ['a', 'b'].map((name) => closing(openSqliteStore(join(place, name))));
  await importInto(one!, 'link');
  for (let round = 0; round < 3; round += 1) {
    await other!.moveIn({
      ...(await one!.moveOut({ to: 'b', at: 1, replica: 'r' })),
      at: 1,
      replica: 'r',
    });
    expect([(await one!.read())!.movedTo, (await other!.read())!.movedTo]).toEqual(['b', null]);
    await one!.moveIn({
      ...(await other!.moveOut({ to: 'a', at: 1, replica: 'r' })),
      at: 1,
      replica: 'r',
    });
    expect([(await one!.read())!.movedTo, (await other!.read())!.movedTo]).toEqual([null, 'a']);
  }
  expect(await one!.read()).toMatchObject({ pair: pairOf('link'), imported: true });
});

describe('on a full disk', () => {
  const FULL = `
    import { execFileSync } from 'node:child_process';
    import { statSync } from 'node:fs';
    import { DatabaseSync } from 'node:sqlite';
    const store = openSqliteStore(path);
    const { set, generation } = await store.read();
    if ((await told()) === 'without reserve') {
      const database = new DatabaseSync(path);
      database.exec('VACUUM; PRAGMA journal_mode = DELETE');
      database.close();
    }
    const sizes = () => [path, path + '-journal'].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
    const before = sizes();
    execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=' + Math.max(...before)]);
    const said = [];
    const tried = (work) => work.then((result) => said.push(result), (error) => said.push(error.message));
    const mark = (attempt, generation) => ({ set, generation, attempt, at: 1, lifeMs: 1, replica: 'r' });
    const long = { ...pairOf('x'), accessToken: 'a'.repeat(20_000), refreshToken: 'r'.repeat(20_000) };
    await tried(store.mark(mark('one', generation)));
    await tried(store.settle('one', { outcome: 'uncertain', latencyMs: 1 }));
    await tried(store.mark(mark('two', generation)));
    await tried(store.save({ set, generation, attempt: 'two', pair: long, outcome: 'rotated', at: 2, latencyMs: 1 }));
    print([said, sizes().every((size, index) => size <= before[index])]);`;

  const limited = canLimit();

  test.runIf(limited)('marks, endings and saves have their room in reserve', async () => {
    const { path } = await used();
    const child = otherProcess(FULL, path);
    child.tell('with reserve');
    const [said, within] = JSON.parse(await child.line()) as [unknown[], boolean];
    expect(said).toEqual([{ overExpired: false }, null, { overExpired: false }, true]);
    expect(within).toBe(true);
    child.signal('SIGKILL');
    await child.ended;
    expect(await closing(openSqliteStore(path)).read()).toMatchObject({
      generation: 4,
      mark: null,
    });
  });

  test.runIf(limited)(
    'without that reserve they fail (so the test before says something)',
    async () => {
      const { path } = await used();
      const child = otherProcess(FULL, path);
      child.tell('without reserve');
      const [said, within] = JSON.parse(await child.line()) as [unknown[], boolean];
      expect(said[3] !== true || !within).toBe(true);
    },
  );
});

describe('a store that cannot be written', () => {
  const NOBODY = 65534;
  const SCRIPT = `
    const store = openSqliteStore(path);
    const { set, generation } = await store.read();
    const mark = { set, generation, attempt: 'm', at: 5, lifeMs: 1, replica: 'r' };
    print(store.notices);
    print((await store.read()));
    print(await store.mark(mark).catch((error) => error.message));
    await told();
    print(await store.mark(mark).catch((error) => error.message));
    print(await store.save({ set, generation, attempt: 'm', pair: pairOf('m'), outcome: 'rotated', at: 6, latencyMs: 1 }));`;

  test('serves what it holds, refuses the rest, and is used again once it can be written', async () => {
    const { path, stored } = await used();
    const place = join(path, '..');
    const isRoot = process.getuid?.() === 0;
    const files = readdirSync(place).map((name) => join(place, name));
    if (isRoot) execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, place]);
    for (const file of files) chmodSync(file, 0o400);
    chmodSync(place, 0o500);
    const child = otherProcess(SCRIPT, path, { user: isRoot ? NOBODY : undefined });
    expect(await child.line()).toMatch(/cannot be written.*EACCES.*nothing is rotated/);
    expect(JSON.parse(await child.line())).toEqual(stored);
    expect(await child.line()).toMatch(/cannot be written.*EACCES/);
    chmodSync(place, 0o700);
    for (const file of files) chmodSync(file, 0o600);
    child.tell('writable');
    expect(JSON.parse(await child.line())).toEqual({ overExpired: false });
    expect(await child.line()).toBe('true');
    if (isRoot) execFileSync('chown', ['-R', '0:0', place]);
    expect(await closing(openSqliteStore(path)).read()).toMatchObject({ generation: 4 });
  });

  test('sees that another process exchanges its token all the same', async () => {
    const { path } = await used();
    const place = join(path, '..');
    const holder = closing(openSqliteStore(path));
    const { set } = (await holder.read())!;
    await holder.mark(mark(set, 'holder', 3));
    const script = `const store = openSqliteStore(path); print([store.notices.length, (await store.read()).mark.live]);`;
    chmodSync(place, 0o755);
    for (const name of readdirSync(place)) chmodSync(join(place, name), 0o644);
    const isRoot = process.getuid?.() === 0;
    const child = otherProcess(script, path, { user: isRoot ? NOBODY : undefined });
    expect(await child.line()).toBe(isRoot ? '[1,true]' : '[4,true]');
  });
});

test('a store that was killed within a transaction is the one before it', async () => {
  const { path, stored } = await used();
  const place = folder();
  // What a kill -9 leaves behind: the file half written, and the journal that undoes it.
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA journal_mode = PERSIST; PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE;
    UPDATE token_set SET head = 9; CREATE TABLE filler (x BLOB);
    INSERT INTO filler VALUES (randomblob(200000)); INSERT INTO filler VALUES (randomblob(200000));`);
  const copy = join(place, 'tokens.db');
  execFileSync('cp', [path, copy]);
  execFileSync('cp', [`${path}-journal`, `${copy}-journal`]);
  database.exec('ROLLBACK');
  database.close();
  expect(existsSync(`${copy}-journal`)).toBe(true);
  expect(readFileSync(copy).equals(readFileSync(path))).toBe(false);
  expect(await closing(openSqliteStore(copy)).read()).toEqual(stored);
});

function canLimit(): boolean {
  try {
    execFileSync('prlimit', ['--version']);
    return true;
  } catch {
    return false;
  }
}
