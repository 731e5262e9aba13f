import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createTokenKeeper, type TokenKeeperOptions } from '../../src/library/token-keeper.ts';
import { cut, json } from '../service/replies.ts';
import { startService } from '../service/service.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const accepted = json({});
const refused = json({}, 401);
const streamOf = (body: string) => new Blob([body]).stream();
const post = (body: BodyInit) => ({ method: 'POST', body, duplex: 'half' }) as const;

test.each<[string, (url: string) => Parameters<typeof fetch>, statuses: number[], string[]]>([
  ['without a body', (url) => [url], [200, 200], ['', '', '']],
  ['with a text', (url) => [url, post('hello')], [200, 200], ['hello', 'hello', '']],
  ['with a stream, once', (url) => [url, post(streamOf('hello'))], [401, 200], ['hello', '']],
  ['as a Request, once', (url) => [new Request(url, post('hello'))], [401, 200], ['hello', '']],
])('fetch sends a request that is refused with 401 again: %s', async (_what, sent, ...expected) => {
  const { keeper, url, service, signIn } = await openKeeper();
  await keeper.import(signIn);
  const first = await keeper.fetch(...sent(url));
  const second = await keeper.fetch(url);
  const bodies = service.received.map(({ body }) => body);
  expect([[first.status, second.status], bodies]).toEqual(expected);
  expect(service.exchanges).toMatchObject([{ refreshToken: signIn.refresh_token }]);
});

test.each<[string, (url: string, signal: AbortSignal) => Parameters<typeof fetch>]>([
  ['its options', (url, signal) => [url, { signal }]],
  ['its Request', (url, signal) => [new Request(url, { signal })]],
])(
  'fetch ends with the signal of %s while a token is exchanged, and the exchange goes on',
  async (_where, sent) => {
    const refusal = Promise.withResolvers<void>();
    const meansExpired = () => {
      refusal.resolve();
      return true;
    };
    const { keeper, url, service, signIn } = await openKeeper({ meansExpired });
    const exchange = service.tokenAnswers.hold('before');
    const imported = keeper.import(signIn);
    await exchange.arrived;
    const leaving = new AbortController();
    const left = keeper.fetch(...sent(url, leaving.signal)).catch(String);
    await refusal.promise;
    leaving.abort('left');
    expect(await left).toBe('left');
    exchange.release();
    expect(await imported).toBe('imported');
    expect((await keeper.fetch(new Request(url))).status).toBe(200);
    expect(service.exchanges).toHaveLength(1);
    const gone = keeper.fetch(...sent(url, AbortSignal.abort('gone')));
    expect(await gone.catch(String)).toBe('gone');
  },
);

test('a token without a lifetime lives an hour, or as the option says, also before it was exchanged', async () => {
  const withoutLifetime = { access_token: 'access', refresh_token: 'refresh' };
  const secondsLeft = async (options: Partial<TokenKeeperOptions>, answer = cut) => {
    const { keeper, service } = await openKeeper(options);
    service.tokenAnswers.next(...Array.from({ length: 9 }, () => answer));
    await keeper.import(withoutLifetime).catch(() => {});
    return keeper.health().accessSecondsLeft;
  };
  const exchanged = json({ access_token: 'next', refresh_token: 'next' });
  const lifetimes = { accessToken: 100_000 };
  expect(await secondsLeft({}, exchanged)).toBeCloseTo(3_600, -2);
  expect(await secondsLeft({ lifetimes }, exchanged)).toBeCloseTo(100_000, -2);
  expect(await secondsLeft({ lifetimes })).toBeCloseTo(100_000, -2);
});

test('a 401 that does not mean expiry is returned and reported until a token is accepted, and nothing is exchanged for it', async () => {
  const { keeper, url, service, signIn } = await openKeeper({
    meansExpired: (challenge) => challenge !== '',
  });
  await keeper.import(signIn);
  expect(await keeper.afterRefusal(await keeper.token(), '', 3)).toBeUndefined();
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
  const error = await keeper.token().catch((reason: unknown) => reason);
  // Waiting does not help, so there is no `retryAfter`.
  expect(error).toMatchObject({ extensions: { code: 'TOKENS_MISSING' } });
  expect(error).not.toHaveProperty('extensions.retryAfter');
  expect(keeper.health().troubles).toEqual(['missing']);
  await expect(keeper.import({ access_token: 'a' })).rejects.toThrow(/not the answer of a token/);
  expect(await keeper.import(signIn)).toBe('imported');
  expect(await keeper.import(signIn)).toBe('known');
  expect(await keeper.import({ ...signIn, refresh_token: 'other' })).toBe('in use');
});

