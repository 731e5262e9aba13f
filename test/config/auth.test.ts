import { describe, expect, test } from 'vitest';
import { ConfigError, readConfig, withFieldScopes } from '../../src/config.ts';

const RECRUITING_URL = 'https://api.example.com';
const A = 'a1'.repeat(32);
const B = 'b2'.repeat(32);
const JWT = {
  AUTH_JWKS_URL: 'https://login.example.com/keys?tenant=1',
  AUTH_ISSUER: 'https://login.example.com',
  AUTH_AUDIENCE: 'recruiting',
};

describe('the settings', () => {
  test('an API key has a name, a hash, and scopes; the default scope is read', () => {
    expect(
      read({ AUTH_API_KEYS: `portal:${A} , Router-1.a:${B.toUpperCase()}:read+router+read` }),
    ).toEqual({
      apiKeys: [
        { name: 'portal', hash: Buffer.from(A, 'hex'), scopes: ['read'] },
        { name: 'Router-1.a', hash: Buffer.from(B, 'hex'), scopes: ['read', 'router'] },
      ],
      jwt: undefined,
    });
  });

  test.each([',', '\r\n', '\n\n'])('API keys of a file are separated by %j', (between) => {
    const auth = read(
      { AUTH_API_KEYS_FILE: '/run/keys' },
      { '/run/keys': `a:${A}${between}b:${B}:write\n` },
    );
    expect(auth?.apiKeys.map(({ name, scopes }) => [name, ...scopes])).toEqual([
      ['a', 'read'],
      ['b', 'write'],
    ]);
  });

  test('the issuer of bearer tokens is read', () => {
    expect(read(JWT)).toEqual({
      apiKeys: [],
      jwt: {
        jwksUrl: 'https://login.example.com/keys?tenant=1',
        issuer: 'https://login.example.com',
        audience: 'recruiting',
        scopes: ['read', 'drain', 'write', 'router'],
      },
    });
    const local = { ...JWT, AUTH_JWKS_URL: 'http://127.0.0.1:9999/keys' };
    expect(read(local)?.jwt?.jwksUrl).toBe('http://127.0.0.1:9999/keys');
  });
});

describe('a mistake is refused', () => {
  const KEY = 'rsk_0123456789012345678901234567890123456789012';

  test.each<[string, string, string[]]>([
    ['a key as it is', KEY, ['entry 1 is not name:sha256-hex or']],
    ['nothing behind a comma', `a:${A},`, ['entry 2 is not name:sha256-hex or']],
    ['a name with a blank', `a b:${A}`, ['entry 1 has a name']],
    ['a key in place of its hash', `a:${KEY}`, ['entry 1 has a hash']],
    [
      'scopes that let nothing be asked',
      `a:${A}:router+drain`,
      ['entry 1 has neither the scope read nor'],
    ],
    [
      'everything at once',
      `a:${A}:all,a b:${A},c:12:READ`,
      [
        'entry 1 has neither the scope read nor',
        'entry 2 has a name',
        'entry 3 has a hash',
        'entry 3 has neither the scope read nor',
      ],
    ],
  ])('API keys: %s; no part of them is shown', (_, keys, expected) => {
    for (const [env, files] of [
      [{ AUTH_API_KEYS: keys }, {}],
      [{ AUTH_API_KEYS_FILE: '/run/keys' }, { '/run/keys': keys }],
    ] as const) {
      const mistakes = mistakesOf(env, files);
      expect(mistakes).toEqual(
        expected.map((mistake) => expect.stringContaining(`AUTH_API_KEYS ${mistake}`)),
      );
      for (const part of [KEY, A, A.slice(2), 'a b', 'admin', 'READ']) {
        expect(mistakes.join()).not.toContain(part);
      }
    }
  });

  test('an API key with a scope that no field needs is refused by its number', () => {
    const auth = read({ AUTH_API_KEYS: `a:${A}:read+pii,b:${B}:read+admin` });
    expect(() => withFieldScopes(auth, new Set(['pii']))).toThrow(
      'AUTH_API_KEYS has a mistake:\n' +
        '  - entry 2 has an unknown scope; the scopes are read, drain, write, router, pii, ' +
        'and several are joined by +. Correct the entry, or add the scope to a field in adapters.json.',
    );
    expect(withFieldScopes(auth, new Set(['pii', 'admin']))?.apiKeys).toEqual(auth?.apiKeys);
  });

  test('a key or a hash in the place of a name or a scope is not shown', () => {
    for (const secret of [KEY, KEY.slice(4), A, A.slice(10)]) {
      const auth = read({ AUTH_API_KEYS: `${secret}:${B}:read+${secret}` });
      const refused = () => withFieldScopes(auth, new Set());
      expect(refused).toThrow(/entry 1 has an unknown scope; the scopes are read, drain,/);
      expect(refused).not.toThrow(secret);
    }
  });

  test.each<[Record<string, string>, string]>([
    [{ AUTH_JWKS_URL: 'http://login.example.com/keys' }, 'AUTH_JWKS_URL must begin with https://'],
    [{ ALLOW_ANONYMOUS: 'true' }, 'ALLOW_ANONYMOUS=true admits every caller'],
    [{ AUTH_ISSUER: '' }, 'must be set together. Set AUTH_ISSUER too.'],
    [{ AUTH_ISSUER: '', AUTH_JWKS_URL: '' }, 'Set AUTH_JWKS_URL and AUTH_ISSUER too.'],
  ])('%j together with keys and an issuer', (env, mistake) => {
    const both = { ...JWT, AUTH_API_KEYS: `gate:${A}` };
    expect(mistakesOf({ ...both, ...env })).toEqual([expect.stringContaining(mistake)]);
  });
});

function read(env: Record<string, string>, files: Record<string, string> = {}) {
  const readFile = (path: string) => {
    if (path in files) return files[path]!;
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  };
  return readConfig({ RECRUITING_URL, ...env }, readFile).auth;
}

function mistakesOf(env: Record<string, string>, files: Record<string, string> = {}) {
  try {
    read(env, files);
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes;
    throw error;
  }
  throw new Error('It was taken.');
}
