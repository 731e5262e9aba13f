import { expect, onTestFinished, test } from 'vitest';
import { createTokenKeeper, type TokenKeeperOptions } from '../../src/library/token-keeper.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { cut, json } from '../service/replies.ts';
import { startService } from '../service/service.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { storeAccess } from '../support/gateway/stores.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const accepted = json({});
const refused = json({}, 401);
const streamOf = (body: string) => new Blob([body]).stream();
const post = (body: BodyInit) => ({ method: 'POST', body, duplex: 'half' }) as const;

test.each<[string, (url: string) => Parameters<typeof fetch>, statuses: number[], string[]]>([
  ['without a body', (url) => [url], [200, 200], ['', '', '']],
  ['with a text', (url) => [url, post('hello')], [200, 200], ['hello', 'hello', '']],
  ['with a stream', (url) => [url, post(streamOf('hello'))], [200, 200], ['hello', 'hello', '']],
  ['as a Request', (url) => [new Request(url, post('hello'))], [200, 200], ['hello', 'hello', '']],
])('fetch sends a request that is refused with 401 again: %s', async (_what, sent, ...expected) => {
  const { keeper, url, service, signIn } = await openKeeper();
  await keeper.import(signIn);
  const first = await keeper.fetch(...sent(url));
  const second = await keeper.fetch(url);
  const bodies = service.received.map(({ body }) => body);
  expect([[first.status, second.status], bodies]).toEqual(expected);
  expect(service.exchanges).toMatchObject([{ refreshToken: signIn.refresh_token }]);
});

test('fetch returns the 401 of a request that is refused with every token', async () => {
  const { keeper, url, service, signIn } = await openKeeper();
  await keeper.import(signIn);
  service.answer(refused);
  expect((await keeper.fetch(url)).status).toBe(401);
  expect(service.received).toHaveLength(4);
});

test('a token without a lifetime lives an hour, also before it was exchanged', async () => {
  const withoutLifetime = { access_token: 'access', refresh_token: 'refresh' };
  // A service may keep the refresh token.
  const next = json({ access_token: 'next' });
  for (const [answer, value] of [
    [next, 'next'],
    [cut, 'access'],
  ] as const) {
    const { keeper, service, logged } = await openKeeper();
    service.tokenAnswers.next(...Array.from({ length: 9 }, () => answer));
    await keeper.import(withoutLifetime).catch(() => {});
    expect(keeper.health().accessSecondsLeft).toBeCloseTo(3_600, -2);
    expect((await keeper.token()).value).toBe(value);
    expect(JSON.stringify(logged)).not.toContain('no new refresh token');
  }
});

test('a 401 of a new token is returned and reported until a token is accepted, and nothing is exchanged for it', async () => {
  const { keeper, url, service, signIn } = await openKeeper();
  await keeper.import(signIn);
  expect(await keeper.afterRefusal(await keeper.token(), 3)).toBeUndefined();
  service.answer(refused);
  expect((await keeper.fetch(url)).status).toBe(401);
  expect(keeper.health().troubles).toEqual(['unauthorized']);
  service.answer(accepted);
  expect((await keeper.fetch(url)).status).toBe(200);
  expect(keeper.health().troubles).toEqual([]);
  expect(service.exchanges).toHaveLength(1);
});

test('without tokens the error has the code TOKENS_MISSING, and tokens that were seen are not imported again', async () => {
  const { keeper, signIn } = await openKeeper();
  await expect(keeper.token()).rejects.toMatchObject({ extensions: { code: 'TOKENS_MISSING' } });
  expect(keeper.health().troubles).toEqual(['missing']);
  await expect(keeper.import({ access_token: 'a' })).rejects.toThrow(/not the answer of a token/);
  expect(await keeper.import(signIn)).toBe('imported');
  expect(await keeper.import(signIn)).toBe('known');
  expect(await keeper.import({ ...signIn, refresh_token: 'other' })).toBe('in use');
});

test.each<[Partial<TokenKeeperOptions>, RegExp]>([
  [{ endpoint: 'http://example.com/token' }, /must begin with https/],
  [{ store: 'tokens.db' }, /must be sqlite:<file> or postgres:/],
])('the options %j are refused, with what to do', async (wrong, message) => {
  const right = { endpoint: 'https://example.com', store: 'sqlite:x.db' };
  await expect(createTokenKeeper({ ...right, ...wrong })).rejects.toThrow(message);
});

test('a store of another endpoint is refused', async () => {
  using folder = temporaryFolder();
  const store = `sqlite:${folder.file('tokens.db')}`;
  const { keeper, url, signIn } = await openKeeper({ store });
  await keeper.import(signIn);
  await keeper.close();
  const other = createTokenKeeper({ endpoint: new URL('/other', url).href, store });
  await expect(other).rejects.toThrow('belongs to');
});

test('a token that the service has never accepted is not exchanged again within a minute', async () => {
  using folder = temporaryFolder();
  const path = folder.file('tokens.db');
  const { keeper, service, url, signIn } = await openKeeper({ store: `sqlite:${path}` });
  service.answer(refused);
  await keeper.import(signIn);
  // Younger ones are tried again for a moment.
  const { alter } = storeAccess(openSqliteStore(path, createSealer([])));
  await alter(({ savedAt }) => ({ savedAt: savedAt - 30_000 }));
  expect((await keeper.fetch(url)).status).toBe(401);
  expect(service.exchanges).toHaveLength(1);
});

test('close waits until the pair of an exchange under way is saved, and may be called again', async () => {
  using folder = temporaryFolder();
  const path = folder.file('tokens.db');
  const { keeper, service, signIn } = await openKeeper({ store: `sqlite:${path}` });
  const exchange = service.tokenAnswers.hold('before');
  const imported = keeper.import(signIn);
  await exchange.arrived;
  const closing = keeper.close();
  exchange.release();
  await closing;
  const { state } = await openSqliteStore(path, createSealer([])).read();
  expect(state).toMatchObject({ generation: 2, claim: null });
  expect(await imported).toBe('imported');
  await keeper.close();
});

/** A keeper of the tokens of a service, which refuses the first request of its API. */
async function openKeeper(options: Partial<TokenKeeperOptions> = {}) {
  const folder = temporaryFolder();
  const service = await startService();
  service.answer(refused, accepted);
  const { log, logged } = recordingLog();
  const keeper = await createTokenKeeper({
    endpoint: `${service.url}/oauth/token`,
    store: `sqlite:${folder.file('tokens.db')}`,
    log,
    ...options,
  });
  onTestFinished(async () => {
    await keeper.close();
    await service.close();
    folder[Symbol.dispose]();
  });
  const signIn = (await (await fetch(service.tokenLink)).json()) as { refresh_token: string };
  return { keeper, service, logged, url: `${service.url}/graphql`, signIn };
}
