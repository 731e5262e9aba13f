import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { authCheck } from '../../../src/tokens/service/auth-check.ts';
import { tokenEndpoint } from '../../../src/tokens/service/exchange.ts';
import { openConnection } from '../../../src/tokens/service/connection.ts';
import { readTokenLink } from '../../../src/tokens/service/token-link.ts';
import { listenForTest } from '../../support/test-server.ts';
import { makeCertificate, type Certificate } from './certificate.ts';
import { startProxy, type ProxyAnswer } from './proxy-server.ts';
import { startExchange } from './start-exchange.ts';

const set = { access_token: 'made-access', refresh_token: 'made-refresh' };

describe('through a proxy', () => {
  test('an exchange uses a tunnel, also over plain http', async () => {
    const { host, heads, tunnelled } = await startProxy();
    const { baseUrl } = await startService();
    expect(await exchange(baseUrl, `http://${host}`)).toMatchObject({ kind: 'granted' });
    const target = new URL(baseUrl).host;
    expect(heads).toEqual([
      expect.stringContaining(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n`),
    ]);
    expect(heads[0]).not.toMatch(/refresh|authorization|api-user-agent/i);
    expect(tunnelled()).toMatch(/^POST \/oauth\/token HTTP\/1.1\r\n/);
  });

  test.each([
    ['http', 'localhost'],
    ['http', '127.0.0.1'],
    ['https', 'localhost'],
    ['https', '127.0.0.1'],
  ])('an exchange over TLS shows the proxy nothing (%s, to %s)', async (scheme, name) => {
    const certificate = await makeCertificate();
    const proxy = await startProxy(scheme === 'https' ? { certificate } : {});
    const { port } = await startService({ certificate });
    const { outcome } = startExchange(
      { baseUrl: `https://${name}:${port}`, proxy: `${scheme}://${proxy.host}` },
      { NODE_EXTRA_CA_CERTS: certificate.path },
    );
    expect(await outcome).toMatchObject({ kind: 'granted' });
    expect(proxy.heads).toEqual([expect.stringContaining(`CONNECT ${name}:${port} `)]);
    expect(proxy.tunnelled().length).toBeGreaterThan(100);
    expect(proxy.tunnelled()).not.toMatch(/refresh|POST/);
  });

  test.each([
    ['user:p%40ss%3Aword', 'user:p@ss:word'],
    ['user', 'user:'],
    ['100%:x', '100%:x'],
  ])('the proxy gets the credentials %s of its address', async (credentials, expected) => {
    const { host, heads } = await startProxy();
    const { baseUrl } = await startService();
    await exchange(baseUrl, `http://${credentials}@${host}`);
    const [, sent] = /proxy-authorization: Basic (\S+)\r\n/.exec(heads[0]!)!;
    expect(Buffer.from(sent!, 'base64').toString()).toBe(expected);
  });

  test('an exchange works if the proxy answers in pieces', async () => {
    const { host } = await startProxy({
      answer: (socket, open) => {
        const bytes = 'HTTP/1.1 200 OK\r\nVia: 1.1 proxy.test\r\n\r\n'.split('');
        const next = () => {
          const byte = bytes.shift();
          if (byte === undefined) open();
          else socket.write(byte, () => setImmediate(next));
        };
        next();
      },
    });
    const { baseUrl } = await startService();
    expect(await exchange(baseUrl, `http://${host}`)).toMatchObject({ kind: 'granted' });
  });

  test.each<[string, ProxyAnswer, RegExp]>([
    ['403', says('HTTP/1.1 403 No\r\ncontent-length: 3\r\n\r\nNo!'), /refuses .* status 403$/],
    [
      '407',
      says('HTTP/1.1 407 Who\r\nproxy-authenticate: Basic\r\n\r\n'),
      /refuses .* status 407$/,
    ],
    ['502', says('HTTP/1.1 502 Down\r\n\r\n'), /refuses .* status 502$/],
    ['a redirect', says('HTTP/1.1 302 X\r\nlocation: http://x.test\r\n\r\n'), /status 302$/],
    ['nonsense', says('SSH-2.0-OpenSSH\r\n\r\n'), /does not connect: HTTPParserError$/],
    ['nothing', (socket) => void socket.end(), /does not connect: UND_ERR_SOCKET$/],
    ['a cut connection', (socket) => void socket.resetAndDestroy(), /does not connect: \w+$/],
  ])(
    'a proxy that answers with %s fails the connection with a clear message',
    async (_, answer, text) => {
      const { host } = await startProxy({ answer });
      const { baseUrl, requests } = await startService();
      const message = await failure(exchange(baseUrl, `http://user:password@${host}`));
      expect(message).toContain(host);
      expect(message).toMatch(text);
      expect(message).not.toMatch(/user|password/);
      expect(requests).toEqual([]);
    },
  );

  test.each([
    ['is down', 'http://user:password@127.0.0.1:1', /127.0.0.1:1 cannot be reached: ECONNREFUSED/],
    ['has no name', 'http://user:password@proxy.invalid:3128', /proxy.invalid:3128 cannot be/],
    ['is of another kind', 'socks5://user:password@127.0.0.1:1', /not an http:/],
    ['is nonsense', 'user:password@proxy', /not an http:/],
    ['has no host', 'http://', /not an http:/],
  ])('a proxy that %s fails the connection with a clear message', async (_, proxy, text) => {
    const { baseUrl, requests } = await startService();
    const message = await failure(exchange(baseUrl, proxy));
    expect(message).toMatch(text);
    expect(message).not.toMatch(/user|password/);
    expect(requests).toEqual([]);
  });

  test('the connection is given up if the proxy never answers', async () => {
    const { host } = await startProxy({ answer: () => {} });
    const opening = openConnection(new URL('https://service.test'), `http://${host}`, 100);
    expect(await failure(opening)).toMatch(/no connection to service.test within 0.1 s/);
  });

  test('the connection is given up if there is no TLS behind the proxy', async () => {
    const { host } = await startProxy({ answer: says('HTTP/1.1 200 OK\r\n\r\n') });
    const opening = openConnection(new URL('https://service.test'), `http://${host}`, 100);
    expect(await failure(opening)).toMatch(/no connection to service.test within 0.1 s/);
  });

  test('no byte of the request is sent to a service with a bad certificate', async () => {
    const proxy = await startProxy();
    const { port, requests } = await startService({ certificate: await makeCertificate() });
    const { outcome } = startExchange({
      baseUrl: `https://localhost:${port}`,
      proxy: `http://${proxy.host}`,
    });
    expect(await outcome).toEqual({ kind: 'not connected', why: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
    expect(requests).toEqual([]);
  });

  test('the token link and the check of the access token use the proxy too', async () => {
    const { host, heads } = await startProxy();
    const { baseUrl, requests } = await startService();
    const options = { agent: 'test', proxy: `http://${host}` };
    expect(await readTokenLink(`${baseUrl}/link?a=1`, options)).toMatchObject({
      accessToken: 'made-access',
    });
    expect(await authCheck({ baseUrl, ...options })('made-access')).toEqual({ kind: 'works' });
    expect(requests).toEqual(['GET /link?a=1', 'GET /auth_check']);
    expect(heads).toHaveLength(2);
  });

  test('the token link and the check of the access token report a proxy that refuses', async () => {
    const { host } = await startProxy({ answer: says('HTTP/1.1 407 Who\r\n\r\n') });
    const { baseUrl } = await startService();
    const options = { agent: 'test', proxy: `http://user:password@${host}` };
    const why = `the proxy ${host} refuses to connect, with status 407`;
    expect(await failure(readTokenLink(`${baseUrl}/secret`, options))).toBe(
      `The token link at ${new URL(baseUrl).host} cannot be read (${why}). Check the link, the network, HTTPS_PROXY and NODE_EXTRA_CA_CERTS.`,
    );
    expect(await authCheck({ baseUrl, ...options })('x')).toEqual({ kind: 'unknown', why });
  });
});

function says(text: string): ProxyAnswer {
  return (socket) => void socket.write(text);
}

async function exchange(baseUrl: string, proxy: string) {
  const endpoint = await tokenEndpoint({ baseUrl, agent: 'test', proxy, clock: systemClock })();
  try {
    return await endpoint.exchange('refresh-1', () => true);
  } finally {
    await endpoint.close();
  }
}

async function failure(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no failure',
    (error: Error) => error.message,
  );
}

/** Answers every request with a token set. */
async function startService({ certificate }: { certificate?: Certificate } = {}) {
  const requests: string[] = [];
  const answer: RequestListener = ({ method, url }, response) => {
    requests.push(`${method} ${url}`);
    response.end(JSON.stringify(set));
  };
  const server = certificate ? createTlsServer(certificate, answer) : createServer(answer);
  const port = await listenForTest(server);
  return { baseUrl: `http://127.0.0.1:${port}`, port, requests };
}
