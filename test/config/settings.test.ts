import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  configWarnings,
  readConfig,
  readNamedSettings,
  withFieldScopes,
  type Config,
  type SettingName,
} from '../../src/config.ts';
import { OperatorMistakes } from '../../src/errors.ts';

const SERVICE = { RECRUITING_URL: 'https://api.example.com' };
const OVER_SERVICE = { ...SERVICE, ALLOW_ANONYMOUS: 'true' };
const LINK = 'https://api.example.com/tokens/secret-link';
const [HASH, OTHER_HASH] = ['a1'.repeat(32), 'b2'.repeat(32)];
const API_KEY = 'rsk_0123456789012345678901234567890123456789012';
const JWT = {
  AUTH_JWKS_URL: 'https://login.example.com/keys?tenant=1',
  AUTH_ISSUER: 'https://login.example.com',
  AUTH_AUDIENCE: 'recruiting',
};
const KEYS = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const [STORE_KEY, OTHER_STORE_KEY] = KEYS.map((key) => key.toString('base64'));

const sqlite = (path: string) => ({ tokenStore: { kind: 'sqlite', path } }) as const;
const postgres = (url: string) => ({ tokenStore: { kind: 'postgres', url } }) as const;

/** Settings that are not read as they are, or not under their names, and some that are. */
test.each<[Record<string, string>, Partial<Config>]>([
  [{ RECRUITING_AGENT: 'example-inc' }, { agent: 'example-inc' }],
  [{ RECRUITING_SCHEMA: 'other.graphql' }, { schemaPath: 'other.graphql' }],
  // It is normalized, because the store compares it.
  [
    { RECRUITING_URL: 'https://api.example.com/v2//' },
    { recruitingUrl: 'https://api.example.com/v2' },
  ],
  [{ RECRUITING_URL: 'HTTPS://API.Example.com:443' }, { recruitingUrl: 'https://api.example.com' }],
  [{ RECRUITING_URL: 'http://127.8.9.10' }, { recruitingUrl: 'http://127.8.9.10' }],
  [{ RECRUITING_URL: 'http://[::1]:4001/' }, { recruitingUrl: 'http://[::1]:4001' }],
  [{ TOKEN_LINK_ORIGIN: 'https://a.example.com' }, { tokenLinkOrigin: 'https://a.example.com' }],
  [{ TOKEN_STORE: 'sqlite:data/tokens.db' }, sqlite('data/tokens.db')],
  [{ TOKEN_STORE: 'sqlite:/a:b' }, sqlite('/a:b')],
  [{ TOKEN_STORE: 'postgres://db/tokens' }, postgres('postgres://db/tokens')],
  [{ TOKEN_STORE: 'postgresql://u:p@db:6432/t' }, postgres('postgresql://u:p@db:6432/t')],
  [{ TOKEN_STORE_KEY: `${STORE_KEY} , ${OTHER_STORE_KEY}` }, { tokenStoreKeys: KEYS }],
  [
    { CORS_ORIGINS: 'https://a.test, http://b:1' },
    { corsOrigins: ['https://a.test', 'http://b:1'] },
  ],
  [{ ALLOWED_HOSTS: 'A.test,[::1]' }, { allowedHosts: ['a.test', '[::1]'] }],
  [{ TRUST_PROXY: 'true' }, { trustProxy: true }],
  [{ MAX_ALIASES: '0' }, { maxAliases: 0 }],
  [{ MAX_BODY_BYTES: '100000000' }, { requestBytes: 400_000_000 }],
  [{ MUTATIONS: 'off' }, { mutations: 'off' }],
  [{ MUTATIONS: 'rename , hire' }, { mutations: ['rename', 'hire'] }],
  [{ GRAPHIQL: 'off' }, { graphiql: false }],
  [{ INTROSPECTION: 'off' }, { introspection: false }],
  [{ NODE_ENV: 'development' }, { production: false }],
  [{ NODE_ENV: 'production' }, { production: true, graphiql: false, introspection: false }],
  [
    { NODE_ENV: 'production', GRAPHIQL: 'on', INTROSPECTION: 'on' },
    { graphiql: true, introspection: true },
  ],
  [
    { TOKEN_LINK: 'https://b.example.com/a', TOKEN_LINK_ORIGIN: 'https://b.example.com' },
    { tokenLink: 'https://b.example.com/a' },
  ],
])('%j is read', (env, values) => {
  expect(read({ ...OVER_SERVICE, ...env })).toMatchObject(values);
});

