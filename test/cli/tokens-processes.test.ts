/** `tokens` commands that are stopped or killed, and on a token store in PostgreSQL. */
import { copyFileSync, existsSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startHere } from '../support/gateway/run-here.ts';
import { startProgram } from '../support/processes/process.ts';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import { listenForTest } from '../support/test-server.ts';
import { makeCertificate } from '../support/tokens/certificate.ts';
import { startProxy } from '../support/tokens/proxy-server.ts';
import { startOperator, startWithTokens } from './tokens-operator.ts';

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.close());

test('an import that waits for standard input can be stopped, and nothing is changed', async () => {
  const { env, storePath, status } = await startOperator();
  const command = startHere(['tokens', 'import', '-'], env, new PassThrough());
  // The store is opened before the set is read.
  await vi.waitFor(() => expect(existsSync(storePath)).toBe(true));
  expect(await command.stop()).toMatchObject({
    code: 1,
    stderr: 'Stopped before anything was read. Nothing was changed.\n',
  });
  expect(await status()).toMatchObject({ state: 'missing' });
});

test('a command that is stopped during an exchange ends once the pair is saved', async () => {
  const { env, service, status } = await startWithTokens();
  const held = service.tokenAnswers.hold('after');
  const command = startHere(['tokens', 'refresh'], env);
  await held.arrived;
  const stopped = command.stop();
  held.release();
  const { code, stdout, stderr } = await stopped;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('Refreshed: generation 3 is in use');
  expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
});

test('a pair that cannot be saved waits in an emergency file, and recover saves it', async () => {
  const operator = await startWithTokens();
  const { service, storePath, file, emergency, done, tokens } = operator;
  copyFileSync(storePath, file('copy'));
  const held = service.tokenAnswers.hold('after');
  const refreshing = tokens(['refresh']);
  await held.arrived;
  // Not a file any more, so it can be neither opened nor made again.
  for (const end of ['', '-journal']) rmSync(storePath + end, { force: true });
  mkdirSync(storePath);
  held.release();
  const { code, stderr } = await refreshing;
  expect(code).toBe(1);
  const [waiting] = emergency.read();
  expect(stderr).toMatch(
    /could not be saved .*tried again for some seconds: do not kill this command/,
  );
  expect(stderr).toContain(`in an emergency file (${waiting!.path}): do not remove it`);
  rmdirSync(storePath);
  copyFileSync(file('copy'), storePath);
  expect((await tokens(['status'])).stdout).toMatch(/Emergency file +\/.*\n[^]*unsaved: /);
  expect(await done('recover')).toContain(`(${waiting!.path}) is in the token store now`);
  expect(emergency.read()).toEqual([]);
  expect(await done('refresh')).toContain('generation 4 is in use');
});

test('an exchange goes through HTTPS_PROXY to a service with a certificate of NODE_EXTRA_CA_CERTS, and shows the proxy nothing', async () => {
  const { env, file } = await startOperator();
  const certificate = await makeCertificate();
  const arrived: string[] = [];
  const service = createHttpsServer(certificate, (request, response) => {
    const answer = async () => {
      arrived.push(`${request.method} ${request.url} ${await text(request)}`);
      response.end(JSON.stringify({ access_token: 'next-access', refresh_token: 'next-refresh' }));
    };
    void answer();
  });
  const host = `localhost:${await listenForTest(service)}`;
  const proxy = await startProxy();
  writeFileSync(file('set'), '{"access_token":"made-up-access","refresh_token":"made-up-refresh"}');
  await using program = startProgram(['tokens', 'import', file('set')], {
    env: {
      ...env,
      RECRUITING_URL: `https://${host}`,
      HTTPS_PROXY: proxy.host,
      NODE_EXTRA_CA_CERTS: certificate.path,
    },
  });
  expect(await program.ended).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringContaining('generation 2 is in use'),
  });
  expect(arrived).toEqual([
    'POST /oauth/token grant_type=refresh_token&refresh_token=made-up-refresh',
  ]);
  expect(proxy.heads).toEqual([expect.stringMatching(`^CONNECT ${host} HTTP/1.1\r\n`)]);
  expect(proxy.heads.join() + proxy.tunnelled()).not.toContain('made-up');
});

test('every command works on a store in PostgreSQL, and shows no password', async () => {
  const { service, tokens, file } = await startOperator();
  const TOKEN_STORE = await server.emptyStore();
  const env = { TOKEN_STORE, TOKEN_RESCUE_DIR: file('rescue') };
  const run = async (...args: string[]) => {
    const said = await tokens(args, { env });
    expect(said.stdout + said.stderr).not.toContain('planted-password');
    return said;
  };
  expect((await run('status')).code).toBe(2);
  expect(await run('import', service.tokenLink)).toMatchObject({ code: 0, stderr: '' });
  expect(await run('refresh')).toMatchObject({ code: 0, stderr: '' });
  expect(await run('check')).toMatchObject({ code: 0, stderr: '' });
  expect((await run('recover')).stdout).toMatch(/nothing to recover/);
  const { code, stdout } = await run('status');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /State +healthy\n +Store +postgres:\/\/store_\d+@127\.0\.0\.1:\d+\/postgres\n/,
  );
  const itself = await run('export', TOKEN_STORE);
  expect(itself).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('That is the store that'),
  });
  const target = `sqlite:${file('other.db')}`;
  expect(await run('export', target)).toMatchObject({ code: 0, stderr: '' });
  expect((await run('refresh')).stderr).toContain(`moved to another store (${target})`);
  const back = await tokens(['export', TOKEN_STORE], { env: { TOKEN_STORE: target } });
  expect(back.stdout).toMatch(/is in postgres:\/\/store_\d+@127.*Set TOKEN_STORE to its address/);
  expect(back.stdout).not.toContain('planted-password');
  expect((await run('refresh')).stdout).toContain('is in use');
});

test('of a PostgreSQL without a right a command says what to do', async () => {
  const { tokens, file, service } = await startOperator();
  const TOKEN_STORE = await server.emptyStore();
  const { username, searchParams } = new URL(TOKEN_STORE);
  expect(searchParams.size).toBe(0);
  const env = { TOKEN_STORE, TOKEN_RESCUE_DIR: file('rescue') };
  await server.query(`REVOKE CREATE ON SCHEMA ${username} FROM ${username}`);
  const refused = await tokens(['import', service.tokenLink], { env });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/\(postgres:\/\/.*\)/);
  expect(refused.stderr).toContain('docs/tokens.md lists them');
});
