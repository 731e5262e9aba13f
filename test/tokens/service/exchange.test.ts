import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { tokenEndpoint } from '../../../src/tokens/service/exchange.ts';
import { reasonOf } from '../../../src/tokens/service/connection.ts';
import { listenForTest, refusingAddress } from '../../support/test-server.ts';
import { ManualClock } from '../../support/random/manual-clock.ts';
import { makeCertificate } from './certificate.ts';
import { startExchange } from './start-exchange.ts';

type Respond = (response: ServerResponse) => unknown;

const pair = { access_token: 'made-access', refresh_token: 'made-refresh' };

describe('an exchange', () => {
  test('an exchange is one POST as the interface requires, and returns the content of the answer', async () => {
    const { baseUrl, requests } = await startService((response) =>
      json(response, 200, { ...pair, expires_in: 7200, refresh_token_expires_in: 'x', name: 'N' }),
    );
    expect(await exchange(`${baseUrl}/deeper`)).toEqual({
      kind: 'granted',
      grant: {
        accessToken: 'made-access',
        refreshToken: 'made-refresh',
        expiresIn: 7200,
        refreshTokenExpiresIn: undefined,
        name: 'N',
      },
    });
    expect(requests).toEqual([
      {
        line: 'POST /deeper/oauth/token',
        headers: expect.objectContaining({
          'content-type': 'application/x-www-form-urlencoded',
          'api-user-agent': 'test',
          host: new URL(baseUrl).host,
        }),
        body: 'grant_type=refresh_token&refresh_token=refresh+%26+1',
      },
    ]);
  });

  test.each([
    ['without a refresh token', { access_token: 'a' }, { accessToken: 'a' }],
    ['without an access token', { refresh_token: 'r' }, { refreshToken: 'r' }],
    ['with an empty one', { ...pair, access_token: '' }, { refreshToken: 'made-refresh' }],
    ['with odd lives', { ...pair, expires_in: -1 }, { expiresIn: undefined }],
  ])('no token is lost that arrived %s', async (_, body, held) => {
    const { baseUrl } = await startService((response) => json(response, 200, body));
    expect(await exchange(baseUrl)).toMatchObject({ kind: 'granted', grant: held });
  });

  test.each<[string, Respond, Record<string, unknown>]>([
    [
      '400 invalid_grant',
      (response) => json(response, 400, { error: 'invalid_grant', error_description: 'free text' }),
      { kind: 'invalid-grant' },
    ],
    ['401', (response) => json(response, 401, {}), { kind: 'refused', status: 401 }],
    ['403', (response) => json(response, 403, {}), { kind: 'refused', status: 403 }],
    ...(
      [
        ['400 unsupported_grant_type', (response) => json(response, 400, { error: 'other' })],
        ['400 HTML', (response) => response.writeHead(400).end('<html>')],
        ['400 null', (response) => json(response, 400, null)],
        ['404 invalid_grant', (response) => json(response, 404, { error: 'invalid_grant' })],
        ['500', (response) => json(response, 500, pair)],
        ['204', (response) => response.writeHead(204).end()],
        ['200 HTML', (response) => response.end('<html>')],
        ['200 without tokens', (response) => json(response, 200, { access_token: ' ' })],
        ['200 with too much', (response) => json(response, 200, { pad: 'x'.repeat(65_536), pair })],
        ['no HTTP', ({ socket }) => socket!.end('220 smtp.test\r\n')],
        ['nothing', ({ socket }) => socket!.destroy()],
        [
          'half a pair',
          (response) => {
            response.writeHead(200, { 'content-length': 500 });
            response.write(JSON.stringify(pair).slice(0, 40), () => response.destroy());
          },
        ],
      ] as [string, Respond][]
    ).map(([name, respond]): [string, Respond, Record<string, unknown>] => [
      name,
      respond,
      { kind: 'uncertain', why: expect.stringMatching(/^[\w .()]+$/) },
    ]),
  ])(
    'an answer with %s is classified, and the request is sent once',
    async (_, respond, outcome) => {
      const { baseUrl, requests } = await startService(respond);
      expect(await exchange(baseUrl)).toMatchObject(outcome);
      expect(requests).toHaveLength(1);
    },
  );

  test.each([
    ['30', 30],
    ['0', 1],
    ['999999999999', 3600],
    [undefined, 60],
    ['', 60],
    ['soon', 60],
    ['-5', 60],
    ['1.5', 60],
    ['Sat, 01 Jan 2000 00:00:00 GMT', 60],
    ['Fri, 02 Jan 2026 00:00:30 GMT', 30],
    ['Fri, 02 Jan 2026 12:00:00 GMT', 3600],
    ['2026-01-02', 60],
  ])(
    'after a 429 with Retry-After %s the wait is within reasonable limits',
    async (header, seconds) => {
      const { baseUrl } = await startService((response) => {
        response.writeHead(429, header === undefined ? {} : { 'retry-after': header }).end('Slow');
      });
      expect(await exchange(baseUrl, { clock: new ManualClock() })).toEqual({
        kind: 'rate-limited',
        retryAfter: seconds,
      });
    },
  );

  test.each([301, 302, 307, 308])(
    'a %i is not followed, so the token goes nowhere else',
    async (status) => {
      const elsewhere = await startService((response) => json(response, 200, pair));
      const location = `${elsewhere.baseUrl}/oauth/token`;
      const { baseUrl } = await startService((response) =>
        response.writeHead(status, { location }).end(),
      );
      expect(await exchange(baseUrl)).toMatchObject({ kind: 'uncertain' });
      expect(elsewhere.requests).toEqual([]);
    },
  );

  test('of an endless body no more is read than a token set may have', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    let written = 0;
    const { baseUrl } = await startService(async (response) => {
      response.writeHead(200);
      const gone = once(response, 'close');
      while (written < 1024 * chunk.length && !response.destroyed) {
        written += chunk.length;
        if (!response.write(chunk)) await Promise.race([once(response, 'drain'), gone]);
      }
    });
    expect(await exchange(baseUrl)).toMatchObject({
      kind: 'uncertain',
      why: expect.stringContaining('its body is too large'),
    });
    expect(written).toBeLessThan(32 * chunk.length);
  });
});

