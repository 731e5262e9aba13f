/** Stores of layout 1, as the version before made them (first-layout/), and processes of that version beside this one. */
import { createHmac } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { openPostgresStore } from '../../../src/tokens/store/postgres/postgres-store.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { openExchangeLock } from '../../../src/tokens/store/sqlite/lock.ts';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import {
  StoreUnavailableError,
  StoreUnreadableError,
  type TokenStore,
} from '../../../src/tokens/store/token-store.ts';
import { startPostgres, type PostgresServer } from '../../support/postgres/server.ts';
import { bytesIn, closing, folder } from './sqlite-support.ts';
import { claiming, saving } from './token-store-contract.ts';

const KEY = Buffer.alloc(32, 7);
const sealed = createSealer([KEY]);

/** Two sets: the first was replaced at generation 3, the second is at 7, with an exchange that is uncertain. */
async function expectWhole(store: TokenStore): Promise<void> {
  const stored = (await store.read())!;
  expect(stored).toMatchObject({
    baseUrl: 'https://recruiting.test',
    generation: 7,
    pair: { accessToken: 'access-e', refreshToken: 'refresh-e', expiresIn: 86_400 },
    attempt: 'b6',
    lost: false,
    movedTo: null,
    imported: false,
    claim: { attempt: 'c1', live: false },
    unanswered: 1,
    surplus: 0,
    refusedEarly: false,
    refusesEarly: true,
  });
  const outcomes = (await store.history(99)).map(({ outcome }) => outcome);
  expect(outcomes).toEqual([
    'uncertain',
    'rotated',
    'rotated',
    'rotated',
    'imported',
    'rotated',
    'early',
    'rotated',
    'imported',
  ]);
  for (const token of ['first', 'a', 'b', 'beside', 'second', 'c', 'd']) {
    const pair = { ...stored.pair, refreshToken: `refresh-${token}` };
    const spent = { baseUrl: stored.baseUrl, pair, replica: 'r', after: stored };
    expect(await store.import(spent)).toMatchObject({ kind: 'known', current: false });
  }
  const { set } = stored;
  const over = { over: 'c1', knowsRefusal: true };
  expect(await store.claim({ ...claiming(set, 'next', 7), ...over })).toBeDefined();
  expect(await store.save({ ...saving(set, 'next', 7) })).toBe(true);
  expect(await store.read()).toMatchObject({ generation: 8, unanswered: 0, refusesEarly: true });
}

