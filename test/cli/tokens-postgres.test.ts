/** Commands and a gateway on a token store in PostgreSQL, as an operator sees them. */
import { renameSync } from 'node:fs';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { openPostgresStore } from '../../src/tokens/store/postgres/postgres-store.ts';
import { readTokenSet } from '../../src/tokens/token-set.ts';
import { createSealer } from '../../src/tokens/store/seal.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import { alterClaim } from '../support/postgres/stored-document.ts';
import { startProgram } from '../support/processes/process.ts';
import { YEAR } from '../support/random/manual-clock.ts';
import { pairOf, PERSON, reply } from '../support/tokens/tokens.ts';
import { startGatewayOf } from './tokens-gateway.ts';
import { beginExchange, startOperator, startWithTokens } from './tokens-operator.ts';

const KEYS = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'));

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.close());

test('every tokens command works on a store in PostgreSQL, and shows no password', async () => {
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
  const other = `sqlite:${file('other.db')}`;
  expect(await run('export', other)).toMatchObject({ code: 0, stderr: '' });
  expect((await run('refresh')).stderr).toContain(`moved to another store (${other})`);
});

test('tokens export moves a SQLite store to PostgreSQL, and not to the store that it is in', async () => {
  const { tokens, service, file } = await startWithTokens();
  const TOKEN_STORE = await server.emptyStore();
  const exported = await tokens(['export', TOKEN_STORE]);
  expect(exported).toMatchObject({ code: 0, stderr: '' });
  expect(exported.stdout).toMatch(
    /is in postgres:\/\/store_\d+@127.*Set TOKEN_STORE to its address/,
  );
  expect(exported.stdout).not.toContain('planted-password');
  expect((await tokens(['refresh'])).stderr).toMatch(
    /moved to another store \(postgres:\/\/store_/,
  );
  const env = { TOKEN_STORE, TOKEN_RESCUE_DIR: file('rescue') };
  expect((await tokens(['refresh'], { env })).code).toBe(0);
  expect(service.exchanges).toHaveLength(2);
  const again = await tokens(['export', TOKEN_STORE.replace('127.0.0.1', 'localhost')], { env });
  expect(again).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/store that the set is in/),
  });
});

test('tokens export from an older copy of the database moves the pair that a running gateway saves again', async () => {
  const { tokens, file, env } = await startWithStored();
  const gateway = openPostgresStore(env.TOKEN_STORE, {
    sealer: createSealer([]),
    clock: systemClock,
  });
  onTestFinished(() => gateway.close());
  const { set, generation } = (await gateway.read())!;
  const exchange = { outcome: 'rotated', at: Date.now(), latencyMs: 1 } as const;
  const newer = { set, generation, attempt: 'theirs', pair: pairOf('newer'), ...exchange };
  let isConnected = false;
  gateway.watch!(() => {
    if (isConnected) void gateway.save(newer);
    isConnected = true;
  });
  await vi.waitFor(async () => expect(await listening()).toHaveLength(1), 20_000);
  expect((await tokens(['export', `sqlite:${file('other.db')}`], { env })).code).toBe(0);
  expect(await gateway.read()).toMatchObject({ generation: generation + 1, pair: pairOf('newer') });
  const other = { ...env, TOKEN_STORE: `sqlite:${file('other.db')}` };
  const { stdout } = await tokens(['status', '--json'], { env: other });
  expect(JSON.parse(stdout)).toMatchObject({ generation: generation + 2 });
});

test('a command whose refresh token is refused reports at once what it waits for, and what to do when it is stopped', async () => {
  const { service, tokens, env } = await startWithStored();

  // The first one might have been sent before the expiry.
  service.expire();
  const refused = reply(400, { error: 'invalid_grant' });
  service.tokenAnswers.next(refused, refused);
  await using command = startProgram(['tokens', 'refresh'], { env });
  await vi.waitFor(
    () =>
      expect(command.said).toMatch(
        /refused the refresh token\. .*may have exchanged it.*at most 2 min \d+ s/,
      ),
    20_000,
  );
  command.signal('SIGINT');
  const { code, stderr } = await command.ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/Stopped before .* Run `tokens recover`/);
  expect(stderr).not.toContain('The gateway is stopping');
  const { stdout } = await tokens(['status', '--json'], { env });
  expect(JSON.parse(stdout)).toMatchObject({ troubles: ['uncertain'] });
  expect((await tokens(['recover'], { env })).stdout).toContain('It worked');
  expect(service.exchanges).toHaveLength(3);
});

test('`tokens recover` waits for the length of a claim dated a year ahead, and then sends the refresh token once more', async () => {
  const { service, tokens, env } = await startWithStored();
  const store = openPostgresStore(env.TOKEN_STORE, {
    sealer: createSealer([]),
    clock: systemClock,
  });
  await beginExchange(store);
  await store.close();
  // Its length is two seconds, so that the test does not take longer.
  await alterClaim(server, new URL(env.TOKEN_STORE).username, (claim) => ({
    ...claim,
    at: claim.at + YEAR,
    until: claim.at + YEAR + 2_000,
  }));
  const { stdout } = await tokens(['status', '--json'], { env });
  expect(JSON.parse(stdout)).toMatchObject({ exchangeUnderWay: true, troubles: ['blocked'] });
  const recovered = await tokens(['recover'], { env });
  expect(recovered).toMatchObject({ code: 0, stderr: '' });
  expect(recovered.stdout).toMatch(/clock of the token store was set back.*at most[^]*It worked/);
  expect((await tokens(['status'], { env })).code).toBe(0);
  expect(service.exchanges.map(({ outcome }) => outcome)).toEqual(['answered']);
});

