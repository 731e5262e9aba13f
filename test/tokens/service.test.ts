import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer as createNetServer } from 'node:net';
import { createServer as createHttpsServer } from 'node:https';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LinkError, readLink, readTokenFile } from '../../src/tokens/link.ts';
import {
  exchangeAt,
  proxyAgent,
  tokenService,
  type ClientCredentials,
  type Exchange,
} from '../../src/tokens/service.ts';
import {
  listenForTest,
  refusingAddress,
  startServer,
  writeHugeBody,
} from '../support/test-server.ts';
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

/** Sends the refresh token of `pairOf('1')`, and counts the requests. */
async function exchangeWith(answer: Answer, answerMs?: number) {
  let requests = 0;
  const url = await answering((response) => {
    requests += 1;
    answer(response);
  });
  const outcome = await serviceAt(url, direct, answerMs).exchange(pairOf('1'), always);
  return { outcome, requests };
}

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
const late = (answer: string | null) => unclear('no answer within 0.05 s', answer);
const unsent = (why: RegExp) => ({ kind: 'unsent', why: expect.stringMatching(why) });
const MISTAKE = { kind: 'unsent', isMistake: true };

/** The form, or the headers, of the one request. */
async function sentTo(send: (url: string) => Promise<Exchange>) {
  const seen: { path?: string | undefined; headers?: IncomingHttpHeaders; form?: object } = {};
  const url = await startServer((request, response) => {
    const answer = async () => {
      const form = Object.fromEntries(new URLSearchParams(await text(request)));
      Object.assign(seen, {
        path: `${request.method} ${request.url}`,
        headers: request.headers,
        form,
      });
      json(200, GRANT)(response);
    };
    void answer();
  });
  expect(await send(url)).toMatchObject({ kind: 'granted' });
  return seen;
}

