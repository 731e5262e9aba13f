import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer as createNetServer } from 'node:net';
import { createServer as createHttpsServer } from 'node:https';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
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

/** Sends the refresh token of `pairOf('1')`, and counts the requests. */
async function exchangeWith(listener: RequestListener, answerMs?: number) {
  let requests = 0;
  const url = await startServer((request, response) => {
    requests += 1;
    listener(request, response);
  });
  const outcome = await serviceAt(url, direct, answerMs).exchange(pairOf('1'), always);
  return { outcome, requests };
}

/** Nothing else runs in this process. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const json =
  (status: number, body: unknown, headers = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };

const GRANT = {
  access_token: 'access-2',
  refresh_token: 'refresh-2',
  expires_in: 60,
  token_type: 'bearer',
};
const granted = (changes = {}): Exchange => ({
  kind: 'granted',
  pair: pairOf('2', { expiresIn: 60, ...changes }),
});

describe('an exchange', () => {
  test('is one POST of a form with the refresh token and the agent', async () => {
    let seen: unknown;
    await exchangeWith((request, response) => {
      const answer = async () => {
        const body = await text(request);
        const { method, url, headers } = request;
        seen = {
          method,
          url,
          body,
          agent: headers['api-user-agent'],
          type: headers['content-type'],
        };
        json(200, GRANT)(response, request);
      };
      void answer();
    });
    expect(seen).toEqual({
      method: 'POST',
      url: '/oauth/token',
      body: 'grant_type=refresh_token&refresh_token=refresh-1',
      agent: 'test/1',
      type: 'application/x-www-form-urlencoded',
    });
  });

  test.each<[string, Answer, object]>([
    ['a pair', json(200, GRANT), granted()],
    ['a pair with another 2xx', json(201, GRANT), granted()],
    ['blanks around its tokens', json(200, { ...GRANT, access_token: ' access-2\n' }), granted()],
    ['a byte order mark', (response) => response.end(`\uFEFF${JSON.stringify(GRANT)}`), granted()],
    ...[undefined, 0, -5, 1e308].map((life): [string, Answer, object] => [
      `an access token that lives for ${life} s`,
      json(200, { ...GRANT, expires_in: life }),
      granted({ expiresIn: 86_400 }),
    ]),
    ['a lifetime as text', json(200, { ...GRANT, expires_in: '60' }), granted()],
    ...[-1, 599, 'soon', 1e308].map((life): [string, Answer, object] => [
      `a refresh token that lives for ${life} s`,
      json(200, { ...GRANT, refresh_token_expires_in: life }),
      granted(),
    ]),
    [
      'other fields that are odd',
      json(200, { ...GRANT, token_type: 7, scope: {}, name: [], error: 'invalid_grant' }),
      granted(),
    ],
    [
      'no new refresh token',
      json(200, { ...GRANT, refresh_token: '' }),
      { ...granted({ refreshToken: 'refresh-1' }), flaw: 'no new refresh token' },
    ],
    [
      'the same refresh token',
      json(200, { ...GRANT, refresh_token: 'refresh-1' }),
      { ...granted({ refreshToken: 'refresh-1' }), flaw: 'no new refresh token' },
    ],
    [
      'no access token',
      json(200, { ...GRANT, access_token: null }),
      granted({ accessToken: 'access-1' }),
    ],
    ['invalid_grant', json(400, { error: 'invalid_grant' }), { kind: 'invalid-grant' }],
    ...(
      [
        ['7', 7],
        [undefined, 60],
        ['-5', 60],
        ['soon', 60],
        ['999999999999', 3_600],
      ] as const
    ).map(([wait, retryAfter]): [string, Answer, object] => [
      `a rate limit for ${wait}`,
      json(429, {}, wait === undefined ? {} : { 'retry-after': wait }),
      { kind: 'unsent', retryAfter },
    ]),
    [
      'a rate limit in a body',
      json(400, { error: 'rate_limited' }),
      { kind: 'unsent', retryAfter: 60 },
    ],
    [
      '401',
      json(401, { error: 'invalid_client' }),
      {
        kind: 'unsent',
        why: expect.stringMatching(/^status 401 \(invalid_client\): .*RECRUITING_URL/),
      },
    ],
    [
      '403',
      json(403, {}),
      { kind: 'unsent', why: expect.stringMatching(/^status 403: .*RECRUITING_AGENT/) },
    ],
    ['403 about the token', json(403, { error: 'invalid_grant' }), { kind: 'invalid-grant' }],
    [
      '500',
      json(500, { oops: true }),
      { kind: 'unclear', why: 'status 500', answer: '{"oops":true}' },
    ],
    [
      '502 of a proxy',
      (response) => response.writeHead(502).end('<html>'),
      { kind: 'unclear', answer: '<html>' },
    ],
    ['HTML with 200', (response) => response.end('<html>'), { kind: 'unclear', why: 'status 200' }],
    [
      'a redirect',
      (response) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
      { kind: 'unclear', why: 'status 302' },
    ],
    [
      'a gigabyte',
      (response) => writeHugeBody(response),
      { kind: 'unclear', why: 'its body is too large' },
    ],
    [
      'a reset',
      (response) => response.destroy(),
      { kind: 'unclear', why: 'UND_ERR_SOCKET', answer: null },
    ],
    [
      'a cut body',
      (response) => {
        response.writeHead(200, { 'content-length': 900 });
        response.write('{"access_token":');
        setImmediate(() => response.destroy());
      },
      { kind: 'unclear', answer: '{"access_token":' },
    ],
    [
      'a pair whose end is cut',
      (response) => {
        response.writeHead(200, { 'content-length': 900 });
        response.write(JSON.stringify(GRANT));
        setImmediate(() => response.destroy());
      },
      granted(),
    ],
  ])(
    'that is answered with %s ends as it should, after one request',
    async (_what, answer, expected) => {
      const { outcome, requests } = await exchangeWith((request, response) =>
        answer(response, request),
      );
      expect(outcome).toMatchObject(expected);
      expect(requests).toBe(1);
      if (outcome.kind === 'unclear' && outcome.answer)
        expect(outcome.answer.length).toBeLessThanOrEqual(65_536);
    },
  );

  test('that is never answered is unclear after its time', async () => {
    const { outcome } = await exchangeWith(() => {}, 50);
    expect(outcome).toEqual({ kind: 'unclear', why: 'no answer within 0.05 s', answer: null });
  });

  test('that trickles is unclear after its time, with what arrived', async () => {
    const { outcome } = await exchangeWith(
      (_request, response) => void response.write('{"acc'),
      50,
    );
    expect(outcome).toEqual({ kind: 'unclear', why: 'no answer within 0.05 s', answer: '{"acc' });
  });

  test('whose answer arrived while the process stood still for longer than it waits gives its pair', async () => {
    const { outcome } = await exchangeWith((_request, response) => {
      // Timers run before sockets are read.
      response.end(JSON.stringify(GRANT), () => standStill(100));
    }, 50);
    expect(outcome).toEqual(granted());
  });

  test('whose connection is refused was certainly not sent', async () => {
    const outcome = await serviceAt(await refusingAddress()).exchange(pairOf('1'), always);
    expect(outcome).toEqual({
      kind: 'unsent',
      why: expect.stringMatching(/^ECONNREFUSED: nothing was sent, so check .*HTTPS_PROXY/),
    });
  });

  test('whose host is unknown was certainly not sent', async () => {
    const outcome = await serviceAt('http://nowhere.invalid').exchange(pairOf('1'), always);
    expect(outcome).toMatchObject({
      kind: 'unsent',
      why: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/),
    });
  });

  test('whose certificate is not trusted was certainly not sent', async () => {
    const server = createHttpsServer(await makeCertificate(), () => {});
    const outcome = await serviceAt(`https://localhost:${await listenForTest(server)}`).exchange(
      pairOf('1'),
      always,
    );
    expect(outcome).toMatchObject({
      kind: 'unsent',
      why: expect.stringMatching(/^DEPTH_ZERO_SELF_SIGNED_CERT: /),
    });
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
    const url = await startServer((request, response) => json(200, GRANT)(response, request));
    const order: string[] = [];
    const written = () => order.push('written');
    subscribe('undici:request:bodySent', written);
    onTestFinished(() => void unsubscribe('undici:request:bodySent', written));
    const outcome = await serviceAt(url).exchange(pairOf('1'), () => {
      order.push('asked');
      process.nextTick(() => order.push('tick'));
      queueMicrotask(() => order.push('microtask'));
      setImmediate(() => order.push('turn'));
      return true;
    });
    expect(outcome).toEqual(granted());
    expect(order.slice(0, 2)).toEqual(['asked', 'written']);
    expect(order).toHaveLength(5);
  });
});

describe('through a proxy', () => {
  test.each(['', 'http://'])(
    'whose address begins with "%s", the request arrives',
    async (scheme) => {
      const seen: unknown[] = [];
      const proxy = await startServer((request, response) => {
        seen.push([request.url, request.headers['proxy-authorization']]);
        json(200, GRANT)(response, request);
      });
      const { host } = new URL(proxy);
      const http = proxyAgent({ HTTP_PROXY: `${scheme}user:password@${host}` });
      const service = serviceAt('http://recruiting.test', http);
      expect(await service.exchange(pairOf('1'), always)).toEqual(granted());
      const credentials = `Basic ${Buffer.from('user:password').toString('base64')}`;
      expect(seen).toEqual([['http://recruiting.test/oauth/token', credentials]]);
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
    expect(JSON.stringify(outcome)).not.toContain('refresh-1');
    // Connecting can take longer than a claim allows.
    expect(asked).toEqual([]);
  });

  test('that NO_PROXY excludes, the request goes directly', async () => {
    const url = await startServer((request, response) => json(200, GRANT)(response, request));
    const http = proxyAgent({ HTTP_PROXY: await refusingAddress(), NO_PROXY: '127.0.0.1' });
    expect(await serviceAt(url, http).exchange(pairOf('1'), always)).toEqual(granted());
  });
});

describe('a check of the access token', () => {
  test.each<[string, Answer, unknown]>([
    ['204', (response) => response.writeHead(204).end(), { kind: 'works' }],
    [
      'an expired token',
      json(401, { type: 'invalid_token', detail: 'token_expired' }),
      { kind: 'refused', detail: 'token_expired' },
    ],
    [
      'a 403 about the token',
      json(403, { type: 'invalid_token', detail: 'blocked' }),
      { kind: 'refused', detail: 'blocked' },
    ],
    [
      'the page of a firewall',
      (response) => response.writeHead(403).end('<html>'),
      { kind: 'unclear', why: 'status 403' },
    ],
    ['an outage', json(503, {}), { kind: 'unclear', why: 'status 503' }],
  ])('answers %s', async (_what, answer, verdict) => {
    const url = await startServer((request, response) => {
      expect(request.headers.authorization).toBe('Bearer access-1');
      answer(response, request);
    });
    expect(await serviceAt(url).check('access-1')).toEqual(verdict);
  });
});

describe('a token link', () => {
  test.each<[string, Answer, RegExp, boolean]>([
    ['that is dead', json(404, {}), /is dead \(status 404\).*new link/, false],
    [
      'that shows a page for people',
      (response) => response.end('<html>'),
      /page for people.*tokens import <file>/,
      false,
    ],
    [
      'that redirects',
      (response) => response.writeHead(302).end(),
      /redirect.*tokens import <file>/,
      false,
    ],
    ['of a service that is down', json(503, {}), /Wait until the service works again/, true],
    ['that gives something else', json(200, { a: 1 }), /gives no token set.*whole link/, false],
    ['that gives 100 MB', (response) => writeHugeBody(response), /gives no token set/, false],
  ])('%s is explained, without the link', async (_what, answer, message, isPassing) => {
    const url = await startServer((request, response) => answer(response, request));
    const error = await readLink(`${url}/links/secret`, { agent: 'test/1', http: direct }).catch(
      (each: unknown) => each,
    );
    expect(error).toBeInstanceOf(LinkError);
    expect((error as LinkError).message).toMatch(message);
    expect((error as LinkError).message).not.toContain('secret');
    expect((error as LinkError).isPassing).toBe(isPassing);
  });

  test('gives its pair', async () => {
    const url = await startServer((request, response) =>
      json(200, { ...GRANT, created_at: 1 })(response, request),
    );
    expect(await readLink(`${url}/links/1`, { agent: 'test/1', http: direct })).toEqual(
      pairOf('2', { expiresIn: 60 }),
    );
  });
});

describe('a token file', () => {
  const whole = JSON.stringify(GRANT);
  test.each<[string, Uint8Array, RegExp]>([
    ['in UTF-16', Buffer.from(`\uFEFF${whole}`, 'utf16le'), /not a token set \(JSON in UTF-8/],
    ['that is a page', Buffer.from('<!doctype html>'), /This is a page.*Save the JSON/],
    ['without tokens', Buffer.from('{}'), /not a token set/],
    ['of 100 KB', Buffer.from(' '.repeat(100_000) + whole), /not a token set/],
  ])('%s is explained', (_what, bytes, message) => {
    expect(() => readTokenFile(bytes)).toThrow(message);
  });

  test('gives its pair', () => {
    expect(readTokenFile(Buffer.from(whole))).toEqual(pairOf('2', { expiresIn: 60 }));
  });
});

const basic = (joined: string) => `Basic ${Buffer.from(joined).toString('base64')}`;

describe('at any token endpoint', () => {
  const refresh = { grant_type: 'refresh_token', refresh_token: pairOf('1').refreshToken };
  const settings = 'the settings';

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
    let seen: unknown;
    const url = await startServer((request, response) => {
      const answer = async () => {
        const form = Object.fromEntries(new URLSearchParams(await text(request)));
        seen = { path: request.url, authorization: request.headers.authorization, form };
        json(200, GRANT)(response, request);
      };
      void answer();
    });
    const extra = { scope: 'read write', audience: 'x', grant_type: 'never' };
    const address = new URL(`${url}/realms/one/token?v=2`);
    const exchange = exchangeAt({ url: address, http: direct, client, fields: extra, settings });
    expect(await exchange(pairOf('1'), always)).toMatchObject({ kind: 'granted' });
    const form = { scope: 'read write', audience: 'x', ...fields, ...refresh };
    expect(seen).toEqual({ path: '/realms/one/token?v=2', authorization, form });
  });

  const mistake = { kind: 'unsent', isMistake: true };
  test.each<[number, string | undefined, object]>([
    [400, 'invalid_request', mistake],
    [400, 'invalid_client', mistake],
    [401, 'invalid_client', mistake],
    [401, undefined, mistake],
    [400, 'unauthorized_client', mistake],
    [400, 'unsupported_grant_type', mistake],
    [400, 'invalid_scope', mistake],
    [403, 'invalid_scope', mistake],
    [403, undefined, { kind: 'unsent', isMistake: false }],
    [400, 'invalid_grant', { kind: 'invalid-grant' }],
    [400, 'server_error', { kind: 'unclear' }],
  ])('a status %i with %s is %o', async (status, error, outcome) => {
    const url = await startServer((request, response) =>
      json(status, { error })(response, request),
    );
    const exchange = exchangeAt({ url: new URL(url), http: direct, settings });
    expect(await exchange(pairOf('1'), always)).toMatchObject(outcome);
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
    const url = await startServer((request, response) => json(401, body)(response, request));
    const client = { id: 'a', secret: 'secret-1' };
    const exchange = exchangeAt({ url: new URL(url), http: direct, client, settings });
    const advice = 'the service refuses the request itself, so check the settings and the proxy';
    expect(await exchange(pairOf('1'), always)).toEqual({
      ...mistake,
      why: `status 401 (${quoted}): ${advice}`,
    });
  });

  test('lifetimes that it does not tell are passed in', async () => {
    const tokens = { access_token: 'access-2', refresh_token: 'refresh-2' };
    const url = await startServer((request, response) => json(200, tokens)(response, request));
    const lifetimes = { accessToken: 3_600, refreshToken: 1_000_000 };
    const exchange = exchangeAt({ url: new URL(url), http: direct, lifetimes, settings });
    const pair = pairOf('2', { expiresIn: 3_600, refreshTokenExpiresIn: 1_000_000 });
    expect(await exchange(pairOf('1'), always)).toEqual({ kind: 'granted', pair });
  });

  test.each([
    [true, undefined],
    [false, 'no new refresh token'],
  ])('an answer without a new refresh token is normal: %s', async (mayKeepToken, flaw) => {
    const { refresh_token: _, ...kept } = GRANT;
    const url = await startServer((request, response) => json(200, kept)(response, request));
    const exchange = exchangeAt({ url: new URL(url), http: direct, mayKeepToken, settings });
    const { refreshToken } = pairOf('1');
    expect(await exchange(pairOf('1'), always)).toEqual({
      kind: 'granted',
      pair: expect.objectContaining({ accessToken: 'access-2', refreshToken }) as unknown,
      ...(flaw !== undefined && { flaw }),
    });
  });
});