describe('whether it may still be sent', () => {
  test('permission is checked at the last moment, and without it no byte is sent', async () => {
    const { baseUrl, received, connected } = await startTcp();
    const endpoint = await connect(baseUrl);
    await connected;
    let asked = 0;
    const outcome = await endpoint.exchange('refresh-1', () => {
      asked += 1;
      return false;
    });
    await endpoint.close();
    expect([outcome, asked]).toEqual([{ kind: 'unsent' }, 1]);
    expect(await received).toBe(0);
  });

  test('no turn of the event loop passes between the check and the write', async () => {
    const { baseUrl } = await startService((response) => json(response, 200, pair));
    const order: string[] = [];
    const written = () => order.push('written');
    subscribe('undici:request:bodySent', written);
    onTestFinished(() => void unsubscribe('undici:request:bodySent', written));
    const endpoint = await connect(baseUrl);
    const outcome = await endpoint.exchange('refresh-1', () => {
      order.push('asked');
      process.nextTick(() => order.push('tick'));
      queueMicrotask(() => order.push('microtask'));
      setImmediate(() => order.push('turn'));
      return true;
    });
    await endpoint.close();
    expect(outcome).toMatchObject({ kind: 'granted' });
    expect(order.slice(0, 2)).toEqual(['asked', 'written']);
    expect(order).toHaveLength(5);
  });

  test('a failing check prevents the exchange', async () => {
    const { baseUrl, requests } = await startService((response) => json(response, 200, pair));
    const endpoint = await connect(baseUrl);
    expect(await endpoint.exchange('refresh-1', fail)).toEqual({ kind: 'unsent' });
    await endpoint.close();
    expect(requests).toEqual([]);
  });

  test('a second exchange on the connection is prevented', async () => {
    const { baseUrl, requests } = await startService((response) => json(response, 200, pair));
    const endpoint = await connect(baseUrl);
    await endpoint.exchange('refresh-1', () => true);
    expect(await endpoint.exchange('refresh-1', () => true)).toMatchObject({ kind: 'uncertain' });
    await endpoint.close();
    expect(requests).toHaveLength(1);
  });
});

describe('an answer', () => {
  test('an answer that never arrives is given up after its timeout', async () => {
    const { baseUrl, requests } = await startService(() => {});
    expect(await exchange(baseUrl, { patienceMs: 100 })).toEqual({
      kind: 'uncertain',
      why: 'no answer within 0.1 s',
    });
    expect(requests).toHaveLength(1);
  });

  test('an answer without an end still returns its pair', async () => {
    const { baseUrl } = await startService((response) => {
      response.writeHead(200).write(JSON.stringify(pair));
    });
    expect(await exchange(baseUrl, { patienceMs: 100 })).toMatchObject({
      kind: 'granted',
      grant: { accessToken: 'made-access' },
    });
  });

  // /proc tells when a process has stopped.
  test.skipIf(process.platform !== 'linux')(
    'an answer that arrives while the process is stopped for longer than it waits for answers is not lost',
    async () => {
      const patienceMs = 400;
      const asked = Promise.withResolvers<ServerResponse>();
      const { baseUrl } = await startService((response) => asked.resolve(response));
      const child = startExchange({ baseUrl, patienceMs });
      const response = await asked.promise;
      await child.stop();
      json(response, 200, pair);
      await once(response, 'finish');
      await delay(2 * patienceMs);
      child.goOn();
      expect(await child.outcome).toMatchObject({ kind: 'granted' });
    },
  );
});

