import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { afterAll } from 'vitest';
import { showsSecrets, wrote } from '../gateway/written.ts';
import { GRAPHQL_URL, Output } from '../output.ts';
import { bundled } from './bundled.ts';

const BUNDLED = await bundled('src/process.ts');

interface Exit {
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
  /** Whether it, or a process that it has started, still runs. */
  readonly isAlive: boolean;
  /** Returns the first match in what it prints, now or later. Rejects if the process ends without it. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Sends a signal to the process alone, as `docker stop` or `kill` does. */
  signal(name: NodeJS.Signals): void;
  /** Sends SIGKILL to it and all that it has started, and waits for the end. */
  kill(): Promise<Exit>;
  /** Sends SIGTERM, and waits for the end. */
  stop(): Promise<Exit>;
  readonly ended: Promise<Exit>;
}

interface ProgramOptions {
  /** The whole environment, in addition to free ports and the path of the schema snapshot. */
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  /** The user and group that it runs as. Default: that of the tests. */
  readonly user?: number | undefined;
  /** A command that runs it, such as a tracer, which has to exec it: signals go to the process itself. */
  readonly under?: readonly string[] | undefined;
}

/** Starts a file with Node. It does not inherit the environment of the tests. */
export function startProcess(
  args: readonly string[],
  { under = [], ...options }: ProgramOptions = {},
): Program {
  return start([...under, process.execPath, ...args], options, showsSecrets(args.slice(1)));
}

/** Starts what the README says to start. */
export function startNpm(
  args: readonly string[],
  { env, ...options }: ProgramOptions = {},
): Program {
  // The registry may have a certificate that only this machine trusts.
  const { PATH = '', HOME = '', NODE_EXTRA_CA_CERTS = '' } = process.env;
  return start(['npm', ...args], {
    ...options,
    env: { PATH, HOME, NODE_EXTRA_CA_CERTS, NO_UPDATE_NOTIFIER: '1', ...env },
  });
}

const living = new Set<Program>();

// A test that exceeds its time never leaves the scopes that it has entered.
afterAll(() => {
  for (const program of living) void program.kill();
});

/** @param isSecret whether it prints secrets on purpose */
function start(
  [command, ...args]: readonly string[],
  { env = {}, cwd = '.', user }: ProgramOptions,
  isSecret = false,
): Program {
  const child = spawn(command!, args, {
    cwd,
    env: {
      PORT: '0',
      ADMIN_PORT: '0',
      RECRUITING_SCHEMA: resolve('schema/upstream.graphql'),
      // Halves the time of a start.
      NODE_COMPILE_CACHE: resolve('node_modules/.cache/node-compile'),
      ...env,
    },
    // It leads a process group, by which all processes below it can be found.
    detached: true,
    ...(user !== undefined && { uid: user, gid: user }),
  });
  const pid = child.pid!;
  const isAlive = () => {
    try {
      return process.kill(-pid, 0);
    } catch {
      return false;
    }
  };
  const output = new Output();
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].setEncoding('utf8').on('data', (text: string) => output.add(stream, text));
  const ended = new Promise<Exit>((done, fail) => {
    child.once('error', fail);
    const end = (code: number | null, signal: NodeJS.Signals | null) => {
      living.delete(program);
      const { stdout, stderr } = output;
      if (!isSecret) wrote(stdout + stderr);
      done({ code, signal, stdout, stderr });
    };
    child.once('close', end);
    child.once('exit', (code, signal) => {
      // Those that it has started may keep its output open.
      if (isAlive()) end(code, signal);
    });
  });
  const kill = () => {
    if (isAlive()) process.kill(-pid, 'SIGKILL');
    return ended;
  };

  const program: Program = {
    pid,
    get stdout() {
      return output.stdout;
    },
    get said() {
      return output.stdout + output.stderr;
    },
    get isAlive() {
      return isAlive();
    },
    printed: (pattern) => output.printed(pattern, ended),
    signal: (name) => void child.kill(name),
    kill,
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
    ended,
    [Symbol.asyncDispose]: async () => void (await kill()),
  };
  living.add(program);
  return program;
}

/** Runs a command that ends by itself. */
export async function runProgram(args: readonly string[], options?: ProgramOptions): Promise<Exit> {
  await using program = startProcess([BUNDLED, ...args], options);
  return await program.ended;
}

/** The gateway as a process, and the address of its GraphQL endpoint. */
export function startServe(options?: ProgramOptions): Promise<Program & Served> {
  return served(startProcess([BUNDLED], options));
}

export interface Served {
  readonly url: string;
}

/** A gateway, once it has printed its address. */
export async function served<P extends Program>(program: P): Promise<P & Served> {
  try {
    const [url] = await program.printed(GRAPHQL_URL);
    // A spread would copy the output of this moment.
    return Object.create(program, { url: { value: url } });
  } catch (error) {
    await program[Symbol.asyncDispose]();
    throw error;
  }
}
