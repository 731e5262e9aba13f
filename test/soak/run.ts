/**
 * A hundred thousand requests of all kinds against a gateway in a process of its own, over a line with faults,
 * outages and rotations. In between the load stops, and what the process still holds is counted. Exits 1 when
 * that grows.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as pass } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startMixedLoad } from '../support/processes/mixed-load.ts';
import { growthOf } from './growth.ts';
import type { Held } from './held.ts';

const ROUNDS = 20;
/** Caches fill, and code is compiled. */
const WARM_UP = 6;
const CALLERS = 24;
const QUIET_MS = 2_500;
const requests = Number(process.argv[2] ?? 100_000);

const folder = mkdtempSync(join(tmpdir(), 'recruiting-soak-'));
const children: ChildProcess[] = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => process.exit(1));
}
process.exitCode = await soak();
process.exit();

async function soak(): Promise<number> {
  const upstream = start('upstream-process.ts');
  const [{ url, tokenLink }] = (await once(upstream, 'message')) as [Record<string, string>];
  const gateway = start('../../src/main.ts', {
    execArgv: ['--import', pathOf('reports.ts')],
    env: {
      NODE_ENV: 'production',
      PORT: '0',
      ADMIN_PORT: '0',
      RECRUITING_URL: url!,
      TOKEN_LINK: tokenLink!,
      TOKEN_STORE: `sqlite:${join(folder, 'tokens.db')}`,
      ALLOW_ANONYMOUS: 'true',
      UPSTREAM_TIMEOUT_MS: '1000',
      // All of the load comes from one address, and is to be served.
      PAGES_PER_MINUTE: '0',
    },
  });
  let printed = '';
  let broken = 0;
  gateway.stdout!.setEncoding('utf8').on('data', (text: string) => {
    if (printed.length < 10_000) printed += text;
    broken += text.split('is down').length - 1;
  });
  let said = '';
  gateway.stderr!.setEncoding('utf8').on('data', (text: string) => (said += text));
  let origin: string | undefined;
  while (!(origin = /(http:\/\/[^\s"]+)\/graphql(?=[\s"])/.exec(printed)?.[1])) await pass(20);

  const load = startMixedLoad(origin, CALLERS);
  const samples: Held[] = [];
  print(['requests', 'heap MB', 'rss MB', 'sockets', 'files', 'timers', 'seconds']);
  for (let round = 1; round <= ROUNDS; round += 1) {
    const began = performance.now();
    await load.run(requests / ROUNDS);
    // What callers left behind comes to its end.
    await pass(QUIET_MS);
    const answer = once(gateway, 'message');
    gateway.send('look');
    const [held] = (await answer) as [Held];
    samples.push(held);
    const { heap, rss, sockets, files, timers } = held;
    const seconds = (performance.now() - began) / 1000;
    print([
      (requests / ROUNDS) * round,
      mb(heap),
      mb(rss),
      sockets,
      files,
      timers,
      seconds.toFixed(0),
    ]);
  }
  await load.close();
  const exchanged = once(upstream, 'message');
  upstream.send('look');
  const [{ rotations }] = (await exchanged) as [{ rotations: number }];
  const ended = once(gateway, 'exit');
  gateway.kill('SIGTERM');
  const [code] = (await ended) as [number | null];

  const outcomes = [...load.outcomes].toSorted(([, one], [, other]) => other - one);
  process.stdout.write(`\n${outcomes.map(([name, count]) => `${name} ${count}`).join(', ')}\n`);
  process.stdout.write(
    `token exchanges ${rotations}, times that the service was down ${broken}\n\n`,
  );
  const settled = samples.slice(WARM_UP);
  const problems = [
    ...growthOf(
      'heap',
      settled.map(({ heap }) => heap),
      { share: 0.1, least: 4 * 1024 * 1024 },
    ),
    ...growthOf(
      'rss',
      settled.map(({ rss }) => rss),
      { share: 0.2, least: 32 * 1024 * 1024 },
    ),
    ...growthOf(
      'sockets',
      settled.map(({ sockets }) => sockets),
      { share: 0.2, least: 8 },
    ),
    ...growthOf(
      'open files',
      settled.map(({ files }) => files),
      { share: 0.2, least: 8 },
    ),
    ...growthOf(
      'timers',
      settled.map(({ timers }) => timers),
      { share: 0.2, least: 8 },
    ),
    ...samples.at(-1)!.warnings,
    ...(said === '' ? [] : [`on stderr: ${said.slice(0, 2_000)}`]),
    ...(code === 0 ? [] : [`the gateway ended with exit code ${code}`]),
    ...outcomes
      .filter(([name]) => /^broken|INTERNAL|nothing/.test(name))
      .map(([name, n]) => `${name}: ${n}`),
  ];
  for (const problem of problems) process.stdout.write(`does not hold  ${problem}\n`);
  if (problems.length === 0) process.stdout.write('holds  nothing grows\n');
  return problems.length === 0 ? 0 : 1;
}

function start(
  file: string,
  { execArgv = [], env = {} }: { execArgv?: string[]; env?: Record<string, string> } = {},
): ChildProcess {
  const child = fork(pathOf(file), [], { execArgv, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  children.push(child);
  return child;
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

function mb(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}

function print(cells: readonly (string | number)[]): void {
  process.stdout.write(`${cells.map((cell) => String(cell).padStart(9)).join('')}\n`);
}
