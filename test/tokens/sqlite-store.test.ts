import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/sqlite-store.ts';
import type { TokenStore } from '../../src/tokens/token-store.ts';
import { pairOf } from '../support/tokens.ts';
import { tokenStoreContract } from './token-store-contract.ts';

tokenStoreContract('sqlite in memory', () => closing(openSqliteStore(':memory:')));
tokenStoreContract('sqlite in a file', () => closing(openSqliteStore(join(folder(), 'tokens.db'))));

const set = { baseUrl: 'https://recruiting.test', pair: pairOf('link'), at: 1, after: 0 };

describe('the SQLite file', () => {
  test('still has, after it was closed and opened again, all that was saved', async () => {
    const path = join(folder(), 'tokens.db');
    const first = openSqliteStore(path);
    await first.import(set);
    await first.save({ generation: 1, attempt: 'a', pair: pairOf('a'), at: 2 });
    await first.mark({ generation: 2, attempt: 'b', until: 9, now: 3 });
    const before = await first.read();
    await first.close();

    const second = closing(openSqliteStore(path));
    expect(await second.read()).toEqual(before);
    expect(before).toMatchObject({ generation: 2, mark: { attempt: 'b', until: 9 } });
  });

  test('shows a second process what the first one did, and lets only one of them mark', async () => {
    const path = join(folder(), 'tokens.db');
    const [one, other] = [closing(openSqliteStore(path)), closing(openSqliteStore(path))];
    await one.import(set);
    expect(await other.import(set)).toBeNull();
    expect(await other.read()).toEqual(await one.read());
    expect(await other.mark({ generation: 1, attempt: 'o', until: 9, now: 1 })).toBe(true);
    expect(await one.mark({ generation: 1, attempt: 'i', until: 9, now: 1 })).toBe(false);
  });

  test('is for its owner alone, with all that lies beside it', async () => {
    const path = join(folder(), 'made', 'for', 'it', 'tokens.db');
    const store = closing(openSqliteStore(path));
    await store.import(set);
    await store.save({ generation: 1, attempt: 'a', pair: pairOf('a'), at: 2 });

    const beside = join(path, '..');
    expect(mode(beside)).toBe(0o700);
    expect(readdirSync(beside)).toContain('tokens.db');
    for (const name of readdirSync(beside))
      expect([name, mode(join(beside, name))]).toEqual([name, 0o600]);
  });

  test('is for its owner alone again when it was opened up', async () => {
    const path = join(folder(), 'tokens.db');
    await openSqliteStore(path).close();
    chmodSync(path, 0o644);
    closing(openSqliteStore(path));
    expect(mode(path)).toBe(0o600);
  });

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

  test('of another program is refused, and left byte for byte as it was', () => {
    const path = database('CREATE TABLE cookies (name TEXT); PRAGMA user_version = 1;');
    const before = readFileSync(path);
    expect(() => openSqliteStore(path)).toThrow(/something else/);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('of a newer layout is refused, and left byte for byte as it was', () => {
    const path = database('CREATE TABLE token_set (id INTEGER); PRAGMA user_version = 999;');
    const before = readFileSync(path);
    expect(() => openSqliteStore(path)).toThrow(/newer version.*999/);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('in a place that is a folder is refused', () => {
    const path = join(folder(), 'tokens.db');
    mkdirSync(path);
    expect(() => openSqliteStore(path)).toThrow('unable to open');
    expect(readdirSync(path)).toEqual([]);
  });
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'tokens-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function closing(store: TokenStore): TokenStore {
  onTestFinished(() => store.close());
  return store;
}

function database(sql: string): string {
  const path = join(folder(), 'tokens.db');
  const made = new DatabaseSync(path);
  made.exec(sql);
  made.close();
  return path;
}

function mode(path: string): number {
  return statSync(path).mode & 0o777;
}
