import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  ConfigError,
  configWarnings,
  readConfig,
  readNamedSettings,
  type Config,
  type SettingName,
} from '../../src/config.ts';
import { readStoreAddress } from '../../src/config/values.ts';

const OVER_SERVICE = { RECRUITING_URL: 'https://api.example.com', ALLOW_ANONYMOUS: 'true' };
const LINK = 'https://api.example.com/tokens/secret-link';

const KEYS = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

/** Settings that are not read as they are, or not under their names, and one that is. */
const READ: readonly [SettingName, string, Partial<Config>][] = [
  ['RECRUITING_AGENT', 'example-inc', { agent: 'example-inc' }],
  ['RECRUITING_SCHEMA', 'other.graphql', { schemaPath: 'other.graphql' }],
  ['TOKEN_LINK_ORIGIN', 'https://a.example.com', { tokenLinkOrigin: 'https://a.example.com' }],
  ['TOKEN_STORE', 'sqlite:/a.db', { tokenStore: { kind: 'sqlite', path: '/a.db' } }],
  ['TOKEN_STORE_KEY', `${keyOf(1)} , ${keyOf(2)}`, { tokenStoreKeys: KEYS }],
  ['CORS_ORIGINS', 'https://a.test, http://b:1', { corsOrigins: ['https://a.test', 'http://b:1'] }],
  ['ALLOWED_HOSTS', 'A.test,[::1]', { allowedHosts: ['a.test', '[::1]'] }],
  ['TRUST_PROXY', 'true', { trustProxy: true }],
  ['MAX_ALIASES', '0', { maxAliases: 0 }],
  ['MUTATIONS', 'off', { mutations: 'off' }],
  ['MUTATIONS', 'rename , hire', { mutations: ['rename', 'hire'] }],
  ['GRAPHIQL', 'off', { graphiql: false }],
  ['INTROSPECTION', 'off', { introspection: false }],
];

describe('the settings', () => {
  test('an empty environment serves the sandbox on loopback, with GraphiQL and introspection', () => {
    expect(read({})).toMatchObject({
      recruitingUrl: undefined,
      agent: expect.stringMatching(/^recruiting-subgraph\/\S+ \(no contact: .*RECRUITING_AGENT\)$/),
      schemaPath: resolve('schema/upstream.graphql'),
      host: '127.0.0.1',
      adminHost: '127.0.0.1',
      auth: undefined,
      graphiql: true,
      introspection: true,
      production: false,
    });
  });

  test.each(READ)('%s is read', (name, text, values) => {
    expect(read({ ...OVER_SERVICE, [name]: text })).toMatchObject(values);
  });

  test('an empty or blank value counts as not set', () => {
    expect(
      read({
        RECRUITING_URL: '',
        TOKEN_LINK: ' ',
        TOKEN_STORE: '\t',
        PORT: '',
        ALLOW_ANONYMOUS: '',
        RECRUITING_AGENT: undefined,
      }),
    ).toEqual(read({}));
  });

  test('production turns GraphiQL and introspection off, unless they are set to on', () => {
    const production = { ...OVER_SERVICE, NODE_ENV: 'production' };
    expect(read(production)).toMatchObject({
      production: true,
      graphiql: false,
      introspection: false,
    });
    expect(read({ ...production, GRAPHIQL: 'on', INTROSPECTION: 'on' })).toMatchObject({
      production: true,
      graphiql: true,
      introspection: true,
    });
  });

  test.each([
    ['https://api.example.com/', 'https://api.example.com'],
    ['https://api.example.com/v2//', 'https://api.example.com/v2'],
    ['HTTPS://API.Example.com:443', 'https://api.example.com'],
    ['http://127.8.9.10', 'http://127.8.9.10'],
    ['http://[::1]:4001/', 'http://[::1]:4001'],
  ])('RECRUITING_URL %s is normalized, because the store compares it', (url, base) => {
    expect(read({ ...OVER_SERVICE, RECRUITING_URL: url }).recruitingUrl).toBe(base);
  });
});

test('a secret can be given as a file, and is read without its final line break', () => {
  const url = 'postgres://u:secret@db/tokens?sslmode=verify-full';
  const files = { '/run/link': `${LINK}\n`, '/run/store': `${url}\n`, '/run/key': `${keyOf(1)}\n` };
  const env = { TOKEN_LINK_FILE: '/run/link', TOKEN_STORE_FILE: '/run/store' };
  expect(read({ ...OVER_SERVICE, ...env, TOKEN_STORE_KEY_FILE: '/run/key' }, files)).toMatchObject({
    tokenLink: LINK,
    tokenStore: { kind: 'postgres', url },
    tokenStoreKeys: [Buffer.alloc(32, 1)],
  });
});

