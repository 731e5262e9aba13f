import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { readConfig, variables, type Config } from '../../src/config.ts';
import { OperatorMistakes } from '../../src/errors.ts';

const SERVICE = { RECRUITING_URL: 'https://api.example.com' };
const OVER_SERVICE = { ...SERVICE, ALLOW_ANONYMOUS: 'true' };
/** Where callers need a credential. */
const CLOSED = { ALLOW_ANONYMOUS: '' };
const LINK = 'https://api.example.com/tokens/secret-link';
const OTHER = 'https://b.example.com';
const PRODUCTION = { NODE_ENV: 'production' };
const [HASH, OTHER_HASH] = ['a1'.repeat(32), 'b2'.repeat(32)];
const API_KEY = 'rsk_0123456789012345678901234567890123456789012';
const KEY_OF_A = `a:${HASH}`;
const JWT = {
  AUTH_JWKS_URL: 'https://login.example.com/keys?tenant=1',
  AUTH_ISSUER: 'https://login.example.com',
  AUTH_AUDIENCE: 'recruiting',
};
const BOTH = { ...CLOSED, ...JWT, AUTH_API_KEYS: KEY_OF_A };
const KEYS = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const [STORE_KEY, OTHER_STORE_KEY] = KEYS.map((key) => key.toString('base64'));

const at = (recruitingUrl: string) => ({ recruitingUrl });
const sqlite = (path: string) => ({ tokenStore: { kind: 'sqlite', path } }) as const;
const postgres = (url: string) => ({ tokenStore: { kind: 'postgres', url } }) as const;
const shown = (graphiql: boolean, introspection: boolean) => ({ graphiql, introspection });

/** Settings that are not read as they are, or not under their names, and some that are. */
test.each<[Record<string, string>, Partial<Config>]>([
  [{ RECRUITING_SCHEMA: 'other.graphql' }, { schemaPath: 'other.graphql' }],
  [{ RECRUITING_AGENT: 'example-inc/1.0' }, { agent: 'example-inc/1.0' }],
  // It is normalized, because the store compares it.
  [{ RECRUITING_URL: 'HTTPS://API.Example.com:443/v2//' }, at('https://api.example.com/v2')],
  [{ RECRUITING_URL: 'http://127.8.9.10' }, at('http://127.8.9.10')],
  [{ RECRUITING_URL: 'http://localhost' }, at('http://localhost')],
  [{ RECRUITING_URL: 'http://[::1]:4001/' }, at('http://[::1]:4001')],
  [{ TOKEN_STORE: 'postgresql://u:p@db:6432/t' }, postgres('postgresql://u:p@db:6432/t')],
  [{ TOKEN_STORE_KEY: `${STORE_KEY} , ${OTHER_STORE_KEY}` }, { tokenStoreKeys: KEYS }],
  [{ TOKEN_LINK: `${OTHER}/a`, TOKEN_LINK_ORIGIN: OTHER }, { tokenLink: `${OTHER}/a` }],
  [{ CORS_ORIGINS: `${OTHER}, http://b:1` }, { corsOrigins: [OTHER, 'http://b:1'] }],
  [{ ALLOWED_HOSTS: 'A.test,[::1]' }, { allowedHosts: ['a.test', '[::1]'] }],
  [{ TRUST_PROXY: 'true' }, { trustProxy: true }],
  [
    { PAGES_PER_MINUTE: '0', TOTAL_COUNT_SECONDS: '0' },
    { pagesPerMinute: 0, totalCountSeconds: 0 },
  ],
  [
    { MAX_ALIASES: '0', INDEX_MAX_IDS: '0' },
    { maxAliases: 0, indexMaxIds: 0 },
  ],
  [{ MAX_BODY_BYTES: '100000000' }, { requestBytes: 400_000_000 }],
  [{ MUTATIONS: 'off' }, { mutations: 'off' }],
  [{ MUTATIONS: 'rename , hire' }, { mutations: ['rename', 'hire'] }],
  [{ ADMIN_PORT: '0' }, { adminPort: 0 }],
  [{ GRAPHIQL: 'off', INTROSPECTION: 'off' }, shown(false, false)],
  [{ NODE_ENV: 'test' }, { production: false, ...shown(true, true) }],
  [PRODUCTION, { production: true, ...shown(false, false) }],
  [{ ...PRODUCTION, GRAPHIQL: 'on' }, shown(true, false)],
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
    answerBytes: 256 * 1024 ** 2,
    // The heap of the tests has more megabytes.
    maxRequests: expect.toSatisfy((count: number) => count > 64),
    auth: undefined,
    production: false,
  });
  const blank = { RECRUITING_URL: '', TOKEN_LINK: ' ', TOKEN_STORE: '\t', TOKEN_STROE: ' ' };
  expect(read({ ...blank, PORT: '', RECRUITING_AGENT: undefined })).toEqual(empty);
});

