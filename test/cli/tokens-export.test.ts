import { existsSync, readFileSync, readdirSync, symlinkSync } from 'node:fs';
import { relative } from 'node:path';
import { expect, test } from 'vitest';
import { expectPrintedFor } from '../support/gateway/operator-lines.ts';
import { secretsIn } from '../support/gateway/written.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { PERSON, reply } from '../support/tokens/tokens.ts';
import { startGatewayOf } from './tokens-gateway.ts';
import { beginExchange, startOperator, startWithTokens, type Operator } from './tokens-operator.ts';

test('after a move the target refreshes the set, and the source refuses and names the target', async () => {
  const { done, tokens, service, env, file } = await startWithTokens();
  const target = `sqlite:${file('other.db')}`;
  const atTarget = { env: { TOKEN_STORE: target } };
  expect(await done('export', target)).toMatch(
    new RegExp(
      `is in ${target} now, and ${env['TOKEN_STORE']} refuses .*Set TOKEN_STORE=${target}`,
    ),
  );
  const { code, stderr } = await tokens(['refresh']);
  expect(code).toBe(1);
  expect(stderr).toContain(`was moved to another store (${target})`);
  expect(service.exchanges).toHaveLength(1);

  expect((await tokens(['refresh'], atTarget)).code).toBe(0);
  expect(service.exchanges).toHaveLength(2);
  expect((await tokens(['status'], atTarget)).code).toBe(0);
});

test('the refresh token has the same fingerprint in both stores, and rescue copies of commands are removed', async () => {
  const { done, tokens, status, file } = await startWithTokens();
  const TOKEN_STORE = `sqlite:${file('other.db')}`;
  const { fingerprint } = await status();
  expect(readdirSync(file('.')).join()).toContain('rescue-');
  await done('export', TOKEN_STORE);
  const targetStatus = await tokens(['status', '--json'], { env: { TOKEN_STORE } });
  expect(JSON.parse(targetStatus.stdout)).toMatchObject({ fingerprint, state: 'healthy' });
  expect(readdirSync(file('.')).join()).not.toContain('rescue-');
});

test('a gateway on the source store names the target in its log, and not to callers', async () => {
  const operator = await startWithTokens();
  const { service, done, file } = operator;
  const gateway = await startGatewayOf(operator);
  expect((await askAt(gateway.url, PERSON)).errors).toBeUndefined();
  await done('export', `sqlite:${file('other.db')}`);
  service.expire();
  const answer = await askAt(gateway.url, PERSON);
  expect(answer.errors).toMatchObject([{ extensions: { code: 'TOKENS_MISSING' } }]);
  expect(JSON.stringify(answer)).not.toContain('other.db');
  await expectPrintedFor(gateway, answer, 'moved to another store (sqlite:');
  expect(service.exchanges).toHaveLength(1);
});

test('the source remembers the absolute path of the target', async () => {
  const { done, status, file } = await startWithTokens();
  await done('export', `sqlite:${relative('.', file('other.db'))}`);
  expect(await status()).toMatchObject({ state: 'moved', movedTo: `sqlite:${file('other.db')}` });
});

test('a refresh token that was spent in the source is refused by the target too', async () => {
  const { tokens, done, service, file } = await startOperator();
  const spent = await (await fetch(service.tokenLink)).text();
  await done('import', service.tokenLink);
  await done('export', `sqlite:${file('other.db')}`);
  const { code, stderr } = await tokens(['import', '-', '--replace'], {
    env: { TOKEN_STORE: `sqlite:${file('other.db')}` },
    stdin: [spent],
  });
  expect(code).toBe(1);
  expect(stderr).toContain('This refresh token is spent');
});

test('a store is not moved onto itself, whatever path names it', async () => {
  const { tokens, done, storePath, file } = await startWithTokens();
  symlinkSync(storePath, file('link.db'));
  for (const path of [
    storePath,
    relative('.', storePath),
    file('./x/../tokens.db'),
    file('link.db'),
  ]) {
    const { code, stderr } = await tokens(['export', `sqlite:${path}`]);
    expect(code).toBe(2);
    expect(stderr).toContain('That is the store that the set is in, so nothing was changed.');
  }
  await done('refresh');
});

test('a set is not moved onto a set in use, and both remain usable', async () => {
  const source = await startWithTokens();
  const { service, file, tokens, done } = source;
  const atTarget = { env: { TOKEN_STORE: `sqlite:${file('other.db')}` } };
  const otherSet = { access_token: 'other-access', refresh_token: 'other-refresh' };
  service.tokenAnswers.next(
    reply(200, { access_token: 'next-access', refresh_token: 'next-refresh' }),
  );
  expect(
    (await tokens(['import', '-'], { ...atTarget, stdin: [JSON.stringify(otherSet)] })).code,
  ).toBe(0);
  const { code, stderr } = await tokens(['export', `sqlite:${file('other.db')}`]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/holds a token set that is in use \(generation 2\)\. Nothing was moved/);
  await done('refresh');
  expect((await tokens(['status'], atTarget)).code).toBe(0);
});

