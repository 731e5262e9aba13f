import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { after, honest } from '../service/replies.ts';
import { startService, type Service } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { serveHere, startHere } from '../support/gateway/run-here.ts';
import { refusingAddress } from '../support/listening.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
let service: Service;
beforeAll(async () => {
  service = await startService({ persons: 60 });
});
afterAll(async () => {
  await service.close();
  folder[Symbol.dispose]();
});

const overService = (env: Record<string, string>) => ({
  RECRUITING_URL: service.url,
  ALLOW_ANONYMOUS: 'true',
  ...env,
});
const storeIn = (name: string) => ({ TOKEN_STORE: `sqlite:${folder.file(name)}` });

async function countPersons(url: string): Promise<number> {
  const { data, errors } = await askAt(url, '{ allPersons { id } }');
  expect(errors).toBeUndefined();
  return (data!['allPersons'] as unknown[]).length;
}

test('without RECRUITING_URL the sandbox is served, said loudly, with a log for people', async () => {
  await using gateway = await serveHere();
  const [, health, ready] = await gateway.printed(/Health\s+(\S+)\s+(\S+)/);
  await gateway.printed(/The token link was imported/);
  expect([(await fetch(health!)).status, (await fetch(ready!)).status]).toEqual([200, 200]);
  expect(await countPersons(gateway.url)).toBe(137);
  const { stdout, ...exit } = await gateway.stop();
  expect(exit).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/\*{3} {2}SANDBOX {2}\*{3}[^]*made up[^]*GraphiQL\s+http:\S+\/graphql\n/);
  expect(stdout).toMatch(
    /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: request \{"requestId":"[\w-]+","method"/m,
  );
  expect(stdout).not.toMatch(/^\{/m);
});

test('with LOG_LEVEL=silent only the addresses are printed', async () => {
  await using gateway = await serveHere({ LOG_LEVEL: 'silent', GRAPHIQL: 'off' });
  await askAt(gateway.url, '{ __typename }');
  const { stdout } = await gateway.stop();
  expect(stdout).toMatch(/GraphQL\s+http/);
  expect(stdout).not.toMatch(/INFO|request/);
});

test('asked to stop, /ready fails at once, and requests are answered and tokens refreshed for SHUTDOWN_DELAY_MS', async () => {
  await using shortLived = await startService({ persons: 60, expiresIn: 1 });
  const [RECRUITING_URL, TOKEN_LINK] = [shortLived.url, shortLived.tokenLink];
  const env = { RECRUITING_URL, TOKEN_LINK, SHUTDOWN_DELAY_MS: '3000', ...storeIn('ending.db') };
  await using gateway = await serveHere(overService(env));
  await gateway.printed(/access token refreshed/);
  const stopped = gateway.stop();
  await gateway.printed(/requests are still accepted for a while/);
  const ready = await fetch(new URL('/ready', gateway.url));
  // Balancers open other connections then, to other replicas.
  expect([ready.status, ready.headers.get('connection')]).toEqual([503, 'close']);
  expect(await countPersons(gateway.url)).toBe(60);
  const before = shortLived.exchanges.length;
  await expect.poll(() => shortLived.exchanges.length, { timeout: 10_000 }).toBeGreaterThan(before);
  // A request in flight is waited for, and no refresh begins.
  const held = Promise.withResolvers<void>();
  shortLived.answer(after(held.promise, honest));
  const last = askAt(gateway.url, '{ persons(first: 1) { items { id } } }');
  await gateway.printed(/stopping: requests in flight/);
  const then = shortLived.exchanges.length;
  await setTimeout(2_000);
  expect(shortLived.exchanges.length - then).toBeLessThan(2);
  held.resolve();
  await last;
  expect(await stopped).toMatchObject({ code: 0, stderr: '' });
});

test('a database that is down does not prevent a start, and /ready fails until it is read', async () => {
  const { host } = new URL(await refusingAddress());
  const TOKEN_STORE = `postgres://store@${host}/tokens`;
  const TOKEN_RESCUE_DIR = folder.file('rescue');
  await using gateway = await serveHere(overService({ TOKEN_STORE, TOKEN_RESCUE_DIR }));
  expect((await fetch(new URL('/ready', gateway.url))).status).toBe(503);
  expect(await gateway.stop()).toMatchObject({ code: 0 });
});

test('in production the log is JSON from its first line on, and has no secret and nothing that a caller sends', async () => {
  const link = service.makeNewSet();
  const set = (await (await fetch(link)).json()) as Record<string, string>;
  const env = overService({
    NODE_ENV: 'production',
    TOKEN_LINK: link,
    ...storeIn('logged.db'),
    LOG_LEVEL: 'debug',
  });
  await using gateway = await serveHere(env);
  await gateway.printed(/access token refreshed/);
  const operation =
    'query OfSomebody($after: String) { ofSomebody: persons(after: $after) { items { id } } }';
  const headers = { authorization: 'Bearer ofSomebody' };
  await askAt(gateway.url, operation, { after: 'cursorOfSomebody' }, headers);
  await fetch(`${gateway.url}?query={queryOfSomebody}`, {
    headers: { 'apollo-require-preflight': 'true' },
  });
  await fetch(gateway.url, { method: 'POST', body: '{"query": "queryOfSomebody' });
  await gateway.printed(/(?:[^]*"method":"){3}/);
  const { stdout, stderr, code } = await gateway.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const secret of [/OfSomebody/i, set['access_token']!, set['refresh_token']!, link]) {
    expect(stdout).not.toMatch(secret);
  }
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const serving = { msg: 'serving', url: gateway.url, upstream: service.url };
  expect(lines).toContainEqual(expect.objectContaining(serving));
});

test('`sandbox` imitates the service, prints how to serve it, and ends when it is stopped', async () => {
  const options = '--port 0 --persons 7 --expires-in 90';
  await using sandbox = startHere(['sandbox', ...options.split(' ')]);
  const [, baseUrl] = await sandbox.printed(/Base URL\s+(\S+)\n/);
  const [, tokenLink] = await sandbox.printed(/Token link\s+(\S+)\n/);
  const set = (await (await fetch(tokenLink!)).json()) as Record<string, unknown>;
  expect(set['expires_in']).toBe(90);
  const headers = { authorization: `Bearer ${String(set['access_token'])}` };
  const page = '{ persons { items { id } pageInfo { hasNextPage } } }';
  expect(await askAt(`${baseUrl}/graphql`, page, {}, headers)).toMatchObject({
    data: { persons: { items: { length: 7 }, pageInfo: { hasNextPage: false } } },
  });
  const { code, stdout, stderr } = await sandbox.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`RECRUITING_URL=${baseUrl} `);
  expect(stdout).toContain(`TOKEN_LINK=${tokenLink} `);
});
