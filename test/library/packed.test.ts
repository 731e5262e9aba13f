import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import { startProcess } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/**
 * The package as others install it: packed, and unpacked into a project of theirs. Its dependencies are those of this
 * repository, so that no network is needed.
 */
const folder = temporaryFolder();
const project = folder.file('project');
const installed = join(project, 'node_modules', manifest.name);
let packed: Packed;
let sandbox: Sandbox;
let postgres: PostgresServer;

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

beforeAll(async () => {
  linkPackages();
  mkdirSync(installed);
  [packed, postgres, sandbox] = await Promise.all([
    pack(),
    startPostgres(),
    startSandbox({ persons: 3 }),
  ]);
  const tarball = folder.file(packed.filename);
  await execute('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  cpSync('test/support/library', project, { recursive: true });
  write('package.json', { type: 'module', private: true });
  write('tsconfig.json', TSCONFIG);
});
afterAll(async () => {
  await Promise.all([sandbox.close(), postgres.close()]);
  folder[Symbol.dispose]();
});

test('what is packed is JavaScript, the types of what is exported, and the snapshot of the schema', () => {
  const paths = packed.files.map(({ path }) => path);
  const code = paths.filter((path) => /^dist\/.*\.(js|cjs)$/.test(path));
  expect(code.length).toBeGreaterThan(200);
  expect(paths.filter((path) => !code.includes(path)).toSorted()).toEqual(
    [
      'LICENSE',
      'README.md',
      ...readdirSync('src/config').map((name) => `dist/config/${name.replace('.ts', '.d.ts')}`),
      'dist/config.d.ts',
      'dist/library/index.d.ts',
      'package.json',
      'schema/upstream.graphql',
    ].toSorted(),
  );
  expect(packed.size).toBeLessThan(500_000);
});

test('its types are checked in a strict program, with those of its dependencies', async () => {
  const compiler = resolve('node_modules/typescript/bin/tsc');
  await using check = startProcess([compiler, '--project', project]);
  expect(await check.ended).toMatchObject({ code: 0, stdout: '', stderr: '' });
});

test('a program opens a gateway, uses it, closes it, and ends by itself', async () => {
  const stores = [
    { TOKEN_STORE: `sqlite:${folder.file('tokens.db')}` },
    { TOKEN_STORE: await postgres.emptyStore(), TOKEN_RESCUE_DIR: folder.file('rescue') },
  ];
  for (const store of stores) {
    const link = { TOKEN_LINK: sandbox.makeNewSet() };
    const answer = { data: { allPersons: ids() } };
    expect(await runInProject('use-gateway.ts', { ...store, ...link })).toEqual(answer);
    expect(await runInProject('use-gateway.ts', store)).toEqual(answer);
  }
});

test('a program opens the executor by itself for its own server, and ends by itself too', async () => {
  const store = { TOKEN_STORE: `sqlite:${folder.file('other.db')}` };
  const link = { TOKEN_LINK: sandbox.makeNewSet() };
  expect(await runInProject('use-executor.ts', { ...store, ...link })).toEqual({
    data: { persons: { items: ids() } },
  });
});

test('the command of the package prints its version, and what is served', async () => {
  const command = join(installed, manifest.bin[manifest.name as 'recruiting-subgraph']);
  await using version = startProcess([command, '--version']);
  expect(await version.ended).toMatchObject({ code: 0, stdout: `${manifest.version}\n` });
  // Without RECRUITING_SCHEMA: the snapshot of the package.
  await using print = startProcess([command, 'schema', 'print'], {
    env: { RECRUITING_SCHEMA: '' },
  });
  expect(await print.ended).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('allPersons('),
  });
});

const SETTINGS = {
  RECRUITING_SCHEMA: '',
  RECRUITING_AGENT: 'example-inc/1.0 (it@example.com)',
  ALLOW_ANONYMOUS: 'true',
};

/** Runs a program of the project to its end. @returns the JSON that it prints */
async function runInProject(file: string, settings: Record<string, string>): Promise<unknown> {
  const env = { ...SETTINGS, RECRUITING_URL: sandbox.url, ...settings };
  await using program = startProcess([join(project, file)], { cwd: project, env });
  const { stdout, ...exit } = await program.ended;
  expect(exit).toEqual({ code: 0, signal: null, stderr: '' });
  return JSON.parse(stdout) as unknown;
}

function ids(): { id: string }[] {
  return sandbox.persons.all().map(({ id }) => ({ id }));
}

async function pack(): Promise<Packed> {
  const args = ['pack', '--json', '--pack-destination', folder.path];
  const { PATH = '', HOME = '' } = process.env;
  // What its scripts print goes to the standard error.
  const output = await execute('npm', args, { PATH, HOME });
  return (JSON.parse(output) as [Packed])[0];
}

/** Links to all packages of this repository, one by one: there is room for another beside them. */
function linkPackages(): void {
  for (const name of readdirSync('node_modules')) {
    const names = name.startsWith('@')
      ? readdirSync(join('node_modules', name)).map((inScope) => join(name, inScope))
      : [name];
    for (const each of names) {
      const link = join(project, 'node_modules', each);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(resolve('node_modules', each), link);
    }
  }
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

function write(name: string, content: object): void {
  writeFileSync(join(project, name), JSON.stringify(content));
}

/** @returns its standard output */
async function execute(
  command: string,
  args: readonly string[],
  env = process.env,
): Promise<string> {
  return (await promisify(execFile)(command, args, { env })).stdout;
}
