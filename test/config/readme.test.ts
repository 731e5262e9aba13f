import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { variables } from '../../src/config.ts';
import { SECRETS } from '../../src/config/secret-files.ts';

const README = readFileSync('README.md', 'utf8');

/** Of Node itself, of the library for proxies, and what decides which defaults count. */
const READ_ELSEWHERE = ['HTTPS_PROXY', 'NO_PROXY', 'NODE_ENV'];

/** Defaults that depend on something, as the table has them. */
const DEPENDENT: Record<string, string> = {
  RECRUITING_AGENT: '`recruiting-subgraph/<version>`',
  RECRUITING_SCHEMA: '`schema/upstream.graphql` here',
  TOKEN_RESCUE_DIR: 'the folder of the store',
  ALLOWED_HOSTS: 'the names of loopback, there',
  ANSWER_BYTES: 'a quarter of the heap',
  GRAPHIQL: '`on`, in production `off`',
  INTROSPECTION: '`on`, in production `off`',
};

test('the table of settings has every variable that is read, once, and no other', () => {
  const names = settings().map(({ name }) => name);
  expect(names.toSorted()).toEqual([...Object.keys(variables.shape), ...READ_ELSEWHERE].toSorted());
});

test('its defaults are those of the code', () => {
  const defaults = variables.parse({}) as Record<string, string | number | undefined>;
  for (const { name, cell } of settings()) {
    const value = defaults[name];
    const expected = DEPENDENT[name] ?? (value === undefined ? 'none' : `\`${value}\``);
    expect([name, cell.replace(/^none: .*/, 'none')]).toEqual([name, expected]);
  }
});

test('it says which can be given as a file', () => {
  const sentence = /^(?<names>.*) can also be given as the path of a file/ms.exec(
    README.split('### Settings')[1]!.split('nobody shall be served made-up people by mistake.')[1]!,
  )!.groups!['names']!;
  expect(namesIn(sentence)).toEqual(SECRETS);
});

test('no command of the documentation needs a Node of its own, or hands on what npm says', () => {
  const wrong = ['README.md', ...globSync('docs/*.md')].flatMap((file) =>
    commandsIn(readFileSync(file, 'utf8'))
      .filter((command) => /\bnode (\S+ )*src\//.test(command) || /npm start.* [|>]/.test(command))
      .map((command) => `${file}: ${command}`),
  );
  expect(wrong).toEqual([]);
});

test('it stays a page that is read', () => {
  expect(README.split('\n').length).toBeLessThan(300);
});

/** Those of the blocks for a shell, and of pods. */
function commandsIn(markdown: string): string[] {
  const blocks = [...markdown.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block!);
  const pods = [...markdown.matchAll(/command: \[(.*)\]/g)].map(([, words]) =>
    words!.replaceAll(/[',]/g, ''),
  );
  return [...blocks.flatMap((block) => block.split('\n')), ...pods];
}

/** One for each variable; a row of several has a default for each, or one for all. */
function settings(): { name: string; cell: string }[] {
  const section = README.split('### Settings')[1]!.split('\n#')[0]!;
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

function namesIn(text: string): string[] {
  return [...text.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name!);
}
