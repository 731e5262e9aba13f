/** Stores that a gateway or a command cannot use, and the way back that it names. */
import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { startServe } from '../support/processes/process.ts';
import { startOperator, startWithTokens, type Operator } from './tokens-operator.ts';

const [KEY, OTHER] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'));

test('a store of a newer version is left to that version by every command', async () => {
  const { tokens, storePath, env, service } = await startWithTokens();
  const database = new DatabaseSync(storePath);
  database.exec('PRAGMA user_version = 3');
  database.close();
  const link = service.makeNewSet();
  const before = service.sandbox.stats.requests.tokenLink;
  for (const args of [['status'], ['check'], ['refresh'], ['recover'], ['import', link]]) {
    const { code, stderr } = await tokens(args);
    expect(code).toBe(1);
    expectNewer(stderr);
  }
  const gateway = await runHere([], { ...env, ALLOW_ANONYMOUS: 'true' });
  expect(gateway.code).toBe(1);
  expectNewer(gateway.stderr);
  expect(service.sandbox.stats.requests.tokenLink).toBe(before);
});

test.each([
  ['no key', {}],
  ['another key', { TOKEN_STORE_KEY: OTHER! }],
])(
  'a gateway with %s for its store ends as after a mistake in the settings, so that nothing restarts it',
  async (_, settings) => {
    const { env } = await startSealed();
    const { code, stderr } = await runHere([], { ...env, ALLOW_ANONYMOUS: 'true', ...settings });
    expect(code).toBe(2);
    expect(stderr).toMatch(/cannot be opened .* Set TOKEN_STORE_KEY as it is set for the gateway/);
  },
);

test('if the key is lost, the store and its rescue files are moved away, and a new link is imported', async () => {
  const { tokens, service, file, storePath, env } = await startSealed();
  const names = readdirSync(file('.'));
  // Beside the store, as a command leaves it.
  expect(names.filter((name) => name.startsWith('rescue-'))).toHaveLength(1);
  const fresh = { env: { TOKEN_STORE_KEY: OTHER! } };
  const link = service.makeNewSet();
  for (const args of [
    ['import', link, '--replace'],
    ['recover', '--rebuild'],
  ]) {
    expect((await tokens(args, fresh)).stderr).toContain('none of those in TOKEN_STORE_KEY');
  }
  mkdirSync(file('old'));
  for (const name of names) renameSync(file(name), file(`old/${name}`));
  const imported = await tokens(['import', link], fresh);
  expect(imported).toMatchObject({ code: 0, stderr: '' });
  expect(statSync(storePath).size).toBeGreaterThan(0);
  await using gateway = await startServe({
    env: { ...env, ...fresh.env, ALLOW_ANONYMOUS: 'true' },
  });
  expect((await fetch(new URL('/ready', gateway.url))).status).toBe(200);
  expect((await tokens(['refresh'], fresh)).code).toBe(0);
});

/** An operator whose store is sealed with KEY, and has tokens. */
async function startSealed(): Promise<Operator> {
  const operator = await startOperator();
  const env = { TOKEN_STORE_KEY: KEY! };
  const { code } = await operator.tokens(['import', operator.service.tokenLink], { env });
  expect(code).toBe(0);
  return operator;
}

function expectNewer(stderr: string): void {
  expect(stderr).toContain('it was written by a newer version (layout 3)');
  expect(stderr).toContain(
    'Start the newer version again (docs/running.md, "Upgrades and rollbacks")',
  );
  expect(stderr).not.toMatch(/Check TOKEN_STORE|tokens recover/);
}
