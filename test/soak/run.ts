/**
 * Ten thousand requests of all kinds against a gateway in a process of its own, over a line with faults, outages
 * and refreshes, while floods of requests that are refused or wait arrive beside them. The load pauses regularly, and
 * what the process still holds is counted. Exits 1 if that grows, if `/health` is slow, or if the newest pair is not
 * saved in the end.
 */
import { fork, type ChildProcess, type ForkOptions } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as pass } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { FloodSizes } from '../support/processes/floods.ts';
import { startMixedLoad, type Outcomes } from '../support/processes/mixed-load.ts';
import type { FloodOrder } from './flood-process.ts';
import { growthOf } from './growth.ts';
import type { HealthReport } from './health-process.ts';
import type { Held } from './held.ts';
import { newestPairProblems } from './newest-pair.ts';
import type { UpstreamReport } from './upstream-process.ts';

const REQUESTS = 10_000;
/** The number of requests that are in flight at a time. */
const CALLERS = 24;
const ROUNDS = 20;
/** The rounds before caches are full and code is compiled. */
const WARM_UP = 6;
const QUIET_MS = 2_500;
/** Of a small container, and the new space of `npm start`. */
const MEMORY = ['--max-old-space-size=512', '--max-semi-space-size=8'];
/** In each round. */
const FLOOD: FloodSizes = { invalid: 1_000, large: 80, pipelined: 1_000, stalled: 1_000 };
/** The time in which 99 of 100 probes have to be answered, ms; the others may wait for the machine. */
const HEALTH_MS = 150;
/** Priority of the processes that stand for other machines: the gateway does not share its CPU with them. */
const OTHER_MACHINES = 15;
/** Priority of the sessions of the gateway and of the probes, which only root may give. */
const OWN_CPU = -15;

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
  const store = join(folder, 'tokens.db');
  const gateway = start('../../src/main.ts', {
    detached: true,
    execArgv: [...MEMORY, '--import', pathOf('reports.ts')],
    env: {
      RECRUITING_URL: url!,
      TOKEN_LINK: tokenLink!,
      TOKEN_STORE: `sqlite:${store}`,
      ALLOW_ANONYMOUS: 'true',
      UPSTREAM_TIMEOUT_MS: '1000',
      NODE_ENV: 'production',
      PORT: '0',
      ADMIN_PORT: '0',
      // All of the load comes from one address, and has to be served.
      PAGES_PER_MINUTE: '0',
    },
  });
  let printed = '';
  let broken = 0;
  let secrets = 0;
  gateway.stdout!.setEncoding('utf8').on('data', (text: string) => {
    if (printed.length < 10_000) printed += text;
    broken += text.split('is down').length - 1;
    if (hasSecret(text)) secrets += 1;
  });
  let said = '';
  gateway.stderr!.setEncoding('utf8').on('data', (text: string) => (said += text));
  let origin: string | undefined;
  while (!(origin = originIn(printed))) await pass(20);

  const load = startMixedLoad(origin, CALLERS);
  const probing = start('health-process.ts', { detached: true });
  const flooding = start('flood-process.ts');
  for (const pid of [process.pid, upstream.pid, flooding.pid]) setPriority(pid!, OTHER_MACHINES);
  for (const { pid } of [gateway, probing]) preferSession(pid!);
  const flooded: Outcomes = new Map();
  const flood = async (order: FloodOrder) => {
    const reply = once(flooding, 'message');
    flooding.send(order);
    const [counts] = (await reply) as [[string, number][]];
    for (const [name, n] of counts) flooded.set(name, (flooded.get(name) ?? 0) + n);
  };
  probing.send({ origin });
  const probed: number[] = [];
  const unanswered: string[] = [];
  const samples: Held[] = [];
  print(['requests', 'heap MB', 'rss MB', 'sockets', 'files', 'timers', 'health ms', 'seconds']);
  for (let round = 1; round <= ROUNDS; round += 1) {
    const began = performance.now();
    await Promise.all([load.run(REQUESTS / ROUNDS), flood({ origin, sizes: FLOOD, round })]);
    // Waits until everything that callers left behind has ended.
    await pass(QUIET_MS);
    const answer = once(gateway, 'message');
    gateway.send('look');
    const [held] = (await answer) as [Held];
    samples.push(held);
    const { heap, rss, sockets, files, timers } = held;
    const reported = once(probing, 'message');
    probing.send('report');
    const [{ times, failures }] = (await reported) as [HealthReport];
    probed.push(...times);
    for (const [reason, n] of failures) {
      unanswered.push(`/health failed ${n} times in round ${round}: ${reason}`);
    }
    const seconds = (performance.now() - began) / 1000;
    print([
      (REQUESTS / ROUNDS) * round,
      mb(heap),
      mb(rss),
      sockets,
      files,
      timers,
      Math.max(...times).toFixed(0),
      seconds.toFixed(0),
    ]);
  }
  await load.close();
  const ended = once(gateway, 'exit');
  gateway.kill('SIGTERM');
  const [code] = (await ended) as [number | null];
  const reply = once(upstream, 'message');
  upstream.send('report');
  const [exchanged] = (await reply) as [UpstreamReport];
  const custody = await newestPairProblems(store, url!, exchanged);

  const outcomes = [...load.outcomes].toSorted(([, left], [, right]) => right - left);
  process.stdout.write(`\n${outcomes.map(([name, count]) => `${name} ${count}`).join(', ')}\n`);
  process.stdout.write(
    `token exchanges ${exchanged.exchanges}, of them answered ${exchanged.answered}, times that the service was down ${broken}\n\n`,
  );
  const health = probed.toSorted((left, right) => left - right);
  const slow = health.filter((ms) => ms >= HEALTH_MS).length;
  const isSlow = slow > health.length / 100;
  process.stdout.write(`floods: ${[...flooded].map(([name, n]) => `${name} ${n}`).join(', ')}\n`);
  process.stdout.write(
    `/health: ${health.length} probes, ${[0.5, 0.99, 0.999, 1]
      .map(
        (share) => `${share * 100}% ${health[Math.ceil(health.length * share) - 1]!.toFixed(0)} ms`,
      )
      .join(', ')}, of ${HEALTH_MS} ms or more ${slow}\n`,
  );
  const { ran, waited } = samples.at(-1)!.cpu;
  process.stdout.write(
    `The gateway ran for ${(ran / 1000).toFixed(0)} s, and waited for a CPU for ${(waited / 1000).toFixed(0)} s.\n\n`,
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
    ...unanswered,
    ...(!isSlow ? [] : [`/health took ${HEALTH_MS} ms or more ${slow} times of ${health.length}`]),
    ...custody,
    ...(secrets === 0 ? [] : ['a token or a link was printed']),
    ...(code === 0 ? [] : [`the gateway ended with exit code ${code}`]),
    ...outcomes
      .filter(([name]) => /^broken|INTERNAL|UNAUTHORIZED|nothing/.test(name))
      .map(([name, n]) => `${name}: ${n}, the first: ${load.examples.get(name) ?? 'no answer'}`),
  ];
  for (const problem of problems) process.stdout.write(`does not hold  ${problem}\n`);
  if (problems.length === 0)
    process.stdout.write(
      'holds  nothing grows, /health is fast, and the newest pair is in the store\n',
    );
  return problems.length === 0 ? 0 : 1;
}

function start(
  file: string,
  options: Pick<ForkOptions, 'detached' | 'execArgv' | 'env'> = {},
): ChildProcess {
  const child = fork(pathOf(file), [], {
    env: {},
    ...options,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  children.push(child);
  return child;
}

/**
 * Prefers the session of a detached process to all others. Linux divides the CPUs among sessions first (`autogroup` in
 * sched(7)), and the priority of a process counts only within its session. Without the right to prefer it, or on
 * another system, the session has an equal share.
 */
function preferSession(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(OWN_CPU));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'EPERM' && code !== 'EACCES') throw error;
  }
}

/** The address at which the gateway that printed this listens. */
function originIn(printed: string): string | undefined {
  return /(http:\/\/[^\s"]+)\/graphql(?=[\s"])/.exec(printed)?.[1];
}

function hasSecret(text: string): boolean {
  return /sandbox-(?:access|refresh|link)-[\w-]{20,}/.test(text);
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
