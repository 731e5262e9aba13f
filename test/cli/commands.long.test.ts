import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { startService } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { runHere, serveHere, startHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

/** Writes a file, and returns its path. Node loads each module once, so that each needs a name of its own. */
function written(name: string, content: string | object): string {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  mkdirSync(dirname(folder.file(name)), { recursive: true });
  writeFileSync(folder.file(name), text);
  return folder.file(name);
}

test.each([
  [['--help'], /^Usage: npm start -- \[options\] \[command\]\n/],
  [['tokens', 'import', '--help'], /^Usage: npm start -- tokens import \[options\] <source>\n/],
  [['--version'], /^\d+\.\d+\.\d+(-rc\.\d+)?\n$/],
])('%j prints what is typed here, or the version', async (args, printed) => {
  const stdout = expect.stringMatching(printed) as string;
  expect(await runHere(args)).toEqual({ code: 0, stdout, stderr: '' });
});

test.each([
  ['frobnicate', /unknown command 'frobnicate'[^]*serve[^]*sandbox[^]*export[^]*tokens[^]*schema/],
  ['tokens frobnicate', /'frobnicate'[^]*import[^]*status[^]*refresh[^]*recover[^]*export/],
  ['token import https://example.com/secret-link', /unknown command 'token'/],
  ['tokens export postgres://user:secret@db/tokens sqlite:x', /<link> sqlite:x/],
  ['tokens staus', /Did you mean status\?/],
  ['tokens import', /missing required argument 'source'\n\nUsage: .* import .*<source>/],
  ['sandbox --port 65536', /--port/],
  ['export persons --fields id --limit 0', /--limit.* whole number from 1 to/],
  ['export persons --fields id --limit 1e3', /--limit.* whole number/],
  ['export persons --fields id --format xml', /--format.* ndjson, csv/],
  ['export persons --fields id', /--url <gateway>/],
  ['export persons', /--fields <selection>/],
  ['serve --port 1', /--port/],
  ['schema', /print/],
  ['keys new', /missing required argument 'name'/],
  ['keys new a.b/c', /The key has a name that does not consist of at most 64 letters, digits/],
  ['keys new a --scopes router', /neither the scope read nor write; add one of these/],
])(
  '"%s" ends with exit code 2, and names the mistake without a secret or a stack',
  async (line, mistake) => {
    const { code, stdout, stderr } = await runHere(line.split(' '));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(mistake);
    expect(stderr).not.toMatch(/^\s+at |secret/m);
    expect(stderr).not.toContain('\u001b');
  },
);

test('keys new makes a key of 32 random bytes, shown once, and an entry that the gateway accepts', async () => {
  // Settings are not read.
  const env = { AUTH_API_KEYS: 'wrong', PORT: 'x' };
  const make = () => runHere(['keys', 'new', 'portal', '--scopes', 'read+router'], env);
  const { code, stdout, stderr } = await make();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [key = '', entry = ''] = stdout.match(/^ {4}\S+$/gm)!.map((line) => line.trim());
  expect(Buffer.from(key.slice(4), 'base64url')).toHaveLength(32);
  expect(stdout.split(key)).toHaveLength(2);
  expect((await make()).stdout).not.toContain(key);
  const RECRUITING_URL = 'https://api.example.com';
  const { auth } = readConfig({ RECRUITING_URL, AUTH_API_KEYS: entry }, 'server');
  const hash = createHash('sha256').update(key).digest('hex');
  expect(auth?.apiKeys).toEqual([{ name: 'portal', hash, scopes: ['read', 'router'] }]);
});

const APOLLO = { format: 'apollo-persisted-query-manifest', version: 1, operations: [] };
const manifest = (content: string | object) => ({
  TRUSTED_DOCUMENTS: written('manifest.json', content),
});
const schema = (sdl: string) => ({ RECRUITING_SCHEMA: written('upstream.graphql', sdl) });
const adapters = (content: string | object) => {
  written('adapters.json', content);
  return schema('type Query { a: Int }');
};
const adaptersFolder = () => {
  written('folder/adapters.json/file', '');
  return { RECRUITING_SCHEMA: written('folder/upstream.graphql', 'type Query { a: Int }') };
};
const NO_LIST = { fields: { 'Query.a': { page: 3 } } };
const nowhere = folder.file('nowhere');

/** What cannot be used, with the settings that name it, and the exit code and the message of a start. */
test.each<[string, () => Record<string, string>, number, RegExp]>([
  ['another host', () => ({ HOST: '192.0.2.1' }), 1, /EADDRNOTAVAIL.* 192\.0\.2\.1.*HOST or PORT/],
  ['another host of metrics', () => ({ ADMIN_HOST: '192.0.2.1' }), 1, /ADMIN_HOST or ADMIN_PORT/],
  ['no schema', () => ({ RECRUITING_SCHEMA: nowhere }), 2, /nowhere cannot be read \(ENOENT\)/],
  ['half a schema', () => schema('type Query {'), 2, /upstream\.graphql, line 1/],
  ['an adapters.json that is cut', () => adapters('{ "fields": '), 2, /adapters\.json is not JSON/],
  [
    'an adapters.json that cannot be read',
    adaptersFolder,
    2,
    /adapters\.json cannot be read \(EISDIR\)/,
  ],
  [
    'an adapters.json with a mistake',
    () => adapters(NO_LIST),
    2,
    /fields\.Query\.a: nothing is derived/,
  ],
  ['no manifest', () => ({ TRUSTED_DOCUMENTS: nowhere }), 2, /\(ENOENT\)\. TRUSTED_DOCUMENTS must/],
  ['a manifest that is not JSON', () => manifest('{"a": '), 2, /manifest\.json/],
  ['a manifest that is a list', () => manifest([]), 2, /must be a JSON object/],
  ['a manifest of a later version', () => manifest({ ...APOLLO, version: 2 }), 2, /version 1/],
])('a start with %s ends with one message, without a stack', async (_, env, code, message) => {
  const { stdout: _banner, ...exit } = await startHere([], env()).ended;
  expect(exit).toEqual({ code, stderr: expect.stringMatching(message) });
  expect(exit.stderr).not.toMatch(/^\s+at /m);
});

const DEFINED = `import { defineConfig } from 'recruiting-subgraph';
  export default defineConfig({ plugins: [3 as never] });`;
const exporting = (config: string) => `export default { ${config} };`;

test.each<[string, string | undefined, RegExp]>([
  ['does not exist', undefined, /Cannot find module/],
  ['has a mistake of syntax', '\nexport default { plugins: [,; };', /\.ts:2/],
  ['is TypeScript that is more than types', 'enum Kind { A }', /TypeScript enum/],
  ['imports a package that is not installed', "import 'nobody';", /'nobody'/],
  ['needs a service that is down', "await fetch('http://127.0.0.1:9');", /fetch failed[^]*cause/],
  ['exports nothing', 'export {};', /Its default export must be an object/],
  ['has an unknown key', exporting('plugin: []'), /plugin is none of/],
  ['has one plugin', exporting('plugins: {}'), /must be a list of objects/],
  ['awaits no plugin', exporting('plugins: [Promise.resolve()]'), /must be a list of objects/],
  ['uses defineConfig', DEFINED, /must be a list of objects/],
  ['has a service of SDL', exporting("subschemas: [{ schema: 'x' }]"), /with a GraphQLSchema/],
  ['has one service', exporting('subschemas: {}'), /a list of { schema/],
])('a configuration file that %s is reported with where and why', async (what, text, why) => {
  const name = `${what.replaceAll(' ', '-')}.ts`;
  const GATEWAY_CONFIG = text === undefined ? folder.file(name) : written(name, text);
  const { code, stdout, stderr } = await runHere(['schema', 'print'], { GATEWAY_CONFIG });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^\/.*\.ts (has (a mistake|mistakes):|cannot be loaded\. Correct)/);
  expect(stderr).toMatch(why);
});

test('gateway.config.ts and its packages use the graphql of the gateway, also if another copy is installed beside it', async () => {
  const graphql = 'company/node_modules/graphql';
  written(`${graphql}/package.json`, '{ "name": "graphql", "type": "module", "main": "index.js" }');
  written(`${graphql}/index.js`, "throw new Error('the other copy');");
  const plugin = 'company/node_modules/plugin';
  written(`${plugin}/package.json`, '{ "name": "plugin", "main": "index.cjs" }');
  written(
    `${plugin}/index.cjs`,
    "exports.schema = require('graphql/utilities').buildSchema('type Query { a: Int }');",
  );
  const GATEWAY_CONFIG = written(
    'company/gateway.config.ts',
    `import { schema } from 'plugin';
     import { isSchema } from 'graphql';
     if (!isSchema(schema)) throw new Error('two copies');
     export default { subschemas: [{ schema }] };`,
  );
  expect(await runHere(['schema', 'print'], { GATEWAY_CONFIG })).toMatchObject({
    code: 0,
    stderr: '',
  });
});

test('gateway.config.ts in the working directory is loaded, in production only if GATEWAY_CONFIG names it', async () => {
  written('here/gateway.config.ts', "throw new Error('loaded');");
  for (const [env, code, says] of [
    [{}, 2, /^gateway\.config\.ts cannot be loaded/],
    [{ NODE_ENV: 'production' }, 0, /^$/],
    [{ NODE_ENV: 'production', GATEWAY_CONFIG: 'gateway.config.ts' }, 2, /cannot be loaded/],
  ] as const) {
    const stderr = expect.stringMatching(says);
    expect(await inFolder(['schema', 'print'], env, 'here')).toMatchObject({ code, stderr });
  }
});

/** Runs a command in a folder below that of the test. */
async function inFolder(args: readonly string[], env: Record<string, string>, below: string) {
  const before = process.cwd();
  process.chdir(join(folder.path, below));
  try {
    return await runHere(args, env);
  } finally {
    process.chdir(before);
  }
}

const INITIAL = `
  import { defineConfig } from 'recruiting-subgraph';
  export default defineConfig({
    typeDefs: 'extend type Person { initial: String }',
    resolvers: {
      Person: {
        initial: { selectionSet: '{ firstName }', resolve: (person) => [...(person.firstName ?? '')][0] },
      },
    },
  });
`;

test('an own field is answered and printed', async () => {
  const env = { GATEWAY_CONFIG: written('initial.ts', INITIAL) };
  await using gateway = await serveHere(env);
  await gateway.printed(RegExp(`configuration file.*"file":"${env.GATEWAY_CONFIG}"`));
  expect(await askAt(gateway.url, '{ persons(first: 1) { items { initial } } }')).toEqual({
    data: { persons: { items: [{ initial: expect.stringMatching(/^\p{L}$/u) }] } },
  });
  for (const options of [[], ['--subgraph']]) {
    const printed = await runHere(['schema', 'print', ...options], env);
    expect(printed.stdout).toMatch(/^type Person [^}]*^ {2}initial: String$/m);
  }
});

test('with a file that cannot be loaded, a gateway does not start and exchanges no token, and commands that need no schema work', async () => {
  await using service = await startService();
  const env = {
    RECRUITING_URL: service.url,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    GATEWAY_CONFIG: written('broken.ts', "throw new Error('the reviews are down');"),
  };
  const callers = { ALLOW_ANONYMOUS: 'true', TOKEN_LINK: service.tokenLink };
  const { code, stderr } = await runHere([], { ...env, ...callers });
  expect(stderr).toMatch(/broken\.ts cannot be loaded\.[^]*the reviews are down/);
  expect([code, service.exchanges]).toEqual([2, []]);
  const imports = ['tokens', 'import', service.tokenLink];
  for (const args of [imports, ['tokens', 'status'], ['keys', 'new', 'a'], ['schema', 'explain']]) {
    expect(await runHere(args, env)).toMatchObject({ code: 0, stderr: '' });
  }
});
