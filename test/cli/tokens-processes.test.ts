/** `tokens` commands through a proxy, and on a token store in PostgreSQL. */
import { writeFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { startPostgres } from '../support/postgres/server.ts';
import { startProgram } from '../support/processes/process.ts';
import { listenForTest } from '../support/test-server.ts';
import { makeCertificate } from '../support/tokens/certificate.ts';
import { startProxy } from '../support/tokens/proxy-server.ts';
import { startOperator } from './tokens-operator.ts';

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

test('every command works on a store in PostgreSQL, shows no password, and says which right is missing', async () => {
  const server = await startPostgres();
  onTestFinished(() => server.close());
  const { service, tokens, file } = await startOperator();
  const TOKEN_STORE = await server.emptyStore();
  const other = `sqlite:${file('other.db')}`;
  const env = { TOKEN_STORE, TOKEN_RESCUE_DIR: file('rescue') };
  const expectSaid = async (args: string[], code: number, said: RegExp, more = {}) => {
    const { stdout, stderr, ...exit } = await tokens(args, { env: { ...env, ...more } });
    expect({ code: exit.code, text: stdout + stderr }).toEqual({
      code,
      text: expect.stringMatching(said),
    });
    expect(stdout + stderr).not.toContain('planted-password');
  };
  const { username: schema } = new URL(TOKEN_STORE);
  await server.query(`REVOKE CREATE ON SCHEMA ${schema} FROM ${schema}`);
  const missing = /\(postgres:\/\/.*\).*docs\/tokens\.md lists them/;
  await expectSaid(['import', service.tokenLink], 1, missing);
  await server.query(`GRANT CREATE ON SCHEMA ${schema} TO ${schema}`);
  await expectSaid(['status'], 2, /MISSING/);
  await expectSaid(['import', service.tokenLink], 0, /generation 2 is in use/);
  await expectSaid(['refresh'], 0, /generation 3 is in use/);
  await expectSaid(['check'], 0, /accepts the access token/);
  await expectSaid(['recover'], 0, /nothing to recover/);
  await expectSaid(['status'], 0, /healthy\n +Store +postgres:\/\/store_\d+@127\.0\.0\.1:\d+\/p/);
  await expectSaid(['export', TOKEN_STORE], 2, /That is the store that/);
  await expectSaid(['export', other], 0, /is in sqlite:\/.*other\.db now/);
  await expectSaid(['refresh'], 1, /moved to another store \(sqlite:\/.*other\.db\)/);
  const back = /is in postgres:\/\/store_\d+@127.*Set TOKEN_STORE to its address/;
  await expectSaid(['export', TOKEN_STORE], 0, back, { TOKEN_STORE: other });
  await expectSaid(['refresh'], 0, /is in use/);
});
