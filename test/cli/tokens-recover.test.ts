import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { reserveFile } from '../../src/tokens/store/sealed-file.ts';
import { createSealer } from '../../src/tokens/store/seal.ts';
import type { TokenStore } from '../../src/tokens/store/token-store.ts';
import { YEAR } from '../support/random/manual-clock.ts';
import { honest, refusal } from '../support/imitations/scripted.ts';
import type { TokenFault } from '../service/token-answers.ts';
import { startProgram } from '../support/processes/process.ts';
import { pairOf, reply, sentAgain } from '../support/tokens/tokens.ts';
import { beginExchange, startWithTokens, type Operator } from './tokens-operator.ts';

test('if nothing is uncertain, nothing is sent', async () => {
  const { done, service, env, file } = await startWithTokens();
  expect(await done('recover')).toBe(
    `Searched: the store (${env['TOKEN_STORE']}), which has generation 2; ` +
      `the rescue folder of this machine (${file('.')}), which has no pair that the store lacks.\n` +
      'There is nothing to recover: generation 2 is not uncertain.\n',
  );
  expect(service.exchanges).toHaveLength(1);
});

test('an exchange that was never processed is explained and sent once more, which succeeds', async () => {
  const { done, service, status } = await startInDoubt('drop-before');
  const said = await done('recover');
  expect(said).toMatch(
    /^Searched: .*\nThe exchange of generation 2 that test\/\d+ began at \S+Z is uncertain: no clear answer came\./,
  );
  expect(said).toMatch(
    /The access token works\.\nThe refresh token is sent once more …\nIt worked/,
  );
  expect(said).toContain('Generation 3 is in use');
  expect(service.exchanges).toHaveLength(3);
  expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
});

test('the refresh token is sent once more if the access token does not work either', async () => {
  const { done, service } = await startInDoubt('drop-before');
  service.expire();
  expect(await done('recover')).toContain('The access token does not work (token_expired).');
  expect(service.exchanges.at(-1)).toMatchObject({ outcome: 'answered' });
});

test('a refresh token that has ended by the clock only is sent once, because that clock may have been wrong at the save', async () => {
  const { withStore, service, tokens, status } = await startWithTokens();
  await withStore(async (store) => {
    const { set, generation, pair } = (await store.read())!;
    // As it is saved while the clock of the store is a year behind.
    const attempt = await beginExchange(store);
    const exchange = { outcome: 'rotated', at: aYearAgo(), latencyMs: 1 } as const;
    await store.save({ set, generation, attempt, pair, ...exchange });
  }, aYearAgo);
  expect(await status()).toMatchObject({ state: 'lost' });
  expect((await tokens(['refresh'])).stderr).toMatch(
    /reached its end by the clock.*tokens recover/,
  );
  expect(service.exchanges).toHaveLength(1);
  const recovered = await tokens(['recover']);
  expect(recovered).toMatchObject({ code: 0, stderr: '' });
  expect(recovered.stdout).toMatch(/has ended by the clock of the token store.*[^]*It worked/);
  expect(await status()).toMatchObject({ state: 'healthy', generation: 4 });

  // It has really ended.
  await withStore(async (store) => {
    const { set, generation } = (await store.read())!;
    const claim = { set, generation, attempt: 'ended', lifeMs: 1, replica: 'other/1' };
    await store.claim(claim);
    const exchange = { outcome: 'rotated', at: aYearAgo(), latencyMs: 1 } as const;
    await store.save({ ...claim, ...exchange, pair: pairOf('ended') });
  }, aYearAgo);
  const lost = await tokens(['recover']);
  expect(lost).toMatchObject({ code: 1, stderr: expect.stringMatching(/make a new token/) });
  expect(service.exchanges.map(({ outcome }) => outcome)).toEqual([
    'answered',
    'answered',
    'invalid-grant',
  ]);
  await tokens(['recover']);
  expect(service.exchanges).toHaveLength(3);
});