test('an empty environment serves the sandbox on loopback, and a blank value counts as not set', () => {
  const empty = read({});
  expect(empty).toMatchObject({
    recruitingUrl: undefined,
    agent: expect.stringMatching(/^recruiting-subgraph\/\S+ \(no contact: .*RECRUITING_AGENT\)$/),
    schemaPath: resolve('schema/upstream.graphql'),
    host: '127.0.0.1',
    adminHost: '127.0.0.1',
    // That it is taken prevents no start.
    isAdminPortSet: false,
    auth: undefined,
    graphiql: true,
    introspection: true,
    production: false,
  });
  const blank = {
    RECRUITING_URL: '',
    TOKEN_LINK: ' ',
    TOKEN_STORE: '\t',
    TOKEN_STROE: ' ',
    PORT: '',
  };
  expect(read({ ...blank, RECRUITING_AGENT: undefined })).toEqual(empty);
});

describe('callers', () => {
  test('an API key has a name, a hash, and scopes; the default scope is read', () => {
    const AUTH_API_KEYS = `portal:${HASH} , Router-1.a:${OTHER_HASH.toUpperCase()}:read+router+read`;
    expect(read({ ...SERVICE, AUTH_API_KEYS }).auth).toEqual({
      apiKeys: [
        { name: 'portal', hash: Buffer.from(HASH, 'hex'), scopes: ['read'] },
        { name: 'Router-1.a', hash: Buffer.from(OTHER_HASH, 'hex'), scopes: ['read', 'router'] },
      ],
      jwt: undefined,
    });
  });

  test.each([',', '\r\n', '\n\n'])('API keys of a file are separated by %j', (between) => {
    const files = { '/run/keys': `a:${HASH}${between}b:${OTHER_HASH}:write\n` };
    const { auth } = read({ ...SERVICE, AUTH_API_KEYS_FILE: '/run/keys' }, files);
    expect(auth?.apiKeys).toMatchObject([
      { name: 'a', scopes: ['read'] },
      { name: 'b', scopes: ['write'] },
    ]);
  });

  test('an issuer of bearer tokens is read, on loopback without https', () => {
    const AUTH_JWKS_URL = 'http://127.0.0.1:9999/keys';
    expect(read({ ...SERVICE, ...JWT, AUTH_JWKS_URL }).auth).toEqual({
      apiKeys: [],
      jwt: {
        jwksUrl: AUTH_JWKS_URL,
        issuer: 'https://login.example.com',
        audience: 'recruiting',
        scopes: ['read', 'drain', 'write', 'router'],
      },
    });
  });

  test.each<[string, string, string[]]>([
    ['a key as it is', API_KEY, ['entry 1 is not name:sha256-hex or']],
    ['nothing behind a comma', `a:${HASH},`, ['entry 2 is not name:sha256-hex or']],
    ['a key in place of its hash', `a:${API_KEY}`, ['entry 1 has a hash']],
    ['too many parts', `a:${HASH}:read:write`, ['entry 1 is not name:sha256-hex or']],
    ['useless scopes', `a:${HASH}:router+drain`, ['entry 1 has neither the scope read nor']],
    [
      'everything at once',
      `a:${HASH}:all,a b:${HASH},c:12:READ`,
      [
        'entry 1 has neither the scope read nor',
        'entry 2 has a name',
        'entry 3 has a hash',
        'entry 3 has neither the scope read nor',
      ],
    ],
  ])('API keys with %s are refused, and no part of them is shown', (_, keys, expected) => {
    const inFile = () =>
      mistakesOf({ ...SERVICE, AUTH_API_KEYS_FILE: '/run/keys' }, { '/run/keys': keys });
    for (const mistakes of [mistakesOf({ ...SERVICE, AUTH_API_KEYS: keys }), inFile()]) {
      expect(mistakes).toEqual(
        expected.map((mistake) => expect.stringContaining(`AUTH_API_KEYS ${mistake}`)),
      );
      for (const part of [API_KEY, HASH, HASH.slice(2), 'a b', 'READ']) {
        expect(mistakes.join()).not.toContain(part);
      }
    }
  });

  test('an API key with a scope that no field needs is refused by its number, and no secret is shown', () => {
    const keys = `a:${HASH}:read+pii,b:${OTHER_HASH}:read+admin`;
    const { auth } = read({ ...SERVICE, AUTH_API_KEYS: keys });
    expect(() => withFieldScopes(auth, new Set(['pii']))).toThrow(
      'AUTH_API_KEYS has a mistake:\n' +
        '  - entry 2 has an unknown scope; the scopes are read, drain, write, router, pii, ' +
        'and several are joined by +. Correct the entry, or add the scope to a field in adapters.json.',
    );
    expect(withFieldScopes(auth, new Set(['pii', 'admin']))?.apiKeys).toEqual(auth?.apiKeys);
    const ofTokens = withFieldScopes(read({ ...SERVICE, ...JWT }).auth, new Set(['pii']));
    expect(ofTokens?.jwt?.scopes).toEqual(['read', 'drain', 'write', 'router', 'pii']);
    for (const secret of [API_KEY, API_KEY.slice(4), HASH, HASH.slice(10)]) {
      const misplaced = `${secret}:${OTHER_HASH}:read+${secret}`;
      const refused = () =>
        withFieldScopes(read({ ...SERVICE, AUTH_API_KEYS: misplaced }).auth, new Set());
      expect(refused).toThrow(/entry 1 has an unknown scope; the scopes are read, drain,/);
      expect(refused).not.toThrow(secret);
    }
  });

  test.each<[Record<string, string>, string]>([
    [{ AUTH_JWKS_URL: 'http://login.example.com/keys' }, 'AUTH_JWKS_URL must begin with https://'],
    [{ ALLOW_ANONYMOUS: 'true' }, 'ALLOW_ANONYMOUS=true admits every caller'],
    [{ AUTH_ISSUER: '' }, 'must be set together. Set AUTH_ISSUER too.'],
    [{ AUTH_ISSUER: '', AUTH_JWKS_URL: '' }, 'Set AUTH_JWKS_URL and AUTH_ISSUER too.'],
  ])('%j together with keys and an issuer is refused', (env, mistake) => {
    const both = { ...SERVICE, ...JWT, AUTH_API_KEYS: `gate:${HASH}` };
    expect(mistakesOf({ ...both, ...env })).toEqual([expect.stringContaining(mistake)]);
  });

  test.each(['', 'false'])('none are refused, with ALLOW_ANONYMOUS=%j', (ALLOW_ANONYMOUS) => {
    const local = { RECRUITING_URL: 'http://127.0.0.1:4001', HOST: '127.0.0.1' };
    for (const env of [SERVICE, local]) {
      expect(mistakesOf({ ...env, ALLOW_ANONYMOUS })).toEqual([
        expect.stringContaining('set ALLOW_ANONYMOUS=true'),
      ]);
    }
  });
});

