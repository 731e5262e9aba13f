import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { TokenStore } from '../../src/tokens/store/token-store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { pairOf, reply } from '../support/tokens/tokens.ts';
import { beginExchange, startOperator, startWithTokens, type Operator } from './tokens-operator.ts';

const DAY_S = 86_400;
const TEN_MINUTES_AGO = () => Date.now() - 10 * 60_000;

test('for healthy tokens status prints generation, lifetimes and the last refresh, with exit code 0', async () => {
  const { tokens, service, storePath } = await startWithTokens();
  const { code, stdout, stderr } = await tokens(['status']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/State +healthy\n/);
  expect(stdout).toMatch(new RegExp(`Store +sqlite:${storePath}\n`));
  expect(stdout).toMatch(/Store layout +2\n/);
  expect(stdout).toMatch(new RegExp(`Service +${new URL(service.url).host}\n`));
  expect(stdout).toMatch(/Token set +Sandbox\n/);
  expect(stdout).toMatch(/Generation +2 \(refresh token [0-9a-f]{8}\)\n/);
  expect(stdout).toMatch(/Access token +(1 day|23 h 59 min) left\n/);
  expect(stdout).toMatch(/Refresh token +(120 days|119 days 23 h) left\n/);
  expect(stdout).toMatch(/Last refresh +\d{4}-\d\d-\d\dT[\d:.]+Z\n/);
  expect(stdout).not.toMatch(/Failures|Now|Moved/);
  expect(stdout).toContain('The service was not asked: `tokens check` shows whether it accepts');
  expect(stdout).toMatch(
    /Recent events\n +\S+Z {2}generation 1: rotated, \d+ ms, by \S+\n +\S+Z {2}generation 1: imported, by \S+\n/,
  );
});

test('--json always prints the same fields, in one line and without a secret', async () => {
  const operator = await startWithTokens();
  const { code, stdout } = await operator.tokens(['status', '--json']);
  expect(code).toBe(0);
  expect(stdout.trimEnd()).not.toContain('\n');
  const report = JSON.parse(stdout) as Record<string, unknown>;
  expect(report).toEqual({
    state: 'healthy',
    store: `sqlite:${operator.storePath}`,
    layout: 2,
    service: new URL(operator.service.url).host,
    name: 'Sandbox',
    generation: 2,
    fingerprint: expect.stringMatching(/^[0-9a-f]{8}$/),
    accessTokenSecondsLeft: expect.any(Number),
    refreshTokenSecondsLeft: expect.any(Number),
    refusesEarly: false,
    lastRotation: expect.stringMatching(/Z$/),
    failures: 0,
    lastFailure: null,
    exchangeUnderWay: false,
    movedTo: null,
    troubles: [],
    rescueFiles: [],
    history: [
      {
        at: expect.stringMatching(/Z$/),
        generation: 1,
        attempt: expect.any(String),
        outcome: 'rotated',
        latencyMs: expect.any(Number),
        replica: expect.stringContaining('/'),
      },
      expect.objectContaining({ generation: 1, outcome: 'imported', latencyMs: null }),
    ],
  });
  const missing = await startOperator();
  const { code: two, stdout: nothing } = await missing.tokens(['status', '--json']);
  expect(two).toBe(2);
  expect(Object.keys(JSON.parse(nothing) as object)).toEqual(Object.keys(report));
});

test('without a store status names the missing one, and creates no file', async () => {
  const { tokens, file } = await startOperator();
  const path = join(file('folder'), 'tokens.db');
  for (const command of ['status', 'check', 'refresh', 'recover']) {
    const { code, stdout, stderr } = await tokens([command], {
      env: { TOKEN_STORE: `sqlite:${path}` },
    });
    expect(code).toBe(command === 'status' ? 2 : 1);
    expect(stdout + stderr).toContain(`sqlite:${path}, which does not exist`);
    expect(stdout + stderr).toMatch(/check TOKEN_STORE.*run `tokens import <link>`/);
  }
  expect(existsSync(file('folder'))).toBe(false);
});

test('status sends nothing, and needs no RECRUITING_URL', async () => {
  const { tokens, service } = await startWithTokens();
  await service.down();
  expect((await tokens(['status'], { env: { RECRUITING_URL: '' } })).code).toBe(0);
});

