import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { serveHere } from '../support/gateway/run-here.ts';
import { startServe } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SECRETS = {
  query: 'aliasOfSomebody',
  variable: 'cursorOfSomebody',
  header: 'Bearer tokenOfSomebody',
  queryString: 'queryOfSomebody',
  operationName: 'OperationOfSomebody',
};

test('logs contain one line for each request, and no secret', async () => {
  await using service = await startedService();
  const [accessToken, refreshToken] = await tokensOf(service.tokenLink);
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  await using gateway = await startServe({
    cwd: folder.path,
    env: {
      NODE_ENV: 'production',
      RECRUITING_URL: service.url,
      TOKEN_LINK: service.tokenLink,
      ALLOW_ANONYMOUS: 'true',
      LOG_LEVEL: 'debug',
    },
  });
  await gateway.printed(/access token refreshed/);

  await askAt(
    gateway.url,
    `query ${SECRETS.operationName}($after: String) {
       ${SECRETS.query}: persons(after: $after) { items { id } }
     }`,
    { after: SECRETS.variable },
    { authorization: SECRETS.header },
  );
  for (const query of [
    `{${SECRETS.queryString}}`,
    `{__typename}&variables=${SECRETS.queryString}`,
  ]) {
    const headers = { 'apollo-require-preflight': 'true' };
    await fetch(`${gateway.url}?query=${query}`, { headers });
  }
  await fetch(gateway.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: `{"query": "${SECRETS.queryString}`,
  });
  await fetch(new URL('/ready', gateway.url));
  await fetch(new URL('/elsewhere', gateway.url));
  await gateway.printed(/"status":404/);

  gateway.signal('SIGTERM');
  const { stdout, stderr, code } = await gateway.ended;
  expect(code).toBe(0);
  expect(stderr).toBe('');
  for (const secret of [...Object.values(SECRETS), accessToken, refreshToken, service.tokenLink]) {
    expect(stdout).not.toContain(secret);
  }
  expect(stdout).not.toContain('OfSomebody');

  const requests = stdout
    .split('\n')
    .filter((line) => /"method"/.test(line))
    .map((line) => JSON.parse(line.slice(line.indexOf('{'))));
  expect(requests.map(({ method, path, status }) => [method, path, status])).toEqual([
    ['POST', '/graphql', 200],
    ['GET', '/graphql', 200],
    ['GET', '/graphql', 400],
    ['POST', '/graphql', 400],
    ['GET', '/ready', 200],
    ['GET', undefined, 404],
  ]);
  expect(requests.every(({ ms, requestId }) => ms >= 0 && requestId.length === 36)).toBe(true);
});

test('in production every line of the log is JSON, from the first one on', async () => {
  await using service = await startedService();
  const folder = temporaryFolder('disk');
  onTestFinished(() => folder[Symbol.dispose]());
  await using gateway = await startServe({
    cwd: folder.path,
    env: { NODE_ENV: 'production', RECRUITING_URL: service.url, ALLOW_ANONYMOUS: 'true' },
  });
  gateway.signal('SIGTERM');
  const { stdout } = await gateway.ended;
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ msg }) => msg)).toEqual([
    expect.stringContaining('The token store is empty.'),
    'metrics',
    'serving',
    'stopping: requests in flight have 10 s to finish, and a token pair is saved first',
  ]);
  expect(lines[2]).toMatchObject({ url: gateway.url, upstream: service.url });
});

test('with LOG_LEVEL=silent only the address is printed', async () => {
  await using gateway = await serveHere({ LOG_LEVEL: 'silent' });
  await askAt(gateway.url, '{ __typename }');
  const { stdout } = await gateway.stop();
  expect(stdout).toContain('GraphiQL');
  expect(stdout).not.toMatch(/INFO|request/);
});

async function startedService() {
  const service = await startService();
  return Object.assign(service, { [Symbol.asyncDispose]: () => service.close() });
}

async function tokensOf(link: string): Promise<[string, string]> {
  const set = (await (await fetch(link)).json()) as Record<string, string>;
  return [set['access_token']!, set['refresh_token']!];
}

test.each(['the reader of its log leaves', 'its terminal is closed'])(
  'when %s, the gateway goes on or stops cleanly',
  async (what) => {
    await using service = await startedService();
    const folder = temporaryFolder();
    onTestFinished(() => folder[Symbol.dispose]());
    const child = spawn(process.execPath, [resolve('src/main.ts')], {
      cwd: folder.path,
      env: {
        PORT: '0',
        ADMIN_PORT: '0',
        NODE_ENV: 'production',
        ALLOW_ANONYMOUS: 'true',
        RECRUITING_URL: service.url,
        TOKEN_LINK: service.tokenLink,
      },
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
    if (what.startsWith('its terminal')) {
      child.kill('SIGHUP');
    } else {
      for (let request = 0; request < 3; request += 1) {
        expect(await askAt(url!, '{ __typename }')).toEqual({ data: { __typename: 'Query' } });
      }
      child.kill('SIGTERM');
    }
    expect(await ended).toEqual([0, null]);
  },
);