test('a secret can be given as a file, and is read without its final line break', () => {
  const url = 'postgres://u:secret@db/tokens?sslmode=verify-full';
  const files = {
    '/run/link': `${LINK}\n`,
    '/run/store': `${url}\n`,
    '/run/key': `${STORE_KEY}\n`,
  };
  const env = { TOKEN_LINK_FILE: '/run/link', TOKEN_STORE_FILE: '/run/store' };
  expect(read({ ...OVER_SERVICE, ...env, TOKEN_STORE_KEY_FILE: '/run/key' }, files)).toMatchObject({
    tokenLink: LINK,
    tokenStore: { kind: 'postgres', url },
    tokenStoreKeys: [KEYS[0]],
  });
});

describe.each(['TOKEN_LINK', 'TOKEN_STORE', 'TOKEN_STORE_KEY', 'AUTH_API_KEYS', 'EXPORT_API_KEY'])(
  '%s_FILE is refused, and its secret is not shown',
  (name) => {
    test.each<[string, string, Record<string, string>, RegExp]>([
      ['cannot be read', '/run/nothing', {}, /_FILE names a file that cannot be read \(ENOENT\)\./],
      ['is the secret itself', 'https://a/secret', {}, /_FILE names a file that cannot be read/],
      ['is empty', '/run/empty', {}, /_FILE names an empty file. Write the secret into it\./],
      ['has something else', '/run/odd', {}, / must be| entry 1 is not/],
      ['is given beside the secret', '/run/odd', { [name]: 'secret' }, /_FILE are both set\./],
    ])('if it %s', (_, path, env, said) => {
      const files = { '/run/odd': 'not a secret\nin 2 lines', '/run/empty': ' \n' };
      const service = name === 'AUTH_API_KEYS' ? SERVICE : OVER_SERVICE;
      const mistakes = mistakesOf({ ...service, ...env, [`${name}_FILE`]: path }, files);
      expect(mistakes[0]).toMatch(said);
      expect(mistakes.filter((mistake) => !mistake.startsWith(name))).toEqual([]);
      expect(mistakes.join()).not.toMatch(/\/secret|2 lines/);
    });
  },
);

