import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startService } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { startProgram } from '../support/processes/process.ts';
import { startServer } from '../support/test-server.ts';
import { PERSON, reply } from '../support/tokens/tokens.ts';
import { startGatewayOf } from './tokens-gateway.ts';
import { startOperator, startWithTokens, type Operator } from './tokens-operator.ts';

const SPENT = reply(400, { error: 'invalid_grant' });

test.each<[string, (operator: Operator) => Promise<{ source: string; stdin?: string[] }>]>([
  ['its link', async ({ service }) => ({ source: service.tokenLink })],
  ['a file with the JSON', async (operator) => fileWith(operator, await jsonOf(operator))],
  [
    'a file with the link, and a line break',
    async (operator) => fileWith(operator, `${operator.service.tokenLink}\r\n`),
  ],
  [
    'standard input with the JSON, in pieces',
    async (operator) => ({ source: '-', stdin: pieces(await jsonOf(operator)) }),
  ],
  [
    'standard input with the link',
    async ({ service }) => ({ source: '-', stdin: [`  ${service.tokenLink}\n`] }),
  ],
])('a set is imported from %s and refreshed at once, which ends its link', async (_, sourceOf) => {
  const operator = await startOperator();
  const { service } = operator;
  const link = service.tokenLink;
  const { source, stdin = [] } = await sourceOf(operator);
  const { code, stdout, stderr } = await operator.tokens(['import', source], { stdin });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`Imported the token set "Sandbox" of ${new URL(service.url).host}`);
  expect(stdout).toContain(
    'Refreshed at once: generation 2 is in use, and the link no longer works',
  );
  expect(stdout).toMatch(/lives for 1 day, the refresh token for 120 days/);
  expect((await fetch(link)).status).toBe(404);
  expect(service.exchanges).toMatchObject([{ outcome: 'answered' }]);
  expect(await operator.status()).toMatchObject({ state: 'healthy', generation: 2 });
});

test('if the store is gone and its pair is in a rescue file, the set is in use and replaced only with --replace', async () => {
  const { tokens, service, storePath, status } = await startWithTokens();
  for (const end of ['', '-journal', '-lock']) rmSync(storePath + end, { force: true });
  const link = service.makeNewSet();
  const refused = await tokens(['import', link]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/a new one was made.*\n.*\n.*that is in use/);
  expect(await status()).toMatchObject({ generation: 2, state: 'healthy' });
  expect((await tokens(['import', link, '--replace'])).code).toBe(0);
  expect(await status()).toMatchObject({ generation: 4, state: 'healthy' });
});

test('a set in use is replaced only with --replace; without it the link is not even read', async () => {
  const operator = await startWithTokens();
  const before = operator.service.sandbox.stats.requests.tokenLink;
  const { code, stderr } = await operator.tokens(['import', operator.service.makeNewSet()]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/holds a token set "Sandbox" of .*\(generation 2\) that is in use/);
  expect(stderr).toContain('Nothing was changed. To replace it, add --replace.');
  expect(operator.service.sandbox.stats.requests.tokenLink).toBe(before);
  expect(await operator.status()).toMatchObject({ generation: 2 });
});

test('the error of an import over an uncertain set names `tokens recover`', async () => {
  const operator = await startWithTokens();
  operator.service.tokenAnswers.next('drop-before');
  await operator.tokens(['refresh']);
  const { stderr } = await operator.tokens(['import', operator.service.tokenLink]);
  expect(stderr).toContain('is uncertain: run `tokens recover` first');
});

test('--replace replaces an uncertain set', async () => {
  const operator = await startWithTokens();
  const said = await operator.done('import', operator.service.makeNewSet(), '--replace');
  expect(said).toContain('Refreshed at once: generation 4 is in use');
  expect(await operator.status()).toMatchObject({ state: 'healthy', generation: 4, failures: 0 });
});

test('a refresh token that this store has already seen is always rejected, with --replace too', async () => {
  const operator = await startOperator();
  const json = await jsonOf(operator);
  await operator.done('import', operator.service.tokenLink);
  const { code, stderr } = await operator.tokens(['import', '-', '--replace'], { stdin: [json] });
  expect(code).toBe(1);
  expect(stderr).toMatch(/This refresh token is spent: the store held it as generation 1/);
  expect(stderr).toContain('Nothing was changed. Have an administrator make a new token');
  expect(operator.service.exchanges).toHaveLength(1);
  expect(await operator.status()).toMatchObject({ state: 'healthy', generation: 2 });
});

