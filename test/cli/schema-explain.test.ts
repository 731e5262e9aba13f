import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nestedSdl } from '../support/nested-upstream.ts';
import { runHere, runProgram, temporaryFolder } from '../support/process.ts';

let folder: ReturnType<typeof temporaryFolder>;
let RECRUITING_SCHEMA: string;
beforeAll(() => {
  folder = temporaryFolder();
  RECRUITING_SCHEMA = join(folder.path, 'upstream.graphql');
  writeFileSync(RECRUITING_SCHEMA, nestedSdl);
});
afterAll(() => folder[Symbol.dispose]());

test('schema explain: of every list what it got and why, for people', async () => {
  const { code, stdout, stderr } = await runProgram(['schema', 'explain'], {
    env: { RECRUITING_SCHEMA },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`Vacancy.candidates
  all         allCandidates
  connection  candidatesConnection
  parent      reached again by vacancy(id: …)
`);
  expect(stdout).toContain('allRelated(limit) is called drainLimit');
  expect(stdout).toMatch(/Robot\.parts\n {2}nothing .* cannot be reached again/);
});

test('schema explain --json: the same for programs, with what adapters.json decides', async () => {
  adaptersFile({
    types: { Robot: { byId: 'robotCalled' } },
    fields: { 'Query.named': { skip: true } },
  });
  const { code, stdout } = await runHere(['schema', 'explain', '--json'], { RECRUITING_SCHEMA });
  expect(code).toBe(0);
  const lists = JSON.parse(stdout) as { list: string }[];
  expect(lists.find(({ list }) => list === 'Robot.parts')).toMatchObject({
    all: 'allParts',
    connection: 'partsConnection',
    parent: 'robotCalled(model: …)',
  });
  expect(lists.find(({ list }) => list === 'Query.named')).toEqual({
    list: 'Query.named',
    all: null,
    connection: null,
    types: null,
    parent: null,
    renamed: {},
    why: ['adapters.json skips it.'],
  });
  const printed = await runHere(['schema', 'print'], { RECRUITING_SCHEMA });
  expect(printed.stdout).not.toContain('namedConnection');
});

test.each([['schema', 'explain'], ['schema', 'print'], ['serve']])(
  'a mistake in adapters.json ends %s %s with exit code 2 before anything is served',
  async (...args) => {
    adaptersFile({ fields: { 'Query.nobody': {} }, types: { Nobody: {} } });
    const mistaken = await runHere(args, { RECRUITING_SCHEMA });
    expect(mistaken).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /has 2 mistakes:\n- fields\.Query\.nobody: .*\n- types\.Nobody: /,
      ),
    });
    writeFileSync(join(folder.path, 'adapters.json'), '{ "fields": ');
    const broken = await runHere(args, { RECRUITING_SCHEMA });
    expect(broken).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/adapters\.json is not JSON/),
    });
  },
);

function adaptersFile(json: object): void {
  writeFileSync(join(folder.path, 'adapters.json'), JSON.stringify(json));
}