test.each<[Record<string, string>, RegExp]>([
  [{ RECRUITING_URL: 'api.example.com', TOKEN_LINK: LINK }, /^RECRUITING_URL must be a comp/],
  [{ RECRUITING_URL: 'http://api.example.com' }, /^RECRUITING_URL must begin with https:\/\//],
  [{ RECRUITING_URL: 'http://127.0.0.1.example.com' }, /^RECRUITING_URL must begin with https/],
  [{ RECRUITING_URL: 'https://u:secret@api.example.com' }, /^RECRUITING_URL must be a plain/],
  [{ RECRUITING_URL: 'https://api.example.com?secret' }, /^RECRUITING_URL must be a plain/],
  [{ RECRUITING_URL: 'https://api.example.com#secret' }, /^RECRUITING_URL must be a plain/],
  [{ RECRUITING_URL: 'https://a.example.com/graphql/' }, /^RECRUITING_URL must be .* \/graphql/],
  [{ TOKEN_LINK: 'http://api.example.com/secret' }, /^TOKEN_LINK must begin with https/],
  [{ TOKEN_LINK: 'https://other.example.com/secret' }, /^TOKEN_LINK is at https:\/\/other\./],
  [{ TOKEN_LINK_ORIGIN: LINK }, /^TOKEN_LINK_ORIGIN must be the origin of .* \(no path\)/],
  [{ TOKEN_STORE: 'sqlite:' }, /^TOKEN_STORE must be sqlite:<file>/],
  [{ TOKEN_STORE: 'data/tokens.db' }, /^TOKEN_STORE must be sqlite:<file>/],
  [{ TOKEN_STORE: 'postgres://u:secret@db' }, /^TOKEN_STORE must be sqlite:<file>.*postgres:/],
  [{ TOKEN_STORE: 'postgres:///tokens' }, /^TOKEN_STORE must be sqlite:<file>.*postgres:/],
  [{ TOKEN_STORE_KEY: 'c2VjcmV0' }, /^TOKEN_STORE_KEY must be 32 bytes in base64 .*openssl rand/],
  [{ TOKEN_STORE_KEY: Buffer.alloc(32, 'secret').toString('hex') }, /^TOKEN_STORE_KEY must be 32/],
  [{ TOKEN_STORE_KEY: `${STORE_KEY},c2VjcmV0` }, /^TOKEN_STORE_KEY must be 32 bytes in base64/],
  [{ TOKEN_STORE_KEY: `${STORE_KEY},` }, /^TOKEN_STORE_KEY must be 32 bytes in base64/],
  [{ RECRUITING_AGENT: 'secret\r\nauthorization: x' }, /^RECRUITING_AGENT must be printable/],
  [{ SCHEMA_PREFIX: '_secret' }, /^SCHEMA_PREFIX must be letters, digits and _, beginning with/],
  [{ PORT: '65536' }, /^PORT must be a whole number from 0 to 65535, for example 4000\.$/],
  [{ PORT: '4e3' }, /^PORT must be a whole number/],
  [{ UPSTREAM_CONCURRENCY: '0' }, /^UPSTREAM_CONCURRENCY must be a whole number from 1/],
  [{ UPSTREAM_TIMEOUT_MS: '1.5' }, /^UPSTREAM_TIMEOUT_MS must be a whole number/],
  [{ MUTATIONS: 'rename;hire' }, /^MUTATIONS must be off, all, or field names/],
  [{ GRAPHIQL: 'true' }, /^GRAPHIQL must be on or off, for example off\.$/],
  [{ LOG_LEVEL: 'verbose' }, /^LOG_LEVEL must be fatal, error, warn, info/],
  [{ CORS_ORIGINS: '*' }, /^CORS_ORIGINS must be origins separated by commas/],
  [{ CORS_ORIGINS: 'https://a.example.com/' }, /^CORS_ORIGINS must be origins/],
  [{ ALLOWED_HOSTS: '*.example.com' }, /^ALLOWED_HOSTS must be host names separated by commas/],
  [{ TRUST_PROXY: 'yes' }, /^TRUST_PROXY must be true or false/],
  [{ TRUSTED_DOCUMENTS_ONLY: 'true' }, /^TRUSTED_DOCUMENTS_ONLY=true accepts only the operations/],
  [{ NODE_ENV: 'Production' }, /^NODE_ENV must be production, in lower case/],
])('%j is refused, and not shown if it is a secret', (env, mistake) => {
  const mistakes = mistakesOf({ ...OVER_SERVICE, ...env });
  expect(mistakes).toEqual([expect.stringMatching(mistake)]);
  const [value] = Object.values(env);
  for (const secret of ['secret', ...(env['TOKEN_STORE_KEY'] ? value!.split(',') : [])]) {
    if (secret !== '') expect(mistakes[0]).not.toContain(secret);
  }
});

test('the sandbox is not served in production', () => {
  expect(mistakesOf({ NODE_ENV: 'production' })).toEqual([
    'RECRUITING_URL is not set, and the sandbox is not served in production. Set it to the base address of the service, for example https://api.example.com.',
  ]);
});

test('settings of a service without its address are reported together, with the ways out, and not shown', () => {
  const env = {
    ...JWT,
    TOKEN_LINK: LINK,
    TOKEN_STORE_FILE: '/run/store',
    TOKEN_STORE_KEY: STORE_KEY!,
    AUTH_API_KEYS: `app:${HASH}`,
  };
  const mistakes = mistakesOf(env, { '/run/store': 'sqlite:tokens.db' });
  const names =
    'TOKEN_LINK, TOKEN_STORE, TOKEN_STORE_KEY, AUTH_API_KEYS, AUTH_JWKS_URL, AUTH_ISSUER, and AUTH_AUDIENCE';
  expect(mistakes).toEqual([
    `${names} without RECRUITING_URL: the sandbox would be served instead of the real service. ` +
      `Set RECRUITING_URL, or remove ${names}. ` +
      'To try them with made-up people, run `npm start -- sandbox`, which prints a RECRUITING_URL.',
  ]);
});

test('several mistakes are reported at once', () => {
  const mistakes = mistakesOf({
    NODE_ENV: 'production',
    TOKEN_LINK: 'secret',
    TOKEN_LINK_FILE: '/run/nothing',
    PORT: 'secret',
    MUTATIONS: 'se cret',
    MAX_DEPTH: 'secret',
    AUTH_API_KEY: 'secret',
  });
  const names = 'TOKEN_LINK TOKEN_LINK PORT MAX_DEPTH MUTATIONS RECRUITING_URL AUTH_API_KEY';
  expect(mistakes.map((mistake) => mistake.split(' ')[0])).toEqual(names.split(' '));
  expect(mistakes.join()).not.toMatch(/se ?cret/);
});

describe('an unknown variable that begins like a setting', () => {
  test.each([
    'RECRUITING_URI',
    'recruiting_url',
    'TOKEN_STROE',
    'TOKEN_STORE_KEYS',
    'AUTH_API_KEY_FILE',
    'RECRUITING_URL_FILE',
  ])('%s is refused, by a start and by commands', (name) => {
    const env = { ...OVER_SERVICE, [name]: 'secret' };
    const mistakes = [`${name} is not a setting. Correct the name, or remove it.`];
    expect(mistakesOf({ [name]: 'secret' })).toEqual(mistakes);
    expect(mistakesOf(env)).toEqual(mistakes);
    expect(mistakesIn(() => readNamedSettings(env, () => '', ['RECRUITING_URL']))).toEqual(
      mistakes,
    );
  });

  test('others are ignored, and so are those that Kubernetes sets for Services of these names', () => {
    const ofServices = ['RECRUITING', 'TOKEN_X', 'AUTH_Y'].flatMap((service) =>
      [
        'SERVICE_HOST SERVICE_PORT SERVICE_PORT_HTTP SERVICE_PORT_HTTP_2 PORT',
        'PORT_80_TCP PORT_80_TCP_PROTO PORT_80_TCP_PORT PORT_80_TCP_ADDR PORT_53_UDP',
      ].flatMap((line) => line.split(' ').map((name) => `${service}_${name}`)),
    );
    const others = 'TOKEN AUTHOR GITHUB_TOKEN STORE_KEY API_KEY MAX_DEPHT npm_config_loglevel';
    const names = [...ofServices, ...others.split(' ')];
    const env = Object.fromEntries(names.map((name) => [name, 'tcp://10.0.0.1']));
    expect(read({ ...OVER_SERVICE, ...env })).toEqual(read(OVER_SERVICE));
  });
});

test.each<[Record<string, string>, RegExp | undefined]>([
  [
    { ...OVER_SERVICE, RECRUITING_AGENT: 'example-inc' },
    /^RECRUITING_AGENT has no contact: .*\(it@/,
  ],
  [
    { ...OVER_SERVICE, RECRUITING_AGENT: 'example-inc/1.0 ( )' },
    /^RECRUITING_AGENT has no contact/,
  ],
  [{ ...OVER_SERVICE, RECRUITING_AGENT: 'example-inc/1.0 (it@example.com)' }, undefined],
  [{ RECRUITING_SCHEMA: '/other.graphql' }, /RECRUITING_SCHEMA fail\. Set RECRUITING_URL/],
])('%j is read with a warning, or without', (env, warning) => {
  const warnings = configWarnings(read(env));
  if (warning) expect(warnings).toContainEqual(expect.stringMatching(warning));
  else expect(warnings).toEqual([]);
});

test('commands need neither a service nor credentials of callers, but valid settings', () => {
  expect(commands(SERVICE)).toMatchObject({ recruitingUrl: 'https://api.example.com' });
  expect(commands({ TOKEN_STORE: 'sqlite:/var/lib/tokens.db' })).toMatchObject({
    recruitingUrl: undefined,
    tokenStore: { path: '/var/lib/tokens.db' },
  });
  expect(() => commands({ RECRUITING_URL: 'http://api.example.com' })).toThrow(OperatorMistakes);
  expect(() => commands({ TOKEN_STORE_KEY: 'short' })).toThrow(OperatorMistakes);
});

/** The settings as a command reads them. */
function commands(env: Record<string, string>) {
  return readNamedSettings(env, () => '', Object.keys(env) as SettingName[]);
}

function read(env: Record<string, string | undefined>, files: Record<string, string> = {}) {
  return readConfig(env, (path) => {
    if (path in files) return files[path]!;
    throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
  });
}

function mistakesOf(env: Record<string, string>, files: Record<string, string> = {}) {
  return mistakesIn(() => read(env, files));
}

function mistakesIn(reading: () => unknown): readonly string[] {
  try {
    reading();
  } catch (error) {
    if (error instanceof OperatorMistakes) return error.mistakes;
    throw error;
  }
  throw new Error('It was taken.');
}
