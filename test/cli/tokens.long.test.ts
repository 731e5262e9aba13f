/** The `tokens` commands as an operator runs them: each row is one command, what it prints, and what it leaves. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { emergencyIn } from '../../src/tokens/emergency.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { moveTo, successor, type State } from '../../src/tokens/state.ts';
import { startService } from '../service/service.ts';
import { runHere, startHere, type Ended } from '../support/gateway/run-here.ts';
import { storeAccess } from '../support/gateway/stores.ts';
import { cut, json, refusal } from '../service/replies.ts';
import { cutAfterGrant, grantedWithStatus500 } from '../service/token-answers.ts';
import { refusingAddress, startServer } from '../support/listening.ts';
import { DAY } from '../support/random/manual-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { claimOf, pairOf } from '../tokens/values.ts';

const [KEY, OTHER_KEY] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'));
const MADE_UP = JSON.stringify({ access_token: 'made-up', refresh_token: 'made-up-refresh' });
const BROKEN = json({ oops: true }, 500);
const OF_ANOTHER = 'https://other.example.com/a-secret-path';

/** What a command is given beside its name. */
interface Given {
  readonly args?: readonly string[];
  readonly stdin?: readonly string[];
  readonly env?: Record<string, string>;
}

/** An operator with a folder, a service, and the `tokens` commands. */
type Operator = Awaited<ReturnType<typeof startOperator>>;

