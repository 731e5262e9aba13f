import { existsSync, globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { variables } from '../../src/config.ts';
import { SCOPES } from '../../src/config/auth.ts';
import { SECRETS } from '../../src/config/environment.ts';
import { ERROR_CODES } from '../../src/errors.ts';
import { TROUBLES } from '../../src/tokens/token-health.ts';

const SETTINGS = readFileSync('docs/settings.md', 'utf8');

/** Variables of Node and of the proxy library, and the one that changes defaults. */
const READ_ELSEWHERE = ['HTTPS_PROXY', 'NO_PROXY', 'NODE_ENV'];

/** Defaults that depend on something, as the table shows them. */
const DEPENDENT: Record<string, string> = {
  RECRUITING_AGENT: '`recruiting-subgraph/…`',
  RECRUITING_SCHEMA: '`schema/upstream.graphql` here',
  TOKEN_RESCUE_DIR: 'the folder of the store',
  ALLOWED_HOSTS: 'the names of loopback, there',
  ANSWER_BYTES: 'a quarter of the heap',
  GATEWAY_CONFIG: '`gateway.config.ts`, if there',
  GRAPHIQL: '`on`, in production `off`',
  INTROSPECTION: '`on`, in production `off`',
};

test('docs/settings.md lists every variable that is read, once, and no other', () => {
  const names = settings().map(({ name }) => name);
  expect(names.toSorted()).toEqual([...Object.keys(variables.shape), ...READ_ELSEWHERE].toSorted());
});

test('the defaults in docs/settings.md are those of the code', () => {
  const { properties = {} } = z.toJSONSchema(variables, { io: 'input', unrepresentable: 'any' });
  for (const { name, cell } of settings()) {
    const { default: value = '' } = (properties[name] ?? {}) as { default?: unknown };
    const expected = DEPENDENT[name] ?? (String(value) === '' ? 'none' : `\`${String(value)}\``);
    expect([name, cell.replace(/^none: .*/, 'none')]).toEqual([name, expected]);
  }
});

test('docs/settings.md lists the settings that can be given as a file', () => {
  const sentence = /\n\n(?<names>[^.]*) can also be given as the path of a\s+file/.exec(SETTINGS)!;
  expect(namesIn(sentence.groups!['names']!)).toEqual(SECRETS);
});

test('docs/errors.md explains every error code, once, and no other', () => {
  const codes = firstCells(readFileSync('docs/errors.md', 'utf8')).flatMap(namesIn);
  expect(codes.toSorted()).toEqual([...ERROR_CODES].toSorted());
});

test('CONTRIBUTING.md says what every folder of test is for, and names only files that are there', () => {
  const text = readFileSync('CONTRIBUTING.md', 'utf8');
  const section = text.split('## Where a test belongs')[1]!.split('\n## ')[0]!;
  const folders = firstCells(section).flatMap((cell) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, folder]) => folder!),
  );
  expect(folders.toSorted()).toEqual(
    globSync('test/*/')
      .map((path) => path.split(/[/\\]/)[1]!)
      .toSorted(),
  );
  const paths = [...text.matchAll(/`((?:src|docs|test|schema)\/[\w./-]+)`/g)].map(
    ([, path]) => path!,
  );
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});

test('comments in src and sandbox name only files that are there', () => {
  const paths = globSync('{src,sandbox,test,docs,schema,examples}/**/*').map(
    (path) => `/${path.replaceAll('\\', '/')}`,
  );
  const wrong = globSync('{src,sandbox}/**/*.{ts,cjs}').flatMap((file) => {
    const comments = readFileSync(file, 'utf8').matchAll(/(?:^\s*\/?\*+|\/\/).*/gm);
    const named = [...comments].flatMap(([text]) => text.match(/[\w./-]+\.(?:ts|cjs|md)\b/g) ?? []);
    return named
      .filter((name) => !paths.some((path) => path.endsWith(`/${name}`)))
      .map((name) => `${file}: ${name}`);
  });
  expect(wrong).toEqual([]);
});

test('docs/authentication.md explains every scope, once', () => {
  const text = readFileSync('docs/authentication.md', 'utf8');
  const section = text.split('### Scopes')[1]!.split('\n#')[0]!;
  expect(firstCells(section).toSorted()).toEqual(
    Object.keys(SCOPES)
      .map((scope) => `\`${scope}\``)
      .toSorted(),
  );
});