test('a set is not moved into the store of another service', async () => {
  const source = await startWithTokens();
  const other = await startWithTokens();
  other.service.tokenAnswers.next(reply(400, { error: 'invalid_grant' }));
  await other.tokens(['refresh']);
  const { code, stderr } = await source.tokens(['export', `sqlite:${other.storePath}`]);
  expect(code).toBe(1);
  expect(stderr).toContain(
    `belongs to ${other.service.url}, and this set to ${source.service.url}`,
  );
  await source.done('refresh');
});

test.each<[string, (operator: Operator) => Promise<unknown>, RegExp]>([
  [
    'lost',
    async ({ service, tokens }) => {
      service.expire();
      service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
      await tokens(['refresh']);
    },
    /lost, so there is nothing to move/,
  ],
  [
    'uncertain',
    async ({ service, tokens }) => {
      service.tokenAnswers.next('drop-before');
      await tokens(['refresh']);
    },
    /uncertain\. Run `tokens recover` first; nothing was moved/,
  ],
  [
    'moved elsewhere before',
    ({ done, file }) => done('export', `sqlite:${file('elsewhere.db')}`),
    /was moved to sqlite:.*elsewhere\.db before\. Nothing was changed/,
  ],
])('a set that is %s is not moved', async (_, bring, said) => {
  const operator = await startWithTokens();
  await bring(operator);
  const { troubles } = await operator.status();
  const { code, stderr } = await operator.tokens(['export', `sqlite:${operator.file('other.db')}`]);
  expect(code).toBe(1);
  expect(stderr).toMatch(said);
  expect((await operator.status())['troubles']).toEqual(troubles);
});

test('a set that is being exchanged is not moved', async () => {
  const { withStore, tokens, file } = await startWithTokens();
  await withStore(async (store) => {
    const attempt = await beginExchange(store);
    const { code, stderr } = await tokens(['export', `sqlite:${file('other.db')}`]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/under way\. Nothing was moved; try again/);
    await store.endAttempt(attempt, { outcome: 'unsent', latencyMs: 1 });
  });
});

test('without a set nothing is moved, and no store is created', async () => {
  const { tokens, file } = await startOperator();
  const { code, stderr } = await tokens(['export', `sqlite:${file('other.db')}`]);
  expect(code).toBe(1);
  expect(stderr).toContain('There is no token set in the store');
  expect(existsSync(file('other.db'))).toBe(false);
});

test.each([
  ['postgres://user:a-secret@db', /not the address of a store; give sqlite:<file>.*postgres:\/\//],
  ['a-secret/tokens.db', /not the address of a store; give sqlite:<file>/],
  ['sqlite:', /not the address of a store; give sqlite:<file>/],
])('%s is refused as a store that cannot be written', async (address, said) => {
  const { tokens, done } = await startWithTokens();
  const { code, stderr } = await tokens(['export', address]);
  expect(code).toBe(2);
  expect(stderr).toMatch(said);
  expect(stderr).not.toContain('a-secret');
  await done('refresh');
});

test('a move that was interrupted is finished by the same command', async () => {
  const { withStore, tokens, done, file } = await startWithTokens();
  const target = `sqlite:${file('other.db')}`;
  await withStore((store) => store.moveOut({ to: target, replica: 'other/1' }));
  await done('export', target);
  await done('export', target);
  expect((await tokens(['refresh'], { env: { TOKEN_STORE: target } })).code).toBe(0);
});

test('repeating the command after the target has refreshed does not move the set back', async () => {
  const { tokens, done, service, status, file } = await startWithTokens();
  const target = `sqlite:${file('other.db')}`;
  await done('export', target);
  expect((await tokens(['refresh'], { env: { TOKEN_STORE: target } })).code).toBe(0);
  // The store decides whether that is refused or was done before.
  await tokens(['export', target]);
  expect(await status()).toMatchObject({ state: 'moved' });
  expect((await tokens(['refresh'])).code).toBe(1);
  expect(service.exchanges).toHaveLength(2);
});

test('both stores are encrypted, and nothing is moved if the key does not open the target', async () => {
  const { tokens, service, file } = await startOperator();
  const [key, other] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [
    string,
    string,
  ];
  const target = `sqlite:${file('other.db')}`;
  const keyed = { env: { TOKEN_STORE_KEY: key } };
  await tokens(['import', service.tokenLink], keyed);
  await tokens(['status'], {
    env: { TOKEN_STORE: `sqlite:${file('third.db')}`, TOKEN_STORE_KEY: other },
  });
  expect((await tokens(['export', target], keyed)).code).toBe(0);
  const bytes = readFileSync(file('other.db'), 'latin1');
  expect(secretsIn([bytes])).toEqual([]);

  const back = await tokens(['export', `sqlite:${file('tokens.db')}`], {
    env: { TOKEN_STORE: target, TOKEN_STORE_KEY: other },
  });
  expect(back.code).toBe(1);
  expect(back.stderr).toContain('which is none of those in TOKEN_STORE_KEY');
  expect((await tokens(['refresh'], { env: { TOKEN_STORE: target, ...keyed.env } })).code).toBe(0);
});
