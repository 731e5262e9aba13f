import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService } from '../service/service.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder();
});
afterAll(() => folder[Symbol.dispose]());

test('a configuration file imports defineConfig from the package, wherever the file is', async () => {
  write(
    'define.ts',
    "import { defineConfig } from 'recruiting-subgraph';\nexport default defineConfig({ plugins: [3 as never] });",
  );
  const exit = await inFolder(() => printWith('define.ts'));
  expect(exit.stderr).toContain('define.ts has mistakes:\n✖ must be a plugin');
});

test.each([
  ['does not exist', 'nowhere.ts', undefined, /ENOENT/],
  ['has a mistake of syntax', 'syntax.ts', '\nexport default { plugins: [,; };', /syntax\.ts:2/],
  ['is TypeScript that is more than types', 'enum.ts', 'enum Kind { A }', /TypeScript enum/],
  ['imports a package that is not installed', 'package.ts', "import 'nobody';", /'nobody'/],
  [
    'throws an error',
    'throws.ts',
    '\nthrow new Error("REVIEWS_URL is not set");',
    /REVIEWS_URL[^]*throws\.ts:2/,
  ],
  [
    'needs a second service that is down',
    'down.ts',
    "await fetch('http://127.0.0.1:9/graphql');",
    /fetch failed[^]*cause/,
  ],
])('a configuration file that %s is reported with where and why', async (_, name, text, why) => {
  if (text !== undefined) write(name, text);
  const { code, stdout, stderr } = await inFolder(() => printWith(name));
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(`${name} cannot be loaded. Correct the file, what it imports, or`);
  expect(stderr).toMatch(why);
});

test.each([
  ['nothing', '', 'Its default export must be an object'],
  ['an unknown key', 'export default { plugin: [] };', 'Unrecognized key: "plugin"'],
  ['one plugin', 'export default { plugins: {} };', 'must be a list of plugins'],
  ['a plugin not awaited', 'export default { plugins: [Promise.resolve()] };', 'must be a plugin'],
  ['a service of SDL', "export default { subschemas: [{ schema: 'x' }] };", 'with a GraphQLSchema'],
  ['types that are not SDL', "export default { typeDefs: 'type A {' };", 'Syntax Error'],
])('a configuration file that exports %s is refused', async (what, text, message) => {
  const name = `${what.replaceAll(' ', '-')}.ts`;
  write(name, text);
  const { code, stderr } = await inFolder(() => printWith(name));
  expect(code).toBe(2);
  expect(stderr).toMatch(new RegExp(`^${name} has (mistakes|a mistake):\n`));
  expect(stderr).toContain(message);
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
  write(
    'company/gateway.config.ts',
    `import { schema } from 'plugin';
     import { isSchema } from 'graphql';
     if (!isSchema(schema)) throw new Error('two copies');
     export default { subschemas: [{ schema }] };`,
  );
  expect(await printWith('company/gateway.config.ts')).toMatchObject({ code: 0, stderr: '' });
});

test('gateway.config.ts in the working directory is loaded, in production only if GATEWAY_CONFIG names it', async () => {
  write('here/gateway.config.mts', "throw new Error('loaded');");
  expect(await inFolder(() => runHere(['schema', 'print']), 'here')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('gateway.config.mts cannot be loaded'),
  });
  const NODE_ENV = 'production';
  expect(await inFolder(() => runHere(['schema', 'print'], { NODE_ENV }), 'here')).toMatchObject({
    code: 0,
    stderr:
      'gateway.config.mts is not loaded: in production, only the file that GATEWAY_CONFIG names is. ' +
      'Set GATEWAY_CONFIG=gateway.config.mts, or remove the file.\n',
  });
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

test('an own field is in what schema print prints, for a supergraph too, and leaves schema explain alone', async () => {
  write('initial.ts', INITIAL);
  for (const options of [[], ['--subgraph']]) {
    const GATEWAY_CONFIG = folder.file('initial.ts');
    const { stdout, stderr } = await runHere(['schema', 'print', ...options], { GATEWAY_CONFIG });
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^type Person [^}]*^ {2}initial: String$/m);
  }
  write('broken-for-explain.ts', "throw new Error('loaded');");
  const GATEWAY_CONFIG = folder.file('broken-for-explain.ts');
  expect(await runHere(['schema', 'explain'], { GATEWAY_CONFIG })).toEqual(
    await runHere(['schema', 'explain']),
  );
});

test('an own field is a column of an export, also of a list with more records than one operation may have', async () => {
  write('initial.ts', INITIAL);
  const sandbox = await startService({ persons: 5_600 });
  const { code, stdout, stderr } = await runHere(['export', 'persons', '--format', 'csv'], {
    RECRUITING_URL: sandbox.url,
    TOKEN_LINK: sandbox.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('export.db')}`,
    GATEWAY_CONFIG: folder.file('initial.ts'),
  });
  await sandbox.close();
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('5,600 records') });
  const [header, ...rows] = stdout.trimEnd().split('\n');
  expect(header!.trim().split(',').toSorted()).toEqual(['firstName', 'id', 'initial']);
  const at = (name: string) => header!.trim().split(',').indexOf(name);
  const cells = rows.map((row) => row.trim().split(','));
  expect(cells.map((row) => row[at('id')])).toEqual(sandbox.persons.all().map(({ id }) => id));
  for (const row of cells) expect(row[at('initial')]).toBe(Array.from(row[at('firstName')]!)[0]);
});

test('commands for tokens and keys never load the file', async () => {
  const sandbox = await startService();
  const marker = folder.file('marker');
  write(
    'marking.ts',
    `import { writeFileSync } from 'node:fs';
     writeFileSync(${JSON.stringify(marker)}, '');
     export default {};`,
  );
  const env = {
    RECRUITING_URL: sandbox.url,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    GATEWAY_CONFIG: folder.file('marking.ts'),
  };
  for (const args of [
    ['tokens', 'import', sandbox.tokenLink],
    ['tokens', 'status'],
    ['keys', 'new', 'portal'],
  ]) {
    expect(await runHere(args, env)).toMatchObject({ code: 0 });
    expect(existsSync(marker)).toBe(false);
  }
  await sandbox.close();
  expect(await runHere(['schema', 'print'], env)).toMatchObject({ code: 0 });
  expect(existsSync(marker)).toBe(true);
});

function write(name: string, text: string): void {
  mkdirSync(dirname(folder.file(name)), { recursive: true });
  writeFileSync(folder.file(name), text);
}

/** The command that loads the file, and nothing else that could fail. */
function printWith(file: string, env: Record<string, string> = {}) {
  return inFolder(() => runHere(['schema', 'print'], { GATEWAY_CONFIG: file, ...env }));
}

async function inFolder<Result>(command: () => Promise<Result>, below = '.'): Promise<Result> {
  const before = process.cwd();
  process.chdir(join(folder.path, below));
  try {
    return await command();
  } finally {
    process.chdir(before);
  }
}