describe('a SQLite store of layout 1', () => {
  test.each(['plain', 'sealed'] as const)(
    'that is %s is opened, and loses nothing',
    async (name) => {
      const path = copyOf(name);
      const keys = name === 'sealed' ? [KEY] : [];
      const store = closing(openSqliteStore(path, { sealer: createSealer(keys) }));
      await expect(expectWhole(store)).resolves.toBeUndefined();
    },
  );

  test('is encrypted when it gets a key, and no token of its tables is left on the disk', async () => {
    const path = copyOf('plain');
    expect(Object.values(bytesIn(join(path, '..'))).join()).toMatch(/refresh-/);
    await openSqliteStore(path, { sealer: sealed }).close();
    expect(Object.values(bytesIn(join(path, '..'))).join()).not.toMatch(/access-|refresh-/);
    await expectWhole(closing(openSqliteStore(path, { sealer: sealed })));
  });

  test('is read as it is by a command that only reads, and refused without its key', async () => {
    const path = copyOf('sealed');
    const before = bytesIn(join(path, '..'));
    const reader = openSqliteStore(path, { sealer: sealed, readOnly: true });
    expect(await reader.read()).toMatchObject({ generation: 7 });
    expect(await reader.history(99)).toHaveLength(9);
    await reader.close();
    expect(() => openSqliteStore(path)).toThrow(/TOKEN_STORE_KEY is not set/);
    expect(bytesIn(join(path, '..'))).toEqual(before);
  });

  test.each([
    ['head', 'UPDATE token_set SET head = 6 WHERE id = 2'],
    ['pair', "UPDATE token_pair SET pair = replace(pair, 'access-e', 'access-x')"],
    ['set', 'DELETE FROM token_set'],
    ['table', 'DROP TABLE fingerprint'],
    ['newest pair', 'DELETE FROM token_pair WHERE set_id = 2 AND generation = 7'],
  ])('whose %s was damaged is refused, and left as it is', (_, damage) => {
    const path = copyOf('plain');
    const database = new DatabaseSync(path);
    database.exec(`PRAGMA foreign_keys = OFF; ${damage}`);
    database.close();
    const before = readFileSync(path);
    expect(() => openSqliteStore(path)).toThrow(/damaged|something else/);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('waits while a process of the older version exchanges, takes its pair over, and shuts it out then', async () => {
    const path = copyOf('plain');
    const older = olderProcess(path);
    await older.claim('theirs');
    const store = closing(openSqliteStore(path));
    await expect(store.read()).rejects.toThrow(StoreUnavailableError);
    older.save('theirs', 'f');
    expect(await store.read()).toMatchObject({
      generation: 8,
      pair: { refreshToken: 'refresh-f' },
      claim: null,
    });
    expect(() => older.save('late', 'g')).toThrow(/no such table/);
    await expect(older.claim('again')).rejects.toThrow(/no such table/);
  }, 60_000);
});

describe('a PostgreSQL store of layout 1', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  async function filled() {
    const url = await server.emptyStore();
    const own = new URL(url).username;
    const dump = readFileSync(join(import.meta.dirname, 'first-layout/postgres.sql'), 'utf8');
    const run = (statements: string) =>
      server.query(
        `BEGIN; SET LOCAL search_path = ${own}; SET LOCAL ROLE ${own}; ${statements}; COMMIT`,
      );
    await run(dump);
    return { url, own, run };
  }

  test('is opened, and loses nothing', async () => {
    const { url, own } = await filled();
    const [one, other] = [open(url), open(url)];
    await Promise.all([one.read(), other.read()]);
    await expectWhole(one);
    const layouts = [one.layout!, other.layout!].toSorted((a, b) => a.found - b.found);
    expect(layouts).toMatchObject([{ found: 1, now: 2 }, { now: 2 }]);
    const tables = await server.query(
      `SELECT tablename FROM pg_tables WHERE schemaname = '${own}' ORDER BY tablename`,
    );
    expect(tables.map(({ tablename }) => tablename)).toEqual([
      'recruiting_page_budget',
      'recruiting_token_document',
      'recruiting_token_store',
    ]);
  });

  test('is read as it is by a command that only reads', async () => {
    const { url, run } = await filled();
    const reader = open(url, true);
    expect(await reader.read()).toMatchObject({ generation: 7, unanswered: 1 });
    expect(await reader.history(99)).toHaveLength(9);
    expect(reader.layout).toEqual({ found: 1, now: 1 });
    await run('SELECT * FROM recruiting_token_pair');
  });

  test('whose newest pair was deleted is refused, and left as it is', async () => {
    const { url, run } = await filled();
    await run('DELETE FROM recruiting_token_pair WHERE set_id = 2 AND generation = 7');
    await expect(open(url).read()).rejects.toThrow(StoreUnreadableError);
    await run('SELECT * FROM recruiting_token_pair');
  });

  test('waits while a process of the older version exchanges, and takes its pair over', async () => {
    const { url, run } = await filled();
    await run(olderClaim(600_000));
    const store = open(url);
    await expect(store.read()).rejects.toThrow(StoreUnavailableError);
    const claimed = claiming('2fe106ba-7995-41bf-af36-cb20f1503d04', 'ours', 7);
    await expect(store.claim(claimed)).rejects.toThrow(StoreUnavailableError);
    await run(`SELECT layout FROM recruiting_token_store FOR UPDATE; ${OLDER_SAVE}`);
    expect(await store.read()).toMatchObject({ generation: 8, attempt: 'theirs', claim: null });
    expect(store.layout).toEqual({ found: 1, now: 2 });
  });

  test('is used when the claim of a process of the older version is over, which finds another layout then', async () => {
    const { url, run } = await filled();
    await run(olderClaim(-1));
    const store = open(url);
    expect(await store.read()).toMatchObject({ claim: { attempt: 'theirs', live: false } });
    // It reads the layout before anything else, and gives up.
    expect(
      await server.query(`SELECT layout FROM ${new URL(url).username}.recruiting_token_store`),
    ).toEqual([{ layout: 2 }]);
    await expect(run(OLDER_SAVE)).rejects.toThrow(/recruiting_token_pair.*does not exist/);
  });
});

function copyOf(name: 'plain' | 'sealed'): string {
  const path = join(folder(), 'tokens.db');
  const packed = readFileSync(join(import.meta.dirname, `first-layout/${name}.db.gz`));
  writeFileSync(path, gunzipSync(packed), { mode: 0o600 });
  return path;
}

/** The lock and the statements of the older version. */
function olderProcess(path: string) {
  const database = new DatabaseSync(path);
  const lock = openExchangeLock(`${path}-lock`);
  const select = database.prepare('SELECT * FROM token_set WHERE id = 2');
  const key = Buffer.from(
    String(database.prepare('SELECT key FROM ring').get()!['key']).slice('plain:'.length),
    'base64',
  );
  const sumOf = (values: unknown[]) =>
    createHmac('sha256', key).update(JSON.stringify(values)).digest('hex');
  const putSet = (head: number, claim: unknown) => {
    const { name, base_url: baseUrl } = select.get()!;
    database
      .prepare('UPDATE token_set SET head = ?, claim = ?, sum = ? WHERE id = 2')
      .run(
        head,
        claim === null ? null : JSON.stringify(claim),
        sumOf(['set', 2, name, baseUrl, head, false, null, false, claim]),
      );
  };
  const inTransaction = (work: () => void) => {
    database.exec('BEGIN IMMEDIATE');
    try {
      work();
      database.exec('COMMIT');
    } catch (error) {
      database.exec('ROLLBACK');
      throw error;
    }
  };
  return {
    claim: async (attempt: string) => {
      expect(await lock.take(attempt)).toBe(true);
      const at = Date.now();
      const claim = { attempt, at, until: at + 150_000, lock: lock.inode, ended: false };
      try {
        inTransaction(() => {
          putSet(7, claim);
          database
            .prepare(
              "INSERT INTO attempt (attempt, set_name, generation, at, outcome, replica) SELECT ?, name, 7, ?, 'begun', 'old' FROM token_set WHERE id = 2",
            )
            .run(attempt, at);
        });
      } finally {
        if (database.prepare('PRAGMA user_version').get()!['user_version'] !== 1) lock.close();
      }
    },
    save: (attempt: string, token: string) => {
      inTransaction(() => {
        const { name } = select.get()!;
        const pair = {
          accessToken: `access-${token}`,
          refreshToken: `refresh-${token}`,
          expiresIn: 86_400,
          refreshTokenExpiresIn: 10_368_000,
          name: null,
        };
        const at = Date.now();
        database
          .prepare('INSERT INTO token_pair VALUES (2, 8, ?, ?, ?, 0, 1, ?)')
          .run(
            attempt,
            `plain:${JSON.stringify(pair)}`,
            at,
            sumOf(['pair', name, 8, attempt, at, false, true, pair]),
          );
        putSet(8, null);
      });
      lock.release(attempt);
    },
  };
}

const olderClaim = (lifeMs: number): string => `
  SELECT layout FROM recruiting_token_store FOR UPDATE;
  UPDATE recruiting_token_set SET claim = 'theirs', claim_ended = false,
    claim_at = extract(epoch FROM clock_timestamp()) * 1000,
    claim_until = extract(epoch FROM clock_timestamp()) * 1000 + ${lifeMs} WHERE id = 2;
  INSERT INTO recruiting_token_attempt (attempt, set_name, generation, at, outcome, replica)
    SELECT 'theirs', name, 7, claim_at, 'begun', 'old' FROM recruiting_token_set WHERE id = 2`;

/** The pair is that of generation 7, sealed for 8. */
const OLDER_SAVE = `
  INSERT INTO recruiting_token_pair (set_id, generation, attempt, pair, saved_at, imported, was_head)
    VALUES (2, 8, 'theirs', '${sealed.seal(
      JSON.stringify({
        accessToken: 'access-f',
        refreshToken: 'refresh-f',
        expiresIn: 86_400,
        refreshTokenExpiresIn: 10_368_000,
        name: null,
      }),
      '2fe106ba-7995-41bf-af36-cb20f1503d04|https://recruiting.test|8|pair',
    )}', extract(epoch FROM clock_timestamp()) * 1000, false, true);
  UPDATE recruiting_token_set SET head = 8, claim = NULL, claim_at = NULL, claim_until = NULL WHERE id = 2`;

function open(url: string, readOnly = false): TokenStore {
  return closing(openPostgresStore(url, { sealer: sealed, clock: systemClock, readOnly }));
}
