import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pass } from 'node:timers/promises';

export const KEYS = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)].map((key) => key.toString('base64'));
const NOBODY = 65_534;

export interface Exit {
  readonly code: number | null;
  readonly said: string;
}

export interface OtherGateway {
  readonly origin: string;
  signal(name: NodeJS.Signals): void;
  readonly ended: Promise<Exit>;
}

/**
 * An operator with access to the machine of the gateway, who runs commands, and does to its files what nobody should.
 */
export interface Operator {
  /** The user that all processes run as; undefined for the user of the soak. */
  readonly user: number | undefined;
  /** Whether file permissions bind that user. */
  readonly isBound: boolean;
  readonly store: string;
  readonly env: Readonly<Record<string, string>>;
  command(args: readonly string[], extra?: Record<string, string>): Promise<Exit>;
  /** Starts a second gateway on the same store. Resolves once it listens. */
  serve(): Promise<OtherGateway>;
  /** No other process writes the store during the work. */
  locked<T>(work: () => Promise<T> | T): Promise<T>;
  /** Makes a consistent copy, even while the store is written. Returns its path. */
  copyStore(): Promise<string>;
  /** Replaces the store by a copy: overwrites the bytes of its file, or replaces the file. */
  putBack(copy: string, how: 'bytes' | 'file'): Promise<void>;
  removeStore(): void;
  /** Removes the owner's permission to write the files, or restores it. */
  writable(yes: boolean): void;
  /** The number of pairs in emergency files. */
  rescued(): number;
  /** Secrets in the output of all its processes. */
  readonly secretsPrinted: number;
}

/** @param program what `node` runs as the gateway and its commands */
export function startOperator(folder: string, program: string, url: string): Operator {
  const isRoot = process.getuid?.() === 0;
  const canBeNobody =
    isRoot && spawnSync(process.execPath, [program, '--version'], { uid: NOBODY }).status === 0;
  const user = canBeNobody ? NOBODY : undefined;
  chmodSync(folder, 0o755);
  const tokens = join(folder, 'tokens');
  const rescue = join(folder, 'rescue');
  for (const path of [tokens, rescue]) {
    mkdirSync(path, { mode: 0o700 });
    give(path);
  }
  const store = join(tokens, 'tokens.db');
  const env = {
    RECRUITING_URL: url,
    TOKEN_STORE: `sqlite:${store}`,
    TOKEN_STORE_KEY: KEYS[0]!,
    TOKEN_RESCUE_DIR: rescue,
    ALLOW_ANONYMOUS: 'true',
    UPSTREAM_TIMEOUT_MS: '1000',
    NODE_ENV: 'production',
    PORT: '0',
    ADMIN_PORT: '0',
  };
  const children = new Set<ChildProcess>();
  process.on('exit', () => {
    for (const child of children) child.kill('SIGKILL');
  });
  let copies = 0;
  let secretsPrinted = 0;

  const start = (args: readonly string[], extra: Record<string, string>) => {
    const child = spawn(process.execPath, [program, ...args], {
      env: { ...env, RECRUITING_SCHEMA: resolve('schema/upstream.graphql'), ...extra },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(user !== undefined && { uid: user, gid: user }),
    });
    children.add(child);
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (said += text));
    }
    const ended = once(child, 'close').then(([code]): Exit => {
      children.delete(child);
      if (hasSecret(said)) secretsPrinted += 1;
      return { code: code as number | null, said };
    });
    return { child, ended, said: () => said };
  };
  const locked = async <T>(work: () => Promise<T> | T): Promise<T> => {
    using foreign = new DatabaseSync(store, { timeout: 5_000 });
    foreign.exec('BEGIN EXCLUSIVE');
    const done = await work();
    foreign.exec('ROLLBACK');
    return done;
  };

  return {
    user,
    isBound: !isRoot || canBeNobody,
    store,
    env,
    command: (args, extra = {}) => start(args, extra).ended,
    serve: async () => {
      const { child, ended, said } = start([], {});
      let origin: string | undefined;
      while (!(origin = originIn(said()))) {
        if (child.exitCode !== null) throw new Error(`A second gateway ended:\n${said()}`);
        await pass(20);
      }
      return { origin, ended, signal: (name) => void child.kill(name) };
    },
    locked,
    copyStore: () => {
      const copy = join(tokens, `copy-${(copies += 1)}`);
      // In a separate process: SQLite loses its lock when this process closes the file.
      return locked(() => {
        execFileSync('cp', [store, copy]);
        give(copy);
        chmodSync(copy, 0o600);
        return copy;
      });
    },
    putBack: async (copy, how) => {
      if (how === 'file') return renameSync(copy, store);
      await locked(() => execFileSync('cp', [copy, store]));
      rmSync(copy);
    },
    removeStore: () => rmSync(store),
    writable: (yes) => {
      const files = [tokens, rescue].flatMap((path) => [
        path,
        ...readdirSync(path).map((name) => join(path, name)),
      ]);
      for (const path of files) {
        const stats = statSync(path, { throwIfNoEntry: false });
        if (stats) chmodSync(path, (stats.isDirectory() ? 0o500 : 0o400) | (yes ? 0o200 : 0));
      }
    },
    rescued: () => readdirSync(rescue).filter((name) => name.startsWith('unsaved-')).length,
    get secretsPrinted() {
      return secretsPrinted;
    },
  };

  function give(path: string): void {
    if (user !== undefined) chownSync(path, user, user);
  }
}

/** The address at which the gateway that printed this listens. */
export function originIn(printed: string): string | undefined {
  return /(http:\/\/[^\s"]+)\/graphql(?=[\s"])/.exec(printed)?.[1];
}

export function hasSecret(text: string): boolean {
  return /sandbox-(?:access|refresh|link)-[\w-]{20,}/.test(text);
}