test.each([' , ', '\r\n', '\n\n'])(
  'API keys are separated by %j; the default scope is read',
  (between) => {
    const keys = `portal:${HASH}${between}Router-1.a:${OTHER_HASH.toUpperCase()}:write+router+write`;
    expect(read({ ...SERVICE, AUTH_API_KEYS: keys }).auth).toEqual({
      apiKeys: [
        { name: 'portal', hash: HASH, scopes: ['read'] },
        { name: 'Router-1.a', hash: OTHER_HASH, scopes: ['write', 'router'] },
      ],
      jwt: undefined,
    });
  },
);

test('an issuer of bearer tokens is read, on loopback without https', () => {
  const jwksUrl = 'http://127.0.0.1:9999/keys';
  expect(read({ ...SERVICE, ...JWT, AUTH_JWKS_URL: jwksUrl }).auth).toEqual({
    apiKeys: [],
    jwt: { jwksUrl, issuer: JWT.AUTH_ISSUER, audience: JWT.AUTH_AUDIENCE },
  });
});

test.each<[string, string[]]>([
  [API_KEY, ['entry 1 is not name:sha256-hex or']],
  [`${KEY_OF_A},`, ['entry 2 is not name:sha256-hex or']],
  [`a:${API_KEY}`, ['entry 1 is not name:sha256-hex or']],
  [`${'a'.repeat(65)}:${HASH}`, ['entry 1 has a name']],
  [`${KEY_OF_A}0`, ['entry 1 is not name:sha256-hex or']],
  [`${KEY_OF_A}:read:write`, ['entry 1 is not name:sha256-hex or']],
  [`${KEY_OF_A}:router+drain`, ['entry 1 has neither the scope read nor']],
  [
    `${KEY_OF_A}:all,a b:${HASH},c:12:READ`,
    [
      'entry 1 has neither the scope read nor',
      'entry 2 has a name',
      'entry 3 is not name:sha256-hex or',
    ],
  ],
])('the API keys %s are refused, and no part of them is shown', (keys, expected) => {
  const mistakes = mistakesOf({ ...SERVICE, AUTH_API_KEYS: keys });
  expect(mistakes).toEqual(
    expected.map((mistake) => expect.stringContaining(`AUTH_API_KEYS ${mistake}`)),
  );
  expect(mistakes.join()).not.toMatch(/rsk_|a1a1|a b|READ/);
});

test.each([
  ['TOKEN_LINK', LINK],
  ['TOKEN_STORE', 'postgres://u:secret@db/tokens?sslmode=verify-full'],
  ['TOKEN_STORE_KEY', STORE_KEY!],
  ['AUTH_API_KEYS', KEY_OF_A],
  ['EXPORT_API_KEY', API_KEY],
])(
  '%s_FILE is read without its final line break; with a mistake it is refused, and not shown',
  (name, value) => {
    const files = { '/right': `${value}\n`, '/odd': 'not a secret\nin 2 lines', '/empty': ' \n' };
    const service = name === 'AUTH_API_KEYS' ? SERVICE : OVER_SERVICE;
    const right = read({ ...service, [`${name}_FILE`]: '/right' }, files);
    expect(right).toEqual(read({ ...service, [name]: value }));
    for (const [path, env, said] of [
      ['/nothing', {}, /_FILE names a file that cannot be read \(ENOENT\)\./],
      ['https://a/secret', {}, /_FILE names a file that cannot be read/],
      ['/empty', {}, /_FILE names an empty file. Write the secret into it\./],
      ['/odd', {}, / must be| entry 1 is not/],
      ['/odd', { [name]: 'secret' }, /_FILE are both set\./],
    ] as const) {
      const mistakes = mistakesOf({ ...service, ...env, [`${name}_FILE`]: path }, files);
      expect(mistakes[0]).toMatch(said);
      expect(mistakes.filter((mistake) => !mistake.startsWith(name))).toEqual([]);
      expect(mistakes.join()).not.toMatch(/\/secret|2 lines/);
    }
  },
);

