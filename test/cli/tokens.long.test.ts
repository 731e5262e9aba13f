/** `tokens import`, `refresh`, `recover` and `export`, through the command line. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../service/service.ts';
import { adviceOn } from '../../src/setup/wording.ts';
import { moveTo, successor, type State } from '../../src/tokens/state.ts';
import { pairOf } from '../tokens/values.ts';
import { refusal } from '../support/imitations/scripted.ts';
import { startServer } from '../support/test-server.ts';
import { beginExchange, startOperator, startWithTokens, type Operator } from './tokens-operator.ts';

const DAY = 86_400_000;
const SPENT = { status: 400, body: '{"error":"invalid_grant"}' };
const BROKEN = { status: 500, body: '{"oops":true}' };
const MADE_UP = JSON.stringify({
  access_token: 'made-up-access',
  refresh_token: 'made-up-refresh',
});
const UNCERTAIN = adviceOn('uncertain', null, 0).step;
const [KEY] = [1].map((byte) => Buffer.alloc(32, byte).toString('base64'));

// --- import

test.each<[string, (operator: Operator) => Promise<{ source: string; stdin?: string[] }>]>([
  ['its link', async ({ service }) => ({ source: service.tokenLink })],
  ['a file with the JSON', async (operator) => fileWith(operator, await jsonOf(operator))],
  [
    'standard input with the JSON, in pieces',
    async (operator) => {
      const json = await jsonOf(operator);
      return { source: '-', stdin: [json.slice(0, 30), json.slice(30)] };
    },
  ],
])('a set is imported from %s and exchanged at once, which ends its link', async (_, sourceOf) => {
  const operator = await startOperator();
  const { service, storePath } = operator;
  const link = service.tokenLink;
  const { source, stdin = [] } = await sourceOf(operator);
  const { code, stdout, stderr } = await operator.tokens(['import', source], { stdin });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`Imported the token set "Sandbox" of ${new URL(service.url).host}`);
  expect(stdout).toContain(
    `Token store: sqlite:${storePath}, not encrypted (TOKEN_STORE_KEY is not set).`,
  );
  expect(stdout).toMatch(/Refreshed at once: generation 2 is in use\. .*lives for 1 day.*120 days/);
  expect((await fetch(link)).status).toBe(404);
  expect(service.exchanges).toMatchObject([{ outcome: 'answered' }]);
  expect(await operator.status()).toMatchObject({ state: 'healthy', generation: 2 });
});

test('an import says that the store is encrypted', async () => {
  const { tokens, service, storePath } = await startOperator();
  const { stdout } = await tokens(['import', service.tokenLink], {
    env: { TOKEN_STORE_KEY: KEY! },
  });
  expect(stdout).toContain(`sqlite:${storePath}, encrypted with TOKEN_STORE_KEY.`);
  expect(readFileSync(storePath).includes('sandbox-')).toBe(false);
});

const OF_ANOTHER = 'https://other.example.com/a-secret-path';

/** What is given instead of a new set, the exit code, and what is said. */
test.each<[string, (operator: Operator) => Promise<Given> | Given, number, RegExp]>([
  ['over a set in use', newLink, 1, /\(generation 2\) that is in use\. .* add --replace\./],
  ['of a token that was here', storedPair, 1, /has already seen this refresh token.*new token/],
  ['of a link over plain http', () => ({ source: 'http://a.test/a-secret-path' }), 2, /https:\/\//],
  ['of what is no link', () => ({ source: 'a.test/a-secret-path' }), 2, /is not a link.*ENOENT/],
  ['of JSON as the argument', () => ({ source: '{"a":"a-secret-path"}' }), 2, /is not a link/],
  ['of a page', (operator) => fileWith(operator, '<html>a-secret-path'), 1, /^This is a page/],
  [
    'of a foreign link',
    () => ({ source: OF_ANOTHER }),
    2,
    /RECRUITING_URL is .*TOKEN_LINK_ORIGIN=/s,
  ],
  [
    'of a foreign link in a pipe',
    () => ({ source: '-', stdin: OF_ANOTHER }),
    2,
    /RECRUITING_URL is/,
  ],
])('an import %s is refused, changes nothing, and shows no secret', async (_, give, exit, said) => {
  const operator = await startWithTokens();
  const { source, stdin = '', replace = false } = await give(operator);
  const args = ['import', source, ...(replace ? ['--replace'] : [])];
  const { code, stdout, stderr } = await operator.tokens(args, { stdin: [stdin] });
  expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
  expect(stderr).toMatch(said);
  expect(stderr).not.toContain('a-secret-path');
  expect(operator.service.exchanges).toHaveLength(1);
  expect(await operator.status()).toMatchObject({ state: 'healthy', generation: 2 });
});

interface Given {
  readonly source: string;
  readonly stdin?: string;
  readonly replace?: boolean;
}

function newLink({ service }: Operator): Given {
  return { source: service.makeNewSet() };
}

async function storedPair({ stored }: Operator): Promise<Given> {
  const { accessToken, refreshToken } = (await stored()).pair;
  const set = { access_token: accessToken, refresh_token: refreshToken };
  return { source: '-', stdin: JSON.stringify(set), replace: true };
}

test('with --replace a set in use is replaced', async () => {
  const { service, status, done } = await startWithTokens();
  const said = await done('import', service.makeNewSet(), '--replace');
  expect(said).toContain('generation 4 is in use');
  expect(await status()).toMatchObject({ state: 'healthy', generation: 4 });
});

test('a spent set is tried again after 5 s and then withdrawn: what it replaced is in use again', async () => {
  const { tokens, status, done, service } = await startWithTokens();
  const { code, stderr } = await tokens(['import', '-', '--replace'], { stdin: [MADE_UP] });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /refuses the refresh token of this set.*withdrawn: what it had replaced is in use again, as generation 4\./,
  );
  expect(stderr).not.toContain('made-up');
  expect(service.exchanges.map(({ outcome }) => outcome)).toEqual([
    'answered',
    'invalid-grant',
    'invalid-grant',
  ]);
  expect(await status()).toMatchObject({ state: 'healthy', name: 'Sandbox', refusals: 0 });
  await done('refresh');
});

