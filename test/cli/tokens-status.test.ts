/** `tokens status` and `tokens check`: the seven troubles, and what each says to the operator. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { adviceOn, lineOn } from '../../src/setup/wording.ts';
import type { Trouble } from '../../src/tokens/health.ts';
import { successor } from '../../src/tokens/state.ts';
import { pairOf } from '../tokens/values.ts';
import { refusal } from '../support/imitations/scripted.ts';
import { refusingAddress } from '../support/test-server.ts';
import { beginExchange, startOperator, startWithTokens, type Operator } from './tokens-operator.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const OTHER_KEY = Buffer.alloc(32, 2).toString('base64');

test('of healthy tokens status prints generation, lives, the last refresh and events, with exit code 0', async () => {
  const { tokens, service, storePath } = await startWithTokens();
  const { code, stdout, stderr } = await tokens(['status']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/State +healthy\n/);
  expect(stdout).toContain(`sqlite:${storePath}\n`);
  expect(stdout).toContain(` ${new URL(service.url).host}\n`);
  expect(stdout).toMatch(/Token set +Sandbox\n/);
  expect(stdout).toMatch(/Generation +2 \(refresh token [0-9a-f]{12}\)/);
  expect(stdout).toMatch(/Access token +23 h 59 min left\n +Refresh token +119 days 23 h left/);
  expect(stdout).toMatch(/Last refresh +20\d\d-\d\d-\d\dT/);
  expect(stdout).toContain('`tokens check` shows whether the service accepts');
  expect(stdout).toMatch(/Recent events\n.*generation 2: saved, by test\/\d+\n.*generation 1: imp/);
});

test('--json prints one line: the state, the troubles and the facts', async () => {
  const { tokens, service, storePath } = await startWithTokens();
  const { stdout } = await tokens(['status', '--json']);
  expect(stdout.trim()).not.toContain('\n');
  expect(JSON.parse(stdout)).toEqual({
    state: 'healthy',
    store: `sqlite:${storePath}`,
    troubles: [],
    emergencyFiles: [],
    service: new URL(service.url).host,
    name: 'Sandbox',
    movedTo: null,
    generation: 2,
    fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/),
    accessTokenSecondsLeft: expect.any(Number),
    refreshTokenSecondsLeft: expect.any(Number),
    lastRefresh: expect.stringMatching(/^20.*Z$/),
    refusesEarly: false,
    refusals: 0,
    exchangeUnderWay: false,
    unclear: null,
    events: [
      expect.objectContaining({ what: 'saved', generation: 2 }),
      expect.objectContaining({ what: 'imported', generation: 1 }),
    ],
  });
});

const waitingPair = async ({ emergency, stored }: Operator) =>
  emergency.put(successor(await stored(), pairOf('waiting')), Date.now());

/** A set whose tokens both live for three days. */
const ofThreeDays = (age: number) => (state: Awaited<ReturnType<Operator['stored']>>) => {
  const savedAt = Date.now() - age;
  const pair = { ...state.pair, expiresIn: 3 * 86_400, refreshTokenExpiresIn: 3 * 86_400 };
  return { pair, savedAt, expiresAt: savedAt + 3 * DAY };
};

const hasNoAnswer = async ({ service, tokens }: Operator) => {
  service.tokenAnswers.next('drop-after');
  await tokens(['refresh']);
};

const isClaimedForLong = async (operator: Operator) => {
  await beginExchange(operator);
  await operator.alter({ expiresAt: Date.now() - 31_000 });
};

const isOld = ({ alter }: Operator) =>
  alter({ savedAt: Date.now() - 17 * HOUR, expiresAt: Date.now() + 7 * HOUR });

test.each<[Trouble, (operator: Operator) => Promise<unknown>, RegExp]>([
  ['lost', ({ alter }) => alter({ lost: true }), /State +LOST\n/],
  ['uncertain', hasNoAnswer, /Unclear +the last refresh, by test\/\d+: \w+\n/],
  ['unsaved', waitingPair, /Emergency file +\/.*unsaved-.*-3\.json\n/],
  ['late', isOld, /Access token +6 h 59 min left/],
  ['late', isClaimedForLong, /other\/1 began.*Callers get UPSTREAM_UNREACHABLE\. .*its claim ends/],
  [
    'ending',
    ({ alter }) => alter(ofThreeDays(2 * DAY + 60_000)),
    /Refresh token +23 h 58 min left/,
  ],
])('the trouble `%s` has its exit code and its advice: %#', async (trouble, cause, line) => {
  const operator = await startWithTokens();
  await cause(operator);
  const { code, stdout } = await operator.tokens(['status']);
  const isLost = trouble === 'lost';
  expect(code).toBe(isLost ? 2 : 1);
  expect(stdout).toMatch(line);
  const state = await operator.stored();
  expect(stdout).toContain(`\n  ${trouble}: ${lineOn(trouble, state, Date.now())}\n`);
  expect(await operator.status()).toMatchObject({
    state: isLost ? 'lost' : 'attention',
    troubles: [trouble],
  });
});

