import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fullSdl } from '../support/imitations/honest.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
let RECRUITING_SCHEMA: string;
beforeAll(() => {
  folder = temporaryFolder();
  RECRUITING_SCHEMA = join(folder.path, 'upstream.graphql');
  writeFileSync(RECRUITING_SCHEMA, fullSdl);
});
afterAll(() => folder[Symbol.dispose]());

test('schema explain prints what is derived from each list, and why', async () => {
  const { code, stdout, stderr } = await runHere(['schema', 'explain'], { RECRUITING_SCHEMA });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`Vacancy.candidates
  all         allCandidates
  connection  candidatesConnection (CandidateConnection, CandidateEdge)
  parent      reached again by vacancy(id: …)
`);
  expect(stdout).toMatch(
    /Agency\.offices\n {2}omitted .* no root field returns a Agency by its id alone/,
  );
});

test('schema explain does not check what adapters.json says about added fields', async () => {
  using other = temporaryFolder();
  const env = { RECRUITING_SCHEMA: other.file('upstream.graphql') };
  writeFileSync(env.RECRUITING_SCHEMA, fullSdl);
  const plain = await runHere(['schema', 'explain'], env);
  const overrides = { fields: { 'Vacancy.added': { scope: 'pii' } } };
  writeFileSync(other.file('adapters.json'), JSON.stringify(overrides));
  expect(await runHere(['schema', 'explain'], env)).toEqual(plain);
  const { code, stderr } = await runHere(['schema', 'print'], env);
  expect(code).toBe(2);
  expect(stderr).toContain('Vacancy.added: only object types and their fields have scopes');
});

test('schema explain shows each list and each type with an id, and why nothing is derived from it', async () => {
  const env = { RECRUITING_SCHEMA: join(folder.path, 'small.graphql') };
  writeFileSync(
    env.RECRUITING_SCHEMA,
    `type Query {
      persons(first: Int, after: String): PersonConnection! near(first: Int): PersonConnection! teams: [Team!]!
    }
    type Person { id: ID! }
    type Team { id: ID! }
    type PersonConnection { items: [Person!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }`,
  );
  expect(await runHere(['schema', 'explain'], env)).toEqual({
    code: 0,
    stderr: '',
    stdout: `Query.persons
  all         allPersons
  connection  personsConnection (RelayPersonConnection, RelayPersonEdge)
  why         it takes first and after, and returns pages of Person.

Query.near
  omitted     it has no argument after: String, nor one of another name for a cursor; only cursors of type String or ID can be passed on.

Query.teams
  omitted     it does not return a page (an object with items and pageInfo).

Person
  entity      found by Query.persons
  field       person
  why         no root field returns the type by its id alone, and the list needs no arguments.

Team
  entity      cannot be found by its id
  why         no root field returns the type by its id alone, and no paged list of the root without required arguments lists it.
`,
  });
});

test('schema explain describes a paged list if the schema has none', async () => {
  const env = { RECRUITING_SCHEMA: join(folder.path, 'plain.graphql') };
  writeFileSync(
    env.RECRUITING_SCHEMA,
    'type Query { persons: [Person] } type Person { name: Int }',
  );
  const { stdout } = await runHere(['schema', 'explain'], env);
  expect(stdout).toContain('Query.persons\n  omitted     it does not return a page');
  expect(stdout).toMatch(/No list is paged.*first: Int.*items.*hasNextPage/s);
});

test('schema explain shows what adapters.json decides', async () => {
  adaptersFile({
    types: { Agency: { byId: 'agencyCalled' } },
    fields: { 'Query.named': { skip: true } },
  });
  const { code, stdout } = await runHere(['schema', 'explain'], { RECRUITING_SCHEMA });
  expect(code).toBe(0);
  expect(stdout).toMatch(/Agency\.offices\n(?: .*\n)* {2}parent .*agencyCalled\(label: …\)/);
  expect(stdout).toContain('Query.named\n  omitted     adapters.json skips it.\n');
  const json = await runHere(['schema', 'explain', '--json'], { RECRUITING_SCHEMA });
  expect(JSON.parse(json.stdout)).toContainEqual(
    expect.objectContaining({ list: 'Agency.offices', parent: 'agencyCalled(label: …)' }),
  );
});

test.each([[['schema', 'print']], [['serve']]])(
  'a mistake in adapters.json ends %j with exit code 2 before anything is served',
  async (args) => {
    adaptersFile({ fields: { 'Query.nobody': {} }, types: { Nobody: { byId: null } } });
    const mistaken = await runHere(args, { RECRUITING_SCHEMA });
    expect(mistaken).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /has 2 mistakes:\n *- fields\.Query\.nobody: .*\n *- types\.Nobody\.byId: /,
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
