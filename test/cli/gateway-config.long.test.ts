import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { startService } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { runHere, serveHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

/** Writes a file. Node loads each once, so that each needs a name of its own. */
function write(name: string, text: string): string {
  mkdirSync(dirname(folder.file(name)), { recursive: true });
  writeFileSync(folder.file(name), text);
  return folder.file(name);
}

/** Runs a command in the folder, or below it. */
async function inFolder(args: readonly string[], env: Record<string, string> = {}, below = '.') {
  const before = process.cwd();
  process.chdir(join(folder.path, below));
  try {
    return await runHere(args, env);
  } finally {
    process.chdir(before);
  }
}

const DEFINED = `import { defineConfig } from 'recruiting-subgraph';
  export default defineConfig({ plugins: [3 as never] });`;
const exporting = (config: string) => `export default { ${config} };`;

test.each<[string, string | undefined, RegExp]>([
  ['does not exist', undefined, /ENOENT/],
  ['has a mistake of syntax', '\nexport default { plugins: [,; };', /syntax\.ts:2/],
  ['is TypeScript that is more than types', 'enum Kind { A }', /TypeScript enum/],
  ['imports a package that is not installed', "import 'nobody';", /'nobody'/],
  ['throws an error', '\nthrow new Error("REVIEWS_URL is not set");', /REVIEWS_URL[^]*error\.ts:2/],
  ['needs a service that is down', "await fetch('http://127.0.0.1:9');", /fetch failed[^]*cause/],
  ['exports nothing', '', /Its default export must be an object/],
  ['has an unknown key', exporting('plugin: []'), /Unknown key\n +→ at plugin/],
  ['has one plugin', exporting('plugins: {}'), /must be a list of plugins/],
  ['awaits no plugin', exporting('plugins: [Promise.resolve()]'), /must be a plugin/],
  ['uses defineConfig', DEFINED, /must be a plugin/],
  ['has a service of SDL', exporting("subschemas: [{ schema: 'x' }]"), /with a GraphQLSchema/],
  ['has one service', exporting('subschemas: {}'), /must be a list of services/],
  ['has types that are not SDL', exporting("typeDefs: ['type A {']"), /Syntax Error/],
])('a configuration file that %s is reported with where and why', async (what, text, why) => {
  const name = `${what.replaceAll(' ', '-')}.ts`;
  if (text !== undefined) write(name, text);
  const { code, stdout, stderr } = await inFolder(['schema', 'print'], { GATEWAY_CONFIG: name });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(
    RegExp(`^${name} (has (a mistake|mistakes):|cannot be loaded\\. Correct)`),
  );
  expect(stderr).toMatch(why);
});

test('the file and its packages use the graphql of the gateway, also if another copy is installed beside it', async () => {
  const graphql = 'company/node_modules/graphql';
  write(`${graphql}/package.json`, '{ "name": "graphql", "type": "module", "main": "index.js" }');
  write(`${graphql}/index.js`, "throw new Error('the other copy');");
  const plugin = 'company/node_modules/plugin';
  write(`${plugin}/package.json`, '{ "name": "plugin", "main": "index.cjs" }');
  write(
    `${plugin}/index.cjs`,
    "exports.schema = require('graphql').buildSchema('type Query { a: Int }');",
  );
  const GATEWAY_CONFIG = write(
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
  write('here/gateway.config.mts', "throw new Error('loaded');");
  for (const [env, code, says] of [
    [{}, 2, /gateway\.config\.mts cannot be loaded/],
    [
      { NODE_ENV: 'production' },
      0,
      /is not loaded: .* Set GATEWAY_CONFIG=gateway\.config\.mts, or/,
    ],
    [{ NODE_ENV: 'production', GATEWAY_CONFIG: 'gateway.config.mts' }, 2, /cannot be loaded/],
  ] as const) {
    const stderr = expect.stringMatching(says);
    expect(await inFolder(['schema', 'print'], env, 'here')).toMatchObject({ code, stderr });
  }
});

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

test('an own field is answered and printed, and a column of an export, however long the list', async () => {
  // More records than one operation may have.
  await using service = await startService({ persons: 5_600 });
  const env = {
    RECRUITING_URL: service.url,
    TOKEN_LINK: service.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('own.db')}`,
    GATEWAY_CONFIG: write('initial.ts', INITIAL),
  };
  await using gateway = await serveHere({ ...env, ALLOW_ANONYMOUS: 'true' });
  await gateway.printed(RegExp(`configuration file.*"file":"${env.GATEWAY_CONFIG}"`));
  expect(await askAt(gateway.url, '{ persons(first: 1) { items { initial } } }')).toEqual({
    data: { persons: { items: [{ initial: expect.stringMatching(/^\p{L}$/u) }] } },
  });
  for (const options of [[], ['--subgraph']]) {
    const printed = await runHere(['schema', 'print', ...options], env);
    expect(printed.stdout).toMatch(/^type Person [^}]*^ {2}initial: String$/m);
  }
  const columns = ['--fields', 'id initial', '--format', 'csv'];
  const { code, stdout } = await runHere(['export', 'persons', ...columns], env);
  const rows = service.persons
    .all()
    .map(({ id, firstName }) => `${id},${Array.from(firstName)[0]}\n`);
  expect([code, stdout === `id,initial\n${rows.join('')}`]).toEqual([0, true]);
});

test('with a file that cannot be loaded, a gateway does not start and exchanges no token, and commands that need no schema work', async () => {
  await using service = await startService();
  const env = {
    RECRUITING_URL: service.url,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    GATEWAY_CONFIG: write('broken.ts', "throw new Error('the reviews are down');"),
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
