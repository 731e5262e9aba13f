import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import type { TokenStore } from '../../src/tokens/token-store.ts';

/** Away after the test. */
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

/** Everything in a folder. Not while a store of this process is open there: that would drop its locks. */
export function bytesIn(path: string): Record<string, string> {
  const files = readdirSync(path).map((name) => [
    name,
    readFileSync(join(path, name)).toString('latin1'),
  ]);
  return Object.fromEntries(files) as Record<string, string>;
}

export interface Other {
  /** The next line that it prints. */
  line(): Promise<string>;
  signal(name: NodeJS.Signals): void;
  readonly ended: Promise<unknown>;
  tell(line: string): void;
}

const HEAD = `
  import { openSqliteStore } from ${JSON.stringify(resolve('src/tokens/sqlite-store.ts'))};
  import { createInterface } from 'node:readline';
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const told = async () => (await lines.next()).value;
  const print = (value) => console.log(JSON.stringify(value));
  const pairOf = (name) => ({ accessToken: 'access-' + name, refreshToken: 'refresh-' + name, expiresIn: 1, refreshTokenExpiresIn: 2, name: null });
  const [path] = process.argv.slice(1);
`;

/** Another process, with the store's opener, `path`, `print` and `told` at hand. Killed after the test. */
export function otherProcess(
  script: string,
  path: string,
  { user }: { user?: number | undefined } = {},
): Other {
  const args = ['--input-type=module-typescript', '--no-warnings', '-e', HEAD + script, path];
  const child = spawn(process.execPath, args, {
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
