import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { onTestFinished } from 'vitest';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import type { TokenStore } from '../../../src/tokens/store/token-store.ts';
import { look, importInto, claiming, saving } from './token-store-contract.ts';

/** Removed after the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'tokens-'));
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

export interface Other {
  /** The next line that it prints. */
  line(): Promise<string>;
  signal(name: NodeJS.Signals): void;
  readonly ended: Promise<unknown>;
  tell(line: string): void;
}

const HEAD = `
  import { openSqliteStore } from ${JSON.stringify(resolve('src/tokens/store/sqlite/sqlite-store.ts'))};
  import { createInterface } from 'node:readline';
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const input = async () => (await lines.next()).value;
  const print = (value) => console.log(JSON.stringify(value));
  const pairOf = (name) => ({ accessToken: 'access-' + name, refreshToken: 'refresh-' + name, expiresIn: 1, refreshTokenExpiresIn: 2, name: null });
  const [path] = process.argv.slice(1);
`;

/** For `otherProcess`: claims, prints that, and saves when the test says so. */
export const HOLDER = `
  const store = openSqliteStore(path);
  const { set, generation } = await store.read();
  const claim = { set, generation, attempt: 'theirs', lifeMs: 1, replica: 'other' };
  print((await store.claim(claim)) !== undefined);
  await input();
  const outcome = { outcome: 'rotated', at: 6, latencyMs: 1 };
  print(await store.save({ set, generation, attempt: 'theirs', pair: pairOf('theirs'), ...outcome }));
  await input();
`;

/** Another process, which has the store's opener, `path`, `print` and `input` in scope. Killed after the test. */
export function otherProcess(
  script: string,
  path: string,
  { user, args = [] }: { user?: number | undefined; args?: readonly string[] } = {},
): Other {
  const all = [
    '--input-type=module-typescript',
    '--no-warnings',
    '-e',
    HEAD + script,
    path,
    ...args,
  ];
  const child = spawn(process.execPath, all, {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(user !== undefined && { uid: user, gid: user }),
  });
  const ended = new Promise((done) => child.once('close', done));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let text = '';
  const waiting: ((line: string) => void)[] = [];
  const lines: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    const parts = (text + more).split('\n');
    text = parts.pop()!;
    lines.push(...parts);
    while (waiting.length > 0 && lines.length > 0) waiting.shift()!(lines.shift()!);
  });
  return {
    line: () =>
      new Promise((found, fail) => {
        if (lines.length > 0) found(lines.shift()!);
        else waiting.push(found);
        void ended.then(() => fail(new Error('it ended without a word')));
      }),
    signal: (name) => void child.kill(name),
    ended,
    tell: (line) => void child.stdin.write(`${line}\n`),
  };
}

/** Whether this machine has, and allows, such a command. */
export function can(command: string, ...args: string[]): boolean {
  try {
    execFileSync(command, args);
    return true;
  } catch {
    return false;
  }
}