test('a lost answer leads to a refusal, which is a loss only when the access token has expired; then nothing is sent again', async () => {
  const { tokens, done, service, status } = await startInDoubt('drop-after');
  const early = await tokens(['recover']);
  expect(early.code).toBe(1);
  expect(early.stderr).toMatch(
    /although the access token works\. Either.*or the refresh token is spent/,
  );
  expect(await status()).toMatchObject({ troubles: ['early-or-spent'] });
  expect(await done('recover')).toContain('So nothing is sent now');
  expect(service.exchanges).toHaveLength(3);

  service.expire();
  const { code, stdout, stderr } = await tokens(['recover']);
  expect(code).toBe(1);
  expect(stdout).not.toContain('It worked');
  expect(stderr).toMatch(
    /^The refresh token is spent: an earlier exchange of it never got its ans/,
  );
  expect(stderr).toMatch(
    /Neither a kept answer nor a rescue file of this machine has .*\. Have an administrator make a new token.*run `tokens import <link>`/,
  );
  expect(stderr).not.toContain('tokens recover');
  expect(stderr).toMatch(
    /Until then requests are answered .*23 h 59 min at most\.|1 day at most\./,
  );
  expect(await status()).toMatchObject({ state: 'lost' });
  const again = await tokens(['recover']);
  expect(again.code).toBe(1);
  expect(again.stderr).toContain('The refresh token is spent');
  expect(again.stderr).not.toContain('tokens recover');
  expect(service.exchanges).toHaveLength(5);
});

test('nothing is sent to a service that cannot be reached', async () => {
  const { tokens, done, service } = await startInDoubt('drop-before');
  await service.down();
  const { code, stderr } = await tokens(['recover']);
  expect(code).toBe(1);
  expect(stderr).toContain('no clear answer (ECONNREFUSED), so nothing was sent. Try again');
  await service.up();
  expect(service.exchanges).toHaveLength(2);
  await done('recover');
});

test.each([
  ['no clear answer', reply(502, ''), /gave no clear answer/],
  ['a rate limit', reply(429, ''), /Try again in 60 s/],
  ['a refusal to talk', reply(401, ''), /answered 401\. The operator has to check RECRUITING_URL/],
])(
  'after %s to the replay the tokens are still uncertain, and the next step is printed',
  async (_, answer, said) => {
    const { tokens, done, service, status } = await startInDoubt('drop-before');
    service.tokenAnswers.next(answer);
    const { code, stderr } = await tokens(['recover']);
    expect(code).toBe(1);
    expect(stderr).toMatch(said);
    expect(stderr).toContain('Nothing is decided yet: run `tokens recover` again');
    expect(await status()).toMatchObject({ troubles: ['uncertain'] });
    expect((await tokens(['refresh'])).stderr).toMatch(/^Nothing was sent\./);
    expect(await done('recover')).toContain('Generation 3 is in use');
  },
);

test('a pair in a rescue file is saved first, after which nothing is uncertain and nothing is sent', async () => {
  const operator = await startWithTokens();
  const path = await leaveRescueFile(operator);
  const { code, stdout, stderr } = await operator.tokens(['recover']);
  expect(stderr).toContain(
    'A token pair was saved from a rescue file into the store: generation 3.',
  );
  expect(stdout).toMatch(
    /^Searched: .*, which has generation 3; .*, which has pairs: 1 saved into the store\.\nThere is nothing else to recover: generation 3 is not uncertain\.\n$/,
  );
  expect(code).toBe(0);
  expect(operator.service.exchanges).toHaveLength(1);
  expect(await operator.status()).toMatchObject({ state: 'healthy', generation: 3 });
  // The file is a second copy until a gateway has seen the pair in the store.
  expect(existsSync(path())).toBe(true);
  expect(await operator.tokens(['recover'])).toMatchObject({ code: 0, stderr: '' });
});

test('while a rescue file cannot be read nothing is sent, the file stays, and status reports it as blocking', async () => {
  const operator = await startWithTokens();
  const path = await leaveRescueFile(operator, [Buffer.alloc(32, 1)]);
  expect(await operator.status()).toMatchObject({
    state: 'attention',
    troubles: ['uncertain', 'blocked'],
    rescueFiles: [path()],
  });
  const { code, stderr } = await operator.tokens(['recover']);
  expect(code).toBe(1);
  expect(stderr).toContain(`The rescue file ${path()} could not be saved into the store`);
  expect(stderr).toContain('and TOKEN_STORE_KEY is not set');
  expect(stderr).toContain('Nothing was sent.');
  expect(existsSync(path())).toBe(true);
  expect(operator.service.exchanges).toHaveLength(1);
});

test('a set is not reported as lost while an unreadable rescue file may hold its next pair', async () => {
  const operator = await startWithTokens();
  const path = await leaveRescueFile(operator, [Buffer.alloc(32, 1)]);
  await operator.withStore(async (store) => {
    const { claim } = (await store.read())!;
    await store.endAttempt(claim!.attempt, { outcome: 'invalid-grant', latencyMs: 1 });
  });
  expect(await operator.status()).toMatchObject({ state: 'lost', troubles: ['lost', 'unsaved'] });
  const { code, stderr } = await operator.tokens(['recover']);
  expect(code).toBe(1);
  expect(stderr).toContain('may be in the rescue file that could not be read. Nothing was sent.');
  expect(existsSync(path())).toBe(true);
  expect(operator.service.exchanges).toHaveLength(1);
});

