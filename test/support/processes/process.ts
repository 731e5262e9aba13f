import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll } from 'vitest';
import { showsSecrets, wrote } from '../gateway/written.ts';
import { bundled } from './bundled.ts';

const BUNDLED = await bundled('src/process.ts');

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process of its own, which ends with its scope. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  readonly stdout: string;
  /** What it has printed so far, on both streams. */
  readonly said: string;
  /** Returns the first match in stdout, now or later. Rejects if the process ends without it. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  signal(name: NodeJS.Signals): void;
  /** Sends SIGKILL, and waits for the end. */
  kill(): Promise<Exit>;
  /** Sends SIGTERM, and waits for the end. */
  stop(): Promise<Exit>;
  /** Writes a line to its standard input. */
  tell(line: string): void;
  readonly ended: Promise<Exit>;
}

export interface ProgramOptions {
  /** The whole environment, in addition to free ports and the path of the schema snapshot. */
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  /** The user and group that it runs as. Default: that of the tests. */
  readonly user?: number | undefined;
  /** A command that runs it, such as a tracer, which has to exec it: signals go to the process itself. */
  readonly under?: readonly string[] | undefined;
}

/** Starts the program with these arguments. */
export function startProgram(args: readonly string[], options: ProgramOptions = {}): Program {
  return startProcess([BUNDLED, ...args], options);
}

/** Starts a file with Node. It does not inherit the environment of the tests. */
export function startProcess(
  [file, ...args]: readonly string[],
  options: ProgramOptions = {},
): Program {
  const { cwd = '.', user, under = [] } = options;
  const [command, ...rest] = [...under, process.execPath, file!, ...args];
  const child = spawn(command!, rest, {
    cwd,
    env: environment(options),
    ...(user !== undefined && { uid: user, gid: user }),
  });
  return programOf(child, { args, kill: (signal) => void child.kill(signal) });
}

/** A program that starts others, such as npm, and all the processes below it. */
export interface ProgramTree extends Program {
  /** Whether one of its processes still runs. */
  readonly isAlive: boolean;
}

/**
 * Starts what the README says to start. A signal reaches only the first process, as from `docker stop` or `kill`.
 *
 * @param asInit as the first process of a container: with process id 1 in a namespace of its own, where an unhandled
 * signal has no effect, and whose end kills all others
 */
export function startNpm(
  args: readonly string[],
  { asInit, ...options }: ProgramOptions & { readonly asInit: boolean },
): ProgramTree {
  const [command, ...further] = [...(asInit ? IN_CONTAINER : []), 'npm', ...args];
  const { cwd = '.' } = options;
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(command!, further, {
    cwd,
    env: { PATH, HOME, NO_UPDATE_NOTIFIER: '1', ...environment(options) },
    // Then it leads a process group, by which all processes below it can be found.
    detached: true,
  });
  const group = -child.pid!;
  const isAlive = () => {
    try {
      return process.kill(group, 0);
    } catch {
      return false;
    }
  };
  const kill = (signal: NodeJS.Signals) => {
    if (signal === 'SIGKILL') {
      if (isAlive()) process.kill(group, signal);
    } else process.kill(asInit ? childrenOf(child.pid!)[0]! : child.pid!, signal);
  };
  const program = programOf(child, { args, kill, isAlive });
  return Object.create(program, { isAlive: { get: isAlive } }) as ProgramTree;
}

const IN_CONTAINER = ['unshare', '--map-root-user', '--pid', '--fork', '--kill-child'];

/** Whether this system allows its users to create namespaces of processes. */
export function canMakeContainers(): boolean {
  const [command, ...args] = IN_CONTAINER;
  return spawnSync(command!, [...args, 'true']).status === 0;
}

/** The processes that a process has started, the oldest first. */
export function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.split(' ').filter(Boolean).map(Number);
}

function environment({ env = {} }: ProgramOptions): Record<string, string> {
  return {
    PORT: '0',
    ADMIN_PORT: '0',
    RECRUITING_SCHEMA: resolve('schema/upstream.graphql'),
    // Halves the time of a start.
    NODE_COMPILE_CACHE: resolve('node_modules/.cache/node-compile'),
    ...env,
  };
}

interface ProgramHandle {
  readonly args: readonly string[];
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Whether it started other processes: they may keep its output open. */
  readonly isAlive?: () => boolean;
}

const living = new Set<Program>();

// A test that exceeds its time never leaves the scopes that it has entered.
afterAll(() => {
  for (const program of living) program.signal('SIGKILL');
});

function programOf(
  child: ChildProcessWithoutNullStreams,
  { args, kill, isAlive = () => false }: ProgramHandle,
): Program {
  let stdout = '';
  let stderr = '';
  const lookers = new Set<() => void>();
  // The process may have ended. `ended` reports that.
  child.stdin.on('error', () => {});
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    for (const look of lookers) look();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Exit>((done, fail) => {
    child.once('error', fail);
    const end = (code: number | null, signal: NodeJS.Signals | null) => {
      living.delete(program);
      if (!showsSecrets(args)) wrote(stdout + stderr);
      done({ code, signal, stdout, stderr });
    };
    child.once('close', end);
    child.once('exit', (code, signal) => {
      if (isAlive()) end(code, signal);
    });
  });
  const end = (signal: NodeJS.Signals) => {
    kill(signal);
    return ended;
  };

  const program: Program = {
    pid: child.pid!,
    get stdout() {
      return stdout;
    },
    get said() {
      return stdout + stderr;
    },
    printed: (pattern) =>
      new Promise((done, fail) => {
        const look = () => {
          const match = pattern.exec(stdout);
          if (!match) return;
          lookers.delete(look);
          done(match);
        };
        lookers.add(look);
        look();
        ended.then(
          () => fail(new Error(`It ended without printing ${pattern}:\n${stdout}\n${stderr}`)),
          fail,
        );
      }),
    signal: kill,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    tell: (line) => void child.stdin.write(`${line}\n`),
    ended,
    [Symbol.asyncDispose]: async () => void (await end('SIGKILL')),
  };
  living.add(program);
  return program;
}

/** Runs a command that ends by itself. */
export async function runProgram(
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<Exit> {
  await using program = startProgram(args, options);
  return await program.ended;
}

/** The gateway as a process, and the address of its GraphQL endpoint. */
export function startServe(options: ProgramOptions = {}): Promise<Program & Served> {
  return served(startProgram([], options));
}

export interface Served {
  readonly url: string;
}

/** A gateway, once it has printed its address. */
export async function served<P extends Program>(program: P): Promise<P & Served> {
  try {
    const [url] = await program.printed(/http:\/\/[^\s"]+\/graphql(?=[\s"])/);
    // A spread would copy the output of this moment.
    return Object.create(program, { url: { value: url } });
  } catch (error) {
    await program[Symbol.asyncDispose]();
    throw error;
  }
}
