import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer as createHttpsServer } from 'node:https';
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  exchangeAt,
  proxyAgent,
  readLink,
  readTokenSet,
  tokenService,
  type ClientCredentials,
  type Exchange,
  type TokenService,
} from '../../src/tokens/service.ts';
import { flood } from '../service/replies.ts';
import { listenForTest, refusingAddress, startServer } from '../support/listening.ts';
import { makeCertificate } from '../support/tokens/certificate.ts';
import { startProxy } from '../support/tokens/proxy-server.ts';
import { pairOf } from './values.ts';

const direct = proxyAgent({});
const always = () => true;

function serviceAt(baseUrl: string, http = direct, answerMs?: number) {
  return tokenService({
    baseUrl,
    agent: 'test/1',
    http,
    ...(answerMs !== undefined && { answerMs }),
  });
}

type Answer = (response: ServerResponse) => void;

const answering = (answer: Answer) => startServer((_request, response) => answer(response));

/** Nothing else runs in this process. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const json =
  (status: number, body: unknown, headers = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
const page =
  (status: number): Answer =>
  (response) =>
    void response.writeHead(status).end('<html>');
const redirect: Answer = (response) =>
  void response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end();
const cutAfter =
  (beginning: string): Answer =>
  (response) => {
    response.writeHead(200, { 'content-length': 900 });
    response.write(beginning);
    setImmediate(() => response.destroy());
  };

const GRANT = {
  access_token: 'access-2',
  refresh_token: 'refresh-2',
  expires_in: 60,
  token_type: 'bearer',
};
const GRANTED = JSON.stringify(GRANT);
const grant = (changes: object) => json(200, { ...GRANT, ...changes });
const SENT = pairOf('1');
const granted = (changes = {}): Exchange => ({
  kind: 'granted',
  pair: pairOf('2', { expiresIn: 60, ...changes }),
});
const SAME = { ...granted({ refreshToken: 'refresh-1' }), flaw: 'no new refresh token' };
const limited = (retryAfter: number) => ({ kind: 'unsent', retryAfter });
const unclear = (why: string, answer?: string | null) => ({
  kind: 'unclear',
  why,
  ...(answer !== undefined && { answer }),
});
const LATE = 'no answer within 0.05 s';
const unsent = (why: RegExp) => ({ kind: 'unsent', why: expect.stringMatching(why) });
const MISTAKE = { kind: 'unsent', isMistake: true };

const basic = (joined: string) => `Basic ${Buffer.from(joined).toString('base64')}`;
const atAny = (url: string) => ({ url: new URL(url), http: direct, settings: 'the settings' });
const REFRESH = { grant_type: 'refresh_token', refresh_token: 'refresh-1' };
const FIELDS = { scope: 'read write', audience: 'x' };
const NEVER = { grant_type: 'never' };
const ofClient = (client?: ClientCredentials) => (url: string) =>
  exchangeAt({ ...atAny(`${url}/a/token?v=2`), client, fields: { ...FIELDS, ...NEVER } });

describe('an exchange', () => {
  test.each<
    [
      string,
      (url: string) => TokenService['exchange'],
      sent: { readonly form: object; readonly [fact: string]: unknown },
    ]
  >([
    [
      'with the recruiting service',
      (url) => serviceAt(url).exchange,
      { path: 'POST /oauth/token', agent: 'test/1', form: {} },
    ],
    ['of nobody', ofClient(), { form: FIELDS }],
    ['of a public client', ofClient({ id: 'a' }), { form: { ...FIELDS, client_id: 'a' } }],
    [
      'with a secret in the header',
      ofClient({ id: 'a:b', secret: 'c d%' }),
      { by: basic('a%3Ab:c+d%25'), form: FIELDS },
    ],
    [
      'with a secret in the body',
      ofClient({ id: 'a', secret: 'c d', in: 'body' }),
      { form: { ...FIELDS, client_id: 'a', client_secret: 'c d' } },
    ],
  ])('%s is one POST of a form, on a connection of its own', async (_what, exchangeOf, sent) => {
    const seen: object[] = [];
    const url = await startServer((request, response) => {
      const { authorization: by, connection, 'api-user-agent': agent } = request.headers;
      const answer = async () => {
        const form = Object.fromEntries(new URLSearchParams(await text(request)));
        seen.push({ path: `${request.method} ${request.url}`, by, connection, agent, form });
        json(200, GRANT)(response);
      };
      void answer();
    });
    expect(await exchangeOf(url)(pairOf('1'), always)).toMatchObject({ kind: 'granted' });
    const usual = { path: 'POST /a/token?v=2', connection: 'close', ...sent };
    expect(seen).toEqual([{ ...usual, form: { ...usual.form, ...REFRESH } }]);
  });

  test.each<[string, Answer, object, answerMs?: number]>([
    ['a pair', json(200, GRANT), granted()],
    ['a pair with another 2xx', json(201, GRANT), granted()],
    ['blanks around its tokens', grant({ access_token: ' access-2\n' }), granted()],
    ['a byte order mark', (response) => response.end(`\uFEFF${GRANTED}`), granted()],
    ...[undefined, 0, -5, 1e308].map((life): [string, Answer, object] => [
      `an access token that lives for ${life} s`,
      grant({ expires_in: life }),
      granted({ expiresIn: 86_400 }),
    ]),
    [
      'lifetimes as text',
      grant({ expires_in: '60', refresh_token_expires_in: '600' }),
      granted({ refreshTokenExpiresIn: 600 }),
    ],
    ...[-1, 0, 'soon', 1e308].map((life): [string, Answer, object] => [
      `a refresh token that lives for ${life} s`,
      grant({ refresh_token_expires_in: life }),
      granted(),
    ]),
    [
      'odd other fields',
      grant({ token_type: 7, scope: {}, name: [], error: 'invalid_grant' }),
      granted(),
    ],
    ['no new refresh token', grant({ refresh_token: '' }), SAME],
    ['the same refresh token', grant({ refresh_token: 'refresh-1' }), SAME],
    ['no access token', grant({ access_token: null }), granted({ accessToken: 'access-1' })],
    ['a pair whose end is cut', cutAfter(GRANTED), granted()],
    ...(
      [
        ['7', 7],
        [undefined, 60],
        ['-5', 60],
        ['soon', 60],
        ['999999999999', 3_600],
      ] as const
    ).map(([wait, seconds]): [string, Answer, object] => [
      `a rate limit for ${wait}`,
      json(429, {}, wait === undefined ? {} : { 'retry-after': wait }),
      limited(seconds),
    ]),
    ['a rate limit in a body', json(400, { error: 'rate_limited' }), limited(60)],
    ['400 invalid_grant', json(400, { error: 'invalid_grant' }), { kind: 'invalid-grant' }],
    ['403 invalid_grant', json(403, { error: 'invalid_grant' }), { kind: 'invalid-grant' }],
    ...(
      [
        [400, 'invalid_request'],
        [400, 'invalid_client'],
        [401, 'invalid_client'],
        [401, undefined],
        [400, 'unauthorized_client'],
        [400, 'unsupported_grant_type'],
        [403, 'invalid_scope'],
      ] as const
    ).map(([status, error]): [string, Answer, object] => [
      `${status} ${error}`,
      json(status, { error }),
      MISTAKE,
    ]),
    ['401', json(401, {}), unsent(/^status 401: .*RECRUITING_URL/)],
    ['403', json(403, {}), { ...unsent(/^status 403: .*RECRUITING_AGENT/), isMistake: true }],
    ['400 server_error', json(400, { error: 'server_error' }), { kind: 'unclear' }],
    ['500 invalid_grant', json(500, { error: 'invalid_grant' }), { kind: 'unclear' }],
    ['500', json(500, { oops: true }), unclear('status 500', '{"oops":true}')],
    ['502 of a proxy', page(502), unclear('status 502', '<html>')],
    ['HTML with 200', page(200), unclear('status 200')],
    ['a redirect', redirect, unclear('status 302')],
    ['70 KB', (response) => response.end(' '.repeat(70_000)), unclear('its body is too large')],
    ['an endless body', flood, unclear('its body is too large')],
    ['a reset', (response) => response.destroy(), unclear('UND_ERR_SOCKET')],
    ['a cut body', cutAfter('{"access_token":'), { kind: 'unclear', answer: '{"access_token":' }],
    ['nothing', () => {}, unclear(LATE, null), 50],
    ['a beginning', (response) => void response.write('{"acc'), unclear(LATE, '{"acc'), 50],
    // Timers run before sockets are read.
    [
      'a pair while the process stands still',
      (response) => void response.end(GRANTED, () => standStill(100)),
      granted(),
      50,
    ],
  ])('that is answered with %s ends as it should, after one request', async (...row) => {
    const [, answer, expected, answerMs] = row;
    let requests = 0;
    const url = await answering((response) => {
      requests += 1;
      answer(response);
    });
    const outcome = await serviceAt(url, direct, answerMs).exchange(SENT, always);
    expect(outcome).toMatchObject(expected);
    expect(requests).toBe(1);
    if (outcome.kind === 'unclear') {
      expect(outcome.answer?.length ?? 0).toBeLessThanOrEqual(65_536);
    }
  });

  test.each<[string, () => Promise<string>, RegExp]>([
    ['connection is refused', refusingAddress, /^ECONNREFUSED: nothing was sent, so .*HTTPS_/],
    ['host is unknown', async () => 'http://nowhere.invalid', /ENOTFOUND|EAI_AGAIN/],
    ['certificate is not trusted', untrusted, /^DEPTH_ZERO_SELF_SIGNED_CERT: /],
    ['proxy refuses to connect', async () => 'https://recruiting.test', /^UND_ERR_\w+: /],
  ])('whose %s was certainly not sent, and is not asked for', async (_what, address, why) => {
    const proxy = await startProxy('407 No');
    const HTTPS_PROXY = `http://${proxy.host}`;
    const http = proxyAgent({ HTTPS_PROXY, NO_PROXY: 'localhost' });
    // Connecting can take longer than a claim allows.
    const { exchange } = serviceAt(await address(), http);
    const outcome = await exchange(pairOf('1'), () => expect.unreachable());
    expect(outcome).toMatchObject(unsent(why));
  });

  test('asks right before the bytes are written whether they may still be sent', async () => {
    const url = await answering(() => expect.unreachable());
    const outcome = await serviceAt(url).exchange(pairOf('1'), () => false);
    expect(outcome).toEqual({ kind: 'unsent', why: 'it was too late to send it' });
  });

  test('is written before anything else can run once it may be sent', async () => {
    const url = await answering(json(200, GRANT));
    const order: string[] = [];
    const written = () => order.push('written');
    subscribe('undici:request:bodySent', written);
    onTestFinished(() => void unsubscribe('undici:request:bodySent', written));
    await serviceAt(url).exchange(pairOf('1'), () => {
      order.push('asked');
      process.nextTick(() => order.push('tick'));
      queueMicrotask(() => order.push('microtask'));
      return true;
    });
    expect(order.slice(0, 2)).toEqual(['asked', 'written']);
    expect(order).toHaveLength(4);
  });
});

describe('through a proxy', () => {
  test.each([
    ['HTTP_PROXY', ''],
    ['HTTP_PROXY', 'http://'],
    ['http_proxy', ''],
  ])('of %s whose address begins with "%s", the request arrives', async (name, scheme) => {
    const seen: unknown[] = [];
    const proxy = await startServer((request, response) => {
      seen.push([request.url, request.headers['proxy-authorization']]);
      json(200, GRANT)(response);
    });
    const http = proxyAgent({ [name]: `${scheme}user:password@${new URL(proxy).host}` });
    const service = serviceAt('http://recruiting.test', http);
    expect(await service.exchange(SENT, always)).toEqual(granted());
    expect(seen).toEqual([['http://recruiting.test/oauth/token', basic('user:password')]]);
  });

  test('that NO_PROXY excludes, the request goes directly', async () => {
    const url = await answering(json(200, GRANT));
    const http = proxyAgent({ HTTP_PROXY: await refusingAddress(), NO_PROXY: '127.0.0.1' });
    expect(await serviceAt(url, http).exchange(SENT, always)).toEqual(granted());
  });
});

const refusal = (detail: string) => ({ type: 'invalid_token', detail });

test.each<[string, Answer, object]>([
  ['204', (response) => void response.writeHead(204).end(), { kind: 'works' }],
  ['an expired token', json(401, refusal('expired')), { kind: 'refused', detail: 'expired' }],
  ['a 403 about the token', json(403, refusal('blocked')), { kind: 'refused', detail: 'blocked' }],
  ['a 401 without a detail', json(401, {}), { kind: 'refused', detail: 'status 401' }],
  ['the page of a firewall', page(403), unclear('status 403')],
  ['an outage', json(503, {}), unclear('status 503')],
])('a check of the access token understands %s', async (_what, answer, verdict) => {
  const url = await startServer((request, response) => {
    expect(request.headers.authorization).toBe('Bearer access-1');
    answer(response);
  });
  expect(await serviceAt(url).check('access-1')).toEqual(verdict);
});

test.each<[string, Answer | undefined, RegExp]>([
  ['that cannot be reached', undefined, /cannot be read \(ECONNREFUSED\)/],
  ['that is dead', json(404, {}), /no token set \(status 404\).*30 days.*make a new token/],
  ['that shows a page', page(200), /page for people.*tokens import - < file/],
  ['that redirects', redirect, /status 302/],
  ['that gives something else', json(200, { a: 1 }), /gives no token set.*whole link/],
  ['that gives an endless body', flood, /gives no token set/],
])('a token link %s is explained, without the link', async (_what, answer, message) => {
  const url = answer ? await answering(answer) : await refusingAddress();
  const reading = readLink(`${url}/links/secret`, { agent: 'test/1', http: direct });
  const said = await reading.then(() => 'a pair', String);
  expect(said).toMatch(message);
  expect(said).not.toContain('secret');
});

test('a token link gives its pair', async () => {
  const url = await answering(grant({ created_at: 1 }));
  const pair = await readLink(`${url}/links/1`, { agent: 'test/1', http: direct });
  expect(pair).toEqual(pairOf('2', { expiresIn: 60 }));
});

test.each(['<!doctype html>', '{}'])('the text %s is explained, and gives no tokens', (given) => {
  expect(() => readTokenSet(given)).toThrow(/not a token set \(JSON in UTF-8.*not the page itself/);
});

describe('at any token endpoint', () => {
  test.each([
    ['its code', 'invalid_client', 'status 401 (invalid_client)'],
    ['nothing, if the code may be what was sent', 'refresh-1', 'status 401'],
    ['nothing without a code', undefined, 'status 401'],
  ])('an error quotes %s', async (_what, error, quoted) => {
    const body = { error, error_description: 'Unknown: refresh-1' };
    const url = await answering(json(401, body));
    const { why } = (await exchangeAt(atAny(url))(pairOf('1'), always)) as { why: string };
    const advice = 'the service refuses the request itself, so check the settings and the proxy';
    expect(why).toBe(`${quoted}: ${advice}`);
  });

  test.each([
    [true, undefined],
    [false, 'no new refresh token'],
  ])(
    'an answer without a new refresh token or lifetimes is normal: %s',
    async (mayKeepToken, flaw) => {
      const url = await answering(json(200, { access_token: 'access-2' }));
      const lifetimes = { accessToken: 3_600, refreshToken: 1_000_000 };
      const exchange = exchangeAt({ ...atAny(url), mayKeepToken, lifetimes });
      const lives = { expiresIn: 3_600, refreshTokenExpiresIn: 1_000_000 };
      expect(await exchange(pairOf('1'), always)).toEqual({
        kind: 'granted',
        pair: pairOf('2', { refreshToken: 'refresh-1', ...lives }),
        ...(flaw !== undefined && { flaw }),
      });
    },
  );
});

async function untrusted(): Promise<string> {
  const server = createHttpsServer(await makeCertificate(), () => {});
  return `https://localhost:${await listenForTest(server)}`;
}
