import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createTokenKeeper, type TokenKeeperOptions } from '../../src/library/token-keeper.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startServer } from '../support/test-server.ts';

const SIGN_IN = { access_token: 'access-1', refresh_token: 'refresh-1', expires_in: 3_600 };
const streamOf = (body: string) => new Blob([body]).stream();
const post = (body: BodyInit) => ({ method: 'POST', body, duplex: 'half' }) as const;

test.each<[string, (url: string) => Parameters<typeof fetch>, statuses: number[], string[]]>([
  ['without a body', (url) => [url], [200, 200], ['', '', '']],
  ['with a text', (url) => [url, post('hello')], [200, 200], ['hello', 'hello', '']],
  ['with a stream, once', (url) => [url, post(streamOf('hello'))], [401, 200], ['hello', '']],
  ['as a Request, once', (url) => [new Request(url, post('hello'))], [401, 200], ['hello', '']],
])('fetch sends a request that is refused with 401 again: %s', async (_what, sent, ...expected) => {
  const { keeper, url, seen } = await openKeeper();
  await keeper.import(SIGN_IN);
  const first = await keeper.fetch(...sent(`${url}/api`));
  const second = await keeper.fetch(`${url}/api`);
  expect([[first.status, second.status], seen.bodies]).toEqual(expected);
  expect(seen.exchanges).toEqual(['refresh-1']);
});

test.each<[string, (url: string, signal: AbortSignal) => Parameters<typeof fetch>]>([
  ['its options', (url, signal) => [url, { signal }]],
  ['its Request', (url, signal) => [new Request(url, { signal })]],
])(
  'fetch ends with the signal of %s while a token is exchanged, and the exchange goes on',
  async (_where, sent) => {
    const exchange = Promise.withResolvers<void>();
    const { keeper, url, seen } = await openKeeper({}, exchange.promise);
    const imported = keeper.import(SIGN_IN);
    await expect.poll(() => seen.exchanges.length).toBe(1);
    const leaving = new AbortController();
    const left = keeper.fetch(...sent(`${url}/api`, leaving.signal)).catch(String);
    await expect.poll(() => seen.bodies.length).toBe(1);
    leaving.abort('left');
    expect(await left).toBe('left');
    exchange.resolve();
    expect(await imported).toBe('imported');
    expect((await keeper.fetch(new Request(`${url}/api`))).status).toBe(200);
    expect(seen.exchanges).toHaveLength(1);
    const gone = keeper.fetch(...sent(`${url}/api`, AbortSignal.abort('gone')));
    expect(await gone.catch(String)).toBe('gone');
  },
);

test('a token without a lifetime lives an hour, or as the option says, also before it was exchanged', async () => {
  const { expires_in: _, ...signIn } = SIGN_IN;
  const secondsLeft = async (options: Partial<TokenKeeperOptions>, lostExchanges: number) => {
    const { keeper } = await openKeeper(options, undefined, lostExchanges);
    await keeper.import(signIn).catch(() => {});
    return keeper.health().accessSecondsLeft;
  };
  expect(await secondsLeft({}, 0)).toBeCloseTo(3_600, -2);
  expect(await secondsLeft({ lifetimes: { accessToken: 100_000 } }, 0)).toBeCloseTo(100_000, -2);
  expect(await secondsLeft({ lifetimes: { accessToken: 100_000 } }, 9)).toBeCloseTo(100_000, -2);
});

test('a new token is renewed again only once fetch has seen that it is accepted', async () => {
  const { keeper, url, seen } = await openKeeper();
  await keeper.import(SIGN_IN);
  seen.refuses = 0;
  const renewed = async (replays = 3) => keeper.afterRefusal(await keeper.token(), '', replays);
  expect(await renewed(4)).toBeUndefined();
  expect(await renewed()).toMatchObject({ value: 'access-3' });
  expect(await renewed()).toBeUndefined();
  expect((await keeper.fetch(`${url}/api`)).status).toBe(200);
  expect(await renewed()).toMatchObject({ value: 'access-4' });
});

test('a 401 that does not mean expiry is returned and reported, and nothing is exchanged for it', async () => {
  const { keeper, url, seen } = await openKeeper({ meansExpired: (challenge) => challenge !== '' });
  await keeper.import(SIGN_IN);
  expect(await keeper.afterRefusal(await keeper.token(), '', 3)).toBeUndefined();
  seen.refuses = 9;
  expect((await keeper.fetch(`${url}/api`)).status).toBe(401);
  expect(keeper.health().troubles).toEqual(['unauthorized']);
  expect(seen.exchanges).toEqual(['refresh-1']);
});