describe.each(['TOKEN_LINK', 'TOKEN_STORE', 'TOKEN_STORE_KEY', 'EXPORT_API_KEY'])(
  '%s_FILE is refused, and its secret is not shown',
  (name) => {
    test.each<[string, string, Record<string, string>, string]>([
      ['cannot be read', '/run/nothing', {}, '_FILE names a file that cannot be read (ENOENT).'],
      ['is the secret itself', 'https://a/secret', {}, '_FILE names a file that cannot be read'],
      ['is empty', '/run/empty', {}, '_FILE names an empty file. Write the secret into it.'],
      ['has something else', '/run/odd', {}, ' must be'],
      ['is given beside the secret', '/run/odd', { [name]: 'secret' }, '_FILE are both set.'],
    ])('if it %s', (_, path, env, said) => {
      const files = { '/run/odd': 'not a secret\nin 2 lines', '/run/empty': ' \n' };
      const mistakes = mistakesOf({ ...OVER_SERVICE, ...env, [`${name}_FILE`]: path }, files);
      expect(mistakes[0]).toContain(name);
      expect(mistakes[0]).toContain(said);
      expect(mistakes.join()).not.toMatch(/\/secret|2 lines/);
    });
  },
);

test.each([
  ['too short', Buffer.alloc(16, 'secret').toString('base64')],
  ['in hex', Buffer.alloc(32, 'secret').toString('hex')],
  ['a second one that is wrong', `${keyOf(1)},c2VjcmV0`],
  ['a comma at the end', `${keyOf(1)},`],
])('TOKEN_STORE_KEY: %s is refused with the command that creates one, and not shown', (_, key) => {
  const mistakes = mistakesOf({ ...OVER_SERVICE, TOKEN_STORE_KEY: key });
  expect(mistakes).toEqual([
    expect.stringMatching(/^TOKEN_STORE_KEY must be 32 bytes in base64 .*openssl rand/),
  ]);
  for (const part of key.split(',').filter(Boolean)) expect(mistakes[0]).not.toContain(part);
});

describe('an unknown variable that begins like a setting', () => {
  test.each([
    ['RECRUITING_URI'],
    ['recruiting_url'],
    ['TOKEN_STROE'],
    ['TOKEN_STORE_KEYS'],
    ['AUTH_API_KEY_FILE'],
    ['RECRUITING_URL_FILE'],
  ])('%s prevents the start', (name) => {
    const mistake = `${name} is not a setting. Correct the name, or remove it.`;
    expect(mistakesOf({ [name]: 'secret' })).toEqual([mistake]);
    expect(mistakesOf({ ...OVER_SERVICE, [name]: 'secret' })).toEqual([mistake]);
  });

  test('variables that Kubernetes sets for Services of these names are ignored', () => {
    const ofServices = ['RECRUITING', 'TOKEN_X', 'AUTH_Y'].flatMap((service) =>
      [
        'SERVICE_HOST SERVICE_PORT SERVICE_PORT_HTTP SERVICE_PORT_HTTP_2 PORT',
        'PORT_80_TCP PORT_80_TCP_PROTO PORT_80_TCP_PORT PORT_80_TCP_ADDR PORT_53_UDP',
      ].flatMap((line) => line.split(' ').map((name) => [`${service}_${name}`, 'tcp://10.0.0.1'])),
    );
    expect(() => read({ ...OVER_SERVICE, ...Object.fromEntries(ofServices) })).not.toThrow();
  });

  test('empty variables, and those that begin otherwise, are ignored', () => {
    const others =
      'TOKEN AUTHOR GITHUB_TOKEN STORE_KEY API_KEY MAX_DEPHT HOSTNAME KUBERNETES_SERVICE_HOST npm_config_loglevel';
    const env = Object.fromEntries(others.split(' ').map((name) => [name, 'x']));
    expect(read({ ...OVER_SERVICE, ...env, TOKEN_STROE: ' ' })).toEqual(read(OVER_SERVICE));
  });
});