test('docs/tokens.md explains every trouble, once', () => {
  const tokens = readFileSync('docs/tokens.md', 'utf8');
  const section = tokens.split('## When something is wrong')[1]!.split('\n#')[0]!;
  const words = firstCells(section).flatMap((cell) =>
    [...cell.matchAll(/`([a-z-]+)`/g)].map(([, word]) => word!),
  );
  expect(words.toSorted()).toEqual([...TROUBLES].toSorted());
});

test('every command of the documentation runs with the Node that npm installs, and pipes only output', () => {
  const wrong = ['README.md', ...globSync('docs/*.md')].flatMap((file) =>
    commandsIn(readFileSync(file, 'utf8'))
      // The image and the machine of the unit have the right Node.
      .filter((command) => !/^(kubectl exec|sudo -u recruiting) /.test(command))
      .filter((command) => /\bnode (\S+ )*src\//.test(command) || /npm start.* [|>]/.test(command))
      .map((command) => `${file}: ${command}`),
  );
  expect(wrong).toEqual([]);
});

/** The commands in shell blocks, and those of pods. */
function commandsIn(markdown: string): string[] {
  const blocks = [...markdown.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block!);
  const pods = [...markdown.matchAll(/command: \[(.*)\]/g)].map(([, words]) =>
    words!.replaceAll(/[',]/g, ''),
  );
  return [...blocks.flatMap((block) => block.split('\n')), ...pods];
}

test('docs/architecture.md names only files and folders of src that exist', () => {
  const text = readFileSync('docs/architecture.md', 'utf8');
  const files = globSync('{src,sandbox}/**/*').map((path) => path.replaceAll('\\', '/'));
  const named = [...text.matchAll(/`((?:[a-z-]+\/)*[a-z-]+(?:\.ts|\/[a-z-]+))`/g)].map(
    ([, name]) => name!,
  );
  expect(named.length).toBeGreaterThan(30);
  const isThere = (name: string) => files.some((file) => file.endsWith(`/${name}`));
  expect(
    named.filter((name) => !name.startsWith('test/') && !name.startsWith('src/') && !isThere(name)),
  ).toEqual([]);
});

test('docs/architecture.md lists the stages of gateway.ts in their order, each with the file that has it', () => {
  const pipeline = readFileSync('src/gateway.ts', 'utf8').split('plugins: pipeline({')[1]!;
  const part = /\b(?:origin|paths|graphiql|admission|operation)\.(\w+)|\b(holdRequests)\(/g;
  const stages = [...pipeline.split('warn:')[0]!.matchAll(part)].map(
    ([, name, otherName]) => name ?? otherName!,
  );
  const document = readFileSync('docs/architecture.md', 'utf8');
  const section = document.split('## The stages of a request')[1]!.split('\n## ')[0]!;
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  const listed = rows.flatMap((row) => {
    const [, names = '', , places = ''] = row.split('|');
    const sources = codeIn(places).flatMap((place) =>
      globSync([`src/${place}`, `src/${place}/*.ts`]).filter((path) => path.endsWith('.ts')),
    );
    const source = sources.map((path) => readFileSync(path, 'utf8')).join('\n');
    return codeIn(names).map((name) => {
      const stage = name.split('.').at(-1)!;
      return { stage, isThere: source.includes(`${stage}: `) || source.includes(`${stage}(`) };
    });
  });
  expect(listed.filter(({ isThere }) => !isThere)).toEqual([]);
  expect(listed.map(({ stage }) => stage)).toEqual([...stages, 'answer', 'notAcceptable']);
});

/** What is written as code in a text. */
function codeIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);
}

test('the README fits on a page', () => {
  expect(readFileSync('README.md', 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(167);
});

/** One entry for each variable. A row of several variables has a default for each, or one for all. */
function settings(): { name: string; cell: string }[] {
  const section = SETTINGS.split('## Settings')[1]!.split('\n#')[0]!;
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return rows.flatMap((row) => {
    const [, variable = '', cell = ''] = row.split('|').map((text) => text.trim());
    const names = namesIn(variable);
    const cells = cell.split(', ');
    return names.map((name, index) => ({
      name,
      cell: cells.length === names.length && !DEPENDENT[name] ? cells[index]! : cell,
    }));
  });
}

/** The first cells of the tables of a document. */
function firstCells(markdown: string): string[] {
  const rows = markdown.split('\n').filter((line) => line.startsWith('| `'));
  return rows.map((row) => row.split('|')[1]!.trim());
}

function namesIn(text: string): string[] {
  return [...text.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name!);
}