test('a link that was imported before no longer works, and the set stays', async () => {
  const operator = await startOperator();
  const link = operator.service.tokenLink;
  await operator.done('import', link);
  const { code, stderr } = await operator.tokens(['import', link, '--replace']);
  expect(code).toBe(1);
  expect(stderr).toMatch(/is dead \(status 404\).*Have an administrator make a new token/);
  expect(await operator.status()).toMatchObject({ state: 'healthy', generation: 2 });
});

test('a set that the service refuses does not replace a working one', async () => {
  const operator = await startWithTokens();
  const { service } = operator;
  const made = { access_token: 'made-up-access', refresh_token: 'made-up-refresh' };
  const { code, stderr } = await operator.tokens(['import', '-', '--replace'], {
    stdin: [JSON.stringify(made)],
  });
  expect(code).toBe(1);
  expect(stderr).toContain('The service refuses its refresh token');
  expect(stderr).toContain('Nothing was replaced: generation 2 is in use again.');
  expect(stderr).not.toContain('made-up');
  expect(await operator.status()).toMatchObject({
    state: 'healthy',
    generation: 2,
    name: 'Sandbox',
    failures: 0,
  });
  await operator.done('refresh');
  expect(service.exchanges.at(-1)).toMatchObject({ outcome: 'answered' });
});

test('after imports that the service refused, an older copy of the store costs nothing either', async () => {
  const { done, tokens, service, storePath, file } = await startWithTokens();
  copyFileSync(storePath, file('copy.db'));
  await done('refresh');
  for (const name of ['one', 'other']) {
    const made = { access_token: `access-${name}`, refresh_token: `refresh-${name}` };
    const refused = await tokens(['import', '-', '--replace'], { stdin: [JSON.stringify(made)] });
    expect(refused.stderr).toContain('Nothing was replaced: generation 3 is in use again.');
  }
  copyFileSync(file('copy.db'), storePath);
  const { code, stderr } = await tokens(['refresh']);
  expect(code).toBe(0);
  expect(stderr).toContain('was saved from a rescue file into the store: generation 3');
  expect(service.exchanges.map(({ outcome }) => outcome)).toEqual([
    'answered',
    'answered',
    'invalid-grant',
    'invalid-grant',
    'answered',
  ]);
});

test('an uncertain set is uncertain again when its replacement is refused', async () => {
  const { tokens, done, service, status } = await startWithTokens();
  service.tokenAnswers.next('drop-before');
  await tokens(['refresh']);
  const made = JSON.stringify({ access_token: 'made-up-access', refresh_token: 'made-up-refresh' });
  const { stderr } = await tokens(['import', '-', '--replace'], { stdin: [made] });
  expect(stderr).toContain('generation 2 is in use again, and still uncertain (`tokens recover`).');
  expect(await status()).toMatchObject({ generation: 2, troubles: ['uncertain'] });
  await done('recover');
});

test('a first set that the service refuses is reported as unusable', async () => {
  const operator = await startOperator();
  operator.service.expire();
  operator.service.tokenAnswers.next(SPENT, SPENT);
  const { code, stderr } = await operator.tokens(['import', operator.service.tokenLink]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/refuses its refresh token.*No set is in use now\./);
  expect((await operator.tokens(['status'])).code).toBe(2);
});

test('a lost set cannot be imported again, and the error says so', async () => {
  const operator = await startOperator();
  const json = await jsonOf(operator);
  operator.service.expire();
  operator.service.tokenAnswers.next(SPENT, SPENT);
  await operator.tokens(['import', '-'], { stdin: [json] });
  const { code, stderr } = await operator.tokens(['import', '-'], { stdin: [json] });
  expect(code).toBe(1);
  expect(stderr).toMatch(/This is the token set that was lost .*Nothing was changed\. Have an/);
});

test('a lost set is replaced without --replace', async () => {
  const operator = await startWithTokens();
  operator.service.expire();
  operator.service.tokenAnswers.next(SPENT, SPENT);
  await operator.tokens(['refresh']);
  expect(await operator.done('import', operator.service.makeNewSet())).toContain('generation 4');
});

