import { DatabaseSync } from 'node:sqlite';
import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import pino from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openRescue } from '../../src/tokens/store/rescue.ts';
import { createSealer } from '../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { secretsIn } from '../support/gateway/written.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { runProgram } from '../support/processes/process.ts';
import { MINUTE } from '../support/random/manual-clock.ts';
import { startKept } from '../support/tokens/kept.ts';
import {
  PERSON,
  reply,
  sentAgain,
  watchStore,
  type WatchedStore,
} from '../support/tokens/tokens.ts';
import { startGatewayOf } from './tokens-gateway.ts';
import { startOperator, startWithTokens } from './tokens-operator.ts';
import { personUnlikeOthers } from '../support/clients/unlike.ts';

test('tokens refresh makes one exchange, and prints what is in use', async () => {
  const { done, service, status } = await startWithTokens();
  expect(await done('refresh')).toMatch(
    /^Searched: .*, which has generation 2; .*, which has no pair that the store lacks\.\nRefreshed: generation 3 is in use\. Its access token lives for 1 day, its refresh token for 120 days\.\n$/,
  );
  expect(service.exchanges.map(({ outcome }) => outcome)).toEqual(['answered', 'answered']);
  expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
});

test('tokens refresh needs no RECRUITING_URL, because the store knows the service', async () => {
  const { env } = await startWithTokens();
  const { code, stdout, stderr } = await runProgram(['tokens', 'refresh'], {
    env: { TOKEN_STORE: env['TOKEN_STORE']! },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('generation 3 is in use');
  expect(secretsIn([stdout])).toEqual([]);
});

test('an uncertain refresh token is not sent, and the error names `tokens recover`', async () => {
  const { tokens, service } = await startWithTokens();
  service.tokenAnswers.next('drop-before');
  const first = await tokens(['refresh']);
  expect(first.code).toBe(1);
  expect(first.stderr).toMatch(/^The refresh token was sent, and no clear answer came.*recover/);
  const second = await tokens(['refresh']);
  expect(second.code).toBe(1);
  expect(second.stderr).toMatch(/^Nothing was sent\. .*Run `tokens recover` to resolve it at once/);
  expect(service.exchanges).toHaveLength(2);
});

test('the error for lost tokens has the cause and the next steps, and nothing more is sent', async () => {
  const { tokens, service } = await startWithTokens();
  service.expire();
  service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
  for (let tries = 0; tries < 2; tries += 1) {
    const { code, stderr } = await tokens(['refresh']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^The .*refuses the refresh token.*replaced by an older copy of itself/);
    expect(stderr).toMatch(
      /Run `tokens recover` first.*make a new token.*run `tokens import <link>`/,
    );
  }
  // The first exchange might have been sent before the expiry.
  expect(service.exchanges).toHaveLength(3);
});

test.each([
  ['cannot be reached', undefined, /cannot be reached.*Nothing was lost; try again shortly/],
  ['asks to wait', reply(429, '', { 'retry-after': '77' }), /Try again in 77 s/],
  [
    'refuses to talk',
    reply(403, '<html>'),
    /answered 403\. The operator has to check RECRUITING_URL/,
  ],
])('a service that %s loses no token', async (_, answer, said) => {
  const { tokens, done, service, status } = await startWithTokens();
  if (answer) service.tokenAnswers.next(answer);
  else await service.down();
  const { code, stderr } = await tokens(['refresh']);
  expect(code).toBe(1);
  expect(stderr).toMatch(said);
  expect(await status()).toMatchObject({ state: 'healthy', generation: 2 });
  if (!answer) await service.up();
  await done('refresh');
});

test('a refusal while the access token works is no loss: nothing more is sent until it has expired', async () => {
  const { tokens, done, service, status } = await startWithTokens();
  service.tokenAnswers.next(
    reply(400, { error: 'invalid_grant', error_description: 'token not expired' }),
  );
  const first = await tokens(['refresh']);
  expect(first.code).toBe(1);
  expect(first.stderr).toMatch(
    /^The .*refused.*although the access token works\. Either.*or.*spent/,
  );
  expect(await status()).toMatchObject({ state: 'attention', troubles: ['early-or-spent'] });
  const second = await tokens(['refresh']);
  expect(second.code).toBe(1);
  expect(second.stderr).toMatch(/^Nothing was sent: .*refused the refresh token already/);
  expect(await done('recover')).toMatch(
    /either it exchanges no refresh token before.*\nThe access token works\.\nSo nothing is sent now/,
  );
  expect(service.exchanges).toHaveLength(2);

  service.expire();
  expect(await done('refresh')).toContain('generation 3 is in use');
  expect(await status()).toMatchObject({ state: 'healthy', refusesEarly: true });
  const third = await tokens(['refresh']);
  expect(third.stderr).toMatch(
    /^Nothing was sent: .*this service exchanges no refresh token before/,
  );
  expect((await tokens(['status'])).stdout).toMatch(/Refreshes +wait for the expiry/);
  expect(service.exchanges).toHaveLength(3);
});

test('the command waits for a refresh of the gateway that is in progress', async () => {
  const operator = await startWithTokens();
  const { service, tokens, file } = operator;
  const gateway = await startGatewayOf(operator);
  const answer = service.tokenAnswers.hold('before');
  service.expire();
  const answered = askAt(gateway.url, PERSON);
  await answer.arrived;

  const refreshing = tokens(['refresh']);
  // The command has read the store once its rescue file exists.
  await vi.waitFor(() => expect(readdirSync(file('.')).join()).toContain('rescue-test-'));
  answer.release();
  expect((await refreshing).stdout).toContain('generation 3 is in use');
  expect((await answered).errors).toBeUndefined();
  expect(service.exchanges).toHaveLength(2);
});

test('a gateway that needs a refresh waits for that of the command, and serves with its pair', async () => {
  const operator = await startWithTokens();
  const { service, tokens } = operator;
  const gateway = await startGatewayOf(operator);
  expect((await askAt(gateway.url, PERSON)).errors).toBeUndefined();
  for (const round of [1, 2, 3]) {
    const answer = service.tokenAnswers.hold('before');
    const refreshing = tokens(['refresh']);
    await answer.arrived;
    service.expire();
    const answers = Promise.all([
      askAt(gateway.url, personUnlikeOthers()),
      askAt(gateway.url, personUnlikeOthers()),
    ]);
    answer.release();
    expect((await refreshing).code).toBe(0);
    for (const { errors } of await answers) expect(errors).toBeUndefined();
    expect(service.exchanges).toHaveLength(1 + round);
  }
  expect(sentAgain(service.exchanges)).toEqual([]);
});

test('two commands at the same time make one exchange', async () => {
  const { service, tokens, file } = await startWithTokens();
  const answer = service.tokenAnswers.hold('before');
  const first = tokens(['refresh']);
  await answer.arrived;
  const rescueFiles = () => readdirSync(file('.')).filter((name) => name.startsWith('rescue-'));
  const second = tokens(['refresh']);
  await vi.waitFor(() => expect(rescueFiles()).not.toHaveLength(0));
  answer.release();
  for (const { code, stdout } of [await first, await second]) {
    expect(code).toBe(0);
    expect(stdout).toContain('generation 3 is in use');
  }
  expect(service.exchanges).toHaveLength(2);
});

test('a pair that cannot be saved is put into a rescue file, and `tokens recover` saves it', async () => {
  const { service, tokens, storePath, status } = await startWithTokens();
  const database = new DatabaseSync(storePath);
  service.tokenAnswers.next((body) => {
    database.exec(
      `CREATE TRIGGER full BEFORE UPDATE ON tokens BEGIN SELECT RAISE(ABORT, 'disk full'); END`,
    );
    return { status: 200, body };
  });
  const { code, stderr } = await tokens(['refresh']);
  expect(code).toBe(1);
  expect(stderr).toMatch(/could not be saved to the store.*do not kill this command/);
  expect(stderr).toMatch(
    /It is in a rescue file in .*do not remove that file.*run `tokens recover`/s,
  );
  expect(await status()).toMatchObject({ generation: 2, troubles: ['uncertain', 'unsaved'] });

  const still = await tokens(['recover']);
  expect(still.code).toBe(1);
  expect(still.stderr).toMatch(/rescue file .* could not be saved into the store: disk full/);
  expect(still.stderr).toMatch(/The next pair may be in the rescue file.*Nothing was sent/);

  database.exec('DROP TRIGGER full');
  database.close();
  const recovered = await tokens(['recover']);
  expect(recovered.code).toBe(0);
  expect(recovered.stderr).toContain('saved from a rescue file into the store: generation 3');
  expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
  expect(service.exchanges).toHaveLength(2);
});

test('the pair of a command is also in a rescue file, without a trouble, until a gateway has taken it over', async () => {
  const operator = await startWithTokens();
  const { done, status, file, tokens } = operator;
  const left = () => readdirSync(file('.')).filter((name) => name.startsWith('rescue-'));
  for (const generation of [3, 4, 5]) {
    expect(await done('refresh')).toContain(`generation ${generation} is in use`);
    // The file of the refresh before stays as well, until the next command.
    expect(left().length).toBeLessThanOrEqual(2);
    expect(await status()).toMatchObject({ state: 'healthy', generation, rescueFiles: [] });
  }
  expect(await tokens(['recover'])).toMatchObject({ code: 0, stderr: '' });
  expect(left()).toHaveLength(1);
  const gateway = await startGatewayOf(operator);
  expect((await askAt(gateway.url, PERSON)).errors).toBeUndefined();
  gateway.signal('SIGTERM');
  const { stdout } = await gateway.ended;
  expect(stdout).not.toContain('rescue file');
  expect(left()).toEqual([]);
});

test('an older copy of the store that is put back the moment a gateway has seen the pair of a command costs nothing', async () => {
  const { done, service, storePath, file, startHere, left } = await startBesideGateway();
  const { store, clock, ask } = await startHere();
  copyFileSync(storePath, file('copy.db'));
  await done('refresh');
  const seen = atNextLook(store, () => copyFileSync(file('copy.db'), storePath));
  await clock.pass(MINUTE);
  await seen;
  expect(await store.read()).toMatchObject({ generation: 3, lost: false, claim: null });
  expect((await ask(PERSON)).errors).toBeUndefined();
  expect(service.exchanges).toHaveLength(2);
  await clock.pass(MINUTE);
  expect(left()).toEqual([]);
});

test('a rescue file that another gateway removes first disturbs neither the start of a gateway nor its next look', async () => {
  const { done, file, startHere, left } = await startBesideGateway();
  const removeAll = () => left().forEach((name) => rmSync(file(name)));
  await done('refresh');
  let atStart: Promise<void> | undefined;
  const { store, clock, logged } = await startHere((opened) => {
    atStart = atNextLook(opened, removeAll);
  });
  await atStart;
  await done('refresh');
  const seen = atNextLook(store, removeAll);
  await clock.pass(MINUTE);
  await seen;
  expect(logged.filter(({ level }) => Number(level) > 40)).toEqual([]);
});

/** An operator, and a gateway in this process that shares the store and the rescue folder of the commands. */
async function startBesideGateway() {
  const operator = await startWithTokens();
  const { service, storePath, file } = operator;
  const startHere = async (prepare: (store: WatchedStore) => void = () => {}) => {
    const store = watchStore((now) => openSqliteStore(storePath, { now }));
    const owner = { host: 'test', pid: 1, lives: () => true };
    const folder = { directory: file('.'), sealer: createSealer([]), owner };
    const rescue = openRescue(folder, pino({ level: 'silent' }));
    onTestFinished(() => rescue.close());
    prepare(store);
    const kept = await startKept(service, { store, rescue });
    await kept.clock.asleep();
    return kept;
  };
  /** Rescue files of commands. */
  const left = () =>
    readdirSync(file('.')).filter((name) => name.startsWith(`rescue-test-${process.pid}-`));
  return { ...operator, startHere, left };
}

/** Does this just after the store was asked for the pair of a rescue file, and has it. */
async function atNextLook(store: WatchedStore, change: () => void): Promise<void> {
  const { holds } = store;
  await new Promise<void>((resolve) => {
    store.holds = async (pair) => {
      store.holds = holds;
      expect(await holds(pair)).toBe(true);
      change();
      resolve();
      return true;
    };
  });
}

test('nothing is sent if the store belongs to another service', async () => {
  const { tokens, service } = await startWithTokens();
  const other = await startOperator();
  for (const command of ['refresh', 'recover', 'check', 'status']) {
    const { code, stderr } = await tokens([command], {
      env: { RECRUITING_URL: other.service.url },
    });
    expect(code).toBe(2);
    expect(stderr).toContain(
      `belongs to ${service.url}, but RECRUITING_URL is ${other.service.url}`,
    );
  }
  expect([...service.exchanges, ...other.service.exchanges]).toHaveLength(1);
});
