import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startProcess } from './support/processes/process.ts';

test('npm run ways prints five ways, each with the files of src that its request passes, about as many as docs/architecture.md says', async () => {
  await using ways = startProcess(['bench/ways.ts', '--files']);
  const { code, stdout, stderr } = await ways.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const printed = new Map(
    stdout.split(/\n(?=\S)/).map((way) => {
      const [name, count, functions] = /^(.*): (\d+) files, (\d+) functions/.exec(way)!.slice(1);
      const files = [...way.matchAll(/^ {2}(\S+) {2}\S.*:\d+$/gm)].map(([, file]) => file!);
      expect(files).toHaveLength(Number(count));
      return [name!, { files, functions: Number(functions) }];
    }),
  );
  const passes: Record<string, string[]> = {
    'a page': ['http', 'operations', 'plans', 'upstream'],
    'a connection': ['http', 'plans', 'paging', 'upstream'],
    'a second drain': ['http', 'plans', 'paging', 'upstream'],
    'one record by its id': ['http', 'plans', 'paging', 'upstream'],
    'a page after an expired token': ['http', 'plans', 'upstream', 'tokens'],
  };
  expect([...printed.keys()]).toEqual(Object.keys(passes));
  for (const [name, folders] of Object.entries(passes)) {
    const { files, functions } = printed.get(name)!;
    // Rounded, so that not every change of the code is a change of the table.
    const [, manyFiles, manyFunctions] = documented(name);
    expect(Math.abs(files.length - manyFiles!)).toBeLessThan(manyFiles! / 10);
    expect(Math.abs(functions - manyFunctions!)).toBeLessThan(manyFunctions! / 10);
    for (const folder of folders) {
      expect(files.some((file) => file.startsWith(`src/${folder}/`))).toBe(true);
    }
    // Neither the whole program, nor what runs only once.
    expect(files.length).toBeLessThan(120);
    expect(files.some((file) => file.startsWith('src/cli/'))).toBe(false);
  }
  expect(printed.get('a page')!.files.some((file) => file.startsWith('src/tokens/store/'))).toBe(
    false,
  );
});

/** The cells of the row of a request in docs/architecture.md, as numbers. */
function documented(name: string): number[] {
  const lines = readFileSync('docs/architecture.md', 'utf8').split('\n');
  const row = lines.find((line) => line.startsWith(`| ${name} `))!;
  return row.split('|').slice(1).map(Number);
}
