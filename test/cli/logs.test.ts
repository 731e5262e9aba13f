import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { serveHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('in production the log is JSON from its first line on, with one line for each request and no secret', async () => {
  const { env, link } = await overService();
  const set = (await (await fetch(link)).json()) as Record<string, string>;
  await using gateway = await serveHere({ ...env, LOG_LEVEL: 'debug' });
  await gateway.printed(/access token refreshed/);
  await askAt(
    gateway.url,
    'query OperationOfSomebody($after: String) { aliasOfSomebody: persons(after: $after) { items { id } } }',
    { after: 'cursorOfSomebody' },
    { authorization: 'Bearer tokenOfSomebody' },
  );
  for (const query of ['{queryOfSomebody}', '{__typename}&variables=queryOfSomebody']) {
    const headers = { 'apollo-require-preflight': 'true' };
    await fetch(`${gateway.url}?query=${query}`, { headers });
  }
  await fetch(gateway.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"query": "queryOfSomebody',
  });
  await fetch(new URL('/ready', gateway.url));
  await fetch(new URL('/elsewhere', gateway.url));
  await gateway.printed(/"status":404/);

  const { stdout, stderr, code } = await gateway.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const secret of ['OfSomebody', set['access_token']!, set['refresh_token']!, link]) {
    expect(stdout).not.toContain(secret);
  }
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: 'serving', url: gateway.url, upstream: env.RECRUITING_URL }),
  );
  const requests = lines.filter(({ method }) => method !== undefined);
  expect(requests.map(({ method, path, status }) => [method, path, status])).toEqual([
    ['POST', '/graphql', 200],
    ['GET', '/graphql', 200],
    ['GET', '/graphql', 400],
    ['POST', '/graphql', 400],
    ['GET', '/ready', 200],
    ['GET', undefined, 404],
  ]);
  for (const { ms, requestId } of requests) {
    expect(ms).toBeGreaterThanOrEqual(0);
    expect(requestId).toHaveLength(36);
  }
});

test('with LOG_LEVEL=silent only the address is printed', async () => {
  await using gateway = await serveHere({ LOG_LEVEL: 'silent' });
  await askAt(gateway.url, '{ __typename }');
  const { stdout } = await gateway.stop();
  expect(stdout).toContain('GraphiQL');
  expect(stdout).not.toMatch(/INFO|request/);
});

test('a gateway goes on when the reader of its log leaves, and stops cleanly when its terminal is closed', async () => {
  const { env } = await overService();
  const child = spawn(process.execPath, [resolve('src/main.ts')], {
    env: { PORT: '0', ADMIN_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'close');
  let url: string | undefined;
  for await (const chunk of child.stdout) {
    url ??= /http:[^"]+\/graphql/.exec(String(chunk))?.[0];
    if (url) break;
  }
  // Leaving the loop closed the pipe: nothing is read from now on.
  for (let request = 0; request < 3; request += 1) {
    expect(await askAt(url!, '{ __typename }')).toEqual({ data: { __typename: 'Query' } });
  }
  child.kill('SIGHUP');
  expect(await ended).toEqual([0, null]);
});

async function overService() {
  const service = await startService();
  onTestFinished(() => service.close());
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const env = {
    NODE_ENV: 'production',
    RECRUITING_URL: service.url,
    TOKEN_LINK: service.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    ALLOW_ANONYMOUS: 'true',
  };
  return { env, link: service.tokenLink };
}
