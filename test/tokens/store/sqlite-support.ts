import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { onTestFinished } from 'vitest';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import type { TokenStore } from '../../../src/tokens/store/token-store.ts';
import { look, importInto, claiming, saving } from './token-store-contract.ts';

/** Removed after the test. On a disk: a store in memory gives a notice. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'recruiting-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export function closing(store: TokenStore): TokenStore {
  onTestFinished(() => store.close());
  return store;
}

export function mode(path: string): number {
  return statSync(path).mode & 0o777;
}

/**
 * The bytes of all files in a folder. Not while a store of this process is open there: that would release its locks.
 */
export function bytesIn(path: string): Record<string, string> {
  const files = readdirSync(path).map((name) => [
    name,
    readFileSync(join(path, name)).toString('latin1'),
  ]);
  return Object.fromEntries(files) as Record<string, string>;
}

/** A store with several generations, closed. */
export async function used(path = join(folder(), 'tokens.db')) {
  const store = openSqliteStore(path);
  const set = await importInto(store, 'link');
  await store.save(saving(set, 'a', 1));
  await store.save(saving(set, 'b', 2));
  await store.claim(claiming(set, 'c', 3));
  const stored = (await look(store))!;
  await store.close();
  return {
    path,
    set,
    stored: { ...stored, claim: { ...stored.claim!, live: false }, unanswered: 1 },
  };
}

export function databaseOf(sql: string, path = join(folder(), 'tokens.db')): string {
  const made = new DatabaseSync(path);
  made.exec(sql);
  made.close();
  chmodSync(path, 0o600);
  return path;
}