test('without tokens the error has the code TOKENS_MISSING, and tokens that were seen are not imported again', async () => {
  const { keeper, logged } = await openKeeper();
  const error = await keeper.token().catch((reason: unknown) => reason);
  // Waiting does not help, so there is no `retryAfter`.
  expect(error).toMatchObject({ extensions: { code: 'TOKENS_MISSING' } });
  expect(error).not.toHaveProperty('extensions.retryAfter');
  await expect(keeper.token()).rejects.not.toThrow(/Callers/);
  expect(keeper.health().troubles).toEqual(['missing']);
  expect(logged.filter(({ level }) => Number(level) > 30)).toEqual([]);
  await expect(keeper.import({ access_token: 'a' })).rejects.toThrow(/not the answer of a token/);
  expect(await keeper.import(SIGN_IN)).toBe('imported');
  expect(await keeper.import(SIGN_IN)).toBe('known');
  expect(await keeper.import({ ...SIGN_IN, refresh_token: 'other' })).toBe('in use');
});

const UNUSABLE = { extensions: { code: 'INTERNAL_SERVER_ERROR' } };

test.each<[Partial<TokenKeeperOptions>, RegExp, object?]>([
  [{ endpoint: 'http://example.com/token' }, /must begin with https/],
  [{ store: 'tokens.db' }, /must be sqlite:<file> or postgres:/],
  [{ store: 'postgres://me@host/base' }, /rescueFolder must name a folder/],
  [{ store: 'sqlite:/proc' }, /it is a folder\..*Check `store`/, UNUSABLE],
  [{ store: 'sqlite:/proc/tokens.db' }, /ENOENT.*Check `store`/, UNUSABLE],
  [{ store: 'sqlite:/dev/null/tokens.db' }, /(ENOTDIR|EEXIST).*Check `store`/, UNUSABLE],
])('the options %j are refused, with what to do', async (wrong, message, more = {}) => {
  const right = { endpoint: 'https://example.com', store: 'sqlite:x.db' };
  const refused = { message: expect.stringMatching(message), ...more };
  await expect(createTokenKeeper({ ...right, ...wrong })).rejects.toMatchObject(refused);
});

test('a store of another endpoint is refused, and is closed again', async () => {
  using folder = temporaryFolder();
  const store = `sqlite:${folder.file('tokens.db')}`;
  const { keeper } = await openKeeper({ store });
  await keeper.import(SIGN_IN);
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
  const { keeper, url, seen } = await openKeeper();
  await keeper.import(SIGN_IN);
  const token = await keeper.token();
  using closed = vi.spyOn(DatabaseSync.prototype, 'close');
  await keeper.close();
  expect(closed).toHaveBeenCalledOnce();
  const calls = [
    keeper.token(),
    keeper.fetch(`${url}/api`),
    keeper.afterRefusal(token),
    keeper.import({ ...SIGN_IN, refresh_token: 'other' }),
  ];
  const refusal = { extensions: { code: 'UPSTREAM_UNREACHABLE' } };
  for (const call of calls) await expect(call).rejects.toMatchObject(refusal);
  expect(seen.bodies).toEqual([]);
  await keeper.close();
});

test('fetch returns a 401 that arrives once the keeper is closed', async () => {
  const ends = { close: async () => {} };
  const send = async () => {
    await ends.close();
    return new Response(null, { status: 401 });
  };
  const { keeper, url } = await openKeeper({ fetch: send });
  await keeper.import(SIGN_IN);
  ends.close = () => keeper.close();
  expect((await keeper.fetch(`${url}/api`)).status).toBe(401);
});

/**
 * A keeper of a service that refuses the first request of its API.
 *
 * @param exchange what its token endpoint waits for
 * @param lostExchanges how many of the first exchanges have no answer
 */
async function openKeeper(
  options: Partial<TokenKeeperOptions> = {},
  exchange?: Promise<void>,
  lostExchanges = 0,
) {
  const folder = temporaryFolder();
  const seen = { exchanges: [] as (string | null)[], bodies: [] as string[], refuses: 1 };
  const url = await startServer((request, response) => {
    const answer = async () => {
      const body = await text(request);
      if (request.url === '/token') {
        seen.exchanges.push(new URLSearchParams(body).get('refresh_token'));
        const next = seen.exchanges.length + 1;
        await exchange;
        if (seen.exchanges.length <= lostExchanges) return response.destroy();
        const pair = { access_token: `access-${next}`, refresh_token: `refresh-${next}` };
        return response.end(JSON.stringify(pair));
      }
      seen.bodies.push(body);
      response.writeHead(seen.bodies.length <= seen.refuses ? 401 : 200).end();
    };
    void answer();
  });
  const { log, logged } = recordingLog();
  const keeper = await createTokenKeeper({
    endpoint: `${url}/token`,
    store: `sqlite:${folder.file('tokens.db')}`,
    log,
    ...options,
  });
  onTestFinished(async () => {
    await keeper.close();
    folder[Symbol.dispose]();
  });
  return { keeper, url, seen, logged };
}
