import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSandboxInside } from '../../support/gateway/sandbox-inside.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { post, startFront, type Body, type Front } from '../front.ts';

const PEOPLE = 'https://people.example.com';
const LOCAL = 'http://localhost:3000';
const KEY = 'key-of-a-page';
const READABLE = 'retry-after, www-authenticate, x-request-id';
const ASK = post({ query: '{ __typename }' });
const PREFLIGHT: RequestInit = {
  method: 'OPTIONS',
  headers: {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'content-type,x-api-key',
  },
};

let front: Front;
beforeAll(async () => {
  const auth = { apiKeys: [entryFor(KEY, 'a', 'read')], jwt: undefined };
  front = await startFront({ config: { corsOrigins: [PEOPLE, LOCAL], auth } });
});
afterAll(() => front[Symbol.asyncDispose]());

function askFrom(origin: string, init: RequestInit): Promise<Response> {
  return fetch(`${front.url}/graphql`, as({ origin }, init));
}

test.each([PEOPLE, LOCAL])(
  'pages of a listed origin may send JSON and a credential, and read refusals: %s',
  async (origin) => {
    const allowed = await askFrom(origin, PREFLIGHT);
    expect(allowed.status).toBe(204);
    expect(corsOf(allowed)).toEqual({
      'access-control-allow-origin': origin,
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': expect.stringMatching(
        /^content-type, authorization, x-api-key, apollo-require-preflight, .*x-request-id, traceparent, tracestate$/,
      ) as string,
      'access-control-max-age': '7200',
      'access-control-expose-headers': READABLE,
    });
    const refused = await askFrom(origin, ASK);
    expect(refused.status).toBe(401);
    expect(corsOf(refused)).toEqual({
      'access-control-allow-origin': origin,
      'access-control-expose-headers': READABLE,
    });
    // A cache keeps the answers to different origins apart.
    const direct = await fetch(`${front.url}/graphql`, as({ 'x-api-key': KEY }, ASK));
    for (const response of [allowed, refused, direct]) {
      expect(response.headers.get('vary')).toContain('Origin');
    }
    expect(corsOf(direct)).toEqual({});
  },
);

test.each([
  'https://evil.example',
  'http://people.example.com',
  'https://people.example.com:8443',
  'https://people.example.com.evil.example',
  'https://www.people.example.com',
  'null',
  '*',
])('another origin gets no CORS header: %s', async (origin) => {
  const preflight = await askFrom(origin, PREFLIGHT);
  const answers = [preflight, await askFrom(origin, as({ 'x-api-key': KEY }, ASK))];
  for (const response of [...answers, await askFrom(origin, ASK)]) {
    expect(corsOf(response)).toEqual({});
  }
  expect(preflight.status).toBe(403);
  const { errors } = (await preflight.json()) as Body;
  expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  expect(errors![0]!.message).toContain('adds that origin to CORS_ORIGINS');
});

describe('pages of this machine', () => {
  const LOOPBACK = ['http://localhost:5173', 'http://127.0.0.1:3000', 'http://[::1]:8080'];

  test.each([
    ...LOOPBACK.map((origin) => [origin, 'same-site'] as const),
    ['https://people.localhost', 'cross-site'] as const,
  ])('may read the sandbox: %s', async (origin, site) => {
    await using sandbox = await startSandboxInside();
    const headers = { origin, 'sec-fetch-site': site };
    expect((await sandbox.fetch('/graphql', as(headers, PREFLIGHT))).status).toBe(204);
    const answer = await sandbox.fetch('/graphql', as(headers, ASK));
    expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
    expect(await answer.json()).toEqual({ data: { __typename: 'Query' } });
  });

  test.each([
    'https://evil.example',
    'http://localhost.evil.example',
    'http://127.0.0.1.evil.example',
    'http://192.168.1.7:3000',
    'null',
  ])('other pages may not: %s', async (origin) => {
    await using sandbox = await startSandboxInside();
    for (const init of [PREFLIGHT, ASK]) {
      const headers = { origin, 'sec-fetch-site': 'cross-site' };
      const response = await sandbox.fetch('/graphql', as(headers, init));
      expect([response.status, corsOf(response)]).toEqual([403, {}]);
    }
  });

  test('may not read a service, unless they are listed', async () => {
    await using service = await startFront();
    for (const origin of LOOPBACK) {
      const response = await fetch(`${service.url}/graphql`, as({ origin }, PREFLIGHT));
      expect([response.status, corsOf(response)]).toEqual([403, {}]);
    }
  });
});

function as(more: Record<string, string>, init: RequestInit): RequestInit {
  return { ...init, headers: { ...(init.headers as Record<string, string>), ...more } };
}

function corsOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));
}