describe('a connection', () => {
  test('the connection is made without a byte of the request', async () => {
    const { baseUrl, received, connected } = await startTcp();
    const endpoint = await connect(baseUrl);
    await connected;
    await endpoint.close();
    expect(await received).toBe(0);
  });

  test('a connection that the service ends before the request gets no byte of it', async () => {
    const { baseUrl, received } = await startTcp((socket) => socket.end());
    const endpoint = await connect(baseUrl);
    expect(await received).toBe(0);
    const { kind } = await endpoint.exchange('refresh-1', () => true);
    await endpoint.close();
    // The kernel decides which of the two ends first.
    expect(['unsent', 'uncertain']).toContain(kind);
  });

  test('a connection on which the service sends first gets no byte of the request', async () => {
    const greeted = Promise.withResolvers<void>();
    const { baseUrl, received } = await startTcp((socket) =>
      socket.write('HTTP/1.1 408 Request Timeout\r\n\r\n', () => greeted.resolve()),
    );
    const endpoint = await connect(baseUrl);
    await greeted.promise;
    // Two turns: sockets were read between them.
    await turn();
    await turn();
    expect(await endpoint.exchange('refresh-1', () => true)).toEqual({ kind: 'unsent' });
    await endpoint.close();
    expect(await received).toBe(0);
  });

  test('a connection over IPv6 works', async ({ skip }) => {
    const port = await listenForTest(createServer(give), '::1').catch(() => undefined);
    if (port === undefined) return skip('no IPv6 here');
    expect(await exchange(`http://[::1]:${port}`)).toMatchObject({ kind: 'granted' });
  });

  test('a refused connection leaves nothing behind', async () => {
    expect(await failureOf(connect(await refusingAddress()))).toBe('ECONNREFUSED');
  });

  test('a connection to an unknown host name leaves nothing behind', async () => {
    expect(await failureOf(connect('http://recruiting.invalid'))).toMatch(/^ENOTFOUND|EAI_AGAIN$/);
  });

  test.each([
    ['whose certificate nobody vouches for', true, /^DEPTH_ZERO_SELF_SIGNED_CERT$/],
    ['that should speak TLS, but does not,', false, /SSL|ECONNRESET/],
  ])('%s gets no byte of the request', async (_, isTls, failure) => {
    let requests = 0;
    const count = () => void (requests += 1);
    const server = isTls ? createTlsServer(await makeCertificate(), count) : createServer(count);
    const baseUrl = `https://127.0.0.1:${await listenForTest(server)}`;
    expect(await failureOf(connect(baseUrl))).toMatch(failure);
    expect(requests).toBe(0);
  });

  test('a connection with a private certificate works if NODE_EXTRA_CA_CERTS names it', async () => {
    const certificate = await makeCertificate();
    const port = await listenForTest(createTlsServer(certificate, give));
    const trusting = { NODE_EXTRA_CA_CERTS: certificate.path };
    for (const host of ['localhost', '127.0.0.1']) {
      const { outcome } = startExchange({ baseUrl: `https://${host}:${port}` }, trusting);
      expect(await outcome).toMatchObject({ kind: 'granted' });
    }
  });

  test('a connection to a host that the certificate does not name gets no byte of the request', async () => {
    const certificate = await makeCertificate('other.test');
    let requests = 0;
    const port = await listenForTest(createTlsServer(certificate, () => (requests += 1)));
    const trusting = { NODE_EXTRA_CA_CERTS: certificate.path };
    const { outcome } = startExchange({ baseUrl: `https://localhost:${port}` }, trusting);
    expect(await outcome).toEqual({ kind: 'not connected', why: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(requests).toBe(0);
  });
});

type Options = Partial<Parameters<typeof tokenEndpoint>[0]>;

function connect(baseUrl: string, options: Options = {}) {
  return tokenEndpoint({
    baseUrl,
    agent: 'test',
    proxy: undefined,
    clock: systemClock,
    ...options,
  })();
}

async function exchange(baseUrl: string, options: Options = {}) {
  const endpoint = await connect(baseUrl, options);
  try {
    return await endpoint.exchange('refresh & 1', () => true);
  } finally {
    await endpoint.close();
  }
}

async function startService(respond: Respond) {
  const requests: { line: string; headers: unknown; body: string }[] = [];
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    text(request)
      .then((body) => {
        requests.push({ line: `${method} ${url}`, headers, body });
        return respond(response);
      })
      .catch((error: Error) => response.destroy(error));
  });
  const baseUrl = `http://127.0.0.1:${await listenForTest(server)}`;
  return { baseUrl, requests };
}

/** Counts the bytes of the first connection, until it is closed. */
async function startTcp(greet: (socket: Socket) => unknown = () => {}) {
  const connected = Promise.withResolvers<void>();
  const received = Promise.withResolvers<number>();
  const server = createTcpServer((socket) => {
    let bytes = 0;
    socket.on('data', ({ length }) => (bytes += length)).on('close', () => received.resolve(bytes));
    connected.resolve();
    greet(socket);
  });
  const baseUrl = `http://127.0.0.1:${await listenForTest(server)}`;
  return { baseUrl, connected: connected.promise, received: received.promise };
}

function give(_: unknown, response: ServerResponse): void {
  json(response, 200, pair);
}

function fail(): never {
  throw new Error('broken');
}

async function failureOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => 'no failure', reasonOf);
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
