import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll } from 'vitest';
import type { Exit } from '../processes/process.ts';

const living = new Set<ChildProcess>();

// A test that runs out of time never leaves the scopes it has entered.
afterAll(() => {
  for (const child of living) child.kill('SIGKILL');
});

/** A process that a fault can happen to. */
export interface FaultProcess {
  readonly pid: number;
  /** What it printed, on both streams. */
  readonly said: string;
  /** The first match in what was printed on stdout, or will be. Rejects when the process ends without it. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  signal(name: NodeJS.Signals): void;
  /** kill -9, and waits until it is gone. */
  kill(): Promise<Exit>;
  /** SIGTERM, and waits until it is gone. */
  stop(): Promise<Exit>;
  /** Writes a line to its standard input. */
  tell(line: string): void;
  readonly ended: Promise<Exit>;
}

export interface FaultProcessOptions {
  readonly env?: Record<string, string>;
  /** The user and group that it runs as; that of the tests otherwise. */
  readonly user?: number | undefined;
}

/** Starts a file of ours with Node. Nothing of the environment of the tests reaches it. */
export function startProcess(
  args: readonly string[],
  { env = {}, user }: FaultProcessOptions = {},
): FaultProcess {
  const child = spawn(process.execPath, args, {
    env: {
      PORT: '0',
      ADMIN_PORT: '0',
      RECRUITING_SCHEMA: resolve('schema/upstream.graphql'),
      // Halves what a start costs, and there are many.
      NODE_COMPILE_CACHE: resolve('node_modules/.cache/node-compile'),
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(user !== undefined && { uid: user, gid: user }),
  });
  living.add(child);
  child.once('close', () => living.delete(child));
  let stdout = '';
  let stderr = '';
  const lookers = new Set<() => void>();
  child.stdin.on('error', () => {
    // It has ended, which whoever waits for it is told.
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    for (const look of lookers) look();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Exit>((done, fail) => {
    child.once('error', fail);
    child.once('close', (code, signal) => done({ code, signal, stdout, stderr }));
  });
  const end = (name: NodeJS.Signals) => {
    child.kill(name);
    return ended;
  };

  return {
    pid: child.pid!,
    get said() {
      return stdout + stderr;
    },
    printed: (pattern) =>
      new Promise((found, fail) => {
        const look = () => {
          const match = pattern.exec(stdout);
          if (!match) return;
          lookers.delete(look);
          found(match);
        };
        lookers.add(look);
        look();
        ended.then(
          () => fail(new Error(`It ended without printing ${pattern}:\n${stdout}\n${stderr}`)),
          fail,
        );
      }),
    signal: (name) => void child.kill(name),
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    tell: (line) => void child.stdin.write(`${line}\n`),
    ended,
  };
}

/** What everybody on the machine can read of its command line. */
export function titleOf({ pid }: FaultProcess): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
}

/** Resolves when the process has really come to stand still: a signal only asks for it. */
export async function standsStill({ pid }: FaultProcess): Promise<void> {
  while (!/^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) {
    await new Promise((turn) => setImmediate(turn));
  }
}