const UNUSABLE = { extensions: { code: 'INTERNAL_SERVER_ERROR' } };

test.each<[Partial<TokenKeeperOptions>, RegExp, object?]>([
  [{ endpoint: 'http://example.com/token' }, /must begin with https/],
  [{ store: 'tokens.db' }, /must be sqlite:<file> or postgres:/],
  [{ store: 'postgres://me@host/base' }, /rescueFolder must name a folder/],
  [{ store: 'sqlite:/proc' }, /it is a folder\..*Check its address/, UNUSABLE],
  [{ store: 'sqlite:/proc/tokens.db' }, /ENOENT.*Check its address/, UNUSABLE],
  [{ store: 'sqlite:/dev/null/tokens.db' }, /(ENOTDIR|EEXIST).*Check its address/, UNUSABLE],
])('the options %j are refused, with what to do', async (wrong, message, more = {}) => {
  const right = { endpoint: 'https://example.com', store: 'sqlite:x.db' };
  const refusal = { message: expect.stringMatching(message), ...more };
  await expect(createTokenKeeper({ ...right, ...wrong })).rejects.toMatchObject(refusal);
});

test('a store of another endpoint is refused, and is closed again', async () => {
  using folder = temporaryFolder();
  const store = `sqlite:${folder.file('tokens.db')}`;
  const { keeper, signIn } = await openKeeper({ store });
  await keeper.import(signIn);
  await keeper.close();
  using closed = vi.spyOn(DatabaseSync.prototype, 'close');
  const other = createTokenKeeper({ endpoint: 'https://other.example.com/token', store });
  await expect(other).rejects.toMatchObject({
    message: expect.stringContaining('belongs to'),
    ...UNUSABLE,
  });
  expect(closed).toHaveBeenCalledOnce();
});

test('a keeper that was closed sends nothing, has closed its store, and can be closed again', async () => {
  const { keeper, url, service, signIn } = await openKeeper();
  await keeper.import(signIn);
  const token = await keeper.token();
  using closed = vi.spyOn(DatabaseSync.prototype, 'close');
  await keeper.close();
  expect(closed).toHaveBeenCalledOnce();
  const calls = [
    keeper.token(),
    keeper.fetch(url),
    keeper.afterRefusal(token),
    keeper.import({ ...signIn, refresh_token: 'other' }),
  ];
  const refusal = { extensions: { code: 'UPSTREAM_UNREACHABLE' } };
  for (const call of calls) await expect(call).rejects.toMatchObject(refusal);
  expect(service.received).toEqual([]);
  await keeper.close();
});

test('close keeps the store open until the pair of an exchange under way is saved', async () => {
  const { keeper, service, signIn } = await openKeeper();
  const exchange = service.tokenAnswers.hold('before');
  const imported = keeper.import(signIn);
  await exchange.arrived;
  using closed = vi.spyOn(DatabaseSync.prototype, 'close');
  const closing = keeper.close();
  await setImmediate();
  expect(closed).not.toHaveBeenCalled();
  exchange.release();
  expect(await imported).toBe('imported');
  await closing;
  expect(closed).toHaveBeenCalledOnce();
});

test('fetch returns a 401 that arrives once the keeper is closed', async () => {
  const ends = { close: async () => {} };
  const send = async () => {
    await ends.close();
    return new Response(null, { status: 401 });
  };
  const { keeper, url, signIn } = await openKeeper({ fetch: send });
  await keeper.import(signIn);
  ends.close = () => keeper.close();
  expect((await keeper.fetch(url)).status).toBe(401);
});

/** A keeper of the tokens of a service, which refuses the first request of its API. */
async function openKeeper(options: Partial<TokenKeeperOptions> = {}) {
  const folder = temporaryFolder();
  const service = await startService();
  service.answer(refused, accepted);
  const { log } = recordingLog();
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
  return { keeper, service, url: `${service.url}/graphql`, signIn };
}