test('of a store that does not exist status says that it is missing, and creates nothing', async () => {
  const { tokens, file, storePath, env } = await startOperator();
  const { code, stdout } = await tokens(['status']);
  expect(code).toBe(2);
  expect(stdout).toMatch(/State +MISSING\n/);
  expect(stdout).toContain(`missing: ${lineOn('missing', null, 0)}\n`);
  expect(readdirSync(file('.'))).toEqual([]);
  const TOKEN_STORE = `sqlite:${file('folder/that/is/missing/tokens.db')}`;
  expect((await tokens(['status'], { env: { ...env, TOKEN_STORE } })).code).toBe(2);
  expect((await tokens(['refresh'])).stderr).toContain(`${storePath}, which does not exist`);
  expect(readdirSync(file('.'))).toEqual([]);
});

test('a set that was moved is missing here, and the advice names the other store', async () => {
  const { tokens, file, status, done } = await startWithTokens();
  await done('export', `sqlite:${file('other.db')}`);
  const { code, stdout } = await tokens(['status']);
  expect(code).toBe(2);
  expect(stdout).toMatch(/State +MOVED to another store\n/);
  expect(stdout).toContain(
    `missing: The token set was moved to another store (sqlite:${file('other.db')})`,
  );
  expect(await status()).toMatchObject({ state: 'moved', troubles: ['missing'] });
});

test('a pair in an emergency file of an empty store is unsaved, not missing', async () => {
  const operator = await startWithTokens();
  await waitingPair(operator);
  const env = { TOKEN_STORE: `sqlite:${operator.file('empty.db')}` };
  const { code, stdout } = await operator.tokens(['status'], { env });
  expect(code).toBe(1);
  expect(stdout).toContain(`unsaved: ${lineOn('unsaved', null, 0)}`);
  expect(existsSync(operator.file('empty.db'))).toBe(false);
  const other = { ...env, RECRUITING_URL: 'https://other.example.com' };
  expect((await operator.tokens(['status'], { env: other })).code).toBe(2);
});

test('an exchange under way is shown, and is no trouble', async () => {
  const operator = await startWithTokens();
  await beginExchange(operator);
  const { code, stdout } = await operator.tokens(['status']);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /Under way +other\/1 began a refresh at 20.*Z, and has not saved its outcome/,
  );
});

test('status sends nothing, needs no RECRUITING_URL, and changes not a byte', async () => {
  const { tokens, service, storePath, file } = await startWithTokens();
  const before = { bytes: readFileSync(storePath), files: readdirSync(file('.')) };
  await service.down();
  expect((await tokens(['status'], { env: { RECRUITING_URL: '' } })).code).toBe(0);
  expect({ bytes: readFileSync(storePath), files: readdirSync(file('.')) }).toEqual(before);
  await service.up();
});

test.each<[string, (operator: Operator) => Promise<Record<string, string>>, number, RegExp]>([
  [
    'is encrypted with another key',
    async ({ tokens, service, file }) => {
      const env = {
        TOKEN_STORE: `sqlite:${file('sealed.db')}`,
        TOKEN_STORE_KEY: Buffer.alloc(32, 1).toString('base64'),
      };
      expect((await tokens(['import', service.makeNewSet()], { env })).code).toBe(0);
      return { ...env, TOKEN_STORE_KEY: OTHER_KEY };
    },
    2,
    /encrypted with the key [0-9a-f]{8}, which is not among the keys that are set\. It was left as it is\. Set TOKEN_STORE_KEY as it is/,
  ],
  [
    'belongs to another service',
    async () => ({ RECRUITING_URL: 'https://other.example.com' }),
    2,
    /belongs to http.*, but RECRUITING_URL is https:\/\/other\.example\.com.*was not changed/,
  ],
  [
    'is not a token store',
    async ({ file }) => {
      writeFileSync(
        file('notes.txt'),
        'not a database, but long enough to be taken for one\n'.repeat(40),
      );
      return { TOKEN_STORE: `sqlite:${file('notes.txt')}` };
    },
    1,
    /cannot be used \(sqlite:\/.*notes\.txt\): file is not a database\. It was left.*Check that TOKEN_STORE names the token store\. If it does, move the file away/,
  ],
  [
    'has a folder of emergency files that cannot be read',
    async ({ file, storePath }) => {
      writeFileSync(file('plain'), '');
      return { TOKEN_STORE: `sqlite:${storePath}`, TOKEN_RESCUE_DIR: file('plain') };
    },
    1,
    /the folder of its emergency files, \/.*plain, cannot be read \(ENOTDIR\).*the user of the gateway/,
  ],
])(
  'a store that %s is left as it is by every command, and the error says what helps',
  async (_, cause, exit, said) => {
    const operator = await startWithTokens();
    const env = await cause(operator);
    const path = env['TOKEN_STORE']?.replace('sqlite:', '') ?? operator.storePath;
    const before = readFileSync(path);
    const exchanges = operator.service.exchanges.length;
    const link = operator.service.makeNewSet();
    for (const args of [
      ['status'],
      ['check'],
      ['refresh'],
      ['recover'],
      ['import', link, '--replace'],
    ]) {
      const { code, stderr } = await operator.tokens(args, { env });
      expect({ args, code }).toEqual({ args, code: exit });
      expect(stderr).toMatch(env['RECRUITING_URL'] && args[0] === 'import' ? /is at http/ : said);
    }
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(operator.service.exchanges).toHaveLength(exchanges);
  },
);