test.each<[string, (operator: Operator) => Promise<unknown>, number, string[], RegExp]>([
  [
    'uncertain',
    async ({ service, tokens }) => {
      service.tokenAnswers.next('drop-before');
      await tokens(['refresh']);
    },
    1,
    ['uncertain'],
    /Run `tokens recover` to resolve it at once/,
  ],
  [
    'left in the middle of an exchange by a process that was killed',
    ({ withStore }) => withStore((store) => beginExchange(store)),
    1,
    ['uncertain'],
    /Run `tokens recover`/,
  ],
  [
    'a pair in a rescue file',
    async ({ file }) => writeFileSync(file('rescue-test-4000000-00000000.json'), 'a pair'),
    1,
    ['unsaved'],
    /Free the disk.*run `tokens recover`/,
  ],
  [
    'ending in less than 30 days',
    (operator) => insert(operator, { age: 91 }),
    1,
    ['ending', 'not-rotated'],
    /Start a gateway, or run `tokens refresh`/,
  ],
  [
    'not refreshed since the access token expired',
    (operator) => insert(operator, { age: 2 }),
    1,
    ['not-rotated'],
    /Start a gateway, or run `tokens refresh`/,
  ],
  [
    'not refreshed when it was due, with a working access token',
    (operator) => insert(operator, { age: 0.7 }),
    1,
    ['not-rotated'],
    /its refresh is late/,
  ],
  [
    'never refreshed since the import',
    (operator) => insert(operator, { age: 0, imported: true }),
    1,
    ['not-rotated'],
    /its link still works/,
  ],
  [
    'left in the middle of the first refresh after its import, by a process that was killed',
    async (operator) => {
      await insert(operator, { age: 0, imported: true });
      await operator.withStore((store) => beginExchange(store));
    },
    1,
    ['uncertain'],
    /Last refresh +never\n +Failures +1 since the import, the last \S+Z \(begun; its process ended before the outcome was saved\)\n/,
  ],
  [
    'refused as early after the access token should have expired',
    async (operator) => {
      await insert(operator, { age: 1.1 });
      await operator.withStore(async (store) => {
        const attempt = await beginExchange(store);
        await store.endAttempt(attempt, { outcome: 'early-or-spent', latencyMs: 1 });
      });
    },
    1,
    ['early-or-spent'],
    /keep one running/,
  ],
  [
    'past the end of the refresh token',
    (operator) => insert(operator, { age: 121 }),
    2,
    ['lost'],
    /make a new token in the personal account, and run `tokens import <link>`/,
  ],
  [
    'refused by the service while the access token works',
    async ({ service, tokens }) => {
      service.tokenAnswers.next(reply(400, { error: 'invalid_grant' }));
      await tokens(['refresh']);
    },
    1,
    ['early-or-spent'],
    /Failures +1 since then.*\(early-or-spent\)\n[^]*either it exchanges none before.*keep one running/,
  ],
  [
    'refused by the service',
    async ({ service, tokens }) => {
      service.expire();
      service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
      await tokens(['refresh']);
    },
    2,
    ['lost'],
    /Refresh token +spent, revoked or expired\n[^]*Do not restore a backup of the store/,
  ],
  [
    'moved to another store',
    ({ tokens, file }) => tokens(['export', `sqlite:${file('other.db')}`]),
    2,
    ['moved'],
    /Moved to +sqlite:.*other\.db\n[^]*Set TOKEN_STORE to that store/,
  ],
  [
    'answered oddly',
    async ({ service, tokens }) => {
      service.tokenAnswers.next(reply(200, { access_token: 'only-this' }));
      await tokens(['refresh']);
    },
    1,
    ['not-renewed'],
    /Ask the service if it happens again/,
  ],
])(
  'tokens status has an exit code for scripts and names the next step: %s',
  async (_, bring, code, troubles, said) => {
    const operator = await startWithTokens();
    await bring(operator);
    const text = await operator.tokens(['status']);
    expect(text.stdout).toMatch(said);
    expect(text.code).toBe(code);
    expect(await operator.status()).toMatchObject({
      state: code === 1 ? 'attention' : troubles[0],
      troubles,
    });
  },
);