async function startOperator() {
  const service = await startService({ persons: 3 });
  onTestFinished(() => service[Symbol.asyncDispose]());
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const storePath = folder.file('tokens.db');
  const env = { RECRUITING_URL: service.url, TOKEN_STORE: `sqlite:${storePath}` };

  /** Runs a `tokens` command. */
  const tokens = async (args: readonly string[], { env: more, stdin = [] }: Given = {}) => {
    const said = await runHere(['tokens', ...args], { ...env, ...more }, { stdin });
    // A stack is a fault of the program, and of no use to an operator.
    expect(said.stderr).not.toMatch(/^\s+at /m);
    return said;
  };
  const store = storeAccess(openSqliteStore(storePath, createSealer([])));

  return {
    service,
    env,
    /** The path of a file in the folder. */
    file: folder.file,
    storePath,
    /** The emergency folder: the one of the store. */
    emergency: emergencyIn(folder.path, createSealer([])),
    tokens,
    /** Runs one that must succeed, and returns its output. */
    done: async (...args: string[]) => {
      const { code, stdout, stderr } = await tokens(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return stdout;
    },
    status: async () => reportIn((await tokens(['status'])).stdout),
    stored: store.stored,
    update: store.update,
    alter: (changes: Partial<State>) => store.alter(() => changes),
  };
}

/** The facts and the troubles that `tokens status` prints. */
function reportIn(text: string) {
  const fact = (name: string) => new RegExp(`^  ${name} +(.*)`, 'm').exec(text)?.[1];
  const number = (name: string) => Number.parseInt(fact(name) ?? '0', 10);
  return {
    state: fact('State'),
    generation: number('Generation'),
    lastRefresh: fact('Last refresh'),
    refusals: number('Refusals'),
    refusesEarly: fact('Too early') !== undefined,
    troubles: Array.from(text.matchAll(/^ {2}(\w+): /gm), ([, trouble]) => trouble),
  };
}

/** An operator whose store has a set that was refreshed once: generation 2. */
async function startWithTokens(): Promise<Operator> {
  const operator = await startOperator();
  await operator.done('import', operator.service.tokenLink);
  return operator;
}

type Cause = (operator: Operator) => Given | Promise<Given> | void | Promise<void>;

const ofLink = (link: string, ...more: string[]): Given => ({ args: [link, ...more] });
const ofText = (...stdin: string[]): Given => ({ args: ['-'], stdin });
const jsonOf = async ({ service }: Operator) => (await fetch(service.tokenLink)).text();
const emptyStore = ({ file }: Operator) => ({ TOKEN_STORE: `sqlite:${file('empty.db')}` });
const toOther = ({ file }: Operator) => ({ args: [`sqlite:${file('other.db')}`] });
/** A refresh that got this answer, before the command. */
const refreshed = async (
  { service, tokens }: Operator,
  answer: Parameters<Operator['service']['tokenAnswers']['next']>[0],
) => {
  service.tokenAnswers.next(answer);
  await tokens(['refresh']);
};
const waitingPair = async ({ emergency, stored }: Operator, behind: Partial<State> = {}) => {
  const state = { ...(await stored()), ...behind };
  const next = successor(state, pairOf('waiting'), Date.now());
  emergency.put(next);
  return emergency.pathOf(next);
};

const CAUSES = {
  nothing: () => {},
  // Sets to import
  'a link': ({ service }) => ofLink(service.tokenLink),
  'standard input with the JSON, in pieces': async (operator) => {
    const set = await jsonOf(operator);
    return ofText(set.slice(0, 30), set.slice(30));
  },
  'a link, with TOKEN_STORE_KEY': ({ service }) => ({
    ...ofLink(service.tokenLink),
    env: { TOKEN_STORE_KEY: KEY! },
  }),
  'a link at TOKEN_LINK_ORIGIN': async (operator) => {
    const set = await jsonOf(operator);
    const url = await startServer((_request, response) => response.end(set));
    return { ...ofLink(`${url}/a-secret-path`), env: { TOKEN_LINK_ORIGIN: url } };
  },
  'a spent set': () => ofText(MADE_UP),
  'a set whose exchange cannot be sent': async (operator) => {
    const given = ofText(await jsonOf(operator));
    await operator.service.close();
    return given;
  },
  'a set that gets no clear answer': ({ service }) => {
    service.tokenAnswers.next(BROKEN);
    return ofLink(service.tokenLink);
  },
  'a link, without RECRUITING_URL': ({ service }) => ({
    ...ofLink(service.tokenLink),
    env: { RECRUITING_URL: '' },
  }),
  'a link, into what is no folder': ({ service, file }) => {
    writeFileSync(file('plain'), '');
    return { ...ofLink(service.tokenLink), env: { TOKEN_STORE: `sqlite:${file('plain')}/a.db` } };
  },
  'another link': ({ service }) => ofLink(service.makeNewSet()),
  'another link, with --replace': ({ service }) => ofLink(service.makeNewSet(), '--replace'),
  'a token that was here, with --replace': async ({ stored }) => {
    const { accessToken, refreshToken } = (await stored()).pair;
    const set = { access_token: accessToken, refresh_token: refreshToken };
    return { args: ['-', '--replace'], stdin: [JSON.stringify(set)] };
  },
  'a spent set, with --replace': () => ({ args: ['-', '--replace'], stdin: [MADE_UP] }),
  'a link over plain http': () => ofLink('http://a.test/a-secret-path'),
  'what is neither a link nor JSON': () => ofText('a.test/a-secret-path'),
  'the JSON as an argument': () => ofLink(MADE_UP),
  'a foreign link': () => ofText(OF_ANOTHER),
  // Surroundings
  'no RECRUITING_URL': () => ({ env: { RECRUITING_URL: '' } }),
  'a service that is down': ({ service }) => service.close(),
  // The set
  'a lost set': ({ alter }) => alter({ lost: true, refusals: 4 }),
  'an uncertain set': ({ alter }) => alter({ claim: claimed() }),
  'an uncertain set of a service that refuses early': ({ alter }) =>
    alter({ claim: claimed(), refusesEarly: true }),
  'an uncertain set, the service being down': async ({ alter, service }) => {
    await alter({ claim: claimed() });
    await service.close();
  },
  'an uncertain set after its expiry, and an unclear check': async ({ alter, service }) => {
    await alter({ claim: claimed(), expiresAt: Date.now() });
    service.answerChecks(BROKEN);
  },
  'an import that was refused, and an unclear check': async ({ alter, service }) => {
    await alter({ imported: true, refusals: 1 });
    service.answerChecks(BROKEN);
    service.tokenAnswers.next(json({ error: 'invalid_grant' }, 400));
  },
  'a set that was moved': ({ alter }) => alter({ movedTo: 'sqlite:/elsewhere.db' }),
  'a pause that the service asked for': ({ alter }) => alter({ notBefore: Date.now() + 600_000 }),
  'the exchange of another process': async ({ update }) =>
    void (await update(claimOf('elsewhere', 2))),
  // What the service answers now
  'an answer with status 500': ({ service }) => service.tokenAnswers.next(BROKEN),
  'an answer with status 403': ({ service }) =>
    service.tokenAnswers.next(json({ oops: true }, 403)),
  'an expired access token': ({ service }) => service.expire(),
  'a refused query': ({ service }) => service.answer(refusal('insufficient_permissions', 403)),
  'revoked tokens': ({ service }) => service.revoke(),
  // What a refresh got before
  'an unprocessed refresh': (operator) => refreshed(operator, cut),
  'a lost answer': (operator) => refreshed(operator, cutAfterGrant),
  'a lost answer, and the last refusal': async (operator) => {
    await refreshed(operator, cutAfterGrant);
    operator.service.expire();
    await operator.alter({ refusals: 3 });
  },
  'a refusal of revoked tokens': async ({ service, tokens }) => {
    service.revoke();
    await tokens(['refresh']);
  },
  'an answer with a pair': (operator) => refreshed(operator, grantedWithStatus500),
  'an answer with a pair, and a loss after it': async (operator) => {
    await refreshed(operator, grantedWithStatus500);
    await operator.alter({ claim: null, lost: true, refusals: 4 });
  },
  'an answer with a pair that has expired since': async (operator) => {
    await refreshed(operator, grantedWithStatus500);
    operator.service.expire();
  },
  'an answer with a pair that is not accepted': (operator) =>
    refreshed(operator, json(JSON.parse(MADE_UP), 500)),
  // Emergency files
  'an emergency file': async (operator) => void (await waitingPair(operator)),
  'an emergency file of a pair that is saved': async (operator) =>
    void (await waitingPair(operator, { generation: 1 })),
  'an emergency file of another store': async (operator) =>
    void (await waitingPair(operator, { id: 'another' })),
  'a damaged emergency file': async (operator) =>
    writeFileSync(await waitingPair(operator), 'damaged'),
  'an emergency file, and a store that is gone': async (operator) => {
    await waitingPair(operator);
    rmSync(operator.storePath);
  },
  'an emergency file, and an empty store': async (operator) => {
    await waitingPair(operator);
    return { env: emptyStore(operator) };
  },
  // Stores that cannot be used
  'a store with another key': async (operator) => {
    const env = { TOKEN_STORE: `sqlite:${operator.file('sealed.db')}` };
    const args = ['import', operator.service.makeNewSet()];
    await operator.tokens(args, { env: { ...env, TOKEN_STORE_KEY: KEY! } });
    return { env: { ...env, TOKEN_STORE_KEY: OTHER_KEY! } };
  },
  'a store of another service': () => ({ env: { RECRUITING_URL: 'https://other.example.com' } }),
  'a store that is a text': ({ file }) => {
    writeFileSync(file('notes.txt'), 'not a database, but long enough to be one\n'.repeat(40));
    return { env: { TOKEN_STORE: `sqlite:${file('notes.txt')}` } };
  },
  'an emergency folder that is a file': ({ file }) => {
    writeFileSync(file('plain'), '');
    return { env: { TOKEN_RESCUE_DIR: file('plain') } };
  },
  'a database server that is down, and a pair that waits': async (operator) => {
    await waitingPair(operator);
    const { host } = new URL(await refusingAddress());
    const TOKEN_STORE = `postgres://store@${host}/tokens`;
    return { env: { TOKEN_STORE, TOKEN_RESCUE_DIR: operator.file('.') } };
  },
  // Targets of an export
  'a move': async (operator) => void (await operator.done('export', ...toOther(operator).args)),
  'what is no address': () => ofLink('a-secret/tokens.db'),
  'the store itself, by another path': ({ file }) =>
    ofLink(`sqlite:${file('folder/../tokens.db')}`),
  'a store with a set in use': async (operator) => {
    const [TOKEN_STORE] = toOther(operator).args;
    const env = { TOKEN_STORE: TOKEN_STORE! };
    await operator.tokens(['import', operator.service.makeNewSet()], { env });
    return toOther(operator);
  },
  'another store, of an uncertain set': async (operator) => {
    await operator.alter({ claim: claimed() });
    return toOther(operator);
  },
  'another store, of a move that was interrupted': async (operator) => {
    const target = toOther(operator);
    await operator.update(moveTo(target.args[0]!, 'killed/1'));
    return target;
  },
} satisfies Record<string, Cause>;

/** What a command leaves. */
interface Left {
  /** Default: 1 */
  readonly code?: number;
  /** The requests to the token endpoint so far. Default: 1, of the import that the store has its tokens from. */
  readonly sent?: number;
  /** What `tokens status` reports. */
  readonly status?: object;
  /** In the folder of the store. */
  readonly files?: readonly string[];
}

/** Of a set that is in use as if nothing had been refused. */
const AS_BEFORE = { state: 'healthy', refusals: 0, refusesEarly: false };

const ASKS = { state: 'needs attention', generation: 2 };

type Row = [command: string, when: keyof typeof CAUSES, prints: RegExp, left?: Left];

async function outcomeOf(operator: Operator, [command, when]: Row) {
  const cause: Cause = CAUSES[when];
  const { args = [], stdin = [], env = {} } = (await cause(operator)) ?? {};
  const bytes = () => existsSync(operator.storePath) && readFileSync(operator.storePath);
  const before = bytes();
  const all = [...command.split(' '), ...args];
  const { code, stdout, stderr } = await operator.tokens(all, { stdin, env });
  if (/^(status|check)/.test(command)) expect(bytes()).toEqual(before);
  const text = stdout + stderr;
  expect(text).not.toMatch(/made-up|a-secret/);
  if (code === 0) expect(stderr).toBe('');
  const sent = operator.service.exchanges.length;
  const files = readdirSync(operator.file('.'));
  // Nothing of a store that cannot be used.
  const { stdout: report } = await operator.tokens(['status'], { env });
  const status = report === '' ? undefined : reportIn(report);
  return { code, text, sent, status, files };
}

function expectedOf([, , prints, left]: Row) {
  return { code: 1, text: expect.stringMatching(prints), sent: 1, ...left };
}

const ok = (sent: number, generation: number, more = {}): Left => ({
  code: 0,
  sent,
  status: { state: 'healthy', generation, ...more },
});
const fails = (sent: number, status: object = {}): Left => ({ sent, status });
const lost = (sent: number): Left => fails(sent, { state: 'LOST' });
const kept = (code: number, sent = 1): Left => ({
  code,
  sent,
  status: { state: 'healthy', generation: 2 },
});
const hasNone = (state: string): Left => ({ code: 2, status: { state } });
const createsNothing: Left = { sent: 0, status: { state: 'MISSING' }, files: [] };
const trouble = (name: string, sent = 1): Left =>
  fails(sent, { state: 'needs attention', troubles: [name] });

test.each<Row>([
  ['status', 'nothing', /MISSING\n[^]*missing: .*import/, { ...createsNothing, code: 2 }],
  ['refresh', 'nothing', /no tokens in .*tokens\.db/, createsNothing],
  ['recover', 'nothing', /no tokens in .*tokens\.db/, createsNothing],
  ['export sqlite:/dev/null/other.db', 'nothing', /tokens import/, createsNothing],
  ['check', 'nothing', /tokens import/, createsNothing],
  [
    'import',
    'a link',
    /^Imported the token set of 127.*\n.*not encrypted \(TOKEN_STORE_KEY is not set\)\.\nRefreshed/,
    ok(1, 2),
  ],
  ['import', 'standard input with the JSON, in pieces', /120 days\. The link no longer/, ok(1, 2)],
  ['import', 'a link, with TOKEN_STORE_KEY', /encrypted with TOKEN_STORE_KEY\./, ok(1, 2)],
  ['import', 'a link at TOKEN_LINK_ORIGIN', /generation 2 is in use/, ok(1, 2)],
  ['import', 'a spent set', /was withdrawn: .*, is in use again\. For an/, lost(2)],
  [
    'import',
    'a set whose exchange cannot be sent',
    /not refreshed yet: .*ECONNREFUSED.*run `tokens refresh`/,
    fails(0, { lastRefresh: 'never' }),
  ],
  ['import', 'a set that gets no clear answer', /Run `tokens recover`/, trouble('uncertain')],
  ['import', 'a link, without RECRUITING_URL', /RECRUITING_URL=https/, { code: 2, sent: 0 }],
  ['import', 'a link, into what is no folder', /cannot be /, { sent: 0 }],
])('without tokens, tokens %s: %s', async (...row) => {
  expect(await outcomeOf(await startOperator(), row)).toMatchObject(expectedOf(row));
});

const IN_FULL =
  /State +healthy\n +Store +sqlite:\/.*\n[^]*Generation +2 \(refresh token [0-9a-f]{12}\)\n +Access token +(23 h 59 min|1 day).* left\n +Refresh token +(119 days 23 h|120 days).* left\n +Last refresh +20\d\d-[^]*`tokens check` shows[^]*Recent events\n.*generation 2: saved, by .*\/\d+\n.*generation 1: imp/;
const HAS_NO_FILE = /^(?![^]*unsaved-)/;

test.each<Row>([
  ['import', 'another link', /\(generation 2\) that is in use\. .* add --replace\./, kept(1)],
  ['import', 'another link, with --replace', /generation 4 is in use/, ok(2, 4)],
  ['import', 'a token that was here, with --replace', /already seen .*new token/, kept(1)],
  ['import', 'a spent set, with --replace', /withdrawn: .*For another one/, fails(3, AS_BEFORE)],
  ['import', 'a link over plain http', /https:\/\//, kept(2)],
  ['import', 'the JSON as an argument', /is no link.*`tokens import - < file`/, kept(2)],
  ['import', 'what is neither a link nor JSON', /not a token set.*begins with https/, kept(1)],
  ['import', 'a foreign link', /RECRUITING_URL is .*TOKEN_LINK_ORIGIN=/s, kept(2)],
  ['status', 'nothing', IN_FULL, ok(1, 2)],
  ['status', 'no RECRUITING_URL', /healthy/, ok(1, 2)],
  ['status', 'a lost set', /State +LOST\n[^]*Refresh token +has ended[^]*lost: /, hasNone('LOST')],
  ['status', 'a lost answer', /uncertain: .*Run `tokens re/, trouble('uncertain', 2)],
  ['status', 'an emergency file', /Emergency file +\/.*unsaved-.*-3\.json/, trouble('unsaved')],
  ['status', 'a damaged emergency file', /file +\/.*unsaved-.* is damaged/, trouble('unsaved')],
  ['status', 'an emergency file of a pair that is saved', HAS_NO_FILE, ok(1, 2)],
  ['status', 'an emergency file of another store', HAS_NO_FILE, ok(1, 2)],
  ['status', 'the exchange of another process', /Under way +host\/1 began/, ok(1, 2)],
  ['status', 'a refusal of revoked tokens', /Refusals +1: too early, or/, fails(2, ASKS)],
  [
    'status',
    'a move',
    /MOVED to another store\n[^]*\(sqlite:\/.*other\.db\)/,
    hasNone('MOVED to another store'),
  ],
  ['status', 'an emergency file, and an empty store', /\n {2}unsaved: /, trouble('unsaved')],
  ['check', 'nothing', /accepts the access token, and answers a query\.$/m, ok(1, 2)],
  ['check', 'an expired access token', /has expired\. .*otherwise run `tokens refresh`/],
  ['check', 'a refused query', /refuses a query \(insufficient_permissions\).*demoted or/],
  ['check', 'a service that is down', /no clear answer .*\(ECONNREFUSED\).*HTTPS_PROXY/],
  ['refresh', 'no RECRUITING_URL', /^Refreshed: generation 3 .* for 120 days\.\n$/, ok(2, 3)],
  ['refresh', 'an uncertain set', /Nothing was sent\. .*`tokens recover`/],
  ['refresh', 'a pause that the service asked for', /Nothing was sent\. .*a pause: .* (10|9) min/],
  ['refresh', 'a damaged emergency file', /unsaved-.* cannot be read: it is damaged\. Move it/],
  ['refresh', 'the exchange of another process', /host\/1 began .*its claim ends at 20/],
  ['refresh', 'an answer with status 500', /Run `tokens recover`/, trouble('uncertain', 2)],
  ['refresh', 'an answer with status 403', /status 403.*RECRUITING_AGENT.*proxy/, fails(2)],
  ['refresh', 'revoked tokens', /refuses the refresh token.*`tokens recover` does so/, fails(2)],
  ['recover', 'nothing', /^Nothing is left to recover: generation 2/, ok(1, 2)],
  ['recover', 'an unprocessed refresh', /no clear answer[^]*nothing was lost/, ok(3, 3)],
  [
    'recover',
    'a lost answer',
    /too early, or as spent\..*`tokens recover`/,
    fails(3, { refusals: 1 }),
  ],
  [
    'recover',
    'a lost answer, and the last refusal',
    /once more …\nThe refresh token does not.*tokens import/,
    lost(3),
  ],
  [
    'recover',
    'a refusal of revoked tokens',
    /refused the refresh token: too early[^]*--replace/,
    fails(3, { refusals: 2 }),
  ],
  ['recover', 'a lost set', /not work any more.*\n.*once more …\n.*nothing was lost/, ok(2, 3)],
  ['recover', 'an answer with a pair', /answer .* is kept, and .* nothing was lost/, ok(2, 3)],
  [
    'recover',
    'an answer with a pair, and a loss after it',
    /nothing was lost/,
    ok(2, 3, AS_BEFORE),
  ],
  ['recover', 'an answer with a pair that has expired since', /nothing was lost/, ok(2, 3)],
  ['recover', 'an answer with a pair that is not accepted', /holds no pair that/, ok(3, 3)],
  ['recover', 'an emergency file', /^Nothing is left to recover: generation 3/, ok(1, 3)],
  ['recover', 'an emergency file, and a store that is gone', /generation 3/, ok(1, 3)],
  ['recover', 'an uncertain set of a service that refuses early', /or as spent\./, { code: 0 }],
  ['recover', 'an uncertain set, the service being down', /once more …\n.*\(ECONNREFUSED/],
  ['recover', 'an uncertain set after its expiry, and an unclear check', /was lost/, ok(2, 3)],
  [
    'recover',
    'an import that was refused, and an unclear check',
    /once more …\n.*as too/,
    fails(2),
  ],
  ['recover', 'the exchange of another process', /sent\. host\/1 began.*sent once more/],
  ['recover', 'a set that was moved', /moved to another store \(sqlite:\/elsewhere\.db\)/],
  ['export', 'what is no address', /^That is not the address of a store/, kept(2)],
  ['export', 'the store itself, by another path', /tokens\.db has a token set that is/, kept(1)],
  ['export', 'a store with a set in use', /other\.db has a token set that is in use/, kept(1, 2)],
  ['export', 'another store, of an uncertain set', /^Nothing was moved\. .*`tokens recover`/],
  [
    'export',
    'another store, of a move that was interrupted',
    /Set TOKEN_STORE=sqlite/,
    { code: 0 },
  ],
])('tokens %s: %s', async (...row) => {
  expect(await outcomeOf(await startWithTokens(), row)).toMatchObject(expectedOf(row));
});

/** What every command says of a store that it cannot use, its exit code, and whether a gateway waits for it. */
const UNUSABLE: [keyof typeof CAUSES, RegExp, code?: number, waits?: boolean][] = [
  ['a store with another key', /a key that is not among .*left as it is\. Set TOKEN_STORE_KEY/],
  ['a store of another service', /belongs to http.*, and this process to https.*not changed/],
  ['a store that is a text', /notes\.txt\): file is not a database\. .*Check its address/, 1],
  ['an emergency folder that is a file', /\/.*plain, cannot be read \(ENOTDIR\)/, 1, true],
  ['a database server that is down, and a pair that waits', /ECONNREFUSED.*keep it/, 1, true],
];

test.each(UNUSABLE)(
  'a start and every command report %s, and leave it as it is',
  async (cause, says, code = 2, waits = false) => {
    const operator = await startWithTokens();
    const { env = {} } = (await CAUSES[cause](operator)) as Given;
    const path = /^sqlite:(.*)/.exec(env['TOKEN_STORE'] ?? operator.env.TOKEN_STORE)?.[1];
    const before = path && readFileSync(path);
    const expectSaid = (exit: Ended, what: RegExp) =>
      expect(exit).toMatchObject({ code, stderr: expect.stringMatching(what) });
    for (const command of ['status', 'check', 'refresh', 'recover']) {
      const exit = await operator.tokens([command], { env });
      expectSaid(exit, says);
      expect(exit.stdout).toBe('');
    }
    const exit = await operator.tokens(['import', operator.service.tokenLink], { env });
    expectSaid(exit, says);
    const settings = { ...operator.env, ...env, ALLOW_ANONYMOUS: 'true' };
    if (!waits) expectSaid(await runHere([], settings), says);
    expect(path && readFileSync(path)).toEqual(before);
    expect(operator.service.exchanges.length).toBeLessThan(3);
  },
);

test('a set that cannot be given away is in no other store', async () => {
  const operator = await startWithTokens();
  const { args } = (await CAUSES['another store, of an uncertain set'](operator)) as Given;
  await operator.tokens(['export', ...args!]);
  const { stdout } = await operator.tokens(['status'], { env: { TOKEN_STORE: args![0]! } });
  expect(stdout).toContain('MISSING');
});

test('after a move the target has the set, the source names the target, and a repeated move changes nothing', async () => {
  const operator = await startWithTokens();
  const { tokens, done, file } = operator;
  const target = toOther(operator).args[0]!;
  await done('export', target);
  expect((await tokens(['refresh'])).stderr).toContain(`moved to another store (${target})`);
  const there = { env: { TOKEN_STORE: target } };
  expect((await tokens(['refresh'], there)).stdout).toContain('Refreshed: generation 4 is in use');
  await done('export', target);
  const { stdout } = await tokens(['status'], there);
  expect(reportIn(stdout)).toMatchObject({ state: 'healthy', generation: 4 });
  expect((await tokens(['export', `sqlite:${file('third.db')}`])).stderr).toContain(`(${target})`);
});

test('where the service refuses early refreshes, an import is complete, and its exchange follows after the expiry', async () => {
  const operator = await startOperator();
  const clock = { ahead: 0 };
  const now = () => Date.now() + clock.ahead;
  const sandbox = await startService({ now });
  const early = { error: 'invalid_grant', error_description: 'token not expired' };
  sandbox.tokenAnswers.next(json(early, 400));
  onTestFinished(() => sandbox.close());
  const commands = (...args: string[]) =>
    operator.tokens(args, { env: { RECRUITING_URL: sandbox.url } });
  const imported = await commands('import', sandbox.tokenLink);
  expect(imported).toMatchObject({ code: 0, stderr: '' });
  expect(imported.stdout).toMatch(
    /It was not refreshed yet\. .*as too early, or as spent\. .*link works/,
  );
  expect((await commands('refresh')).stderr).toMatch(/^Nothing was sent\. .*due in 1 day/);
  clock.ahead = 2 * DAY;
  await operator.alter({ expiresAt: Date.now() - 5_000, refusedAt: 0 });
  expect((await commands('refresh')).stdout).toContain('generation 2 is in use');
  // From now on it is known.
  expect((await commands('refresh')).stderr).toMatch(
    /^Nothing was sent\. .*refuses earlier refreshes.*due in (23 h 59 min|1 day)/,
  );
  expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(['not-processed', 'answered']);
});

test('an import that waits for standard input can be stopped, and nothing is changed', async () => {
  const { env, status } = await startOperator();
  const stdin = new PassThrough();
  const command = startHere(['tokens', 'import', '-'], env, { stdin });
  await vi.waitFor(() => expect(stdin.listenerCount('readable')).toBe(1));
  expect(await command.stop()).toMatchObject({
    code: 1,
    stderr: 'The operation was aborted\n',
  });
  expect(await status()).toMatchObject({ state: 'MISSING' });
});

test('a command that is stopped before it sends the refresh token does not send it', async () => {
  const { env, service } = await startOperator();
  const set = await (await fetch(service.tokenLink)).text();
  const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const url = await startServer((_request, response) => {
    asked.resolve();
    void released.promise.then(() => response.end(set));
  });
  const given = { ...env, TOKEN_LINK_ORIGIN: url };
  const command = startHere(['tokens', 'import', `${url}/a-secret-path`], given);
  await asked.promise;
  const stopped = command.stop();
  released.resolve();
  expect(await stopped).toMatchObject({ code: 1, stderr: expect.stringContaining('too late') });
  expect(service.exchanges).toEqual([]);
});

test('a command that is stopped during an exchange ends once the pair is saved', async () => {
  const { env, service, status } = await startWithTokens();
  const held = service.tokenAnswers.hold('after');
  const command = startHere(['tokens', 'refresh'], env);
  await held.arrived;
  const stopped = command.stop();
  held.release();
  expect(await stopped).toMatchObject({ code: 0, stderr: '' });
  expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
});

test('a pair that cannot be saved waits in an emergency file, and recover saves it', async () => {
  const { service, storePath, file, emergency, done, tokens } = await startWithTokens();
  copyFileSync(storePath, file('copy'));
  const held = service.tokenAnswers.hold('after');
  const refreshing = tokens(['refresh']);
  await held.arrived;
  // Not a file any more, so it can be neither opened nor made again.
  for (const end of ['', '-journal']) rmSync(storePath + end, { force: true });
  mkdirSync(storePath);
  held.release();
  const { code, stderr } = await refreshing;
  expect(code).toBe(1);
  const [waiting] = emergency.read();
  expect(stderr).toMatch(
    /could not be saved .*tried again .* repair the disk .*do not kill this command/,
  );
  expect(stderr).toContain(`in an emergency file (${waiting!.path}): do not remove it`);
  rmdirSync(storePath);
  copyFileSync(file('copy'), storePath);
  expect(await done('recover')).toContain('generation 3 is in use');
  expect(await done('refresh')).toContain('generation 4 is in use');
});

test('a command whose pair is in no file either waits until it can be saved', async () => {
  const { service, env, storePath, file, status } = await startWithTokens();
  const rescue = file('rescue');
  const held = service.tokenAnswers.hold('after');
  const command = startHere(['tokens', 'refresh'], { ...env, TOKEN_RESCUE_DIR: rescue });
  await held.arrived;
  writeFileSync(rescue, 'no folder');
  rmSync(storePath);
  mkdirSync(storePath);
  held.release();
  await command.printed(/do not kill this command/);
  rmSync(rescue);
  rmdirSync(storePath);
  expect(await command.ended).toMatchObject({ code: 0 });
  expect(await status()).toMatchObject({ state: 'healthy', generation: 3 });
});

/** The claim of a process that ended before it had an answer. */
function claimed(): NonNullable<State['claim']> {
  return { attempt: 'gone', by: 'other/1', until: Date.now() - 1, isUnclear: false, over: null };
}
