import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { variables } from '../../src/config.ts';
import { SCOPES } from '../../src/config/auth.ts';
import { SECRETS } from '../../src/config/environment.ts';
import { ERROR_CODES } from '../../src/errors.ts';
import { TROUBLES } from '../../src/tokens/health.ts';

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
