import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startSandbox, type Sandbox } from '../../sandbox/sandbox.ts';
import { expectPrintedFor } from '../support/gateway/operator-lines.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { childrenOf, isAlive } from '../support/processes/other-processes.ts';
import { startServe, type Program, type Served } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { honest, refusal } from '../support/imitations/scripted.ts';
import { startScripted } from '../support/tokens/tokens.ts';

const folder = temporaryFolder();
let elapsed = 0;
let sandbox: Sandbox;
let gateway: Program & Served;

beforeAll(async () => {
  sandbox = await startSandbox({ expiresIn: 3600, now: () => Date.now() + elapsed });
  gateway = await startServe({
    env: {
      RECRUITING_URL: sandbox.url,
      TOKEN_LINK: sandbox.tokenLink,
      TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
      ALLOW_ANONYMOUS: 'true',
      WORKERS: '2',
      PAGES_PER_MINUTE: '300',
    },
  });
}, 60_000);
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await sandbox.close();
  folder[Symbol.dispose]();
});

test('two workers answer behind one port, and one refresh at an expiry serves both', async () => {
  expect(childrenOf(gateway.pid)).toHaveLength(2);
  // The refresh that follows the import.
  await vi.waitUntil(() => sandbox.stats.refreshes === 1, { timeout: 30_000 });
  // A worker learns of the import a little later.
  const isReady = async () => (await fetch(new URL('/ready', gateway.url))).ok;
  await vi.waitUntil(isReady, { timeout: 30_000 });
  expect(await statuses(40)).toEqual([200]);
  elapsed += 3_700_000;
  expect(await statuses(100)).toEqual([200]);
  expect(sandbox.stats.refreshes).toBe(2);
  expect(sandbox.exchanges).toHaveLength(2);
});

test('/metrics adds up the counts of both workers, and has the state of the tokens once', async () => {
  const metrics = await metricsOf(gateway);
  expect(sumOf(metrics, 'recruiting_requests_total')).toBe(140);
  expect(metrics.get('recruiting_token_generation')).toBe(3);
  expect(metrics.get('recruiting_token_exchanges_total{outcome="rotated"}')).toBe(2);
  expect(sumOf(metrics, 'recruiting_build_info')).toBe(1);
  expect(metrics.get('process_resident_memory_bytes')).toBeGreaterThan(100_000_000);
});

test('a worker that dies is replaced, and the other one answers meanwhile; no count of /metrics falls', async () => {
  const before = await metricsOf(gateway);
  const [first, second] = childrenOf(gateway.pid) as [number, number];
  process.kill(first, 'SIGKILL');
  await gateway.printed(/a worker ended, and is replaced/);
  expect(await statuses(10)).toEqual([200]);
  await vi.waitUntil(() => childrenOf(gateway.pid).length === 2, { timeout: 30_000 });
  expect(childrenOf(gateway.pid)).toContain(second);
  expect(childrenOf(gateway.pid)).not.toContain(first);
  expect(await statuses(10)).toEqual([200]);
  expect(sandbox.stats.refreshes).toBe(2);
  const after = await metricsOf(gateway);
  expect(sumOf(after, 'recruiting_requests_total')).toBe(160);
  // Prometheus takes a count that falls for one that began again, and adds all of it to the rate.
  const fallen = [...before].filter(
    ([name, value]) => isCount(name) && !(after.get(name)! >= value),
  );
  expect(fallen).toEqual([]);
  expect(sumOf(after, 'recruiting_build_info')).toBe(1);
});

test('a caller has PAGES_PER_MINUTE in both workers together', async () => {
  const began = performance.now();
  let served = 0;
  for (let last = -1; last !== 0; served += last) {
    const batch = await Promise.all(Array.from({ length: 20 }, () => status()));
    last = batch.filter((code) => code === 200).length;
  }
  const refilled = (performance.now() - began) / 200;
  // Each worker is a little late. With a budget for each it would be 600.
  expect(served).toBeLessThan(300 + refilled + 150);
});

test('SIGTERM ends all workers, with exit code 0', async () => {
  const workers = childrenOf(gateway.pid);
  gateway.signal('SIGTERM');
  expect(await gateway.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(workers.filter(isAlive)).toEqual([]);
});

test('workers without tokens report it like one process, and end with a primary that is killed', async () => {
  const TOKEN_STORE = `sqlite:${folder.file('empty.db')}`;
  const env = { RECRUITING_URL: sandbox.url, TOKEN_STORE, ALLOW_ANONYMOUS: 'true', WORKERS: '2' };
  await using other = await startServe({ env });
  expect((await fetch(new URL('/ready', other.url))).status).toBe(503);
  const answer = await askAt(other.url, '{ persons { items { id } } }');
  expect(answer.errors).toMatchObject([{ extensions: { code: 'TOKENS_MISSING' } }]);
  await expectPrintedFor(other, answer, 'tokens import');
  const workers = childrenOf(other.pid);
  expect(workers).toHaveLength(2);
  other.signal('SIGKILL');
  await vi.waitUntil(() => !workers.some(isAlive), { timeout: 30_000 });
}, 60_000);

test('while the service refuses the access token, the metrics of all workers show it, until a request is accepted', async () => {
  const service = await startScripted();
  const env = {
    RECRUITING_URL: service.url,
    TOKEN_LINK: service.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('refused.db')}`,
    ALLOW_ANONYMOUS: 'true',
    WORKERS: '2',
  };
  await using other = await startServe({ env });
  const isUnauthorized = async () =>
    (await metricsOf(other)).get('recruiting_token_trouble{trouble="unauthorized"}');
  const ready = async () => (await fetch(new URL('/ready', other.url))).ok;
  await vi.waitUntil(ready, { timeout: 30_000 });
  const ask = () => statuses(20, other.url);
  expect(await ask()).toEqual([200]);
  service.answerAll(refusal('token_revoked'));
  expect(await ask()).toEqual([500]);
  expect(await isUnauthorized()).toBe(1);
  service.answerAll(honest);
  // A worker may have to learn of the refusal that another one met.
  await vi.waitUntil(async () => (await ask()) && (await isUnauthorized()) === 0, {
    timeout: 30_000,
  });
}, 60_000);

/** Sends requests at the same time, each on a connection of its own, so that both workers get some. */
async function statuses(count: number, url = gateway.url): Promise<number[]> {
  const all = await Promise.all(Array.from({ length: count }, () => status(url)));
  return [...new Set(all)];
}

async function status(url = gateway.url): Promise<number> {
  const asking = request(url, {
    method: 'POST',
    agent: new Agent(),
    headers: { 'content-type': 'application/json', accept: 'application/json' },
  });
  asking.end(JSON.stringify({ query: '{ persons(first: 1) { items { id } } }' }));
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  return (await text(response)).includes('"errors"') ? 500 : response.statusCode!;
}

async function metricsOf(program: Program): Promise<Map<string, number>> {
  const [, url] = await program.printed(/(http:\S+\/metrics)/);
  const lines = (await (await fetch(url!)).text()).split('\n');
  const samples = lines.filter((line) => line !== '' && !line.startsWith('#'));
  expect(new Set(samples.map((line) => line.split(' ')[0])).size).toBe(samples.length);
  return new Map(
    samples.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

function sumOf(metrics: ReadonlyMap<string, number>, family: string): number {
  const values = [...metrics].filter(([name]) => name.startsWith(`${family}{`));
  return values.reduce((sum, [, value]) => sum + value, 0);
}

/** Whether a sample is of a counter or a histogram. */
function isCount(name: string): boolean {
  return /^(recruiting|process)_.*_(total|count|sum|bucket)\b/.test(name);
}