test('a spent first set leaves no set in use', async () => {
  const { tokens } = await startOperator();
  const { code, stderr } = await tokens(['import', '-'], { stdin: [MADE_UP] });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /refuses the refresh token of this set.*No set is in use now\. For another one, have an admin/,
  );
  expect((await tokens(['status'])).code).toBe(2);
});

test('an import is complete where the service refuses early refreshes; the exchange follows after the expiry', async () => {
  const operator = await startOperator();
  const clock = { ahead: 0 };
  const now = () => Date.now() + clock.ahead;
  const sandbox = await startService({ refuseEarlyRefresh: 400, now });
  onTestFinished(() => sandbox.close());
  const env = { RECRUITING_URL: sandbox.url };
  const run = (...args: string[]) => operator.tokens(args, { env });
  const imported = await run('import', sandbox.tokenLink);
  expect(imported).toMatchObject({ code: 0, stderr: '' });
  expect(imported.stdout).toMatch(
    /It was not refreshed yet: .*Either it exchanges none before.*or the refresh token is spent\. .*link works/,
  );
  expect(sandbox.exchanges).toHaveLength(1);
  expect((await run('refresh')).stderr).toMatch(
    /^Nothing was sent\. The access token works, .*refused the refresh token already/,
  );
  clock.ahead = 2 * DAY;
  expect((await run('refresh')).stdout).toContain('generation 2 is in use');
  // From now on it is known.
  const early = await run('refresh');
  expect(early.code).toBe(1);
  expect(early.stderr).toMatch(
    /^Nothing was sent\. .*exchanges no refresh token before.*in 23 h 59 min at most/,
  );
  expect((await run('status')).stdout).toMatch(/Refreshes +after the expiry/);
  expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(['too-early', 'answered']);
});

