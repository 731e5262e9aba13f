import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
  expect(exit.stderr).toContain('define.ts has a mistake:\n  - plugins[0] must be a plugin');
});

describe('a configuration file that cannot be loaded is reported once, with what to do', () => {
  test.each([
    [
      'a file that does not exist',
      'nowhere.ts',
      undefined,
      'GATEWAY_CONFIG names nowhere.ts, which does not exist. Correct the path, or remove the setting.',
    ],
    ['a file of another kind', 'config.json', '{}', 'which is none of .ts, .mts, .js and .mjs.'],
    [
      'a mistake of syntax',
      'syntax.ts',
      '\nexport default { plugins: [,; };',
      'syntax.ts cannot be loaded: Expression expected (syntax.ts, line 2). Correct it; Node strips types',
    ],
    [
      'TypeScript that is more than types',
      'enum.ts',
      'enum Kind { A }\nexport default {};',
      'enum.ts cannot be loaded: TypeScript enum is not supported in strip-only mode',
    ],
    [
      'a package that is not installed',
      'package.ts',
      "import { useSentry } from '@envelop/sentry-of-nobody';\nexport default { plugins: [useSentry()] };",
      'package.ts cannot be loaded: the package @envelop/sentry-of-nobody is not installed there. Run npm install @envelop/sentry-of-nobody in its folder.',
    ],
    [
      'a name that a module does not have',
      'name.ts',
      "import { nothing } from 'graphql';\nexport default { plugins: [nothing()] };",
      'name.ts cannot be loaded: ',
    ],
    [
      'an error that it throws',
      'throws.ts',
      "\nconst name: string = 'REVIEWS_URL';\nthrow new Error(`${name} is not set`);\nexport default {};",
      'throws.ts cannot be loaded: REVIEWS_URL is not set (throws.ts, line 3). Correct the file, or what it needs.',
    ],
    [
      'a text that it throws',
      'text.ts',
      "throw 'no\\u001b[2J luck';",
      'text.ts cannot be loaded: it threw no [2J luck. Correct',
    ],
    [
      'a second service that is down',
      'down.ts',
      "export default { subschemas: [{ schema: await fetch('http://127.0.0.1:9/graphql') }] };",
      'down.ts cannot be loaded: fetch failed: ',
    ],
  ])('%s', async (_, name, text, message) => {
    if (text !== undefined) write(name, text);
    const exit = await inFolder(() => printWith(name));
    expect(exit).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
    expect(exit.stderr.split('\n')).toEqual([expect.stringContaining(name), '']);
  });
});

describe('what a configuration file exports is checked', () => {
  test.each([
    ['nothing', '', 'It has no default export. Write `export default defineConfig({ … })`.'],
    [
      'a promise',
      'export default Promise.resolve({});',
      'Its default export is a promise. Await it in the file: `export default defineConfig(await …)`.',
    ],
    ['a function', 'export default () => ({});', 'Its default export is a function, and not what'],
    ['a list', 'export default [];', 'Its default export is a list. Write `export default'],
    [
      'a slip of the pen',
      'export default { plugin: [] };',
      'plugin is not known. Was plugins meant?',
    ],
    [
      'an unknown key',
      'export default { schema: 1 };',
      'schema is not known. There are plugins, typeDefs, resolvers, subschemas.',
    ],
    [
      'one plugin',
      'export default { plugins: { onExecute() {} } };',
      'plugins must be a list of plugins, for example [useSentry()].',
    ],
    [
      'a plugin that was not called',
      'export default { plugins: [{}, () => ({})] };',
      'plugins[1] is a function. Call it, as in useSentry().',
    ],
    [
      'a plugin that was not awaited',
      'export default { plugins: [Promise.resolve({})] };',
      'plugins[0] is a promise. Await it, as in await useSentry().',
    ],
    [
      'a plugin that is a name',
      "export default { plugins: ['sentry'] };",
      'plugins[0] must be a plugin, which is an object with hooks.',
    ],
    [
      'types that are no SDL',
      "export default { typeDefs: ['type A { b: Int }', 'extend type Person {\\n  fullName String }'] };",
      'typeDefs is not valid SDL: Syntax Error: Expected ":", found Name "String", in line 2, column 12.',
    ],
    [
      'types that are an operation',
      "export default { typeDefs: '{ persons { items { id } } }' };",
      'typeDefs must be definitions of types, and not an operation.',
    ],
    [
      'types that are a number',
      'export default { typeDefs: 1 };',
      'typeDefs must be SDL: a string, a document, or a list of them.',
    ],
    [
      'resolvers that are a function',
      'export default { resolvers: () => ({}) };',
      'resolvers must be an object with the fields of each type, for example { Person: {',
    ],
    [
      'resolvers of a type that are a function',
      'export default { resolvers: { Person: () => 1 } };',
      'resolvers must have an object with fields for each type. That of Person is a function.',
    ],
    [
      'a service that is not in a list',
      'export default { subschemas: {} };',
      'subschemas must be a list of services, for example [{ schema, executor }].',
    ],
    [
      'a service without a schema',
      'export default { subschemas: [{ executor() {} }] };',
      'subschemas[0] must have a schema, which is a GraphQLSchema.',
    ],
    [
      'a service whose schema was not awaited',
      'export default { subschemas: [{ schema: Promise.resolve() }] };',
      'subschemas[0] has a promise as its schema. Await it, as in schema: await load().',
    ],
    [
      'a service whose schema is SDL',
      "export default { subschemas: [{ schema: 'type Query { a: Int }' }] };",
      'subschemas[0] has SDL as its schema. Build a schema of it, as in schema: buildSchema(sdl).',
    ],
    [
      'a service whose executor is its address',
      "import { buildSchema } from 'graphql';\nexport default { subschemas: [{ schema: buildSchema('type Query { a: Int }'), executor: 'http://a' }] };",
      'subschemas[0] has a string as its executor, which must be a function.',
    ],
  ])('%s', async (what, text, message) => {
    const name = `${what.replaceAll(' ', '-')}.ts`;
    write(name, text);
    const { code, stderr } = await inFolder(() => printWith(name));
    expect(code).toBe(2);
    const [title, ...mistakes] = stderr.trimEnd().split('\n');
    expect([title, mistakes]).toEqual([
      `${name} has a mistake:`,
      [expect.stringContaining(`  - ${message}`)],
    ]);
  });

  test('all mistakes are reported at once', async () => {
    write('many.ts', 'export default { plugins: [1], typeDef: "", subschemas: [2] };');
    const { stderr } = await inFolder(() => printWith('many.ts'));
    expect(stderr).toMatch(
      /^many.ts has 3 mistakes:\n.*plugins\[0\].*\n.*subschemas\[0\].*\n.*typeDef is/,
    );
  });
});