test('failures are counted since the last refresh, and the next one resets the count', async () => {
  const { tokens, done, status, service } = await startWithTokens();
  await service.down();
  for (let tries = 0; tries < 2; tries += 1) await tokens(['refresh']);
  expect(await status()).toMatchObject({ failures: 0 });
  await service.up();
  service.tokenAnswers.next(reply(429, '', { 'retry-after': '7' }), reply(401, ''), 'drop-before');
  for (let tries = 0; tries < 3; tries += 1) await tokens(['refresh']);
  expect(await status()).toMatchObject({
    state: 'attention',
    failures: 3,
    lastFailure: { outcome: 'uncertain', at: expect.stringMatching(/Z$/) },
  });
  expect((await tokens(['status'])).stdout).toMatch(
    /Failures +3 since then, the last \S+Z \(uncertain\)/,
  );
  await done('recover');
  expect(await status()).toMatchObject({ state: 'healthy', failures: 0, lastFailure: null });
});

test('an exchange whose process was killed counts as a failure', async () => {
  const { withStore, status } = await startWithTokens();
  await withStore((store) => beginExchange(store));
  expect(await status()).toMatchObject({ failures: 1, lastFailure: { outcome: 'begun' } });
});

test('a move to another store does not count as a failure, and the target knows the last refresh', async () => {
  const { done, tokens, status, file } = await startWithTokens();
  const before = await status();
  const TOKEN_STORE = `sqlite:${file('other.db')}`;
  await done('export', TOKEN_STORE);
  expect(await status()).toMatchObject({ failures: 0, state: 'moved' });
  const { code, stdout } = await tokens(['status', '--json'], { env: { TOKEN_STORE } });
  expect(code).toBe(0);
  const after = JSON.parse(stdout) as typeof before;
  expect(after).toMatchObject({ state: 'healthy', failures: 0 });
  // The age of each store, one after the other.
  const [then, now] = [before, after].map((report) => Date.parse(report['lastRotation'] as string));
  expect(now! - then!).toBeGreaterThanOrEqual(0);
  expect(now! - then!).toBeLessThan(60_000);
});

test('an exchange in progress is reported, and is not a trouble', async () => {
  const { withStore, tokens, status } = await startWithTokens();
  await withStore(async (store) => {
    await beginExchange(store);
    expect((await tokens(['status'])).stdout).toMatch(/Now +a process is refreshing it/);
    expect(await status()).toMatchObject({
      state: 'healthy',
      exchangeUnderWay: true,
      failures: 0,
    });
  });
});

test('an exchange that takes longer than possible is a trouble: its process was stopped, or hangs', async () => {
  const { withStore, tokens, status } = await startWithTokens();
  await withStore(async (store) => {
    await beginExchange(store);
    expect(await status()).toMatchObject({ state: 'attention', troubles: ['blocked'] });
    expect((await tokens(['status'])).stdout).toMatch(/blocked: .*wake or end a process/);
  }, TEN_MINUTES_AGO);
});

test('status while a command refreshes disturbs nothing', async () => {
  const { tokens, done, status, service } = await startWithTokens();
  const answer = service.tokenAnswers.hold('before');
  const refreshing = tokens(['refresh']);
  await answer.arrived;
  expect(await status()).toMatchObject({ generation: 2, exchangeUnderWay: true });
  answer.release();
  expect((await refreshing).code).toBe(0);
  expect(await done('status')).toMatch(/Generation +3/);
});

