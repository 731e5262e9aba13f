/** A worker, or the primary, that stands still: stopped by a signal, or in an endless loop. */
import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { pathToFileURL } from 'node:url';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { bundled } from '../support/processes/bundled.ts';
import { familiesOf } from '../support/processes/exposition.ts';
import { childrenOf, isAlive } from '../support/processes/other-processes.ts';
import { served, startProgram, type Program, type Served } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { standsStill } from '../support/tokens/fault-process.ts';

const DISTURBED = await bundled('test/support/processes/disturbed.ts');

type Way = 'stopped' | 'in an endless loop';
const WAITING = { timeout: 30_000, interval: 100 };

test('workers that stand still are reported, killed and replaced, and /metrics and callers get answers meanwhile', async () => {
  const gateway = await start({ WORKERS: '3' });
  await statuses(gateway, 10);
  expect(await statesOf(gateway)).toEqual({ starting: 0, serving: 3, silent: 0 });
  const counted = await requestsOf(gateway);
  const [stopped, looping, healthy] = childrenOf(gateway.pid) as [number, number, number];
  hurry(gateway);
  await disturb(stopped, 'stopped');
  await disturb(looping, 'in an endless loop');
  // Before it is noticed.
  expect(await requestsOf(gateway)).toBe(counted);
  const requests = statuses(gateway, 8);
  await gateway.printed(aboutWorker(stopped, 'has not answered'));
  await gateway.printed(aboutWorker(looping, 'has not answered'));
  expect(await statesOf(gateway)).toEqual({ starting: 0, serving: 1, silent: 2 });
  expect(await requestsOf(gateway)).toBeGreaterThanOrEqual(counted);
  await gateway.printed(aboutWorker(stopped, ', and is killed'));
  await gateway.printed(aboutWorker(looping, ', and is killed'));
  hurry(gateway);
  // Also on the connections that they were to accept.
  expect(await requests).toEqual(Array(8).fill(200));

  await vi.waitUntil(async () => (await statesOf(gateway)).serving === 3, WAITING);
  expect(childrenOf(gateway.pid)).toContain(healthy);
  expect([stopped, looping].filter(isAlive)).toEqual([]);
  expect(await statuses(gateway, 10)).toEqual(Array(10).fill(200));
  const { samples } = (await metricsOf(gateway)).get('recruiting_workers_ended_total')!;
  expect(samples.get('recruiting_workers_ended_total{reason="silent"}')).toBe(2);
}, 60_000);

test('SIGTERM ends all processes in bounded time while workers stand still', async () => {
  const gateway = await start({ WORKERS: '3' });
  const workers = childrenOf(gateway.pid);
  await disturb(workers[0]!, 'stopped');
  await disturb(workers[1]!, 'in an endless loop');
  gateway.signal('SIGTERM');
  await gateway.printed(/stopping/);
  hurry(gateway);
  expect(await gateway.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  for (const worker of workers.slice(0, 2)) {
    expect(gateway.said).toMatch(aboutWorker(worker, ', and is killed'));
  }
  expect(workers.filter(isAlive)).toEqual([]);
}, 60_000);

test('a worker that only was slow is not killed', async () => {
  const gateway = await start();
  const workers = childrenOf(gateway.pid);
  await disturb(workers[0]!, 'stopped');
  hurry(gateway);
  await gateway.printed(aboutWorker(workers[0]!, 'has not answered'));
  process.kill(workers[0]!, 'SIGCONT');
  await gateway.printed(aboutWorker(workers[0]!, 'answers again'));
  expect(await statesOf(gateway)).toEqual({ starting: 0, serving: 2, silent: 0 });
  expect(childrenOf(gateway.pid)).toEqual(workers);
}, 60_000);

test('when the whole machine was suspended, no worker is killed', async () => {
  const gateway = await start();
  const workers = childrenOf(gateway.pid);
  const all = [gateway.pid, ...workers];
  hurry(gateway);
  for (const pid of all) await disturb(pid, 'stopped');
  // For the clock of the primary this is longer than its patience.
  await new Promise((wake) => setTimeout(wake, 3_500));
  for (const pid of all) process.kill(pid, 'SIGCONT');
  expect(await statuses(gateway, 10)).toEqual(Array(10).fill(200));
  expect(childrenOf(gateway.pid)).toEqual(workers);
  expect(gateway.said).not.toContain('is killed');
}, 60_000);

test('while the primary stands still, a request that needs a newer token gets a coded error', async () => {
  let ahead = 0;
  const gateway = await start({}, { expiresIn: 3600, now: () => Date.now() + ahead });
  // Only the primary accepts connections, so they have to be there already.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  // A token that the service never accepted is not renewed at once. The first one is, right after the import.
  const generation = async () => {
    const { samples } = (await metricsOf(gateway)).get('recruiting_token_generation')!;
    return samples.get('recruiting_token_generation');
  };
  await vi.waitUntil(async () => (await generation()) === 2, WAITING);
  expect((await ask(gateway, agent)).status).toBe(200);
  // The primary answers when it has read what the worker reported before.
  expect(await generation()).toBe(2);
  const workers = childrenOf(gateway.pid);
  await disturb(gateway.pid, 'stopped');
  ahead += 3_700_000;
  for (const worker of workers) process.kill(worker, 'SIGUSR2');
  const { body } = await ask(gateway, agent);
  expect(JSON.parse(body)).toMatchObject({
    errors: [
      {
        message: expect.stringContaining('temporarily unavailable'),
        extensions: { code: 'INTERNAL_SERVER_ERROR', id: expect.any(String) },
      },
    ],
  });
  expect(gateway.said).toContain('restart the gateway');
  process.kill(gateway.pid, 'SIGCONT');
  for (const worker of workers) process.kill(worker, 'SIGUSR2');
  expect((await ask(gateway, agent)).body).not.toContain('"errors"');
}, 60_000);

test('/metrics answers while workers start, and a worker that stands still there ends the start', async () => {
  const gateway = await begin({ CLOCK_FACTOR: '40' });
  expect(await statesOf(gateway)).toMatchObject({ serving: 0 });
  await vi.waitUntil(() => childrenOf(gateway.pid).length === 2, WAITING);
  const workers = childrenOf(gateway.pid);
  await disturb(workers[0]!, 'stopped');
  expect(await statesOf(gateway)).toMatchObject({ serving: expect.any(Number), silent: 0 });
  hurry(gateway);
  expect(await gateway.ended).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('A worker ended while it started'),
  });
  expect(gateway.said).toMatch(aboutWorker(workers[0]!, ', and is killed'));
  expect(workers.filter(isAlive)).toEqual([]);
}, 60_000);

