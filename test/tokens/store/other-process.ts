import { execFileSync, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { onTestFinished } from 'vitest';

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