test('an import whose exchange cannot be sent is finished by `tokens refresh`', async () => {
  const operator = await startOperator();
  const { tokens, service, done } = operator;
  const { source } = fileWith(operator, await jsonOf(operator));
  await service.down();
  const { code, stdout, stderr } = await tokens(['import', source]);
  expect(code).toBe(1);
  expect(stdout).toContain('Imported the token set');
  expect(stderr).toMatch(
    /in the store, but was not refreshed yet, so the link still works: .*ECONNREFUSED.*run `tokens refresh`/,
  );
  await service.up();
  expect(await done('refresh')).toContain('Refreshed: generation 2 is in use');
});

test('an import whose exchange gets no clear answer is finished by `tokens recover`', async () => {
  const { tokens, service, done, status } = await startOperator();
  service.tokenAnswers.next(BROKEN);
  const { code, stderr } = await tokens(['import', service.tokenLink]);
  expect(code).toBe(1);
  expect(stderr).toContain(UNCERTAIN);
  expect(await done('recover')).toContain('generation 2 is in use');
  expect(await status()).toMatchObject({ state: 'healthy' });
});

test('a link at TOKEN_LINK_ORIGIN is read', async () => {
  const { tokens, service, status } = await startOperator();
  const { tokenLink } = service;
  const url = await startServer((_request, response) => {
    void fetch(tokenLink).then(async (set) => response.end(await set.text()));
  });
  const env = { TOKEN_LINK_ORIGIN: url };
  expect(await tokens(['import', `${url}/a-secret-path`], { env })).toMatchObject({
    code: 0,
    stderr: '',
  });
  expect(await status()).toMatchObject({ state: 'healthy', generation: 2 });
});

test('without RECRUITING_URL an import says what to set, and creates nothing', async () => {
  const { tokens, service, storePath } = await startOperator();
  const { code, stderr } = await tokens(['import', service.tokenLink], {
    env: { RECRUITING_URL: '' },
  });
  expect(code).toBe(2);
  expect(stderr).toContain('RECRUITING_URL=https://');
  expect(existsSync(storePath)).toBe(false);
  expect(service.sandbox.stats.requests.tokenLink).toBe(0);
});

test('an import into a place that is no folder says that the link still works', async () => {
  const { tokens, service, file } = await startOperator();
  writeFileSync(file('plain'), '');
  const env = { TOKEN_STORE: `sqlite:${file('plain')}/tokens.db` };
  const { code, stderr } = await tokens(['import', service.tokenLink], { env });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /cannot be used \(sqlite:.*\/plain\/tokens\.db\).*Nothing was imported, and the link still works\./,
  );
  expect(service.sandbox.stats.requests.tokenLink).toBe(0);
});

test('a name with control characters is printed without them', async () => {
  const { tokens } = await startOperator();
  const set = { ...(JSON.parse(MADE_UP) as object), name: 'Te\u001B[2Jst' };
  const { stdout } = await tokens(['import', '-'], { stdin: [JSON.stringify(set)] });
  expect(stdout).toContain('"Te [2Jst"');
});

// --- refresh

test('refresh makes one exchange, needs no RECRUITING_URL, and prints what is in use', async () => {
  const { tokens, service } = await startWithTokens();
  const { code, stdout } = await tokens(['refresh'], { env: { RECRUITING_URL: '' } });
  expect(code).toBe(0);
  expect(stdout).toBe(
    'Refreshed: generation 3 is in use. Its access token lives for 1 day, its refresh token for 120 days.\n',
  );
  expect(service.exchanges).toHaveLength(2);
});

type Cause = (operator: Operator) => unknown;