test.each([
  ['example-inc', true],
  ['example-inc/1.0 ( )', true],
  ['example-inc/1.0 (it@example.com)', false],
])('an agent without a contact is reported: %s', (RECRUITING_AGENT, isReported) => {
  expect(warningsOf({ ...OVER_SERVICE, RECRUITING_AGENT })).toEqual(
    isReported
      ? [expect.stringMatching(/^RECRUITING_AGENT has no contact: .* \(it@example.com\)/)]
      : [],
  );
});

test.each([
  [{}, false],
  [OVER_SERVICE, true],
])('a schema that the sandbox does not play is reported: %j', (service, isPlayed) => {
  const warnings = warningsOf({ ...service, RECRUITING_SCHEMA: '/other.graphql' });
  expect(
    warnings.some((warning) => /RECRUITING_SCHEMA fail\. Set RECRUITING_URL/.test(warning)),
  ).toBe(!isPlayed);
});

describe('commands that do not serve callers', () => {
  test('they need neither a service nor credentials of callers', () => {
    expect(commands({ RECRUITING_URL: 'https://api.example.com' })).toMatchObject({
      recruitingUrl: 'https://api.example.com',
    });
    expect(commands({ TOKEN_STORE: 'sqlite:/var/lib/tokens.db' })).toMatchObject({
      recruitingUrl: undefined,
      tokenStore: { path: '/var/lib/tokens.db' },
    });
  });

  test('settings must be valid all the same', () => {
    expect(() => commands({ RECRUITING_URL: 'http://api.example.com' })).toThrow(ConfigError);
    expect(() => commands({ TOKEN_STORE_KEY: 'short' })).toThrow(ConfigError);
  });
});

test.each([
  ['sqlite:data/tokens.db', { kind: 'sqlite', path: 'data/tokens.db' }],
  ['sqlite:/a:b', { kind: 'sqlite', path: '/a:b' }],
  ['sqlite:', undefined],
  ['data/tokens.db', undefined],
  ['postgres://db/tokens', { kind: 'postgres', url: 'postgres://db/tokens' }],
  ['postgresql://u:p@db:6432/tokens', { kind: 'postgres', url: 'postgresql://u:p@db:6432/tokens' }],
  ['postgres://db', undefined],
  ['postgres:///tokens', undefined],
])('the address of a store is read: %s', (text, address) => {
  expect(readStoreAddress(text)).toEqual(address);
});

