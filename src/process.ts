import process from 'node:process';
import { systemClock } from './clock.ts';

// Arguments may be secret (a token link), and everybody on this machine can read the titles of processes.
const args = process.argv.slice(2);
process.title = 'recruiting-subgraph';

const stop = new AbortController();
const hurry = new AbortController();
/** npm passes on what terminals and systemd send to it and to this process alike: that is one signal, sent twice. */
const ECHO_MS = 1_000;
let askedAt = 0;
// Not once: a second signal would end the process before a token pair under way is safe.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!stop.signal.aborted) {
      askedAt = systemClock.elapsed();
      stop.abort();
    } else if (systemClock.elapsed() - askedAt >= ECHO_MS) hurry.abort();
  });
}
// Whoever reads what is written may leave, also in the middle of an exchange: that ends no process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
// Waiting keeps no process alive by itself, and a token pair that is not saved yet may have to be waited for.
const alive = setInterval(() => {}, 2 ** 30);
// Loaded now, and not by an import above: what is loaded before the cache is on is not found there.
const { thisMachine } = await import('./setup/machine.ts');
const { run } = await import('./cli/program.ts');
process.exitCode = await run(args, {
  ...thisMachine,
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  onExit: (listener) => void process.on('exit', listener),
  stop: stop.signal,
  hurry: hurry.signal,
});
clearInterval(alive);
// What the code of a company leaves open, such as a pool of connections, would keep the process alive.
setTimeout(() => process.exit(), 2_000).unref();
// Otherwise an open standard input could keep the process running.
process.stdin.destroy();
