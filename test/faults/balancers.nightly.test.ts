/**
 * Gateways as processes behind a balancer of TCP connections that knows of them only what `/ready` returns, and clients
 * that keep their connections.
 */
import { expect, onTestFinished, test, vi } from 'vitest';
import { startBalancer } from '../support/processes/balancer.ts';
import { startServe } from '../support/processes/process.ts';
import { startSteadyLoad } from '../support/processes/steady-load.ts';

/** Longer than the test: a second signal ends the delay. */
const DELAY = { SHUTDOWN_DELAY_MS: '600000' };

test('every request is answered completely while one of two gateways behind a balancer stops under load', async () => {
  const [leaving, staying] = await Promise.all([serve(DELAY), serve()]);
  const balancer = await startBalancer([leaving, staying]);
  onTestFinished(() => balancer[Symbol.asyncDispose]());
  const load = startSteadyLoad(balancer.url);
  await load.answered(6);
  expect(balancer.connections.every((count) => count > 0)).toBe(true);

  leaving.signal('SIGTERM');
  // npm forwards signals that its process has already received: that must not count as a second one.
  leaving.signal('SIGTERM');
  await leaving.printed(/\/ready fails/);
  expect((await fetch(new URL('/ready', leaving.url))).status).toBe(503);
  const served = await fetch(`${leaving.url}?query={__typename}`, {
    headers: { 'apollo-require-preflight': 'true' },
  });
  expect(await served.json()).toEqual({ data: { __typename: 'Query' } });
  expect(served.headers.get('connection')).toBe('close');

  // Until no client has connections to it.
  await load.answered(25);
  const again = setInterval(() => leaving.signal('SIGTERM'), 200);
  await leaving.printed(/stopping: requests in flight/);
  clearInterval(again);
  const exit = await leaving.ended;
  expect(exit).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(exit.stdout).not.toContain('cut off');
  await load.answered(6);
  expect(await load.end()).toEqual([]);
});

const WAITING = { timeout: 30_000, interval: 20 };

async function serve(env: Record<string, string> = {}) {
  const gateway = await startServe({ env });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  await vi.waitUntil(async () => (await fetch(new URL('/ready', gateway.url))).ok, WAITING);
  return gateway;
}