test.each<[Record<string, string>, RegExp]>([
  [{ RECRUITING_URL: 'api.example.com', TOKEN_LINK: LINK }, /^RECRUITING_URL must be a comp/],
  [
    { RECRUITING_URL: 'http://api.example.com' },
    /^RECRUITING_URL must be a complete URL that begins with https/,
  ],
  [{ RECRUITING_URL: 'http://127.0.0.1.example.com' }, /^RECRUITING_URL must be .* https/],
  [{ RECRUITING_URL: 'ftp://localhost' }, /^RECRUITING_URL must be a complete URL/],
  [{ RECRUITING_URL: 'https://u:secret@api.example.com' }, /^RECRUITING_URL must be a plain/],
  [{ RECRUITING_URL: 'https://api.example.com?secret' }, /^RECRUITING_URL must be a plain/],
  [{ RECRUITING_URL: 'https://a.example.com/graphql/' }, /^RECRUITING_URL must be .* \/graphql/],
  [
    { TOKEN_LINK: 'http://api.example.com/secret' },
    /^TOKEN_LINK must be a complete URL that begins with https/,
  ],
  [{ TOKEN_LINK: `${OTHER}/secret` }, /^TOKEN_LINK is at https:\/\/b\./],
  [{ TOKEN_LINK: 'https://c.test/secret', TOKEN_LINK_ORIGIN: OTHER }, /^TOKEN_LINK is at http/],
  [{ TOKEN_LINK_ORIGIN: LINK }, /^TOKEN_LINK_ORIGIN must be the origin of .* \(no path\)/],
  [{ TOKEN_STORE: 'data/tokens.db' }, /^TOKEN_STORE must be sqlite:<file>/],
  [{ TOKEN_STORE: 'postgres://u:secret@db' }, /^TOKEN_STORE must be sqlite:<file>.*postgres:/],
  [{ TOKEN_STORE_KEY: 'c2VjcmV0' }, /^TOKEN_STORE_KEY must be 32 bytes in base64 .*openssl rand/],
  [{ TOKEN_STORE_KEY: `${STORE_KEY},c2VjcmV0` }, /^TOKEN_STORE_KEY must be 32 bytes in base64/],
  [{ RECRUITING_AGENT: 'secret\r\nauthorization: x' }, /^RECRUITING_AGENT must be printable/],
  [{ SCHEMA_PREFIX: '_secret' }, /^SCHEMA_PREFIX must be letters, digits and _, beginning with/],
  [{ PORT: '65536' }, /^PORT must be a whole number from 0 to 65535, for example 4000\.$/],
  [{ UPSTREAM_CONCURRENCY: '0' }, /^UPSTREAM_CONCURRENCY must be a whole number from 1/],
  [{ UPSTREAM_TIMEOUT_MS: '1.5' }, /^UPSTREAM_TIMEOUT_MS must be a whole number/],
  [{ MUTATIONS: 'rename;hire' }, /^MUTATIONS must be off, all, or field names/],
  [{ GRAPHIQL: 'true' }, /^GRAPHIQL must be one of on, off, for example off\.$/],
  [{ LOG_LEVEL: 'verbose' }, /^LOG_LEVEL must be one of fatal, error, warn, info/],
  [{ CORS_ORIGINS: `${OTHER},${OTHER}/` }, /^CORS_ORIGINS must be origins separated by commas/],
  [{ ALLOWED_HOSTS: 'a.test,b.test:80' }, /^ALLOWED_HOSTS must be host names separated by commas/],
  [{ TRUST_PROXY: 'yes' }, /^TRUST_PROXY must be one of true, false/],
  [{ ...PRODUCTION, RECRUITING_URL: '' }, /^RECRUITING_URL is not set\. Set it/],
  // Of callers
  [CLOSED, /set ALLOW_ANONYMOUS=true/],
  [{ ALLOW_ANONYMOUS: 'false', RECRUITING_URL: 'http://127.0.0.1:1' }, /set ALLOW_ANONYMOUS=true/],
  [
    { ...BOTH, AUTH_JWKS_URL: 'http://login.example.com' },
    /^AUTH_JWKS_URL must be a complete URL that begins with https/,
  ],
  [{ ...BOTH, ALLOW_ANONYMOUS: 'true' }, /^ALLOW_ANONYMOUS=true admits every caller/],
  [{ ...BOTH, AUTH_ISSUER: '', AUTH_JWKS_URL: '' }, /Set AUTH_JWKS_URL and AUTH_ISSUER too\.$/],
])('%j is refused, and not shown if it is a secret', (env, mistake) => {
  const mistakes = mistakesOf({ ...OVER_SERVICE, ...env });
  expect(mistakes).toEqual([expect.stringMatching(mistake)]);
  const keys = env['TOKEN_STORE_KEY']?.split(',').filter(Boolean) ?? [];
  for (const secret of ['secret', ...keys]) expect(mistakes[0]).not.toContain(secret);
});

