import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { variables } from '../../src/config.ts';
import { SECRETS } from '../../src/config/environment.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FILE = 'deploy/ci/github-actions.yaml';
const workflow = parse(readFileSync(FILE, 'utf8')) as Workflow;
const { steps } = workflow.jobs.check;

let folder: ReturnType<typeof temporaryFolder>;
/** The checkout of a pull request. */
let checkout: string;
beforeEach(() => {
  folder = temporaryFolder();
  checkout = folder.file('checkout');
  mkdirSync(folder.file('bin'));
  const program = (name: string, script: string) =>
    writeFileSync(folder.file(`bin/${name}`), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  // `npm ci` has nothing to install, and `npm start` runs the gateway.
  program(
    'npm',
    `[ "$1" = ci ] && exit
while [ "$1" != -- ]; do shift; done; shift
exec '${process.execPath}' '${resolve('src/main.ts')}' "$@"`,
  );
  // The registry: refuses a schema that does not say what fields cost.
  program('npx', `echo "$HIVE_TOKEN $*" > '${folder.file('registry')}'; grep -q @cost "$4"`);
  cpSync('schema', join(checkout, 'schema'), { recursive: true });
  git('init', '--quiet', '--initial-branch=main');
  git('remote', 'add', 'origin', checkout);
  commit();
  put('documents/people.graphql', 'query People { allPersons { firstName } }');
});
afterEach(() => folder[Symbol.dispose]());

test('the workflow prints the schema, has the registry check it, and checks documents, without tokens', () => {
  const ended = run();
  expect(ended.map(({ name, code }) => [name, code])).toEqual(
    steps.flatMap(({ name }) => (name ? [[name, 0]] : [])),
  );
  expect(ended.at(-1)!.output).toContain('0 of 1 operations in documents break');
  const registry = readFileSync(folder.file('registry'), 'utf8');
  expect(registry).toMatch(
    /^value of secrets\.HIVE_TOKEN --yes @graphql-hive\/cli@\S+ schema:check recruiting\.graphql --service recruiting --target value of vars\.HIVE_TARGET\n$/,
  );
  expect(workflow.permissions).toEqual({ contents: 'read' });
  const settings = new Set([...Object.keys(variables.shape), ...SECRETS]);
  const names = steps.flatMap(({ env = {} }) => Object.keys(env));
  expect(names.filter((name) => settings.has(name))).toEqual([]);
});

test('the workflow fails, and names the document, if a new snapshot breaks an operation of a client', () => {
  const path = join(checkout, 'schema/upstream.graphql');
  const snapshot = readFileSync(path, 'utf8');
  expect(snapshot).toContain('firstName: String');
  writeFileSync(path, snapshot.replace('firstName: String', 'givenName: String'));
  const ended = run();
  expect(ended.map(({ code }) => code)).toEqual([0, 0, 0, 1]);
  // It does not matter for this whether the registry accepts the schema.
  expect(steps.at(-1)!.if).toBe('${{ !cancelled() }}');
  expect(ended.at(-1)!.output).toContain("Field 'firstName' was removed from object type 'Person'");
  expect(ended.at(-1)!.output).toContain('documents/people.graphql:1 query People');
});

const ADAPTERS = 'schema/adapters.json';
const all = (name: string, list = 'persons') =>
  JSON.stringify({ fields: { [`Query.${list}`]: { all: name } } });

test('the workflow fails, and names the document, if a new adapters.json breaks an operation of a client', () => {
  put(ADAPTERS, all('everybody'));
  const { code, output } = run().at(-1)!;
  expect(code).toBe(1);
  expect(output).toContain('documents/people.graphql:1 query People');
});

test('the workflow fails if an operation needs the adapters.json that a pull request removes', () => {
  put(ADAPTERS, all('everybody'));
  commit();
  put('documents/people.graphql', 'query People { everybody { firstName } }');
  expect(run().at(-1)!.code).toBe(0);
  rmSync(join(checkout, ADAPTERS));
  expect(run().at(-1)!).toMatchObject({ code: 1, output: expect.stringMatching(/query People/) });
});

test('the workflow checks operations if a pull request changes the snapshot and adapters.json together', () => {
  put(ADAPTERS, all('everybody'));
  commit();
  const snapshot = readFileSync(join(checkout, 'schema/upstream.graphql'), 'utf8');
  put('schema/upstream.graphql', snapshot.replace(/\bpersons\(/, 'people('));
  put(ADAPTERS, all('everybody', 'people'));
  put('documents/people.graphql', 'query People { everybody { firstName } }');
  put('documents/old.graphql', 'query Old { personsConnection { nodes { id } } }');
  const { code, output } = run().at(-1)!;
  expect(code).toBe(1);
  expect(output).toContain('1 of 2 operations in documents break');
  expect(output).toContain('documents/old.graphql:1 query Old');
});

test('the workflow passes if a pull request renames or removes an added field with a scope', () => {
  adding('greeting');
  commit();
  adding('welcome');
  expect(run().at(-1)!).toMatchObject({ code: 0 });
  rmSync(join(checkout, 'gateway.config.ts'));
  rmSync(join(checkout, ADAPTERS));
  expect(run().at(-1)!).toMatchObject({ code: 0 });
});

test('the workflow as it is copied passes, and warns that no operations of clients are checked', () => {
  const ended = run({});
  expect(ended.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  expect(ended.at(-1)!.output).toMatch(/^::warning::.*DOCUMENTS/m);
});

/** Runs the steps as the runner does. @param edited what a company writes into the file in place of its own values */
function run(edited: Record<string, string> = { DOCUMENTS: 'documents' }): readonly EndedStep[] {
  return steps.flatMap(({ name, run: script, env = {} }) => {
    if (script === undefined) return [];
    const values = Object.entries(env).map(([key, value]) => [
      key,
      edited[key] ?? value.replace(/^\$\{\{ (.*) \}\}$/, 'value of $1'),
    ]);
    const { status, stdout, stderr } = spawnSync('bash', ['-e', '-c', script], {
      cwd: checkout,
      encoding: 'utf8',
      env: {
        PATH: folder.file('bin') + delimiter + process.env['PATH'],
        HOME: folder.path,
        GITHUB_BASE_REF: 'main',
        NODE_COMPILE_CACHE: resolve('node_modules/.cache/node-compile'),
        ...Object.fromEntries(values),
      },
    });
    return [{ name: name!, code: status, output: stdout + stderr }];
  });
}

interface EndedStep {
  readonly name: string;
  readonly code: number | null;
  readonly output: string;
}

function put(name: string, text: string): void {
  mkdirSync(join(checkout, name, '..'), { recursive: true });
  writeFileSync(join(checkout, name), text);
}

/** Adds a field of persons, with a scope. */
function adding(field: string): void {
  const guards = { fields: { [`Person.${field}`]: { scope: 'pii' } } };
  put(ADAPTERS, JSON.stringify(guards));
  put(
    'gateway.config.ts',
    `export default {
      typeDefs: 'extend type Person { ${field}: String }',
      resolvers: { Person: { ${field}: () => 'Hello' } },
    };`,
  );
}

/** Makes the checkout the state of the target branch. */
function commit(): void {
  git('add', '.');
  git('-c', 'user.name=x', '-c', 'user.email=x@example.com', 'commit', '--quiet', '-m', 'Change.');
}

function git(...args: string[]): void {
  const { status, stderr } = spawnSync('git', args, { cwd: checkout, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
}

interface Workflow {
  readonly permissions: object;
  readonly jobs: { readonly check: { readonly steps: readonly Step[] } };
}

interface Step {
  readonly name?: string;
  readonly if?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}
