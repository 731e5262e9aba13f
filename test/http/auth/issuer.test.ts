import type { RequestListener } from 'node:http';
import { GraphQLError } from 'graphql';
import type { JWK } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { keySet, RETRY_SECONDS } from '../../../src/http/auth/bearer-tokens.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { startGatewayOverService } from '../../support/gateway/over-service.ts';
import { recordingLog } from '../../support/gateway/recording-log.ts';
import { ManualClock } from '../../support/random/manual-clock.ts';
import { proxyAgent } from '../../../src/tokens/service.ts';
import { startProxy } from '../../support/tokens/proxy-server.ts';
import { post } from '../../support/clients/post.ts';
import { startIssuer, type Issuer } from './issuer.ts';

let issuer: Issuer;
let EC: JWK;
let SECOND: JWK;
beforeAll(async () => {
  issuer = await startIssuer();
  await issuer.addKey('ES256', 'second');
  [EC, SECOND] = issuer.keys as [JWK, JWK];
});
afterAll(() => issuer[Symbol.asyncDispose]());
beforeEach(() => issuer.answer(answering({ keys: [EC, SECOND] })));

function answering(content: unknown): RequestListener {
  return (_, response) => response.end(JSON.stringify(content));
}

test('while the keys of an issuer cannot be fetched, its tokens are not refused, and API keys work', async () => {
  issuer.answer((_, response) => void response.destroy());
  const { ask, logged } = await openDoor();
  const before = issuer.requests;
  const token = await issuer.token();
  for (let tries = 0; tries < 3; tries += 1) {
    const response = await ask({ authorization: `Bearer ${token}` });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    const message = expect.stringContaining('Keep it, and try again in 5 s.') as string;
    const extensions = { code: 'RATE_LIMITED', retryAfter: 5 };
    expect(await response.json()).toEqual({ errors: [{ message, extensions }] });
  }
  expect(issuer.requests).toBe(before + 1);
  const lines = logged.filter(({ msg }) => msg === 'request');
  expect(lines.map(({ code }) => code)).toEqual(Array(3).fill('RATE_LIMITED'));
  expect((await ask({ 'x-api-key': 'a key' })).status).toBe(200);
});

test.each<[string, () => readonly unknown[], named: number]>([
  [
    'without ids, as in a rotation',
    () => [SECOND, EC].map((key) => ({ ...key, kid: undefined })),
    401,
  ],
  ['of an unknown kind', () => [{ kty: 'LATTICE', kid: 'new' }, EC], 200],
])('tokens are accepted from a key beside others %s', async (_, keysOf, named) => {
  issuer.answer(answering({ keys: keysOf() }));
  const { ask } = await openDoor();
  const unnamed = await issuer.token({}, { kid: undefined });
  const ofOthers = await issuer.token({ aud: 'others' }, { kid: undefined });
  for (const [token, status] of [
    [unnamed, 200],
    [ofOthers, 401],
    [await issuer.token(), named],
    [unnamed.slice(0, -20), 401],
  ] as const) {
    expect((await ask({ authorization: `Bearer ${token}` })).status).toBe(status);
  }
});

test('the keys are fetched with the first token, once for all waiting callers and for many unknown ids', async () => {
  const { has, fetched } = keys();
  expect(fetched()).toBe(0);
  const storm = Array.from({ length: 50 }, (_, at) => has(`made-up-${at}`));
  expect(await Promise.all([has('ec'), has('ec')])).toEqual([true, true]);
  expect(new Set(await Promise.all(storm))).toEqual(new Set([false]));
  expect(fetched()).toBe(1);
});

const MAX_AGE_MS = 10 * 60_000;

/** Changes the clock of the machine, which jose reads. */
function age(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms });
  onTestFinished(() => void vi.useRealTimers());
}

const status =
  (code: number): RequestListener =>
  (_, response) =>
    response.writeHead(code, { location: '/other' }).end('secret');

test.each<[string, RequestListener, string]>([
  ['refuses', status(500), 'Expected 200 OK'],
  ['points elsewhere', status(302), 'Expected 200 OK'],
  ['is no JSON', (_, response) => response.end('<p>secret</p>'), 'as JSON'],
  ['has no list', answering({ keys: 'none' }), 'malformed'],
])(
  'while the answer %s, known keys remain valid, others are unclear, and the log has the reason',
  async (_, reply, reason) => {
    const known = keys();
    expect(await known.has('ec')).toBe(true);
    issuer.answer(reply);
    age(MAX_AGE_MS);
    for (let time = 0; time < 2; time += 1) expect(await known.has('ec')).toBe(true);
    expect([await known.has('unknown'), known.fetched()]).toEqual(['unclear', 2]);
    const contained = expect.stringContaining(reason) as string;
    expect(known.logged).toMatchObject([{ level: 40, reason: contained }]);

    const fresh = keys();
    expect(await fresh.has('ec')).toBe('unclear');
    fresh.clock.jump(RETRY_SECONDS * 1000 - 1);
    expect([await fresh.has('ec'), fresh.fetched()]).toEqual(['unclear', 1]);
    fresh.clock.jump(1);
    expect([await fresh.has('ec'), fresh.fetched()]).toEqual(['unclear', 2]);
  },
);

test('a withdrawn key is refused once the key set has reached its age, at once also after a failure', async () => {
  const { has, clock, fetched } = keys();
  expect(await has('second')).toBe(true);
  age(MAX_AGE_MS - 1_000);
  expect([await has('second'), fetched()]).toEqual([true, 1]);
  issuer.answer(status(500));
  age(1_000);
  expect(await has('second')).toBe(true);
  issuer.answer(answering({ keys: [EC] }));
  clock.jump(RETRY_SECONDS * 1000);
  expect(await has('second')).toBe(false);
  issuer.answer(answering({ keys: [SECOND] }));
  age(MAX_AGE_MS);
  expect([await has('ec'), await has('second')]).toEqual([false, true]);
});

test('the request for the keys goes through the system’s proxy', async () => {
  const proxy = await startProxy();
  const http = proxyAgent({ https_proxy: `http://${proxy.host}` });
  expect(await keys('https://login.test/keys', http).has('ec')).toBe('unclear');
  expect(proxy.heads).toEqual([expect.stringMatching('^CONNECT login.test:443\n')]);
});

/** A gateway that accepts a key, and tokens of the issuer. */
async function openDoor() {
  const auth = { apiKeys: [entryFor('a key', 'portal', 'read')], jwt: issuer.jwt };
  const { fetch, logged, ...gateway } = await startGatewayOverService({}, { config: { auth } });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const ask = (headers: Record<string, string>) =>
    fetch('/graphql', post({ query: '{ __typename }' }, headers));
  return { ask, logged };
}

function keys(address = issuer.jwt.jwksUrl, http = proxyAgent({})) {
  const clock = new ManualClock();
  const { log, logged } = recordingLog();
  const before = issuer.requests;
  const find = keySet(address, { clock, log, http });
  return {
    clock,
    logged,
    fetched: () => issuer.requests - before,
    /** Whether there is such a key. */
    has: (kid: string): Promise<boolean | 'unclear'> =>
      Promise.resolve(find({ alg: 'ES256', kid }, { payload: '', signature: '' })).then(
        () => true,
        (error: unknown) => (error instanceof GraphQLError ? 'unclear' : false),
      ),
  };
}
