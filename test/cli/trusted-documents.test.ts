import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder();
});
afterAll(() => folder[Symbol.dispose]());

test('every trusted document that would be refused is named at the start', async () => {
  const { code, stdout, stderr } = await start({
    good: 'query Good { persons { items { id } } }',
    cut: 'query Cut { persons {',
    unknown: 'query Unknown {\n  persons { items { nothing } }\n  nobody\n}',
    deep: 'query Deep { a: persons { items { id } } }',
    aliases: `{ ${Array.from({ length: 31 }, (_, index) => `a${index}: __typename`).join(' ')} }`,
    circle: '{ persons { ...A } } fragment A on PersonPage { ...A }',
    fragment: 'fragment A on PersonPage { items { id } }',
    reserved: '{ _rs: persons { items { id } } }',
    labels: '{ persons @stream { items { id } } }',
  });
  expect(code).toBe(2);
  expect(stdout).not.toContain('/graphql');
  expect(stderr.trimEnd().split('\n')).toEqual([
    'The manifest of TRUSTED_DOCUMENTS has 8 mistakes:',
    expect.stringMatching(/^ {2}- cut: Syntax Error.* \(line 1, column 22\)$/),
    expect.stringMatching(/^ {2}- unknown: Cannot query field "nothing".* \(line 2, column 21\)$/),
    expect.stringMatching(/^ {2}- unknown: Cannot query field "nobody".* \(line 3, column 3\)$/),
    expect.stringMatching(/^ {2}- aliases: The operation has 31 aliases/),
    expect.stringMatching(/^ {2}- circle: Cannot spread fragment "A" within itself/),
    expect.stringMatching(/^ {2}- fragment: It has no operation/),
    expect.stringMatching(/^ {2}- reserved: The alias _rs is reserved/),
    expect.stringMatching(/^ {2}- labels: @stream is for lists/),
  ]);
});

test.each<[string, unknown, RegExp]>([
  ['a list', [], /It must be a JSON object/],
  [
    'a later version',
    { format: 'apollo-persisted-query-manifest', version: 2, operations: [] },
    /version 1/,
  ],
  ['nothing in it', {}, /It has no operations/],
  [
    'an id twice',
    {
      format: 'apollo-persisted-query-manifest',
      version: 1,
      operations: [
        { id: 'a', name: 'A', type: 'query', body: 'query A { __typename }' },
        { id: 'a', name: 'B', type: 'query', body: 'query B { __typename }' },
      ],
    },
    /a: The id is used twice/,
  ],
])('a file that is not a manifest is refused: %s', async (_, manifest, message) => {
  const { code, stderr } = await start(manifest);
  expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
});

test('a manifest that is missing, or not JSON, is reported in one sentence', async () => {
  const TRUSTED_DOCUMENTS = folder.file('nowhere.json');
  const missing = await runHere([], { TRUSTED_DOCUMENTS });
  expect([missing.code, missing.stderr]).toEqual([
    2,
    expect.stringMatching(/nowhere\.json cannot be read \(ENOENT\)\. TRUSTED_DOCUMENTS must/),
  ]);
  writeFileSync(folder.file('broken.json'), '{"a": ');
  const broken = await runHere([], { TRUSTED_DOCUMENTS: folder.file('broken.json') });
  expect([broken.code, broken.stderr.trimEnd().split('\n').length]).toEqual([2, 1]);
});

function start(manifest: unknown) {
  const TRUSTED_DOCUMENTS = folder.file('manifest.json');
  writeFileSync(TRUSTED_DOCUMENTS, JSON.stringify(manifest));
  return runHere([], { TRUSTED_DOCUMENTS });
}