test('of a database server that is down every command says what helps, what callers get, and which pair waits', async () => {
  const operator = await startWithTokens();
  await waitingPair(operator);
  const TOKEN_STORE = `postgres://store@${new URL(await refusingAddress()).host}/tokens`;
  const env = { TOKEN_STORE, TOKEN_RESCUE_DIR: operator.file('.') };
  for (const args of [['status'], ['check'], ['refresh'], ['recover']]) {
    const { code, stderr } = await operator.tokens(args, { env });
    expect({ args, code }).toEqual({ args, code: 1 });
    expect(stderr).toMatch(
      /nothing listens.*Start the database server.*callers get errors once.*A pair waits in an emergency file \(\/.*unsaved-.*keep it/,
    );
  }
});

test.each([
  ['status', { TOKEN_STORE: 'sqlite:/dev/null/tokens.db' }, 1, 'unreadable'],
  ['check', { TOKEN_STORE: 'sqlite:/dev/null/tokens.db' }, 1, 'unreadable'],
  ['check', {}, 1, 'missing'],
])(
  '%s --json of a store that cannot be used prints JSON: %o',
  async (command, env, exit, state) => {
    const { tokens } = await startOperator();
    const { code, stdout, stderr } = await tokens([command, '--json'], { env });
    expect(code).toBe(exit);
    expect(JSON.parse(stdout)).toEqual({ state, error: stderr.trim() });
  },
);

test.each<
  [
    string,
    (operator: Operator) => unknown,
    RegExp | string,
    { kind: string; detail?: string; asked?: string },
  ]
>([
  ['works', () => {}, /accepts the access token, and answers a query\.$/m, { kind: 'works' }],
  [
    'has expired',
    ({ service }) => service.expire(),
    /has expired\. A running gateway refreshes it by itself; otherwise run `tokens refresh`/,
    { kind: 'refused', detail: 'token_expired' },
  ],
  [
    'is refused',
    ({ service }) => service.answerChecks(refusal('user_blocked', 403)),
    `refuses the access token (user_blocked). ${lineOn('unauthorized', null, 0)}`,
    { kind: 'refused', detail: 'user_blocked' },
  ],
  [
    'is accepted, but whose query is refused: its account has lost its rights',
    ({ service }) => service.answer(refusal('insufficient_permissions', 403)),
    /refuses a query \(insufficient_permissions\).*UPSTREAM_UNAUTHORIZED\..*demoted or blocked/,
    { kind: 'refused', asked: 'a query' },
  ],
  [
    'cannot be asked about',
    ({ service }) => service.down(),
    /gave no clear answer about the access token \(ECONNREFUSED\).*HTTPS_PROXY/,
    { kind: 'unclear' },
  ],
])(
  'check prints what the service answers about an access token that %s',
  async (_, cause, said, report) => {
    const operator = await startWithTokens();
    await cause(operator);
    const plain = await operator.tokens(['check']);
    const json = await operator.tokens(['check', '--json']);
    const exit = report.kind === 'works' ? 0 : 1;
    expect([plain.code, json.code]).toEqual([exit, exit]);
    expect(plain.stdout).toEqual(
      typeof said === 'string' ? expect.stringContaining(said) : expect.stringMatching(said),
    );
    expect(JSON.parse(json.stdout)).toMatchObject({ generation: 2, ...report });
    expect(operator.service.exchanges).toHaveLength(1);
  },
);

test('check without tokens says what is missing', async () => {
  const { tokens } = await startOperator();
  expect(await tokens(['check'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(adviceOn('missing', null, 0).step),
  });
});
