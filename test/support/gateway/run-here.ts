import { showsSecrets } from './written.ts';
import { readFileSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { run } from '../../../src/cli/program.ts';
import { systemClock, type Clock } from '../../../src/clock.ts';
import { wrote } from './written.ts';

/** Runs a command of `src/main.ts` in the process of the tests: much faster than in a process of its own. */
export async function runHere(
  args: readonly string[],
  env: Record<string, string> = {},
  stdin: readonly string[] = [],
  { stop, isTerminal = false }: { stop?: AbortSignal; isTerminal?: boolean } = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const said = { stdout: '', stderr: '' };
  const writer = (name: keyof typeof said) =>
    new Writable({
      write: (chunk, _encoding, done) => {
        said[name] += String(chunk);
        done();
      },
    });
  const code = await run(args, {
    env: { PORT: '0', ADMIN_PORT: '0', ...env },
    stdin: Readable.from(stdin),
    stdout: writer('stdout'),
    stderr: Object.assign(writer('stderr'), { isTTY: isTerminal }),
    readFile: (path) => readFileSync(path, 'utf8'),
    proxyFor: () => undefined,
    owner: { host: 'test', pid: process.pid },
    clock: quickClock(),
    onExit: () => {},
    // A command that would run forever ends at once; one that ends by itself is not stopped.
    stop:
      stop ??
      (['tokens', 'schema', 'export'].includes(args[0]!)
        ? new AbortController().signal
        : AbortSignal.abort()),
    hurry: new AbortController().signal,
  });
  if (!showsSecrets(args)) wrote(said.stdout + said.stderr);
  return { code, ...said };
}

const TIMES = 20;

/** Waits are shorter, and as long as they should be by its own time. */
function quickClock(): Clock {
  const start = systemClock.elapsed();
  return {
    now: systemClock.now,
    elapsed: () => start + (systemClock.elapsed() - start) * TIMES,
    sleep: (ms, signal) => systemClock.sleep(ms / TIMES, signal),
  };
}