describe('a mistake is refused', () => {
  test.each<[Record<string, string>, RegExp]>([
    [{ RECRUITING_URL: 'api.example.com' }, /^RECRUITING_URL must be a complete URL/],
    [{ RECRUITING_URL: 'http://api.example.com' }, /^RECRUITING_URL must begin with https:\/\//],
    [{ RECRUITING_URL: 'http://127.0.0.1.example.com' }, /^RECRUITING_URL must begin with https/],
    [{ RECRUITING_URL: 'https://u:secret@api.example.com' }, /^RECRUITING_URL must be a plain/],
    [
      { RECRUITING_URL: 'https://api.example.com/graphql/' },
      /^RECRUITING_URL must be .* \/graphql/,
    ],
    [{ TOKEN_LINK: 'http://api.example.com/secret' }, /^TOKEN_LINK must begin with https/],
    [{ TOKEN_LINK: 'https://other.example.com/secret' }, /^TOKEN_LINK is at https:\/\/other\./],
    [{ TOKEN_LINK_ORIGIN: LINK }, /^TOKEN_LINK_ORIGIN must be the origin of .* \(no path\)/],
    [{ TOKEN_STORE: 'data/tokens.db' }, /^TOKEN_STORE must be sqlite:<file>/],
    [{ TOKEN_STORE: 'postgres://u:secret@db' }, /^TOKEN_STORE must be sqlite:<file>.*postgres:/],
    [{ RECRUITING_AGENT: 'secret\r\nauthorization: x' }, /^RECRUITING_AGENT must be printable/],
    [
      { SCHEMA_PREFIX: '_secret' },
      /^SCHEMA_PREFIX must be letters, digits and _, beginning with a letter/,
    ],
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
    [
      { TRUSTED_DOCUMENTS_ONLY: 'true' },
      /^TRUSTED_DOCUMENTS_ONLY=true accepts only the operations of TRUSTED_DOCUMENTS/,
    ],
    [{ ALLOW_ANONYMOUS: 'yes' }, /^ALLOW_ANONYMOUS must be true or false/],
    [{ NODE_ENV: 'Production' }, /^NODE_ENV must be production, in lower case/],
  ])('%j', (env, expected) => {
    const mistakes = mistakesOf({ ...OVER_SERVICE, ...env });
    expect(mistakes[0]).toMatch(expected);
    expect(mistakes).toHaveLength('ALLOW_ANONYMOUS' in env ? 2 : 1);
    expect(mistakes.join()).not.toContain('secret');
  });

  test.each(['', 'false'])(
    'a service without credentials of callers, with ALLOW_ANONYMOUS=%j',
    (allowed) => {
      const env = { ...OVER_SERVICE, ALLOW_ANONYMOUS: allowed };
      expect(mistakesOf(env)).toEqual([expect.stringContaining('set ALLOW_ANONYMOUS=true')]);
      const loopback = { ...env, RECRUITING_URL: 'http://127.0.0.1:4001', HOST: '127.0.0.1' };
      expect(mistakesOf(loopback)).toHaveLength(1);
    },
  );

  test.each<Record<string, string>>([
    { NODE_ENV: 'development' },
    { TOKEN_LINK: 'https://other.example.com/a', TOKEN_LINK_ORIGIN: 'https://other.example.com' },
  ])('%j is not a mistake', (env) => {
    expect(() => read({ ...OVER_SERVICE, ...env })).not.toThrow();
  });

  test('the sandbox in production', () => {
    expect(mistakesOf({ NODE_ENV: 'production' })).toEqual([
      'RECRUITING_URL is not set, and the sandbox is not served in production. Set it to the base address of the service, for example https://api.example.com.',
    ]);
  });

  test('settings of a service without its address are reported together, with the ways out', () => {
    const env = { TOKEN_LINK: LINK, TOKEN_STORE: 'sqlite:tokens.db', AUTH_ISSUER: 'https://id' };
    expect(mistakesOf(env)).toEqual([
      'TOKEN_LINK, TOKEN_STORE, and AUTH_ISSUER without RECRUITING_URL: the sandbox would be served instead of the real service. ' +
        'Set RECRUITING_URL, or remove TOKEN_LINK, TOKEN_STORE, and AUTH_ISSUER. ' +
        'To try them with made-up people, run `npm start -- sandbox`, which prints a RECRUITING_URL.',
    ]);
  });

  test.each([
    ['TOKEN_LINK', LINK],
    ['TOKEN_STORE', 'sqlite:tokens.db'],
    ['TOKEN_STORE_KEY', keyOf(1)],
    ['AUTH_API_KEYS', `app:${'a'.repeat(64)}`],
  ])('%s without a service, itself or in a file, and it is not shown', (name, secret) => {
    const file = { '/run/it': `${secret}\n` };
    for (const mistakes of [
      mistakesOf({ [name]: secret }),
      mistakesOf({ [`${name}_FILE`]: '/run/it' }, file),
    ]) {
      expect(mistakes).toEqual([expect.stringContaining(`${name} without RECRUITING_URL`)]);
      expect(mistakes[0]).not.toContain(secret);
    }
  });

  test('several mistakes at once', () => {
    const mistakes = mistakesOf({
      NODE_ENV: 'production',
      TOKEN_LINK: 'secret',
      TOKEN_LINK_FILE: '/run/nothing',
      PORT: 'secret',
      MUTATIONS: 'se cret',
      MAX_DEPTH: 'secret',
      AUTH_API_KEY: 'secret',
    });
    expect(mistakes.map((mistake) => mistake.split(' ')[0])).toEqual([
      'TOKEN_LINK',
      'TOKEN_LINK',
      'PORT',
      'MAX_DEPTH',
      'MUTATIONS',
      'RECRUITING_URL',
      'AUTH_API_KEY',
    ]);
    expect(mistakes.join()).not.toMatch(/se ?cret/);
  });
});

function read(env: Record<string, string | undefined>, files: Record<string, string> = {}) {
  return readConfig(env, (path) => {
    if (path in files) return files[path]!;
    throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
  });
}

function mistakesOf(
  env: Record<string, string>,
  files: Record<string, string> = {},
): readonly string[] {
  return mistakesIn(() => read(env, files));
}

function mistakesIn(reading: () => unknown): readonly string[] {
  try {
    reading();
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes;
    throw error;
  }
  throw new Error('It was taken.');
}

function keyOf(byte: number): string {
  return Buffer.alloc(32, byte).toString('base64');
}

/** The settings as a command reads them. */
function commands(env: Record<string, string>) {
  return readNamedSettings(env, () => '', Object.keys(env) as SettingName[]);
}

function warningsOf(env: Record<string, string>): string[] {
  return configWarnings(read(env));
}
