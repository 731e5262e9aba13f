/** Settings with a slip in their names, in commands: `test/config.test.ts` has those of a start. */
import { existsSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { runProgram } from '../support/processes/process.ts';
import { startOperator, startWithTokens } from './tokens-operator.ts';

const KEY = Buffer.alloc(32, 1).toString('base64');

test.each([
  [{ TOKEN_STORE_KEYS: KEY }, 'Was TOKEN_STORE_KEY meant?'],
  [{ RECRUITING_AGNET: 'example/1.0 (it@example.com)' }, 'Was RECRUITING_AGENT meant?'],
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
  expect(stderr).toContain('TOKEN_STROE is not a setting. Was TOKEN_STORE meant?');
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
    expect(stderr).toContain('TOKEN_STORE_KEYS is not a setting. Was TOKEN_STORE_KEY meant?');
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
  expect(stderr).toContain('TOKEN_STORE_KEYS is not a setting. Was TOKEN_STORE_KEY meant?');
  expect(service.sandbox.stats.requests.tokenLink).toBe(0);
});

test('commands that only read report a misspelled setting once, and do their work', async () => {
  const { tokens, env } = await startWithTokens();
  const slips = { TOKEN_STORE_KEYS: KEY, MAX_DEPHT: '3' };
  const reported =
    'TOKEN_STORE_KEYS is not a setting and is ignored. Was TOKEN_STORE_KEY meant?\n' +
    'MAX_DEPHT is not a setting and is ignored. Was MAX_DEPTH meant?\n';
  for (const command of ['status', 'check']) {
    const { code, stderr } = await tokens([command], { env: slips });
    expect([command, code, stderr]).toEqual([command, 0, reported]);
  }
  for (const command of ['print', 'explain', 'check']) {
    const { stderr } = await runHere(['schema', command], { ...env, ...slips });
    expect([command, stderr.split(reported).length]).toEqual([command, 2]);
  }
  const made = await runHere(['keys', 'new', 'portal'], slips);
  expect(made).toMatchObject({ code: 0, stderr: reported });
  const exported = await runHere(['export', 'persons', '--sandbox'], { MAX_DEPHT: '3' });
  expect(exported.code).toBe(0);
  expect(exported.stderr).toContain('Was MAX_DEPTH meant?');
});

test('a variable that lacks the first word of a setting may belong to another program, and is only reported', async () => {
  const { tokens, service } = await startOperator();
  const { code, stderr } = await tokens(['import', service.tokenLink], {
    env: { STORE_KEY: KEY },
  });
  expect(code).toBe(0);
  expect(stderr).toBe('STORE_KEY is not a setting and is ignored. Was TOKEN_STORE_KEY meant?\n');
});