test.each([
  ['a redirect', 302, '', /answers with a redirect, which is not followed/],
  [
    'a page for people',
    200,
    '<html>Sign in</html>',
    /answers with a page for people.*browser.*tokens import <file>.*tokens import -/,
  ],
  ['more than 64 KiB', 200, `{"a":"${'x'.repeat(100_000)}"}`, /does not give a token set/],
  ['an error', 500, '', /answered with status 500\. Wait until the service works/],
  ['a refusal', 405, '', /answered with status 405\. Check that it is the whole link/],
])(
  'a link that returns %s is explained, and nothing is imported',
  async (_, status, body, said) => {
    const operator = await startOperator();
    const location = `${operator.service.url}/elsewhere`;
    const url = await startServer((_request, response) => {
      response.writeHead(status, { location }).end(body);
    });
    const { code, stderr } = await operator.tokens(['import', `${url}/a-secret-path`], {
      env: { TOKEN_LINK_ORIGIN: url },
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(said);
    expect(stderr).not.toContain('a-secret-path');
    expect(await operator.status()).toMatchObject({ state: 'missing' });
  },
);

test('a link over plain http is accepted only from this machine', async () => {
  const { tokens } = await startOperator();
  for (const [source, stdin] of [
    ['http://recruiting.example.com/a-secret-path', []],
    ['-', ['http://recruiting.example.com/a-secret-path']],
  ] as const) {
    const { code, stderr } = await tokens(['import', source], { stdin });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^The link must begin with https:\/\//);
    expect(stderr).not.toContain('a-secret-path');
  }
});

test.each([
  [['import', 'recruiting.example.com/a-secret-path']],
  [['import', '{"access_token":"a-secret-path"}']],
  [['import', '--link=https://recruiting.example.com/a-secret-path']],
  [['import', 'https://x.example.com/a-secret-path', 'https://x.example.com/a-secret-path']],
  [['https://recruiting.example.com/a-secret-path']],
])('a mistyped source may be the link, so it is not repeated: %j', async (args) => {
  const { tokens } = await startOperator();
  const { code, stdout, stderr } = await tokens(args);
  expect(code).toBe(2);
  expect(stderr).not.toBe('');
  expect(stdout + stderr).not.toContain('a-secret-path');
});

test.each([
  ['nothing', ''],
  ['something else', 'a-secret-path'],
  ['too much', 'a-secret-path'.repeat(10_000)],
])('standard input with %s is refused with a reason, and not shown', async (_, text) => {
  const { tokens } = await startOperator();
  const { code, stderr } = await tokens(['import', '-'], { stdin: [text] });
  expect(code).toBe(1);
  expect(stderr).toContain('not a token set (JSON with access_token and refresh_token)');
  expect(stderr).not.toContain('a-secret-path');
});

test('without RECRUITING_URL the error says what to set, and no store is created', async () => {
  const { tokens, service, storePath } = await startOperator();
  const { code, stderr } = await tokens(['import', service.tokenLink], {
    env: { RECRUITING_URL: '' },
  });
  expect(code).toBe(2);
  expect(stderr).toContain('RECRUITING_URL=https://');
  expect(existsSync(storePath)).toBe(false);
  expect(service.sandbox.stats.requests.tokenLink).toBe(0);
});

test('nothing is imported into the store of another service, and the error names both services', async () => {
  const { tokens, service, storePath } = await startWithTokens();
  const before = readFileSync(storePath);
  const other = 'https://other.example.com';
  const json = await (await fetch(service.makeNewSet())).text();
  const { code, stderr } = await tokens(['import', '-', '--replace'], {
    env: { RECRUITING_URL: other },
    stdin: [json],
  });
  expect(code).toBe(2);
  expect(stderr).toContain(`belongs to ${service.url}, but RECRUITING_URL is ${other}`);
  expect(stderr).toContain('The store was not changed.');
  expect(readFileSync(storePath).equals(before)).toBe(true);
});

test('a first refresh that cannot be sent is reported, and `tokens refresh` finishes it', async () => {
  const { tokens, done, status, service, file } = await startOperator();
  writeFileSync(file('set.json'), JSON.stringify(await (await fetch(service.tokenLink)).json()));
  await service.down();
  const { code, stdout, stderr } = await tokens(['import', file('set.json')]);
  expect(code).toBe(1);
  expect(stdout).toContain('Imported the token set');
  expect(stderr).toMatch(/in the store, but was not refreshed yet.*run `tokens refresh`/);
  expect(await status()).toMatchObject({ state: 'attention', troubles: ['not-rotated'] });

  await service.up();
  const again = await tokens(['import', service.tokenLink]);
  expect(again.stderr).toContain('run `tokens refresh` to finish that');
  expect(await done('refresh')).toContain('Refreshed: generation 2 is in use');
  expect(await status()).toMatchObject({ state: 'healthy', failures: 0 });
});

test('a first refresh without a clear answer is reported, and `tokens recover` finishes it', async () => {
  const { tokens, done, status, service } = await startOperator();
  service.tokenAnswers.next(reply(500, 'broken'));
  const { code, stderr } = await tokens(['import', service.tokenLink]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/got no clear answer.*Run `tokens recover` when the service answers/);
  expect((await tokens(['refresh'])).stderr).toContain('Run `tokens recover`');
  expect(await done('recover')).toContain('Generation 2 is in use');
  expect(await status()).toMatchObject({ state: 'healthy' });
});

test('a name with control characters is printed without them', async () => {
  const { tokens } = await startOperator();
  const set = { name: 'Te\u001B[2Jst', access_token: 'access', refresh_token: 'refresh' };
  const { stdout } = await tokens(['import', '-'], { stdin: [JSON.stringify(set)] });
  expect(stdout).toContain('"Te [2Jst"');
});

test('a running gateway continues with the imported set', async () => {
  const operator = await startWithTokens();
  const { service } = operator;
  const gateway = await startGatewayOf(operator);
  expect((await askAt(gateway.url, PERSON)).errors).toBeUndefined();

  service.expire();
  await operator.done('import', service.makeNewSet(), '--replace');
  const before = service.exchanges.length;
  expect((await askAt(gateway.url, PERSON)).errors).toBeUndefined();
  expect(service.exchanges).toHaveLength(before);
});

async function jsonOf({ service }: Operator): Promise<string> {
  return (await fetch(service.tokenLink)).text();
}

function fileWith({ file }: Operator, text: string): { source: string } {
  writeFileSync(file('given'), text);
  return { source: file('given') };
}

function pieces(text: string): string[] {
  return [text.slice(0, 30), text.slice(30)];
}

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s while the command waits for standard input ends it, and nothing is changed',
  async (signal) => {
    const operator = await startOperator();
    const { env, storePath } = operator;
    await using program = startProgram(['tokens', 'import', '-'], { env });
    // The store is opened before the set is read.
    await vi.waitFor(() => expect(existsSync(storePath)).toBe(true), { timeout: 20_000 });
    program.signal(signal);
    const { code, stderr } = await program.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/Nothing was changed/);
    expect(await operator.status()).toMatchObject({ state: 'missing' });
  },
);

