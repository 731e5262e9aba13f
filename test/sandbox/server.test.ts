import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { openLink, post, start } from './client.ts';

/** Longer than a loaded machine takes. */
const WAIT = { interval: 2, timeout: 10_000 };

test('a request to an unknown address is a 404 in JSON', async () => {
  const sandbox = await start();
  for (const path of ['/', '/graphql/', '/token_links/made-up', '//', '/constructor', '/%']) {
    const answer = await fetch(sandbox.url + path);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(await answer.json()).toEqual({ errors: [{ message: expect.any(String) }] });
  }
});

test('a wrong method is a 405 in JSON that names the right one', async () => {
  const sandbox = await start();
  for (const [method, path, allowed] of [
    ['GET', '/graphql', 'POST'],
    ['GET', '/oauth/token', 'POST'],
    ['POST', '/auth_check', 'GET'],
    ['DELETE', new URL(sandbox.tokenLink).pathname, 'GET'],
  ] as const) {
    const answer = await fetch(sandbox.url + path, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe(allowed);
    expect(await answer.json()).toEqual({ errors: [{ message: expect.any(String) }] });
  }
});

test('a query string does not change the address', async () => {
  const sandbox = await start();

  expect((await fetch(`${sandbox.tokenLink}?again=1`)).status).toBe(200);
});

test('requests are counted by route', async () => {
  const sandbox = await start();
  const { access_token } = await openLink(sandbox);
  await post(sandbox, access_token, '{"query":"{ __typename }"}');
  await post(sandbox, 'made-up', '{"query":"{ __typename }"}');
  await fetch(`${sandbox.url}/nowhere`);

  expect(sandbox.stats.requests).toEqual({
    tokenLink: 1,
    authCheck: 0,
    oauthToken: 0,
    account: 0,
    graphql: 2,
    unknown: 1,
  });
  expect(sandbox.stats.graphql).toBe(1);
});

test('the addresses that it reports are those that it listens on', async () => {
  const sandbox = await start();

  expect(sandbox.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(sandbox.tokenLink.startsWith(`${sandbox.url}/`)).toBe(true);
});

test('a port that is in use is reported at the start', async () => {
  const { url } = await start();

  await expect(startSandbox({ port: Number(new URL(url).port) })).rejects.toThrow('EADDRINUSE');
});

test('closing ends open connections and requests that are still waiting', async () => {
  const sandbox = await startSandbox({ latency: 3_600_000 });
  const { access_token } = await openLink(sandbox);
  const idle = connect(Number(new URL(sandbox.url).port), '127.0.0.1');
  await once(idle, 'connect');
  idle.on('error', () => {});
  const waiting = post(sandbox, access_token, '{"query":"{ __typename }"}');
  const outcome = waiting.catch((error: unknown) => error);
  await expect.poll(() => sandbox.stats.inFlight, WAIT).toBe(1);
  const ended = new Promise<void>((resolve) => {
    idle.once('close', () => resolve());
  });
  idle.resume();
  await sandbox.close();

  expect(await outcome).toMatchObject({ message: 'fetch failed' });
  await ended;
  await expect(sandbox.close()).resolves.toBeUndefined();
});
