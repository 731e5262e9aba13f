import { createHmac } from 'node:crypto';
import { exportJWK, exportSPKI } from 'jose';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { headOf, openBare } from '../../support/clients/bare-client.ts';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';
import { post, startFront, type Body, type Front } from '../front.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { seconds, startIssuer, type Issuer } from './issuer.ts';

const KEY = 'rsk_of-the-portal-0123456789012345678901';
const WRITER = 'rsk_of-the-writer-0123456789012345678901';
const ASK = { query: '{ me { id } }' };
const ANSWER = { data: { me: { id: 1 } } };

let issuer: Issuer;
let front: Front;
beforeAll(async () => {
  issuer = await startIssuer();
  await issuer.addKey('RS256', 'rsa');
  await issuer.addKey('EdDSA', 'ed');
  front = await startFront({
    config: {
      mutations: 'all',
      auth: authOf(issuer),
    },
  });
});
afterAll(async () => {
  await front[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});

describe('a request without a credential', () => {
  test('is told which credentials there are, in the format that it accepts', async () => {
    const accept = 'application/graphql-response+json, application/json;q=0.9';
    const response = await fetch(`${front.url}/graphql`, post(ASK, { accept }));
    expect(response.status).toBe(401);
    expect(response.headers.get('content-type')).toMatch(/^application\/graphql-response\+json;/);
    expect(response.headers.get('www-authenticate')).toBe(
      'ApiKey realm="recruiting-subgraph", header="x-api-key", Bearer realm="recruiting-subgraph"',
    );
    expect(await response.json()).toEqual({
      errors: [
        {
          message:
            'This request has no credential. Send an API key from the operator of this gateway, as "x-api-key: <key>", ' +
            'or the access token of a signed-in user, as "authorization: Bearer <token>".',
          extensions: { code: 'UNAUTHENTICATED' },
        },
      ],
    });
  });

  test('is refused without waiting for its body', async () => {
    const head = 'POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
    const socket = openBare(front, `${head}Content-Length: 100\r\n\r\n`);
    expect(await headOf(socket)).toMatch(/^HTTP\/1.1 401 /);
  });
});

describe('an API key', () => {
  test('the owner of an API key is admitted, and a wrong key is refused without repeating it', async () => {
    expect(await answerTo({ 'X-API-Key': KEY })).toEqual(ANSWER);
    for (const key of [KEY.slice(0, -1), KEY.toUpperCase(), `${KEY}, ${KEY}`, 'constructor']) {
      const response = await ask({ 'x-api-key': key });
      expect(response.headers.get('www-authenticate')).not.toContain('error');
      const text = await response.text();
      expect([response.status, text]).toEqual([
        401,
        expect.stringMatching(/^{"errors":\[{"message":"The API key in x-api-key is not valid\./),
      ]);
      expect(text).not.toContain(key);
    }
  });

  test('a key is read only from its header', async () => {
    const { url } = front;
    for (const response of [
      await ask({ authorization: KEY }),
      await ask({ authorization: `Bearer ${KEY}` }),
      await ask({ cookie: `x-api-key=${KEY}` }),
      await fetch(`${url}/graphql?query={me{id}}&x-api-key=${KEY}`),
    ]) {
      expect(await codeOf(response)).toEqual([401, 'UNAUTHENTICATED']);
    }
  });
});

describe('a bearer token', () => {
  test.each<[string, () => Promise<string>]>([
    ['signed by a curve', () => issuer.token()],
    ['signed by RSA', () => issuer.token({}, { kid: 'rsa' })],
    ['signed by Ed25519', () => issuer.token({}, { kid: 'ed' })],
    ['of several audiences', () => issuer.token({ aud: ['elsewhere', 'recruiting'] })],
    [
      'without a key id, where only one key can be meant',
      () => issuer.token({}, { kid: undefined }),
    ],
  ])('%s admits its bearer', async (_, token) => {
    expect(await answerTo({ authorization: `Bearer ${await token()}` })).toEqual(ANSWER);
  });

  test.each<[string, () => string | Promise<string>]>([
    ['of another issuer', () => issuer.token({ iss: 'https://login.test/' })],
    ['for another audience', () => issuer.token({ aud: 'recruiting2' })],
    ['expired', () => issuer.token({ exp: seconds(-60) })],
    ['that never expires', () => issuer.token({ exp: undefined })],
    ['not valid yet', () => issuer.token({ nbf: seconds(60) })],
    ['signed by nobody', () => unsigned('none')],
    [
      'signed with the public key as a secret',
      async () => signedWith(await exportSPKI(issuer.publicKey('rsa'))),
    ],
    [
      'that brings its key along',
      async () => withHeader({ alg: 'ES256', jwk: await exportJWK(issuer.publicKey('ec')) }),
    ],
    [
      'whose signature is of another token',
      async () => {
        const [head, claims] = (await issuer.token({ scope: 'read write' })).split('.');
        return `${head}.${claims}.${(await issuer.token()).split('.')[2]}`;
      },
    ],
  ])('%s is refused without the reason', async (_, make) => {
    const token = await make();
    const before = front.service.stats.requests.graphql;
    const response = await ask({ authorization: `Bearer ${token}` });
    const text = await response.text();
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(
      /Bearer realm="recruiting-subgraph", error="invalid_token"$/,
    );
    expect(JSON.parse(text)).toEqual(REFUSED);
    expect(front.service.stats.requests.graphql).toBe(before);
  });

  test('the scheme of a token may be written in any letters', async () => {
    expect(await answerTo({ authorization: `bEARER ${await issuer.token()}` })).toEqual(ANSWER);
  });

  test.each<[string, (token: string) => string]>([
    ['without the token', () => 'Bearer'],
    ['without the scheme', (token) => token],
    ['under another scheme', (token) => `Basic ${token}`],
    ['twice', (token) => `Bearer ${token}, Bearer ${token}`],
  ])('a malformed header is refused: %s', async (_, write) => {
    const response = await ask({ authorization: write(await issuer.token()) });
    expect([response.status, await response.json()]).toEqual([401, REFUSED]);
  });

  test('two authorization headers are refused, whichever is valid', async () => {
    const good = `Authorization: Bearer ${await issuer.token()}\r\n`;
    const bad = 'Authorization: Bearer hello\r\n';
    for (const [headers, status] of [
      [good, 200],
      [good + bad, 401],
      [bad + good, 401],
      [good + good, 401],
      [`x-api-key: ${KEY}\r\n`, 200],
      [`x-api-key: ${KEY}\r\nx-api-key: ${KEY}\r\n`, 401],
    ] as const) {
      const head =
        'GET /graphql?query={me{id}} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n';
      const answer = await headOf(openBare(front, `${head}${headers}\r\n`));
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    }
  });
});

describe('a key and a token together', () => {
  const RENAME = { query: 'mutation { rename(id: 1, name: "New") { id } }' };

  test.each<[string, string, () => Promise<string>, object, number, object]>([
    ['the token is wrong', KEY, async () => 'hello', ASK, 401, REFUSED],
    ['the token has expired', WRITER, () => issuer.token({ exp: seconds(-60) }), ASK, 401, REFUSED],
    [
      'the key is wrong',
      'rsk_of-nobody',
      () => issuer.token(),
      ASK,
      401,
      { errors: [expect.anything()] },
    ],
    [
      'both may write',
      WRITER,
      () => issuer.token({ scope: 'read write' }),
      RENAME,
      200,
      { data: { rename: { id: 1 } } },
    ],
    ['only the key may write', WRITER, () => issuer.token(), RENAME, 200, FORBIDDEN],
    [
      'only the token may write',
      KEY,
      () => issuer.token({ scope: 'read write' }),
      RENAME,
      200,
      FORBIDDEN,
    ],
  ])('%s', async (_, key, token, body, status, expected) => {
    const headers = { 'x-api-key': key, authorization: `Bearer ${await token()}` };
    const response = await fetch(`${front.url}/graphql`, post(body, headers));
    expect([response.status, await response.json()]).toEqual([status, expected]);
  });
});

test('the credentials of a caller reach neither the service nor the log', async () => {
  const config = { auth: authOf(issuer) };
  const gateway = await startGatewayOverFake({}, { config });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const token = await issuer.token({ sub: 'ada-lovelace' });
  const expired = await issuer.token({ sub: 'ada-lovelace', exp: 1 });
  const key = { 'x-api-key': KEY };
  const query = '{ persons { items { id } } }';
  for (const headers of [
    key,
    { authorization: `Bearer ${token}` },
    { ...key, authorization: `Bearer ${token}` },
  ]) {
    expect((await gateway.ask(query, {}, { headers })).errors).toBeUndefined();
  }
  for (const headers of [
    { 'x-api-key': 'rsk_of-nobody-0123456789012345678901234567' },
    { authorization: `Bearer ${expired}` },
    { authorization: `Bearer ${KEY}` },
  ]) {
    expect((await gateway.ask(query, {}, { headers })).errors).toMatchObject([
      { extensions: { code: 'UNAUTHENTICATED' } },
    ]);
  }
  expect(gateway.upstream.received).toHaveLength(3);
  const { headers } = gateway.upstream.received[0]!;
  expect(Object.keys(headers)).not.toContain('x-api-key');
  const seen = JSON.stringify([
    gateway.upstream.received.map((request) => [request.headers, request.body]),
    gateway.logged,
  ]);
  for (const secret of [
    KEY,
    'of-nobody',
    ...token.split('.'),
    expired.split('.')[2]!,
    'lovelace',
  ]) {
    expect(seen).not.toContain(secret);
  }
});

const REFUSED = {
  errors: [
    {
      message:
        'The authorization header has no bearer token that is valid for this gateway now. Get a new token and send it once, ' +
        'as "authorization: Bearer <token>"; if that is refused too, the operator of this gateway finds the reason in the log.',
      extensions: { code: 'UNAUTHENTICATED' },
    },
  ],
};
const FORBIDDEN = {
  errors: [{ message: expect.any(String), extensions: { code: 'FORBIDDEN' } }],
};

function authOf({ jwt }: Issuer) {
  const apiKeys = [entryFor(KEY, 'portal', 'read'), entryFor(WRITER, 'writer', 'read', 'write')];
  return { apiKeys, jwt };
}

function ask(headers: Record<string, string>): Promise<Response> {
  return fetch(`${front.url}/graphql`, post(ASK, headers));
}

async function answerTo(headers: Record<string, string>): Promise<unknown> {
  return (await ask(headers)).json();
}

async function codeOf(response: Response): Promise<[number, string]> {
  const { errors } = (await response.json()) as Body;
  return [response.status, errors![0]!.extensions.code];
}

function goodClaims(): string {
  const { issuer: iss, audience: aud } = issuer.jwt;
  return base64({ iss, aud, sub: 'ada', exp: seconds(300), scope: 'read' });
}

function unsigned(alg: string): string {
  return `${base64({ alg, kid: 'rsa' })}.${goodClaims()}.`;
}

function signedWith(secret: string): string {
  const signed = `${base64({ alg: 'HS256', kid: 'rsa' })}.${goodClaims()}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

/** A token whose signature was made for other headers. */
async function withHeader(header: object): Promise<string> {
  const [, body, signature] = (await issuer.token()).split('.');
  return `${base64(header)}.${body}.${signature}`;
}

function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
