/**
 * Gateways as processes behind a balancer of TCP connections that knows of them only what `/ready` says, and
 * clients that keep their connections.
 */
import { Pool } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { startBalancer } from '../support/processes/balancer.ts';
import { startServe } from '../support/processes/process.ts';

/** Longer than the test: it ends when a second signal says so. */
const DELAY = { SHUTDOWN_DELAY_MS: '600000' };

test('every request is answered completely while one of two gateways behind a balancer stops under load', async () => {
  const [leaving, staying] = await Promise.all([serve(DELAY), serve()]);
  const balancer = await startBalancer([leaving, staying]);
  onTestFinished(() => balancer[Symbol.asyncDispose]());
  const load = startLoad(balancer.url);
  await load.answered(50);
  expect(balancer.given.every((connections) => connections > 0)).toBe(true);

  leaving.signal('SIGTERM');
  // npm passes signals on that its process has got already: that is no second one.
  leaving.signal('SIGTERM');
  await leaving.printed(/\/ready fails/);
  expect((await fetch(new URL('/ready', leaving.url))).status).toBe(503);
  const served = await fetch(`${leaving.url}?query={__typename}`, {
    headers: { 'apollo-require-preflight': 'true' },
  });
  expect(await served.json()).toEqual({ data: { __typename: 'Query' } });
  expect(served.headers.get('connection')).toBe('close');

  // Until every client has lost the connections that lead there.
  await load.answered(200);
  const again = setInterval(() => leaving.signal('SIGTERM'), 200);
  await leaving.printed(/stopping: requests in flight/);
  clearInterval(again);
  const exit = await leaving.ended;
  expect(exit).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(exit.stdout).not.toContain('cut off');
  await load.answered(50);
  expect(await load.end()).toEqual([]);
});

test('without a shutdown delay, every accepted request is still answered completely', async () => {
  const gateway = await serve();
  const load = startLoad(new URL('/', gateway.url).origin);
  await load.answered(50);
  gateway.signal('SIGTERM');
  expect((await gateway.ended).stdout).not.toContain('cut off');
  // What never reached it is refused, or finds its connection closed; no answer is half.
  for (const problem of await load.end()) {
    expect(problem).toMatch(/^(ECONNREFUSED|ECONNRESET|UND_ERR_SOCKET before an answer)/);
  }
});

async function serve(env: Record<string, string> = {}) {
  const gateway = await startServe({ env });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

interface Load {
  /** Resolves when so many more were answered. */
  answered(count: number): Promise<void>;
  /** What went wrong, each time. */
  end(): Promise<string[]>;
}

/** Eight clients, each with a kept connection of its own, who ask all the time. */
function startLoad(origin: string): Load {
  const problems: string[] = [];
  const lookers = new Set<() => void>();
  let count = 0;
  const state = { goesOn: true };
  const ask = async (pool: Pool) => {
    const progress = { began: false };
    try {
      const { statusCode, body } = await pool.request({
        method: 'POST',
        path: '/graphql',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query: `{ persons(first: 5) { items { id id${count}: id } } }` }),
      });
      progress.began = true;
      const { data } = (await body.json()) as { data: { persons: { items: unknown[] } } };
      if (statusCode !== 200 || data.persons.items.length !== 5) problems.push('a wrong answer');
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      problems.push(`${code ?? message} ${progress.began ? 'in' : 'before'} an answer`);
      state.goesOn &&= code === undefined || !code.startsWith('ECONN');
    }
    count += 1;
    for (const look of lookers) look();
  };
  const clients = Array.from({ length: 8 }, async () => {
    const pool = new Pool(origin, { connections: 1, pipelining: 1 });
    while (state.goesOn) await ask(pool);
    await pool.destroy();
  });
  return {
    answered: (more) => {
      const enough = count + more;
      return new Promise((resolve) => {
        const look = () => {
          if (count < enough) return;
          lookers.delete(look);
          resolve();
        };
        lookers.add(look);
        look();
      });
    },
    end: async () => {
      state.goesOn = false;
      await Promise.all(clients);
      return problems;
    },
  };
}
