import process from 'node:process';

// Arguments may be secret (a token link), and every user of this machine can read process titles.
const args = process.argv.slice(2);
process.title = 'recruiting-subgraph';

const stop = new AbortController();
// Not `once`: the default action of a second signal would end the process before a token pair is saved. Terminals and
// systemd signal the whole process group, and npm forwards the signal too: it arrives twice.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  process.on(signal, () => stop.abort());
}
// A closed stdout or stderr (EPIPE) must not end the process, least of all during an exchange.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
// A pending promise does not keep the process alive, and a token pair may still have to be saved.
const alive = setInterval(() => {}, 2 ** 30);
// Not imported above: modules that are loaded before the cache is on are not cached.
const { systemClock } = await import('./clock.ts');
const { run } = await import('./cli/program.ts');
process.exitCode = await run(args, {
  env: process.env,
  clock: systemClock,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  onExit: (listener) => void process.on('exit', listener),
  stop: stop.signal,
});
clearInterval(alive);
// The company's code may leave something open, such as a connection pool.
setTimeout(() => process.exit(), 2_000).unref();
// An open standard input could keep the process running.
process.stdin.destroy();
