import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSandboxInside } from '../../support/gateway/sandbox-inside.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { post, startFront, type Body, type Front } from '../front.ts';

const PEOPLE = 'https://people.example.com';
const LOCAL = 'http://localhost:3000';
const KEY = 'key-of-a-page';
const READABLE = 'retry-after, www-authenticate, x-request-id';
const ASK = { query: '{ me { id } }' };

const PREFLIGHT: RequestInit = {
  method: 'OPTIONS',
  headers: {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'content-type,x-api-key',
  },
};
const auth = { apiKeys: [entryFor(KEY, 'a', 'read')], jwt: undefined };

let front: Front;
beforeAll(async () => {
  front = await startFront({
    config: { corsOrigins: [PEOPLE, LOCAL], auth },
  });
});
afterAll(() => front[Symbol.asyncDispose]());

describe('a listed origin', () => {
  test.each([PEOPLE, LOCAL])(
    'pages of a listed origin may send JSON and a credential: %s',
    async (origin) => {
      const response = await preflight(origin);
      expect(response.status).toBe(204);
      expect(corsOf(response)).toEqual({
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'GET, POST',
        'access-control-allow-headers': expect.stringMatching(
          /^content-type, authorization, x-api-key, apollo-require-preflight, .*x-request-id, traceparent, tracestate$/,
        ),
        'access-control-max-age': '7200',
        'access-control-expose-headers': READABLE,
      });
      expect(response.headers.get('vary')).toBe('Origin');
    },
  );

  test.each<[string, number, RequestInit]>([['that a credential is missing', 401, post(ASK)]])(
    'pages of a listed origin may read %s',
    async (_, status, init) => {
      const response = await askAs(PEOPLE, init);
      expect(response.status).toBe(status);
      expect(corsOf(response)).toEqual({
        'access-control-allow-origin': PEOPLE,
        'access-control-expose-headers': READABLE,
      });
      expect(response.headers.get('vary')).toContain('Origin');
    },
  );

  test('a cache keeps the answers to different origins apart', async () => {
    const nobody = await fetch(`${front.url}/graphql`, post(ASK, { 'x-api-key': KEY }));
    expect(corsOf(nobody)).toEqual({});
    expect(nobody.headers.get('vary')).toContain('Origin');
  });
});

describe('any other origin', () => {
  test.each([
    'https://evil.example',
    'http://people.example.com',
    'https://people.example.com:8443',
    'https://people.example.com.evil.example',
    'https://www.people.example.com',
    'http://localhost:3001',
    'null',
    '*',
  ])('it gets no CORS header: %s', async (origin) => {
    const responses = await Promise.all([
      preflight(origin),
      askAs(origin, post(ASK, { 'x-api-key': KEY })),
      askAs(origin, post(ASK)),
    ]);
    for (const response of responses) expect(corsOf(response)).toEqual({});
    const [refused] = responses;
    expect(refused.status).toBe(403);
    const { errors } = (await refused.json()) as Body;
    expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
    expect(errors![0]!.message).toContain('adds that origin to CORS_ORIGINS');
  });
});

describe('pages of this machine', () => {
  const LOOPBACK = ['http://localhost:5173', 'http://127.0.0.1:3000', 'http://[::1]:8080'];
  const QUERY = { query: '{ allPersons(limit: 1) { id } }' };

  test.each([
    ...LOOPBACK.map((origin) => [origin, 'same-site'] as const),
    ['https://people.localhost', 'cross-site'] as const,
  ])('may read the sandbox: %s', async (origin, site) => {
    await using sandbox = await startSandboxInside();
    const as = fromPage(origin, site);
    const allowed = await sandbox.fetch('/graphql', as(PREFLIGHT));
    expect(allowed.status).toBe(204);
    const answer = await sandbox.fetch('/graphql', as(post(QUERY)));
    expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
    expect(answer.headers.get('vary')).toContain('Origin');
    expect(await answer.json()).toMatchObject({ data: { allPersons: [{}] } });
  });

  test.each([
    'https://evil.example',
    'http://localhost.evil.example',
    'http://127.0.0.1.evil.example',
    'http://192.168.1.7:3000',
    'null',
    'http://localhost:3000/',
    'app://localhost',
  ])('other pages may not: %s', async (origin) => {
    await using sandbox = await startSandboxInside();
    const as = fromPage(origin, 'cross-site');
    const responses = await Promise.all(
      [PREFLIGHT, post(QUERY)].map((init) => sandbox.fetch('/graphql', as(init))),
    );
    for (const response of responses) {
      expect(response.status).toBe(403);
      expect(corsOf(response)).toEqual({});
    }
  });

  test.each(LOOPBACK)('may not read a service, unless they are listed: %s', async (origin) => {
    await using service = await startFront();
    const response = await fetch(`${service.url}/graphql`, asPage(origin, PREFLIGHT));
    expect(response.status).toBe(403);
    expect(corsOf(response)).toEqual({});
  });
});

function fromPage(origin: string, site: string): (init: RequestInit) => RequestInit {
  return (init) => {
    const headers = new Headers(init.headers);
    headers.set('sec-fetch-site', site);
    return asPage(origin, { ...init, headers });
  };
}

function preflight(origin: string): Promise<Response> {
  return askAs(origin, PREFLIGHT);
}

function askAs(origin: string, init: RequestInit): Promise<Response> {
  return fetch(`${front.url}/graphql`, asPage(origin, init));
}

function asPage(origin: string, init: RequestInit): RequestInit {
  const headers = new Headers(init.headers);
  headers.set('origin', origin);
  return { ...init, headers };
}

function corsOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));
}