test('a gateway without the key of its store ends as after a mistake in the settings', async () => {
  const { service, env } = await startWithStored([KEYS[0]!]);
  await using gateway = startProgram([], {
    env: { ...env, ALLOW_ANONYMOUS: 'true', TOKEN_STORE_KEY: KEYS[1]! },
  });
  const { code, stderr } = await gateway.ended;
  expect(code).toBe(2);
  expect(stderr).toMatch(/none of those in TOKEN_STORE_KEY\. .* Set TOKEN_STORE_KEY as it is set/);
  expect(service.exchanges).toEqual([]);
});

test('if the key is lost, the tables are dropped, the rescue files are moved away, and a new link is imported', async () => {
  const { service, tokens, file } = await startOperator();
  const TOKEN_STORE = await server.emptyStore();
  const env = { TOKEN_STORE, TOKEN_RESCUE_DIR: file('rescue'), TOKEN_STORE_KEY: KEYS[0]! };
  expect((await tokens(['import', service.tokenLink], { env })).code).toBe(0);
  const fresh = { env: { ...env, TOKEN_STORE_KEY: KEYS[1]! } };
  const link = service.makeNewSet();
  const refused = await tokens(['import', link, '--replace'], fresh);
  expect(refused.stderr).toMatch(/none of those in TOKEN_STORE_KEY.* Set TOKEN_STORE_KEY as/);
  const schema = new URL(env.TOKEN_STORE).username;
  const tables = await server.query(
    `SELECT tablename FROM pg_tables WHERE schemaname = '${schema}' AND tablename ~ '^recruiting_'`,
  );
  for (const { tablename } of tables) {
    await server.query(`DROP TABLE ${schema}.${String(tablename)}`);
  }
  renameSync(file('rescue'), file('old-rescue'));
  expect(await tokens(['import', link], fresh)).toMatchObject({ code: 0, stderr: '' });
  expect((await tokens(['status'], fresh)).code).toBe(0);
});

test('a store of a newer version is left to that version', async () => {
  const { tokens, env } = await startWithStored();
  const schema = new URL(env.TOKEN_STORE).username;
  await server.query(`UPDATE ${schema}.recruiting_token_store SET layout = 3`);
  await using gateway = startProgram([], { env: { ...env, ALLOW_ANONYMOUS: 'true' } });
  const said = [(await gateway.ended).stderr];
  for (const args of [['status'], ['refresh'], ['recover'], ['recover', '--rebuild']]) {
    said.push((await tokens(args, { env })).stderr);
  }
  for (const stderr of said) {
    expect(stderr).toMatch(/newer version \(layout 3\)\. .* Start the newer version again/);
    expect(stderr).not.toContain('tokens recover');
  }
});

test('a gateway whose store is down starts, is not ready, and serves when the store is back; a command says why', async () => {
  const operator = await startWithStored();
  const { tokens, env } = operator;
  await server.stop();
  const refused = await tokens(['status'], { env });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/cannot be read: nothing listens at the address/);
  const gateway = await startGatewayOf(operator, env);
  await gateway.printed(/token store cannot be read now/);
  expect((await fetch(new URL('/ready', gateway.url))).status).toBe(503);
  expect((await askAt(gateway.url, PERSON)).errors).toMatchObject([
    { extensions: { code: 'INTERNAL_SERVER_ERROR' } },
  ]);
  await server.start();
  const ready = async () => (await fetch(new URL('/ready', gateway.url))).status;
  await expect.poll(ready, { timeout: 50_000 }).toBe(200);
  expect((await askAt(gateway.url, PERSON)).errors).toBeUndefined();
  expect(gateway.stdout).not.toContain('planted-password');
});

/** The connections of stores that are told about newer tokens. */
function listening() {
  return server.query("SELECT 1 FROM pg_stat_activity WHERE query ~ '^LISTEN'");
}

/** An operator whose tokens are in PostgreSQL. `tokens import` would ask other gateways for seconds whether they have newer ones. */
async function startWithStored(keys: string[] = []) {
  const operator = await startOperator();
  const { service, file, env } = operator;
  const TOKEN_STORE = await server.emptyStore();
  const sealer = createSealer(keys.map((key) => Buffer.from(key, 'base64')));
  const store = openPostgresStore(TOKEN_STORE, { sealer, clock: systemClock });
  await store.read();
  const pair = readTokenSet(await (await fetch(service.tokenLink)).json())!;
  await store.import({ baseUrl: service.url, pair, replica: 'test', after: null });
  await store.close();
  return { ...operator, env: { ...env, TOKEN_STORE, TOKEN_RESCUE_DIR: file('rescue') } };
}
