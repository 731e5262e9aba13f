import { Readable, Writable } from 'node:stream';
import { run } from '../../../src/cli/program.ts';
import { systemClock, type Clock } from '../../../src/clock.ts';
import { GRAPHQL_URL, Output } from '../output.ts';
import { showsSecrets, wrote } from './written.ts';

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command of `src/main.ts` in the process of the tests: much faster than in a process of its own. */
interface CommandHere extends AsyncDisposable {
  /** Returns the first match in the standard output or the standard error, now or later. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Stops it, as SIGTERM does. */
  stop(): Promise<Ended>;
  readonly ended: Promise<Ended>;
}

interface Inputs {
  readonly stdin?: Iterable<string> | AsyncIterable<string>;
  readonly clock?: Clock;
}

/** Starts a command, until it is stopped or ends by itself. */
export function startHere(
  args: readonly string[],
  env: Record<string, string> = {},
  { stdin = [], clock = quickClock() }: Inputs = {},
): CommandHere {
  const stopping = new AbortController();
  const output = new Output();
  const writer = (stream: 'stdout' | 'stderr') =>
    new Writable({
      write: (chunk, _encoding, done) => {
        output.add(stream, String(chunk));
        done();
      },
    });
  const atExit: (() => void)[] = [];
  const ended = run(args, {
    env: { PORT: '0', ADMIN_PORT: '0', ...env },
    stdin: stdin instanceof Readable ? stdin : Readable.from(stdin),
    stdout: writer('stdout'),
    stderr: writer('stderr'),
    clock,
    onExit: (listener) => void atExit.push(listener),
    stop: stopping.signal,
  }).then((code) => {
    for (const listener of atExit) listener();
    const { stdout, stderr } = output;
    if (!showsSecrets(args)) wrote(stdout + stderr);
    return { code, stdout, stderr };
  });
  const stop = () => {
    stopping.abort();
    return ended;
  };
  return {
    printed: (pattern) => output.printed(pattern, ended),
    stop,
    ended,
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
}

const ENDING = ['tokens', 'schema', 'export'];

/** Runs a command. One that does not end by itself is stopped at once. */
export async function runHere(
  args: readonly string[],
  env?: Record<string, string>,
  inputs?: Inputs,
): Promise<Ended> {
  const command = startHere(args, env, inputs);
  return await (ENDING.includes(args[0]!) ? command.ended : command.stop());
}

export interface RunningHere extends CommandHere {
  /** The address of GraphQL. */
  readonly url: string;
}

/** Starts `serve`. */
export async function serveHere(env?: Record<string, string>): Promise<RunningHere> {
  const gateway = startHere([], env);
  const [url] = await gateway.printed(GRAPHQL_URL);
  return { ...gateway, url };
}

const TIMES = 20;

/** Waits are shorter, and as long as they should be by its own time. */
function quickClock(): Clock {
  const start = systemClock.elapsed();
  return {
    now: systemClock.now,
    elapsed: () => start + (systemClock.elapsed() - start) * TIMES,
    sleep: (ms, signal) => systemClock.sleep(ms / TIMES, signal),
    timer: systemClock.timer,
  };
}
