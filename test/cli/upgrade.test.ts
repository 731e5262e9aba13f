import { createHmac } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { startService, type Service } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { runProgram, startServe } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('an upgrade keeps the tokens: the gateway serves with the store of the version before, and refreshes', async () => {
  await using world = await startWorld();
  const { sandbox, env, path } = world;
  const before = readFileSync(path);
  const status = await runHere(['tokens', 'status', '--json'], env);
  expect(JSON.parse(status.stdout)).toMatchObject({ generation: 7, layout: 1 });
  expect(readFileSync(path).equals(before)).toBe(true);

  await using gateway = await startServe({ env: { ...env, ALLOW_ANONYMOUS: 'true' } });
  const ask = '{ allPersons(limit: 1) { __typename } }';
  expect(await askAt(gateway.url, ask)).toEqual({
    data: { allPersons: [{ __typename: 'Person' }] },
  });
  expect(layoutOf(path)).toBe(2);
  await gateway.printed(/ INFO: .*brought from layout 1 to layout 2\. Earlier versions cannot/);
  const refreshed = await runHere(['tokens', 'refresh'], env);
  expect(refreshed).toMatchObject({ code: 0, stderr: '' });
  // Nothing was sent twice: the token of the old store, once.
  expect(sandbox.exchanges).toHaveLength(1);
  expect((await gateway.stop()).code).toBe(0);
  const after = await runHere(['tokens', 'status', '--json'], env);
  expect(JSON.parse(after.stdout)).toMatchObject({ generation: 8, layout: 2, state: 'healthy' });
});

test('a rollback over a change of the layout sends and changes nothing, and says why', async () => {
  await using world = await startWorld();
  const { sandbox, env, path } = world;
  const database = new DatabaseSync(path);
  // As a later version would leave it.
  database.exec('PRAGMA user_version = 3');
  database.close();
  const before = readFileSync(path);
  const message = 'it was written by a newer version (layout 3)';
  for (const args of [['serve'], ['tokens', 'status'], ['tokens', 'refresh']]) {
    const { code, stdout, stderr } = await runProgram(args, {
      env: { ...env, ALLOW_ANONYMOUS: 'true' },
    });
    expect([args, code === 0]).toEqual([args, false]);
    expect(stdout + stderr).toContain(message);
  }
  expect(readFileSync(path).equals(before)).toBe(true);
  expect(sandbox.exchanges).toEqual([]);
  expect(sandbox.stats.requests.graphql).toBe(0);
});

test('docs/running.md and CHANGELOG.md name the layout that this version writes', async () => {
  await using world = await startWorld();
  const { stderr } = await runHere(['tokens', 'refresh'], world.env);
  expect(stderr).toMatch(/^The token store was brought from layout 1 to layout 2\./);
  const layout = layoutOf(world.path);
  expect(readFileSync('docs/running.md', 'utf8')).toMatch(
    new RegExp(`^\\| ${layout} +\\| 0\\.1\\.0`, 'm'),
  );
  const [newest] = readFileSync('CHANGELOG.md', 'utf8').split(/\n## /).slice(1);
  expect(newest).toContain(`Layout of the token store: ${layout}`);
});

interface World extends AsyncDisposable {
  readonly sandbox: Service;
  readonly env: Record<string, string>;
  /** A SQLite store of layout 1 with the tokens of the sandbox. */
  readonly path: string;
}

async function startWorld(): Promise<World> {
  const sandbox = await startService({ persons: 3 });
  const folder = temporaryFolder();
  const path = folder.file('tokens.db');
  writeFileSync(path, gunzipSync(readFileSync('test/tokens/store/first-layout/plain.db.gz')), {
    mode: 0o600,
  });
  await putTokens(path, sandbox);
  return {
    sandbox,
    path,
    env: { RECRUITING_URL: sandbox.url, TOKEN_STORE: `sqlite:${path}` },
    [Symbol.asyncDispose]: async () => {
      await sandbox.close();
      folder[Symbol.dispose]();
    },
  };
}

/** Puts the tokens of the sandbox in the place of the newest pair, as the version before wrote them. */
async function putTokens(path: string, sandbox: Service): Promise<void> {
  const link = (await (await fetch(sandbox.tokenLink)).json()) as Record<string, string | number>;
  const database = new DatabaseSync(path);
  const key = String(database.prepare('SELECT key FROM ring').get()!['key']);
  const sumOf = (values: unknown[]) =>
    createHmac('sha256', Buffer.from(key.slice('plain:'.length), 'base64'))
      .update(JSON.stringify(values))
      .digest('hex');
  const name = database.prepare('SELECT name FROM token_set WHERE id = 2').get()!['name'];
  const now = Date.now();
  const pair = {
    accessToken: link['access_token'],
    refreshToken: link['refresh_token'],
    expiresIn: link['expires_in'],
    refreshTokenExpiresIn: link['refresh_token_expires_in'],
    name: 'gateway',
  };
  database
    .prepare('UPDATE token_set SET base_url = ?, claim = NULL, sum = ? WHERE id = 2')
    .run(sandbox.url, sumOf(['set', 2, name, sandbox.url, 7, false, null, false, null]));
  database
    .prepare('UPDATE token_pair SET pair = ?, saved_at = ?, sum = ? WHERE generation = 7')
    .run(
      `plain:${JSON.stringify(pair)}`,
      now,
      sumOf(['pair', name, 7, 'b6', now, false, true, pair]),
    );
  database.exec("DELETE FROM attempt WHERE attempt = 'c1'");
  database.close();
}

function layoutOf(path: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  const { user_version: layout } = database.prepare('PRAGMA user_version').get()!;
  database.close();
  return layout as number;
}