test('if the store is gone and its pair is in a rescue file, status names the command that saves it', async () => {
  const { tokens, status, storePath, file } = await startWithTokens();
  for (const end of ['', '-journal', '-lock']) rmSync(storePath + end, { force: true });
  const { code, stdout } = await tokens(['status']);
  expect(code).toBe(1);
  expect(stdout).toMatch(/State +needs attention\n/);
  expect(stdout).toMatch(/Rescue file +\/\S+\.json\n[^]*run `tokens recover`/);
  expect(stdout).not.toMatch(/administrator/);
  expect(await status()).toMatchObject({
    state: 'attention',
    generation: null,
    troubles: ['unsaved'],
    rescueFiles: [expect.stringContaining('rescue-')],
  });
  for (const command of ['refresh', 'check']) {
    expect((await tokens([command])).stderr).toMatch(/waits in a rescue file.*`tokens recover`/);
  }
  expect(existsSync(storePath)).toBe(false);
  // With another service or another store, the rescue file is not used.
  const other = { env: { TOKEN_STORE: `sqlite:${file('other.db')}` } };
  expect((await tokens(['status'], other)).code).toBe(2);
  const elsewhere = await tokens(['recover'], other);
  expect(elsewhere.stderr).toMatch(/pair of another store waits in a rescue file \(.*, of sqlite:/);
  expect(elsewhere.stderr).toContain(`of sqlite:${storePath})`);
  const recovered = await tokens(['recover']);
  expect(recovered).toMatchObject({ code: 0, stdout: expect.stringContaining('generation 2') });
  expect(recovered.stderr).toMatch(/store was gone: a new one was made.*\n.*generation 2/);
  expect(recovered.stdout).not.toContain('nothing to recover');
  expect(recovered.stdout).toMatch(
    /\nThe store was repaired: generation 2 is in use\. Whether a refresh was under way .* is not known/,
  );
  expect(await status()).toMatchObject({ state: 'healthy', generation: 2 });
});

test('an encrypted store cannot be read without its key, and is left unchanged', async () => {
  const { tokens, service } = await startOperator();
  const [key, other] = [keyOf(1), keyOf(2)];
  const withKey = { env: { TOKEN_STORE_KEY: key } };
  expect((await tokens(['import', service.tokenLink], withKey)).code).toBe(0);
  expect((await tokens(['status'], withKey)).code).toBe(0);

  for (const command of ['status', 'check', 'refresh', 'recover']) {
    for (const [env, said] of [
      [{}, /TOKEN_STORE_KEY is not set/],
      [{ TOKEN_STORE_KEY: other }, /which is none of those in TOKEN_STORE_KEY/],
    ] as const) {
      const { code, stderr } = await tokens([command], { env });
      expect(code).toBe(1);
      expect(stderr).toMatch(said);
      expect(stderr).toContain('It was left as it is. Set TOKEN_STORE_KEY as it is set for');
      expect(stderr).not.toMatch(/damaged|import/);
      for (const secret of [key, other]) expect(stderr).not.toContain(secret);
    }
  }
  expect(service.exchanges).toHaveLength(1);
  using folder = temporaryFolder();
  writeFileSync(folder.file('key'), `${key}\n`);
  const byFile = { env: { TOKEN_STORE_KEY_FILE: folder.file('key') } };
  expect((await tokens(['refresh'], byFile)).code).toBe(0);
  expect((await tokens(['status'], { env: { TOKEN_STORE_KEY: `${other},${key}` } })).code).toBe(0);
});

test('a file that is not a store is not changed, and the error says what to check', async () => {
  const { tokens, storePath } = await startOperator();
  writeFileSync(
    storePath,
    'something else, and long enough to be looked at by a database'.repeat(99),
  );
  const { code, stderr } = await tokens(['status']);
  expect(code).toBe(1);
  expect(stderr).toMatch(/cannot be opened.*It was left as it is\. Check that TOKEN_STORE names/);
});

test('status leaves no new file beside the store', async () => {
  const { done, file } = await startWithTokens();
  const before = readdirSync(file('.'));
  await done('status');
  await done('check');
  expect(readdirSync(file('.'))).toEqual(before);
});

/** Replaces the set in the store by one of another age. */
async function insert(
  { withStore, service }: Operator,
  { age, imported = false }: { age: number; imported?: boolean },
): Promise<void> {
  const at = Date.now() - age * DAY_S * 1000;
  const insertSet = async (store: TokenStore) => {
    const after = await store.read();
    const replica = 'other/1';
    const pair = pairOf(randomUUID());
    const baseUrl = service.url;
    const first = await store.import({ baseUrl, pair, after, replica });
    if (first.kind !== 'imported') throw new Error(first.kind);
    if (imported) return;
    const { set, generation } = first.stored;
    const attempt = randomUUID();
    await store.claim({ set, generation, attempt, lifeMs: 150_000, replica });
    const next = pairOf(randomUUID());
    const latencyMs = 1;
    await store.save({
      set,
      generation,
      attempt,
      pair: next,
      outcome: 'rotated',
      latencyMs,
      at,
    });
  };
  await withStore(insertSet, () => at);
}

function keyOf(byte: number): string {
  return Buffer.alloc(32, byte).toString('base64');
}
