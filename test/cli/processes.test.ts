/** What only a process can show: signals, closed pipes, proxies, an older Node, what is left open or written. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { after, honest } from '../service/replies.ts';
import { startService } from '../service/service.ts';
import { settingsOver } from '../support/gateway/settings-over.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { bundled } from '../support/processes/bundled.ts';
import { runProgram, served, startNpm, startServe } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { listenForTest } from '../support/listening.ts';
import { makeCertificate } from '../support/tokens/certificate.ts';
import { startProxy } from '../support/tokens/proxy-server.ts';

function newFolder() {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder;
}

test('`serve` without settings serves the sandbox, ends at SIGTERM, and has written nothing to disk', async () => {
  const folder = newFolder();
  await using gateway = await startServe({ cwd: folder.path });
  const { data } = await askAt(gateway.url, '{ allPersons { id } }');
  expect(data).toMatchObject({ allPersons: { length: 137 } });
  gateway.signal('SIGTERM');
  expect(await gateway.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(readdirSync(folder.path)).toEqual([]);
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  'npm start: after %s requests in flight are answered, and all processes end with exit code 0',
  async (signal) => {
    const answered = Promise.withResolvers<void>();
    await using service = await startService({ persons: 1 });
    service.answer(after(answered.promise, honest));
    await using program = startNpm(['start'], { env: settingsOver(service, newFolder()) });
    const gateway = await served(program);
    const answer = askAt(gateway.url, '{ persons { items { id } } }');
    await service.arrived(1);
    gateway.signal(signal);
    await gateway.printed(/stopping/);
    answered.resolve();
    expect(await answer).toMatchObject({ data: { persons: { items: { length: 1 } } } });
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
    expect(gateway.isAlive).toBe(false);
  },
);

test('a gateway goes on when the reader of its log leaves, and stops cleanly when its terminal is closed', async () => {
  await using service = await startService();
  const child = spawn(process.execPath, [await bundled('src/process.ts')], {
    env: {
      ...settingsOver(service, newFolder()),
      PORT: '0',
      ADMIN_PORT: '0',
      RECRUITING_SCHEMA: resolve('schema/upstream.graphql'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'close');
  let printed = '';
  for await (const chunk of child.stdout) {
    printed += String(chunk);
    // Leaving the loop closes the pipe: nothing is read from now on.
    if (/\/graphql\n/.test(printed)) break;
  }
  const [url] = /http:\S+\/graphql/.exec(printed)!;
  for (let request = 0; request < 3; request += 1) {
    expect(await askAt(url, '{ __typename }')).toEqual({ data: { __typename: 'Query' } });
  }
  child.kill('SIGHUP');
  expect(await ended).toEqual([0, null]);
});

const pair = (name: string) =>
  `{"access_token":"${name}-access","refresh_token":"${name}-refresh"}`;

test('an exchange goes through HTTPS_PROXY to a service with a certificate of NODE_EXTRA_CA_CERTS, and shows the proxy nothing', async () => {
  const { file } = newFolder();
  const certificate = await makeCertificate();
  const arrived: string[] = [];
  const service = createHttpsServer(certificate, (request, response) => {
    const answer = async () => {
      arrived.push(`${request.method} ${request.url} ${await text(request)}`);
      response.end(pair('next'));
    };
    void answer();
  });
  const host = `localhost:${await listenForTest(service)}`;
  const proxy = await startProxy();
  const env = {
    RECRUITING_URL: `https://${host}`,
    TOKEN_STORE: `sqlite:${file('tokens.db')}`,
    HTTPS_PROXY: proxy.host,
    NODE_EXTRA_CA_CERTS: certificate.path,
  };
  writeFileSync(file('set'), pair('made-up'));
  const under = ['sh', '-c', `exec "$0" "$@" < ${file('set')}`];
  const { code, stdout, stderr } = await runProgram(['tokens', 'import', '-'], { env, under });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('generation 2 is in use');
  expect(arrived).toEqual([
    'POST /oauth/token grant_type=refresh_token&refresh_token=made-up-refresh',
  ]);
  expect(proxy.heads).toEqual([expect.stringMatching(`^CONNECT ${host}\n`)]);
  expect(proxy.heads.join() + proxy.tunnelled()).not.toContain('made-up');
});

test('resources that gateway.config.ts leaves open do not keep a command running', async () => {
  const folder = newFolder();
  const source = 'setInterval(() => {}, 60_000);\nexport default { plugins: [] };';
  writeFileSync(folder.file('behind-the-link.ts'), source);
  symlinkSync('behind-the-link.ts', folder.file('open.ts'));
  const options = { env: { GATEWAY_CONFIG: 'open.ts' }, cwd: folder.path };
  expect(await runProgram(['schema', 'print'], options)).toMatchObject({ code: 0, stderr: '' });
});

test.each([
  ['node src/main.ts', () => ['src/main.ts'], '`npm start`'],
  ['npm start', () => manifest.scripts.start.split(' ').slice(2), '`npm start`'],
  ['the package', alone, '`npm install node@24` beside the package, `npx recruiting-subgraph`'],
])('a Node that is too old says which one is needed, and how to get it: %s', (_, args, advice) => {
  const older = newFolder().file('older.cjs');
  writeFileSync(
    older,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.2' } });`,
  );
  // This Node reports an older version, and refuses TypeScript files as that version does.
  const options = ['--no-strip-types', '--require', older, ...args(), 'tokens', 'status'];
  const { status, stdout, stderr } = spawnSync(process.execPath, options, {
    env: {},
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/^The gateway needs Node 24 or newer, and this is Node 20\.1\.2\. .*\n$/);
  expect(stderr).toContain(advice);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
});

/** The package has no TypeScript beside it. */
function alone(): string[] {
  const file = newFolder().file('main.cjs');
  copyFileSync('src/main.cjs', file);
  return [file];
}