/** A gateway with two workers, once they answer requests. */
async function start(...options: Parameters<typeof begin>): Promise<Program & Served> {
  return await served(await begin(...options));
}

async function begin(
  env: Record<string, string> = {},
  options: Parameters<typeof startSandbox>[0] = {},
): Promise<Program> {
  const sandbox = await startSandbox(options);
  onTestFinished(() => sandbox.close());
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const gateway = startProgram([], {
    env: {
      RECRUITING_URL: sandbox.url,
      TOKEN_LINK: sandbox.tokenLink,
      TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
      ALLOW_ANONYMOUS: 'true',
      NODE_ENV: 'production',
      WORKERS: '2',
      NODE_OPTIONS: `--import=${pathToFileURL(DISTURBED).href}`,
      ...env,
    },
  });
  onTestFinished(async () => {
    // One that stands still does not notice that its primary has ended.
    const left = isAlive(gateway.pid) ? childrenOf(gateway.pid) : [];
    for (const worker of left) process.kill(worker, 'SIGKILL');
    await gateway[Symbol.asyncDispose]();
  });
  return gateway;
}

async function disturb(pid: number, way: Way): Promise<void> {
  process.kill(pid, way === 'stopped' ? 'SIGSTOP' : 'SIGWINCH');
  if (way === 'stopped') await standsStill({ pid });
}

/** The clock of the primary goes faster from now on, or no longer. */
function hurry(gateway: Program): void {
  process.kill(gateway.pid, 'SIGUSR2');
}

function aboutWorker(pid: number, what: string): RegExp {
  return new RegExp(`"worker":${pid}\\b.*${what}`);
}

/** Requests at the same time, each on a connection of its own. `cut` is one whose connection ended. */
function statuses(gateway: Served, count: number): Promise<(number | 'cut')[]> {
  const agent = new Agent();
  return Promise.all(
    Array.from({ length: count }, () =>
      ask(gateway, agent).then(
        ({ status }) => status,
        () => 'cut' as const,
      ),
    ),
  );
}

async function ask({ url }: Served, agent: Agent): Promise<{ status: number; body: string }> {
  const asking = request(url, {
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json', accept: 'application/json' },
  });
  asking.end(JSON.stringify({ query: '{ persons(first: 1) { items { id } } }' }));
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  return { status: response.statusCode!, body: await text(response) };
}

async function metricsOf(gateway: Program) {
  const [, url] = await gateway.printed(/"url":"(http:\S+\/metrics)"/);
  const response = await fetch(url!);
  const body = await response.text();
  expect([response.status, body]).toEqual([200, expect.stringContaining('recruiting_')]);
  return familiesOf(body);
}

async function requestsOf(gateway: Program): Promise<number> {
  const { samples } = (await metricsOf(gateway)).get('recruiting_requests_total')!;
  return [...samples.values()].reduce((sum, value) => sum + value, 0);
}

async function statesOf(gateway: Program) {
  const { samples } = (await metricsOf(gateway)).get('recruiting_workers')!;
  const states = ['starting', 'serving', 'silent'] as const;
  const counts = states.map((state) => [
    state,
    samples.get(`recruiting_workers{state="${state}"}`),
  ]);
  return Object.fromEntries(counts) as Record<(typeof states)[number], number>;
}