test.each([400, 403] as const)(
  'an import succeeds where the service refuses early refreshes with status %i; its exchange follows after the expiry',
  async (refuseEarlyRefresh) => {
    const operator = await startOperator();
    const clock = { ahead: 0 };
    const now = () => Date.now() + clock.ahead;
    const sandbox = await startService({ refuseEarlyRefresh, now });
    onTestFinished(() => sandbox.close());
    const env = { RECRUITING_URL: sandbox.url };
    const { source } = fileWith(operator, await shownAt(sandbox.tokenLink));
    const imported = await operator.tokens(['import', source], { env });
    expect(imported).toMatchObject({ code: 0, stderr: '' });
    expect(imported.stdout).toMatch(
      /It was not refreshed yet\. .*either it exchanges none before.*or the refresh token is spent\. .*Until then the link works/,
    );
    expect(JSON.parse((await operator.tokens(['status', '--json'], { env })).stdout)).toMatchObject(
      {
        troubles: ['early-or-spent'],
      },
    );
    expect((await operator.tokens(['check'], { env })).code).toBe(0);

    clock.ahead = 2 * 86_400_000;
    const refreshed = await operator.tokens(['refresh'], { env });
    expect(refreshed.stdout).toContain('generation 2 is in use');
    const stdin = [await shownAt(sandbox.makeNewSet())];
    const again = await operator.tokens(['import', '-', '--replace'], { env, stdin });
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout).toMatch(/this service exchanges no refresh token before.*expired/);
    expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual(['too-early', 'answered']);
    expect(JSON.parse((await operator.tokens(['status', '--json'], { env })).stdout)).toMatchObject(
      {
        state: 'healthy',
        refusesEarly: true,
        generation: 3,
      },
    );
  },
);

/** The JSON that a browser shows. */
async function shownAt(link: string): Promise<string> {
  return (await fetch(link)).text();
}
