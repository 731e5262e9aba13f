/** Settings with a slip in their names, in commands: `test/config.test.ts` has those of a start. */
import { existsSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { runProgram } from '../support/processes/process.ts';
import { startOperator, startWithTokens } from './tokens-operator.ts';

const KEY = Buffer.alloc(32, 1).toString('base64');

test.each([
  [{ TOKEN_STORE_KEYS: KEY }, 'Rename it if TOKEN_STORE_KEY was meant'],
  [{ RECRUITING_AGNET: 'example/1.0 (it@example.com)' }, 'Rename it if RECRUITING_AGENT was meant'],
])('an import with the misspelled setting %o leaves the link unread', async (slip, question) => {
  const { tokens, service, storePath } = await startOperator();
  const { code, stdout, stderr } = await tokens(['import', service.tokenLink], { env: slip });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(question);
  expect(stderr).not.toContain(KEY);
  expect(service.sandbox.stats.requests.tokenLink).toBe(0);
  expect(existsSync(storePath)).toBe(false);
});

test('an import with a misspelled TOKEN_STORE leaves the link unread, and makes no store elsewhere', async () => {
  const { service, env, file, storePath } = await startOperator();
  const { code, stderr } = await runProgram(['tokens', 'import', service.tokenLink], {
    cwd: file('.'),
    env: { RECRUITING_URL: env['RECRUITING_URL']!, TOKEN_STROE: `sqlite:${storePath}` },
  });
  expect(code).toBe(2);
  expect(stderr).toContain('TOKEN_STROE is not a setting. Rename it if TOKEN_STORE was meant');
  expect(service.sandbox.stats.requests.tokenLink).toBe(0);
  expect(readdirSync(file('.'))).toEqual([]);
});

test.each(['refresh', 'recover', 'export'])(
  '`tokens %s` changes nothing if a setting of the tokens is misspelled',
  async (command) => {
    const { tokens, service, status, file } = await startWithTokens();
    const args = command === 'export' ? [command, `sqlite:${file('other.db')}`] : [command];
    const { code, stderr } = await tokens(args, { env: { TOKEN_STORE_KEYS: KEY } });
    expect(code).toBe(2);
    expect(stderr).toContain(
      'TOKEN_STORE_KEYS is not a setting. Rename it if TOKEN_STORE_KEY was meant',
    );
    expect(service.exchanges).toHaveLength(1);
    expect(await status()).toMatchObject({ state: 'healthy', generation: 2 });
  },
);

test('a gateway does not start if a setting of the tokens is misspelled', async () => {
  const { env, service } = await startOperator();
  const { code, stderr } = await runHere([], {
    ...env,
    ALLOW_ANONYMOUS: 'true',
    TOKEN_LINK: service.tokenLink,
    TOKEN_STORE_KEYS: KEY,
  });
  expect(code).toBe(2);
  expect(stderr).toContain(
    'TOKEN_STORE_KEYS is not a setting. Rename it if TOKEN_STORE_KEY was meant',
  );
  expect(service.sandbox.stats.requests.tokenLink).toBe(0);
});

test('commands that only read refuse it too, because they would read another store', async () => {
  const { tokens } = await startWithTokens();
  for (const command of ['status', 'check']) {
    const { code, stderr } = await tokens([command], { env: { TOKEN_STORE_KEYS: KEY } });
    expect([command, code]).toEqual([command, 2]);
    expect(stderr).toContain('Rename it if TOKEN_STORE_KEY was meant');
  }
});