test('settings of a service without its address are reported together, with the ways out, and not shown', () => {
  const env = {
    ...JWT,
    TOKEN_LINK: LINK,
    TOKEN_STORE_FILE: '/run/store',
    TOKEN_STORE_KEY: STORE_KEY!,
    AUTH_API_KEYS: KEY_OF_A,
  };
  const names =
    'TOKEN_LINK, TOKEN_STORE, TOKEN_STORE_KEY, AUTH_API_KEYS, AUTH_JWKS_URL, AUTH_ISSUER, AUTH_AUDIENCE';
  expect(mistakesOf(env, { '/run/store': 'sqlite:tokens.db' })).toEqual([
    `${names} without RECRUITING_URL: the sandbox would be served instead of the real service. ` +
      `Set RECRUITING_URL, or remove ${names}. ` +
      'To try them with made-up people, run `npm start -- sandbox`, which prints a RECRUITING_URL.',
  ]);
});

test('several mistakes are reported at once', () => {
  const mistakes = mistakesOf({
    ...PRODUCTION,
    TOKEN_LINK: 'secret',
    TOKEN_LINK_FILE: '/run/nothing',
    PORT: 'secret',
    MUTATIONS: 'se cret',
    MAX_DEPTH: 'secret',
    AUTH_API_KEY: 'secret',
  });
  const names = 'TOKEN_LINK TOKEN_LINK PORT MAX_DEPTH MUTATIONS RECRUITING_URL AUTH_API_KEY';
  expect(mistakes.map((mistake) => mistake.split(' ')[0]).join(' ')).toBe(names);
  expect(mistakes.join()).not.toMatch(/se ?cret/);
});

test.each([
  'RECRUITING_URI',
  'recruiting_url',
  'TOKEN_STROE',
  'TOKEN_STORE_KEYS',
  'AUTH_API_KEY_FILE',
  'RECRUITING_URL_FILE',
])('the unknown variable %s is refused, by a start and by commands', (name) => {
  const env = { ...OVER_SERVICE, [name]: 'secret' };
  const mistakes = [`${name} is not a setting. Correct the name, or remove it.`];
  expect(mistakesOf({ [name]: 'secret' })).toEqual(mistakes);
  expect(mistakesOf(env)).toEqual(mistakes);
  expect(mistakesIn(() => ofCommand(env))).toEqual(mistakes);
});

test('other unknown variables are ignored, and so are those that Kubernetes sets for Services of these names', () => {
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

test('commands need neither a service nor credentials of callers, but valid settings', () => {
  expect(ofCommand(SERVICE)).toMatchObject(at('https://api.example.com'));
  expect(ofCommand({ TOKEN_STORE: 'sqlite:/A.db' })).toMatchObject(sqlite('/A.db'));
  expect(mistakesIn(() => ofCommand({ PORT: 'x' }))).toHaveLength(1);
});

const EXAMPLE = readFileSync('.env.example', 'utf8').split('\n');

test('.env.example serves known callers of a real service, once it has their keys, and nobody before', () => {
  const lines = EXAMPLE.filter((line) => /^[A-Z]/.test(line));
  const example = Object.fromEntries(lines.map((line) => line.split('=')));
  expect(mistakesOf(example)).toEqual([expect.stringContaining('AUTH_API_KEYS')]);
  const config = read({ ...example, AUTH_API_KEYS: KEY_OF_A, TOKEN_STORE_KEY: STORE_KEY! });
  expect(config).toMatchObject({ production: true, ...at('https://recruiting.example.com') });
  // The same to docker, systemd and Node.
  for (const line of lines) expect(line.trim()).toMatch(/^[A-Z_]+=[^"'#\\$]*$/);
  expect(lines.filter((line) => line !== line.trim())).toEqual([]);
});

test('.env.example has each setting once, and those that are commented out have the default', () => {
  const lines = EXAMPLE.flatMap((line) => [...line.matchAll(/^(#?)([A-Z][A-Z_]+)=(.*)$/g)]);
  const names = lines.map(([, , name]) => name!);
  const ofNode = ['HTTPS_PROXY', 'NO_PROXY'];
  expect(names.toSorted()).toEqual([...Object.keys(variables.entries), ...ofNode].toSorted());
  for (const [, isComment, name, value] of lines) {
    if (isComment === '' || OF_THE_MACHINE.includes(name!)) continue;
    const variable = variables.entries[name as keyof typeof variables.entries];
    expect([name, value]).toEqual([name, variable ? (v.getDefault(variable) ?? '') : '']);
  }
});

/** Their defaults depend on the machine. */
const OF_THE_MACHINE = ['RECRUITING_SCHEMA', 'ANSWER_BYTES'];

function ofCommand(env: Record<string, string>) {
  return readConfig(env, 'command');
}

function read(env: Record<string, string | undefined>, files: Record<string, string> = {}) {
  return readConfig(env, 'server', (path) => {
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
    if (error instanceof OperatorMistakes) return error.message.split('\n  - ').slice(1);
    throw error;
  }
  throw new Error('It was taken.');
}