describe('an exchange', () => {
  test('is one POST of a form with the refresh token and the agent, on a connection of its own', async () => {
    expect(await sentTo((url) => serviceAt(url).exchange(pairOf('1'), always))).toMatchObject({
      path: 'POST /oauth/token',
      headers: {
        'api-user-agent': 'test/1',
        'content-type': 'application/x-www-form-urlencoded',
        connection: 'close',
      },
      form: { grant_type: 'refresh_token', refresh_token: 'refresh-1' },
    });
  });

  test.each<[string, Answer, object]>([
    ['a pair', json(200, GRANT), granted()],
    ['a pair with another 2xx', json(201, GRANT), granted()],
    ['blanks around its tokens', grant({ access_token: ' access-2\n' }), granted()],
    ['a byte order mark', (response) => response.end(`\uFEFF${GRANTED}`), granted()],
    ...[undefined, 0, -5, 1e308].map((life): [string, Answer, object] => [
      `an access token that lives for ${life} s`,
      grant({ expires_in: life }),
      granted({ expiresIn: 86_400 }),
    ]),
    ['a lifetime as text', grant({ expires_in: '60' }), granted()],
    ...[-1, 599, 'soon', 1e308].map((life): [string, Answer, object] => [
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
    ['403', json(403, {}), { ...unsent(/^status 403: .*RECRUITING_AGENT/), isMistake: false }],
    ['400 server_error', json(400, { error: 'server_error' }), { kind: 'unclear' }],
    ['500', json(500, { oops: true }), unclear('status 500', '{"oops":true}')],
    ['502 of a proxy', page(502), unclear('status 502', '<html>')],
    ['HTML with 200', page(200), unclear('status 200')],
    ['a redirect', redirect, unclear('status 302')],
    ['a gigabyte', (response) => writeHugeBody(response), unclear('its body is too large')],
    ['a reset', (response) => response.destroy(), unclear('UND_ERR_SOCKET')],
    ['a cut body', cutAfter('{"access_token":'), { kind: 'unclear', answer: '{"access_token":' }],
  ])('that is answered with %s ends as it should, after one request', async (...row) => {
    const [, answer, expected] = row;
    const { outcome, requests } = await exchangeWith(answer);
    expect(outcome).toMatchObject(expected);
    expect(requests).toBe(1);
    if (outcome.kind === 'unclear') {
      expect(outcome.answer?.length ?? 0).toBeLessThanOrEqual(65_536);
    }
  });

  test.each<[string, Answer, object]>([
    ['is never answered', () => {}, late(null)],
    ['trickles', (response) => void response.write('{"acc'), late('{"acc')],
    // Timers run before sockets are read.
    [
      'is answered while the process stands still',
      (response) => void response.end(GRANTED, () => standStill(100)),
      granted(),
    ],
  ])('that %s for longer than it waits ends with what arrived', async (_what, answer, outcome) => {
    expect((await exchangeWith(answer, 50)).outcome).toEqual(outcome);
  });

  test.each<[string, () => Promise<string>, RegExp]>([
    [
      'connection is refused',
      refusingAddress,
      /^ECONNREFUSED: nothing was sent, so check .*HTTPS_/,
    ],
    ['host is unknown', async () => 'http://nowhere.invalid', /ENOTFOUND|EAI_AGAIN/],
    ['certificate is not trusted', untrusted, /^DEPTH_ZERO_SELF_SIGNED_CERT: /],
  ])('whose %s was certainly not sent', async (_what, address, why) => {
    const outcome = await serviceAt(await address()).exchange(pairOf('1'), always);
    expect(outcome).toMatchObject(unsent(why));
  });

  test('asks right before the bytes are written whether they may still be sent', async () => {
    const heard: string[] = [];
    const server = createNetServer((socket) =>
      socket.on('data', (data) => heard.push(String(data))),
    );
    const url = `http://127.0.0.1:${await listenForTest(server, '127.0.0.1')}`;
    const outcome = await serviceAt(url).exchange(pairOf('1'), () => false);
    expect(outcome).toEqual({ kind: 'unsent', why: 'it was too late to send it' });
    expect(heard.join('')).not.toContain('refresh-1');
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
  test.each(['', 'http://'])(
    'whose address begins with "%s", the request arrives',
    async (scheme) => {
      const seen: unknown[] = [];
      const proxy = await startServer((request, response) => {
        seen.push([request.url, request.headers['proxy-authorization']]);
        json(200, GRANT)(response);
      });
      const http = proxyAgent({ HTTP_PROXY: `${scheme}user:password@${new URL(proxy).host}` });
      const service = serviceAt('http://recruiting.test', http);
      expect(await service.exchange(pairOf('1'), always)).toEqual(granted());
      expect(seen).toEqual([['http://recruiting.test/oauth/token', basic('user:password')]]);
    },
  );

  test('that refuses to connect, nothing was sent', async () => {
    const proxy = await startProxy({
      answer: (socket) => void socket.end('HTTP/1.1 407 No\r\n\r\n'),
    });
    const http = proxyAgent({ HTTPS_PROXY: `http://${proxy.host}` });
    const asked: string[] = [];
    const maySend = () => asked.push('whether it may be sent') > 0;
    const outcome = await serviceAt('https://recruiting.test', http).exchange(pairOf('1'), maySend);
    expect(outcome.kind).toBe('unsent');
    // Connecting can take longer than a claim allows.
    expect(asked).toEqual([]);
  });

  test('that NO_PROXY excludes, the request goes directly', async () => {
    const url = await answering(json(200, GRANT));
    const http = proxyAgent({ HTTP_PROXY: await refusingAddress(), NO_PROXY: '127.0.0.1' });
    expect(await serviceAt(url, http).exchange(pairOf('1'), always)).toEqual(granted());
  });
});

const refusal = (detail: string) => ({ type: 'invalid_token', detail });

test.each<[string, Answer, object]>([
  ['204', (response) => void response.writeHead(204).end(), { kind: 'works' }],
  ['an expired token', json(401, refusal('expired')), { kind: 'refused', detail: 'expired' }],
  ['a 403 about the token', json(403, refusal('blocked')), { kind: 'refused', detail: 'blocked' }],
  ['the page of a firewall', page(403), unclear('status 403')],
  ['an outage', json(503, {}), unclear('status 503')],
])('a check of the access token understands %s', async (_what, answer, verdict) => {
  const url = await startServer((request, response) => {
    expect(request.headers.authorization).toBe('Bearer access-1');
    answer(response);
  });
  expect(await serviceAt(url).check('access-1')).toEqual(verdict);
});

test.each<[string, Answer, RegExp, isPassing: boolean]>([
  ['that is dead', json(404, {}), /is dead \(status 404\).*new link/, false],
  ['that has ended', json(410, {}), /is dead \(status 410\)/, false],
  ['that is limited', json(429, {}), /Wait until the service works again/, true],
  ['that shows a page', page(200), /page for people.*tokens import <file>/, false],
  ['that redirects', redirect, /redirect.*tokens import <file>/, false],
  ['of a service that is down', json(503, {}), /Wait until the service works again/, true],
  ['that gives something else', json(200, { a: 1 }), /gives no token set.*whole link/, false],
  ['that gives 100 MB', (response) => writeHugeBody(response), /gives no token set/, false],
])('a token link %s is explained, without the link', async (_what, answer, message, isPassing) => {
  const url = await answering(answer);
  const reading = readLink(`${url}/links/secret`, { agent: 'test/1', http: direct });
  const error = (await reading.catch((each: unknown) => each)) as LinkError;
  expect(error).toBeInstanceOf(LinkError);
  expect(error.message).toMatch(message);
  expect(error.message).not.toContain('secret');
  expect(error.isPassing).toBe(isPassing);
});

test('a token link gives its pair', async () => {
  const url = await answering(grant({ created_at: 1 }));
  const pair = await readLink(`${url}/links/1`, { agent: 'test/1', http: direct });
  expect(pair).toEqual(pairOf('2', { expiresIn: 60 }));
});

test.each<[string, Uint8Array, RegExp]>([
  ['in UTF-16', Buffer.from(`\uFEFF${GRANTED}`, 'utf16le'), /not a token set \(JSON in UTF-8/],
  ['that is a page', Buffer.from('<!doctype html>'), /This is a page.*Save the JSON/],
  ['without tokens', Buffer.from('{}'), /not a token set/],
  ['of 100 KB', Buffer.from(' '.repeat(100_000) + GRANTED), /not a token set/],
])('a token file %s is explained', (_what, bytes, message) => {
  expect(() => readTokenFile(bytes)).toThrow(message);
  expect(readTokenFile(Buffer.from(GRANTED))).toEqual(pairOf('2', { expiresIn: 60 }));
});

describe('at any token endpoint', () => {
  const settings = 'the settings';
  const at = (url: string) => ({ url: new URL(url), http: direct, settings });

  test.each<[string, ClientCredentials | undefined, string | undefined, object]>([
    ['no client', undefined, undefined, {}],
    ['a public client', { id: 'a' }, undefined, { client_id: 'a' }],
    ['a secret in the header', { id: 'a:b', secret: 'c d%' }, basic('a%3Ab:c+d%25'), {}],
    [
      'a secret in the body',
      { id: 'a', secret: 'c d', in: 'body' },
      undefined,
      { client_id: 'a', client_secret: 'c d' },
    ],
  ])('the client names itself: %s', async (_, client, authorization, fields) => {
    const extra = { scope: 'read write', audience: 'x', grant_type: 'never' };
    const { path, headers, form } = await sentTo((url) => {
      const endpoint = at(`${url}/realms/one/token?v=2`);
      return exchangeAt({ ...endpoint, client, fields: extra })(pairOf('1'), always);
    });
    const refresh = { grant_type: 'refresh_token', refresh_token: 'refresh-1' };
    expect(path).toBe('POST /realms/one/token?v=2');
    expect(headers!.authorization).toBe(authorization);
    expect(form).toEqual({ scope: 'read write', audience: 'x', ...fields, ...refresh });
  });

  test.each<[what: string, description: unknown, quoted: string]>([
    ['as it is', 'The client is unknown.', 'invalid_client: The client is unknown.'],
    ['not if it is no text', { a: 1 }, 'invalid_client'],
    ['as one line', 'a\r\n\u001B[31mb', 'invalid_client: a [31mb'],
    ['with at most 200 characters', 'x'.repeat(9_999), `invalid_client: ${'x'.repeat(200)}`],
    [
      'without what was sent',
      `${basic('a:secret-1')} has secret-1, refresh-1 and access-1`,
      'invalid_client: Basic … has …, … and …',
    ],
  ])('the description of an error is quoted %s', async (_what, error_description, quoted) => {
    const body = { error: 'invalid_client', error_description };
    const url = await answering(json(401, body));
    const exchange = exchangeAt({ ...at(url), client: { id: 'a', secret: 'secret-1' } });
    const { why } = (await exchange(pairOf('1'), always)) as { why: string };
    const advice = 'the service refuses the request itself, so check the settings and the proxy';
    expect(why).toBe(`status 401 (${quoted}): ${advice}`);
  });

  test.each([
    [true, undefined],
    [false, 'no new refresh token'],
  ])(
    'an answer without a new refresh token or lifetimes is normal: %s',
    async (mayKeepToken, flaw) => {
      const url = await answering(json(200, { access_token: 'access-2' }));
      const lifetimes = { accessToken: 3_600, refreshToken: 1_000_000 };
      const exchange = exchangeAt({ ...at(url), mayKeepToken, lifetimes });
      const lives = { expiresIn: 3_600, refreshTokenExpiresIn: 1_000_000 };
      expect(await exchange(pairOf('1'), always)).toEqual({
        kind: 'granted',
        pair: pairOf('2', { refreshToken: 'refresh-1', ...lives }),
        ...(flaw !== undefined && { flaw }),
      });
    },
  );
});

function basic(joined: string): string {
  return `Basic ${Buffer.from(joined).toString('base64')}`;
}

async function untrusted(): Promise<string> {
  const server = createHttpsServer(await makeCertificate(), () => {});
  return `https://localhost:${await listenForTest(server)}`;
}
