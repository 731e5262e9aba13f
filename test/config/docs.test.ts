import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SCOPES } from '../../src/config/auth.ts';
import { SECRETS } from '../../src/config/environment.ts';

const SETTINGS = readFileSync('docs/reference.md', 'utf8');

test('docs/reference.md lists the settings that can be given as a file', () => {
  const sentence = /\n\n(?<names>[^.]*) can also be given as the path of a\s+file/.exec(SETTINGS)!;
  expect(namesIn(sentence.groups!['names']!)).toEqual(SECRETS);
});

test('docs/callers.md explains every scope, once', () => {
  const text = readFileSync('docs/callers.md', 'utf8');
  const section = text.split('### Scopes')[1]!.split('\n#')[0]!;
  expect(firstCells(section).toSorted()).toEqual(
    Object.keys(SCOPES)
      .map((scope) => `\`${scope}\``)
      .toSorted(),
  );
});

/** The first cells of the tables of a document. */
function firstCells(markdown: string): string[] {
  const rows = markdown.split('\n').filter((line) => line.startsWith('| `'));
  return rows.map((row) => row.split('|')[1]!.trim());
}

function namesIn(text: string): string[] {
  return [...text.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name!);
}