test('nothing is sent while a copy that a command left is sealed with another key and may be newer than the store', async () => {
  const operator = await startWithTokens();
  const { withStore, file, tokens, service } = operator;
  const { set, generation } = await withStore(async (store) => (await store.read())!);
  const sealer = createSealer([Buffer.alloc(32, 1)]);
  const owner = { host: 'test', pid: 4_000_000, lives: () => false };
  const rescue = reserveFile({ directory: file('.'), sealer, owner }, 'rescue');
  const sign = { attempt: 'theirs', outcome: 'rotated', at: Date.now(), latencyMs: 1 } as const;
  rescue.put({ set, generation, pair: pairOf('next'), ...sign });
  rescue.close();
  for (const command of ['recover', 'refresh']) {
    const { code, stderr } = await tokens([command]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/TOKEN_STORE_KEY is not set/);
    expect(stderr).toMatch(/Nothing (was|is) sent/i);
  }
  expect(service.exchanges).toHaveLength(1);
});

test('a rescue file of another store is named, with the advice not to remove it', async () => {
  const operator = await startWithTokens();
  const path = await leaveRescueFile(operator);
  for (const command of ['recover', 'refresh']) {
    const { code, stderr } = await operator.tokens([command], {
      env: { TOKEN_STORE: `sqlite:${operator.file('misspelt.db')}` },
    });
    expect(code).toBe(1);
    expect(stderr).toContain('misspelt.db, which does not exist');
    expect(stderr).toMatch(/pair of another store waits in a rescue file \(.*\): do not remove it/);
    expect(stderr).toContain(path());
  }
  expect(existsSync(path())).toBe(true);
  expect(existsSync(operator.file('misspelt.db'))).toBe(false);
});

test('a rescue file of a store that was at the same address before is left as it is', async () => {
  const operator = await startWithTokens();
  const path = await leaveRescueFile(operator);
  const { storePath, service, tokens, withStore, status } = operator;
  for (const end of ['', '-journal', '-lock']) rmSync(storePath + end, { force: true });
  await withStore(async (store) => {
    const pair = pairOf('other');
    await store.import({ baseUrl: service.url, pair, replica: 'hand', after: null });
  });
  const before = readFileSync(path(), 'utf8');
  await tokens(['recover']);
  expect(readFileSync(path(), 'utf8')).toBe(before);
  expect(await status()).toMatchObject({ generation: 1, rescueFiles: [] });
  await withStore(async (store) => {
    const known = { pair: pairOf('rescued'), replica: 'hand', after: await store.read() };
    expect(await store.import({ baseUrl: service.url, ...known })).toMatchObject({
      kind: 'imported',
    });
  });
});

test('a pair in an unread answer is used if the service accepts it, and nothing is sent again', async () => {
  const { tokens, done, service, status } = await startWithTokens();
  service.tokenAnswers.next(named(503));
  service.answerAll(refusal('', 502));
  expect((await tokens(['refresh'])).code).toBe(1);
  const away = await tokens(['recover']);
  expect(away.code).toBe(1);
  expect(away.stderr).toContain('Nothing was sent.');

  service.answerAll(honest);
  const said = await done('recover');
  expect(said).toMatch(
    /The answer of \S+Z \(status 503\) was not understood, and is kept in \S+: it names a/,
  );
  expect(said).toContain(
    'the access token of that pair: generation 3 is in use. Nothing was sent.',
  );
  expect(service.exchanges).toHaveLength(2);
  expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
  expect(await done('refresh')).toContain('generation 4');
});

test('a pair in an unread answer is tried after the uncertain refresh token was refused', async () => {
  const { tokens, done, service, status } = await startWithTokens();
  service.tokenAnswers.next(named(500));
  service.answerAll(refusal('', 502));
  await tokens(['refresh']);
  service.answerAll(honest);
  service.expire();
  const said = await done('recover');
  expect(said).toContain('The pair is saved as generation 3, to try its refresh token.');
  expect(said).toContain('Generation 4 is in use');
  expect(await status()).toMatchObject({ state: 'healthy', generation: 4 });
  expect(service.exchanges.map(({ outcome }) => outcome).slice(1)).toEqual([
    'answered',
    'invalid-grant',
    'answered',
  ]);
});

