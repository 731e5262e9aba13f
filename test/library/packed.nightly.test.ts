import { execFile } from 'node:child_process';
import { cpSync, globSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { personOf } from '../../sandbox/persons.ts';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { blockWith } from '../support/docs/documents.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import { served, startNpm, startProcess, type Program } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/**
 * The package as others install it: packed, and unpacked into a project of theirs. Its dependencies are those of this
 * repository, except for the test that installs it with npm.
 */
const folder = temporaryFolder('disk');
const project = folder.file('beside/project');
const installed = join(project, 'node_modules', manifest.name);
let packed: Packed;
let postgres: PostgresServer;

/** The people of every sandbox with three persons. */
const IDS = [0, 1, 2].map((number) => ({ id: personOf(number).id }));

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

beforeAll(async () => {
  mkdirSync(installed, { recursive: true });
  // Above the project, where Node and the compiler look too.
  symlinkSync(resolve('node_modules'), join(project, '../node_modules'));
  [packed, postgres] = await Promise.all([pack(), startPostgres()]);
  const tarball = folder.file(packed.filename);
  await execute('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  cpSync('test/support/library', project, { recursive: true });
  cpSync('examples', join(project, 'examples'), { recursive: true, filter: isForNode });
  for (const name of ['server.ts', 'yoga.ts']) {
    writeFileSync(join(project, name), blockWith('docs/library.md', `// ${name}\n`));
  }
  writeFileSync(join(project, 'package.json'), '{ "type": "module", "private": true }');
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(TSCONFIG));
}, 120_000);
afterAll(async () => {
  await postgres.close();
  folder[Symbol.dispose]();
});

test('the package contains JavaScript, the types of its exports, the snapshot of the schema, and the documents', () => {
  const paths = packed.files.map(({ path }) => path);
  const documents =
    /^(docs|examples|deploy|monitoring)\/|^[A-Z]+\.md$|^compose\.yaml$|^\.env\.example$/;
  const others = paths.filter((path) => !documents.test(path) && !/\.(js|cjs|d\.ts)$/.test(path));
  expect(others.toSorted()).toEqual(
    ['LICENSE', 'dist/package.json', 'dist/schema/upstream.graphql', 'package.json'].toSorted(),
  );
  expect(paths.filter((path) => /^(test|bench)\/|\.test\./.test(path))).toEqual([]);
  expect(packed.size).toBeLessThan(1_000_000);
});

test('the types of the package pass in a strict program, with those of its dependencies', async () => {
  const compiler = resolve('node_modules/typescript/bin/tsc');
  await using check = startProcess([compiler, '--project', project]);
  expect(await check.ended).toMatchObject({ code: 0, stdout: '', stderr: '' });
});

test('a program opens a gateway, uses it, closes it, and ends by itself', async () => {
  const stores: Settings[] = [
    { TOKEN_STORE: `sqlite:${folder.file('tokens.db')}` },
    { TOKEN_STORE: await postgres.emptyStore(), TOKEN_RESCUE_DIR: folder.file('rescue') },
  ];
  for (const store of stores) {
    await using service = await startService();
    await using program = inProject('use-gateway.ts', { ...store, ...service.settings });
    const { stdout, ...exit } = await program.ended;
    expect(exit).toEqual({ code: 0, signal: null, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({ data: { allPersons: IDS } });
  }
});

test.each([
  ['server.ts', '{ allPersons { id } }', { allPersons: IDS }],
  ['yoga.ts', '{ persons { items { id } } }', { persons: { items: IDS } }],
  [
    'examples/executor/server.ts',
    '{ office persons { items { id } } }',
    { office: 'Berlin', persons: { items: IDS } },
  ],
])(
  'the program %s of docs/library.md or examples answers, and ends after SIGTERM',
  async (file, query, data) => {
    await using service = await startService();
    const TOKEN_STORE = `sqlite:${folder.file(`${file.replaceAll('/', '-')}.db`)}`;
    await using program = inProject(file, { ...service.settings, TOKEN_STORE });
    const [, port] = await program.printed(/port: (\d+)/);
    expect(await askAt(`http://127.0.0.1:${port}/graphql`, query)).toEqual({ data });
    expect(await program.stop()).toMatchObject({ code: 0, signal: null, stderr: '' });
  },
);

test('the command of the package prints what is served, with what a company adds, and how to run it', async () => {
  const command = join(installed, manifest.bin[manifest.name as 'recruiting-subgraph']);
  const env = {
    // The snapshot of the package.
    RECRUITING_SCHEMA: '',
    GATEWAY_CONFIG: 'examples/own-field/gateway.config.ts',
    NODE_COMPILE_CACHE: '',
  };
  await using print = startProcess([command, 'schema', 'print'], { cwd: project, env });
  const { code, stdout } = await print.ended;
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('allPersons(') });
  expect(stdout).toContain('greeting: String!');
  await using help = startProcess([command, 'tokens', 'import', '--help'], { cwd: project });
  expect((await help.ended).stdout).toMatch(/^Usage: npx recruiting-subgraph tokens import /);
});

test('in an empty folder, npm installs at most 60 MB, and npx serves the sandbox with GraphiQL', async () => {
  const cwd = folder.file('empty');
  mkdirSync(cwd);
  const start = (args: string[]) => startNpm(args, { cwd });
  const quickly = ['--prefer-offline', '--no-audit', '--no-fund'];
  await using install = start(['install', ...quickly, folder.file(packed.filename)]);
  expect(await install.ended).toMatchObject({ code: 0, stderr: '' });
  // As `du -m` counts: whole blocks, folders included.
  const sizes = globSync('node_modules/**/*', { cwd }).map((path) => statSync(join(cwd, path)));
  const bytes = sizes.reduce((sum, { blocks }) => sum + blocks * 512, 0);
  expect(bytes / 1024 ** 2).toBeGreaterThan(10);
  expect(bytes / 1024 ** 2).toBeLessThan(60);

  await using program = start(['exec', '--no', '--', manifest.name]);
  const { url, stdout } = await served(program);
  expect(stdout).toMatch(/SANDBOX[^]*GraphiQL +http/);
  const page = await fetch(url, { headers: { accept: 'text/html' } });
  expect(await page.text()).toContain('GraphiQL');
  const answer = await askAt(url, '{ allPersons(limit: 1) { id } }');
  expect(answer).toEqual({ data: { allPersons: IDS.slice(0, 1) } });
}, 120_000);

type Settings = Readonly<Record<string, string>>;

/** A service of its own: a token belongs to one store. */
async function startService(): Promise<AsyncDisposable & { readonly settings: Settings }> {
  const sandbox = await startSandbox({ persons: IDS.length });
  const settings = {
    RECRUITING_URL: sandbox.url,
    // The snapshot of the package.
    RECRUITING_SCHEMA: '',
    ADMIN_PORT: '',
    TOKEN_LINK: sandbox.tokenLink,
    ALLOW_ANONYMOUS: 'true',
  };
  return { settings, [Symbol.asyncDispose]: () => sandbox.close() };
}

/** Starts a program of the project. */
function inProject(file: string, settings: Settings): Program {
  // Of its own: what is compiled of files in a temporary folder is of no use to other tests.
  const env = { ...settings, NODE_COMPILE_CACHE: folder.file('compiled') };
  return startProcess([join(project, file)], { cwd: project, env });
}

/**
 * Those of clients are checked with the settings of their compilers. The supergraph starts the program of this
 * repository and does not import the package; the types of its router are not valid in a strict program.
 */
function isForNode(path: string): boolean {
  return !/^examples\/(apollo|relay|supergraph|urql)/.test(path);
}

async function pack(): Promise<Packed> {
  const args = ['pack', '--json', '--pack-destination', folder.path];
  const { PATH = '', HOME = '' } = process.env;
  // What its scripts print goes to the standard error.
  const output = await execute('npm', args, { PATH, HOME });
  return (JSON.parse(output) as [Packed])[0];
}

const TSCONFIG = {
  compilerOptions: {
    target: 'es2024',
    lib: ['es2024'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    skipLibCheck: false,
    // lru-cache 10, whose types are those of a Yoga plugin too, was written before this was a part of `strict`.
    strictBuiltinIteratorReturn: false,
  },
  include: ['**/*.ts'],
};

/** @returns its standard output */
async function execute(
  command: string,
  args: readonly string[],
  env = process.env,
): Promise<string> {
  return (await promisify(execFile)(command, args, { env })).stdout;
}
