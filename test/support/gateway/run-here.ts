import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { run } from '../../../src/cli/program.ts';
import { systemClock, type Clock } from '../../../src/clock.ts';
import { showsSecrets, wrote } from './written.ts';

interface HereOptions {
  readonly stop?: AbortSignal;
  readonly hurry?: AbortSignal;
  readonly isTerminal?: boolean;
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of `src/main.ts` in the process of the tests: much faster than in a process of its own. */
export async function runHere(
  args: readonly string[],
  env: Record<string, string> = {},
  stdin: readonly string[] = [],
  { stop, isTerminal = false }: HereOptions = {},
): Promise<Ended> {
  // A command that would run forever ends at once; one that ends by itself is not stopped.
  const ends = ['tokens', 'schema', 'export'].includes(args[0]!);
  const signal = stop ?? (ends ? new AbortController().signal : AbortSignal.abort());
  return await begin(args, { env, stdin, isTerminal, stop: signal }).ended;
}

export interface CommandHere extends AsyncDisposable {
  /** Returns the first match in the standard output or the standard error, now or later. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Stops it, as SIGTERM does. */
  stop(): Promise<Ended>;
  /** Cuts its waiting short, as a second SIGTERM does. */
  hurry(): void;
  readonly ended: Promise<Ended>;
}

/** Starts a command in the process of the tests, until it is stopped or ends by itself. */
export function startHere(
  args: readonly string[],
  env: Record<string, string> = {},
  stdin: Beginning['stdin'] = [],
): CommandHere {
  const [stopping, hurrying] = [new AbortController(), new AbortController()];
  const signals = { stop: stopping.signal, hurry: hurrying.signal };
  const { said, written, ended } = begin(args, { env, stdin, ...signals });
  const printed = async (pattern: RegExp) => {
    for (;;) {
      const match = pattern.exec(said.stdout) ?? pattern.exec(said.stderr);
      if (match) return match;
      const end = await Promise.race([ended, once(written, 'text').then(() => undefined)]);
      if (end) throw new Error(`It ended without printing ${pattern}:\n${end.stdout}${end.stderr}`);
    }
  };
  const stop = () => {
    stopping.abort();
    return ended;
  };
  const hurry = () => hurrying.abort();
  const dispose = async () => {
    hurry();
    await stop();
  };
  return { printed, stop, hurry, ended, [Symbol.asyncDispose]: dispose };
}

export interface RunningHere extends CommandHere {
  /** The address of GraphQL. */
  readonly url: string;
}

/** Starts `serve` in the process of the tests. */
export async function serveHere(env: Record<string, string> = {}): Promise<RunningHere> {
  const gateway = startHere([], env);
  const [url] = await gateway.printed(/http:\/\/[^\s"]+\/graphql(?=[\s"])/);
  return { ...gateway, url };
}

interface Beginning extends HereOptions {
  readonly env: Record<string, string>;
  readonly stdin: Iterable<string> | AsyncIterable<string>;
  readonly stop: AbortSignal;
}

function begin(
  args: readonly string[],
  { env, stdin, stop, hurry = new AbortController().signal, isTerminal = false }: Beginning,
) {
  const said = { stdout: '', stderr: '' };
  const written = new EventEmitter();
  const writer = (name: keyof typeof said) =>
    new Writable({
      write: (chunk, _encoding, done) => {
        said[name] += String(chunk);
        written.emit('text');
        done();
      },
    });
  const atExit: (() => void)[] = [];
  const ended = run(args, {
    env: { PORT: '0', ADMIN_PORT: '0', ...env },
    stdin: Readable.from(stdin),
    stdout: writer('stdout'),
    stderr: Object.assign(writer('stderr'), { isTTY: isTerminal }),
    readFile: (path) => readFileSync(path, 'utf8'),
    proxyFor: () => undefined,
    owner: { host: 'test', pid: process.pid },
    clock: quickClock(),
    onExit: (listener) => void atExit.push(listener),
    stop,
    hurry,
  }).then((code) => {
    for (const listener of atExit) listener();
    if (!showsSecrets(args)) wrote(said.stdout + said.stderr);
    return { code, ...said };
  });
  return { said, written, ended };
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