test('a plugin that is switched off is left out', async () => {
  write('off.ts', 'export default { plugins: [false, undefined, null] };');
  expect(await inFolder(() => printWith('off.ts'))).toMatchObject({ code: 0, stderr: '' });
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

describe('in production', () => {
  test('gateway.config.ts in the working directory is named and not loaded', async () => {
    write('lies-there/gateway.config.ts', "throw new Error('loaded');");
    const { code, stderr } = await inFolder(
      () => runHere(['schema', 'print'], { NODE_ENV: 'production' }),
      'lies-there',
    );
    expect(code).toBe(0);
    expect(stderr).toBe(
      'gateway.config.ts is not loaded: in production, only the file that GATEWAY_CONFIG names is. ' +
        'Set GATEWAY_CONFIG=gateway.config.ts, or remove the file.\n',
    );
  });

  test('a file that every user of the machine can change is refused, and otherwise warned about', async () => {
    write('open/config.ts', 'export default {};');
    chmodSync(folder.file('open/config.ts'), 0o666);
    const path = 'open/config.ts';
    const risk = /every user of this machine can write to .*open\/config.ts, .* Run chmod o-w /;
    const refused = await printWith(path, { NODE_ENV: 'production' });
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(risk) });
    expect(await printWith(path)).toMatchObject({ code: 0, stderr: expect.stringMatching(risk) });
  });
});

test('without GATEWAY_CONFIG, gateway.config.ts in the working directory is loaded', async () => {
  write('here/gateway.config.mts', "throw new Error('loaded');");
  const exit = await inFolder(() => runHere(['schema', 'print']), 'here');
  expect(exit).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('loaded (gateway.config.mts'),
  });
});

test('two files of that name are refused', async () => {
  for (const name of ['gateway.config.ts', 'gateway.config.js']) write(`two/${name}`, '');
  const exit = await inFolder(() => runHere(['schema', 'print']), 'two');
  expect(exit.code).toBe(2);
  expect(exit.stderr).toMatch(/^There are gateway.config.ts and gateway.config.js, and only one/);
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

describe('an own field', () => {
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
});

test.each([
  [
    'an unknown type',
    'extend type Persn { a: Int }',
    'Cannot extend type "Persn" because it is not defined',
  ],
  [
    'a field that exists',
    'extend type Person { id: Int }',
    'typeDefs adds Person.id, which the gateway',
  ],
  [
    'a field without a resolver',
    'extend type Person { a: Int }',
    'resolvers has no Person.a. Add a',
  ],
])('%s in typeDefs is a mistake of the file that has it', async (_, typeDefs, message) => {
  const name = `${typeDefs.replaceAll(/\W/g, '')}.ts`;
  write(name, `export default { typeDefs: ${JSON.stringify(typeDefs)} };`);
  const { code, stderr } = await printWith(name);
  expect(code).toBe(2);
  expect(stderr).toMatch(new RegExp(`^${name} has a mistake:\n  - .*${message}`));
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
    ['tokens', 'check'],
    ['tokens', 'refresh'],
    ['tokens', 'recover'],
    ['tokens', 'export', `sqlite:${folder.file('moved.db')}`],
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