test('a pair in an unread answer is tried although a gateway has reported the set as lost', async () => {
  const { tokens, done, service, status, withStore } = await startWithTokens();
  service.tokenAnswers.next(named(500));
  service.answerAll(refusal('', 502));
  await tokens(['refresh']);
  await withStore(async (store) => {
    const { claim } = (await store.read())!;
    await store.endAttempt(claim!.attempt, { outcome: 'invalid-grant', latencyMs: 1 });
  });
  expect(await status()).toMatchObject({ state: 'lost', generation: 2 });
  service.answerAll(honest);
  expect(await done('recover')).toContain('generation 3 is in use. Nothing was sent.');
  expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
  expect(service.exchanges).toHaveLength(2);
});

test.each([
  ['was made up', 'an example'],
  ['repeats the access token in use', undefined],
])(
  'a pair that %s changes nothing, and the uncertain refresh token is sent once more',
  async (_, access) => {
    const { tokens, done, service, status, withStore } = await startWithTokens();
    const stored = await withStore((store) => store.read());
    const access_token = access ?? stored!.pair.accessToken;
    service.tokenAnswers.next(reply(500, { access_token, refresh_token: 'another' }));
    expect((await tokens(['refresh'])).code).toBe(1);
    const said = await done('recover');
    expect(said).toContain('it names a token pair.');
    expect(said).toContain('Generation 3 is in use');
    expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
  },
);

test('an exchange in progress in another process is reported', async () => {
  const { tokens, service } = await startWithTokens();
  const answer = service.tokenAnswers.hold('before');
  const refreshing = tokens(['refresh']);
  await answer.arrived;
  const { code, stderr } = await tokens(['recover']);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /A process is exchanging the refresh token at this moment\. Nothing was s/,
  );
  answer.release();
  expect((await refreshing).code).toBe(0);
  expect(service.exchanges).toHaveLength(2);
});

test.each([
  ['before it was processed', 'before', 0],
  ['after it was processed', 'after', 1],
] as const)(
  'after a process was killed %s the refresh token is sent once more, and the result is reported',
  async (_, when, code) => {
    const { env, tokens, service, status } = await startWithTokens();
    const { arrived } = service.tokenAnswers.hold(when);
    await using program = startProgram(['tokens', 'refresh'], { env });
    await arrived;
    program.signal('SIGKILL');
    await program.ended;
    expect(await status()).toMatchObject({ state: 'attention', troubles: ['uncertain'] });

    const said = await tokens(['recover']);
    expect(said.stdout).toContain('its process ended before the answer was saved');
    expect(said.code).toBe(code);
    expect(service.exchanges).toHaveLength(3);
    expect(sentAgain(service.exchanges)).toEqual([]);
    const troubles = code === 0 ? [] : ['early-or-spent'];
    expect(await status()).toMatchObject({ troubles });
  },
);

test('after a move the error names the store that has the set', async () => {
  const { tokens, file } = await startWithTokens();
  await tokens(['export', `sqlite:${file('other.db')}`]);
  const { code, stderr } = await tokens(['recover']);
  expect(code).toBe(1);
  expect(stderr).toContain(`moved to another store (sqlite:${file('other.db')})`);
});

/** Spends the refresh token, and answers with the new pair where the gateway does not look for one. */
function named(status: number): TokenFault {
  return (pair) => ({ status, body: `{"upstream":${pair}}` });
}

async function startInDoubt(fault: TokenFault): Promise<Operator> {
  const operator = await startWithTokens();
  operator.service.tokenAnswers.next(fault);
  expect((await operator.tokens(['refresh'])).code).toBe(1);
  return operator;
}

/** Leaves what a process leaves that received a pair, could not save it, and ended. */
async function leaveRescueFile(
  { withStore, file }: Operator,
  keys: readonly Uint8Array[] = [],
): Promise<() => string> {
  const { set, generation, attempt, home } = await withStore(async (store: TokenStore) => {
    const { storeId, baseUrl, ...stored } = (await store.read())!;
    const of = { store: store.description, storeId, baseUrl };
    return { ...stored, home: of, attempt: await beginExchange(store) };
  });
  const owner = { host: 'test', pid: 4_000_000, lives: () => false };
  const rescue = reserveFile({ directory: file('.'), sealer: createSealer(keys), owner }, 'rescue');
  const times = { at: Date.now(), latencyMs: 1 };
  const pair = pairOf('rescued');
  rescue.put({ set, generation, attempt, pair, outcome: 'rotated', home, ...times });
  rescue.close();
  const name = readdirSync(file('.')).find((entry) => entry.startsWith('rescue-test-4000000-'))!;
  return () => file(name);
}

function aYearAgo(): number {
  return Date.now() - YEAR;
}