const isUncertain: Cause = ({ alter }) => alter({ claim: claimed() });
const isMoved: Cause = ({ alter }) => alter({ movedTo: 'sqlite:/elsewhere.db' });
const isPaused: Cause = ({ alter }) => alter({ notBefore: Date.now() + 600_000 });
const isAnswered =
  (status: number, body = '{}'): Cause =>
  ({ service }) =>
    service.tokenAnswers.next({ status, body });
const cannotBeAsked: Cause = async (operator) => {
  await isUncertain(operator);
  await operator.service.down();
};
const hasDamagedFile: Cause = async ({ emergency, stored }) => {
  const next = successor(await stored(), pairOf('next'));
  emergency.put(next, Date.now());
  writeFileSync(emergency.pathOf(next), 'damaged');
};

/** The command, what happened before, how often the refresh token has been sent in the end, and what is said. */
test.each<[string, string, Cause, sent: 1 | 2, RegExp]>([
  ['refresh', 'the token is uncertain', isUncertain, 1, /Nothing was sent\. .*`tokens recover`/],
  [
    'refresh',
    'there is a pause',
    isPaused,
    1,
    /Nothing was sent\. .*a pause: .* due in (10|9) min/,
  ],
  [
    'refresh',
    'a file is damaged',
    hasDamagedFile,
    1,
    /unsaved-.* cannot be read: .*Nothing was se/,
  ],
  ['refresh', 'another one exchanges', beginExchange, 1, /other\/1 began .*its claim ends at 20/],
  ['refresh', 'there is no clear answer', isAnswered(500), 2, /Run `tokens recover`/],
  [
    'refresh',
    'it is refused by a proxy',
    isAnswered(403),
    2,
    /status 403.*RECRUITING_AGENT.*proxy/,
  ],
  ['refresh', 'it is limited', isAnswered(429), 2, /status 429.*wait.*Callers are served until/],
  [
    'recover',
    'the service is down',
    cannotBeAsked,
    1,
    /Nothing was sent\. .* now \(ECONNREFUSED\)/,
  ],
  ['recover', 'another one exchanges', beginExchange, 1, /sent\. other\/1 began.*recover` then/],
  ['recover', 'the set was moved', isMoved, 1, /moved to another store \(sqlite:\/elsewhere\.db\)/],
])('`tokens %s` says what helps if %s', async (command, _, cause, sent, said) => {
  const operator = await startWithTokens();
  await cause(operator);
  const { code, stderr } = await operator.tokens([command]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(said) });
  expect(operator.service.exchanges).toHaveLength(sent);
});

// --- recover

test('a refresh that was never processed is explained and sent once more, which succeeds', async () => {
  const { tokens, done, service, status } = await startWithTokens();
  service.tokenAnswers.next('drop-before');
  await tokens(['refresh']);
  const said = await done('recover');
  expect(said).toMatch(/The refresh of generation 2 by test\/\d+ got no clear answer \(\w+\), so/);
  expect(said).toContain('It worked, so nothing was lost: generation 3 is in use.');
  expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
});

test('a lost answer is a loss only once the token was refused after the expiry, for the last time', async () => {
  const { tokens, alter, service, status } = await startWithTokens();
  service.tokenAnswers.next('drop-after');
  await tokens(['refresh']);
  const first = await tokens(['recover']);
  expect(first.code).toBe(1);
  expect(first.stderr).toMatch(
    /refused the refresh token: as too early, or as spent\..*after the expiry.*Callers are served/,
  );
  expect(await status()).toMatchObject({ state: 'healthy', refusals: 1 });
  service.expire();
  await alter({ refusals: 3 });
  const last = await tokens(['recover']);
  expect(last.code).toBe(1);
  expect(last.stderr).toMatch(
    /Callers get TOKENS_LOST\. No other pair was found\. .*have an administrator make a new token.*tokens import <link>/,
  );
  expect(await status()).toMatchObject({ state: 'lost' });
});

test('of tokens that were revoked, refresh names recover, and recover names the import that helps', async () => {
  const { tokens, service, done, status } = await startWithTokens();
  service.sandbox.revoke();
  const refreshed = await tokens(['refresh']);
  expect(refreshed.code).toBe(1);
  expect(refreshed.stderr).toMatch(/refused the refresh token once.*Run `tokens recover`/);
  expect((await tokens(['status'])).stdout).toMatch(/Refused +once: too early, or spent/);
  const recovered = await tokens(['recover']);
  expect(recovered.code).toBe(1);
  expect(recovered.stdout).toContain('has refused the refresh token once: too early, or spent.');
  expect(recovered.stderr).toMatch(
    /refused the refresh token 2 times\. .*Callers get UPSTREAM_UNREACHABLE or .*`tokens import <link> --replace`/,
  );
  await done('import', service.makeNewSet(), '--replace');
  expect(await status()).toMatchObject({ state: 'healthy', refusals: 0 });
});

test.each<[string, Partial<State>, string]>([
  ['was refused for good', { lost: true }, 'refuses the refresh token for good'],
  [
    'has ended by the clock',
    { savedAt: Date.now() - 121 * DAY },
    'has reached its end by the clock of the token store',
  ],
])(
  'a refresh token that %s is sent once more: there is nothing to lose',
  async (_, changes, said) => {
    const { alter, done, status } = await startWithTokens();
    await alter(changes);
    const stdout = await done('recover');
    expect(stdout).toContain(said);
    expect(stdout).toContain('It worked, so nothing was lost: generation 3 is in use.');
    expect(await status()).toMatchObject({ state: 'healthy' });
  },
);

test.each<[string, (json: string) => { status: number; body: string }, Partial<State>]>([
  ['was cut off', (json) => ({ status: 500, body: json }), {}],
  [
    'came before the refresh token was refused and called lost',
    (json) => ({ status: 500, body: json }),
    { claim: null, lost: true, refusals: 4 },
  ],
])(
  'a pair in an answer that %s is saved, and the refresh token is not sent again',
  async (_, answer, changes) => {
    const { tokens, done, service, status, alter } = await startWithTokens();
    service.tokenAnswers.next(answer);
    await tokens(['refresh']);
    await alter(changes);
    expect(await done('recover')).toMatch(
      /An answer of the service is kept, and .* nothing was lost: generation 3 is in use/,
    );
    expect(service.exchanges).toHaveLength(2);
    expect(await status()).toMatchObject({ state: 'healthy', generation: 3, refusesEarly: false });
    await done('refresh');
  },
);

test('a pair in an answer that the service does not accept changes nothing', async () => {
  const { tokens, done, service } = await startWithTokens();
  service.tokenAnswers.next({ status: 500, body: MADE_UP });
  await tokens(['refresh']);
  const said = await done('recover');
  expect(said).toContain('is kept, and holds no pair that the service accepts.');
  expect(said).toContain('It worked, so nothing was lost: generation 3 is in use.');
  expect(said).not.toContain('made-up');
});

test('a pair in an emergency file is saved, also into a store that is gone, and nothing is sent', async () => {
  const { service, emergency, stored, done, storePath, status } = await startWithTokens();
  for (const isGone of [false, true]) {
    const next = successor(await stored(), pairOf('waiting'));
    emergency.put(next, Date.now());
    if (isGone) rmSync(storePath);
    const said = await done('recover');
    expect(said).toContain(`emergency file (${emergency.pathOf(next)}) is in the token store now`);
    expect(said).toContain(`There is nothing to recover: generation ${next.generation} is in use.`);
    expect(emergency.read()).toEqual([]);
    expect(await status()).toMatchObject({ generation: next.generation });
  }
  expect(service.exchanges).toHaveLength(1);
});

test('an access token that the service refuses counts as expired, so that a refusal of the refresh token counts', async () => {
  const { tokens, service, alter, status } = await startWithTokens();
  await alter({ claim: claimed(), refusals: 3 });
  service.answerChecks(refusal('token_expired'));
  service.tokenAnswers.next(SPENT);
  expect((await tokens(['recover'])).stderr).toContain('No other pair was found');
  expect(await status()).toMatchObject({ state: 'lost', accessTokenSecondsLeft: 0 });
});

// --- export

test('after a move the target has the set, and the source names the target', async () => {
  const { done, tokens, file, service, storePath } = await startWithTokens();
  const target = `sqlite:${file('other.db')}`;
  const said = await done('export', target);
  expect(said).toContain(
    `The token set is in ${target} now, and sqlite:${storePath} refuses to refresh it.`,
  );
  expect(said).toContain(`Set TOKEN_STORE=${target} for every gateway`);
  expect((await tokens(['refresh'])).stderr).toContain(`moved to another store (${target})`);
  const there = { env: { TOKEN_STORE: target } };
  expect((await tokens(['refresh'], there)).stdout).toContain('Refreshed: generation 4 is in use');
  expect((await tokens(['status'], there)).code).toBe(0);
  // Repeated, it changes nothing.
  await done('export', target);
  expect(JSON.parse((await tokens(['status', '--json'], there)).stdout)).toMatchObject({
    generation: 4,
  });
  expect((await tokens(['export', `sqlite:${file('third.db')}`])).stderr).toContain(`(${target})`);
  expect(service.exchanges).toHaveLength(2);
});

test('a move that was interrupted is finished by the same command', async () => {
  const { done, withStore, file, tokens } = await startWithTokens();
  const target = `sqlite:${file('other.db')}`;
  await withStore((store) => store.update(moveTo(target, 'killed/1')));
  await done('export', target);
  expect((await tokens(['status'], { env: { TOKEN_STORE: target } })).code).toBe(0);
});

const toOther = ({ file }: Operator) => `sqlite:${file('other.db')}`;

test.each<[string, (operator: Operator) => Promise<string> | string, number, RegExp]>([
  ['what is no address', () => 'a-secret/tokens.db', 2, /^That is not the address of a store/],
  [
    'itself, by another path',
    ({ file }) => `sqlite:${file('folder/../tokens.db')}`,
    2,
    /^That is the store that TOKEN_STORE names/,
  ],
  [
    'a store with a set in use',
    async (operator) => {
      const env = { TOKEN_STORE: toOther(operator) };
      await operator.tokens(['import', operator.service.makeNewSet()], { env });
      return env.TOKEN_STORE;
    },
    1,
    /other\.db has a token set that is in use\. Nothing was changed there/,
  ],
  [
    'another store while it is uncertain',
    async (operator) => {
      await isUncertain(operator);
      return toOther(operator);
    },
    1,
    /^Nothing was moved\. The refresh .* got no clear answer.*Run `tokens recover`/,
  ],
])('a set is not moved to %s', async (_, cause, exit, said) => {
  const operator = await startWithTokens();
  const target = await cause(operator);
  const before = await operator.stored();
  const { code, stderr } = await operator.tokens(['export', target]);
  expect(code).toBe(exit);
  expect(stderr).toMatch(said);
  expect(stderr).not.toContain('a-secret');
  expect(await operator.stored()).toEqual(before);
});

test('without a set nothing is moved, and no store is created', async () => {
  const { tokens, file, storePath } = await startOperator();
  const { code, stderr } = await tokens(['export', `sqlite:${file('other.db')}`]);
  expect(code).toBe(1);
  expect(stderr).toContain(adviceOn('missing', null, 0).step);
  expect([existsSync(storePath), existsSync(file('other.db'))]).toEqual([false, false]);
});

/** The claim of a process that ended before it had an answer. */
function claimed(): NonNullable<State['claim']> {
  return { attempt: 'gone', by: 'other/1', until: Date.now() - 1, unclear: null, over: null };
}

async function jsonOf({ service }: Operator): Promise<string> {
  return (await fetch(service.tokenLink)).text();
}

function fileWith({ file }: Operator, content: string): { source: string } {
  writeFileSync(file('given'), content);
  return { source: file('given') };
}
