import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runHere } from '../../support/gateway/run-here.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { peopleSdl, scopes } from './people.ts';

async function run(command: readonly string[], overrides: unknown) {
  using folder = temporaryFolder();
  writeFileSync(folder.file('upstream.graphql'), peopleSdl);
  writeFileSync(folder.file('adapters.json'), JSON.stringify(overrides));
  const env = { RECRUITING_SCHEMA: folder.file('upstream.graphql') };
  return await runHere(command, env);
}

const PII = { scope: 'pii' };

const NOT_ONE = 'only object types and their fields have scopes, and this is not one.';

test.each<[string, object, string]>([
  ['a misspelled type', { fields: { 'Persn.email': PII } }, `Persn.email: ${NOT_ONE}`],
  ['a misspelled field', { fields: { 'Person.emial': PII } }, `Person.emial: ${NOT_ONE}`],
  ['an argument', { fields: { 'Query.people(email:)': PII } }, `Query.people(email:): ${NOT_ONE}`],
  [
    'a field of an interface',
    { fields: { 'Named.nick': PII } },
    `Named.nick: ${NOT_ONE} Write the scope at its types: Person, Team.`,
  ],
  [
    'a union',
    { types: { Anything: PII } },
    `Anything: ${NOT_ONE} Write the scope at its types: Person, Team.`,
  ],
  ['a misspelled key', { fields: { 'Person.email': { scop: 'pii' } } }, 'Unrecognized key: "scop"'],
  ['a scope with a space', { fields: { 'Person.email': { scope: 'p ii' } } }, 'must be a scope'],
  [
    'a scope of operations',
    { fields: { 'Person.email': { scope: 'read' } } },
    'must not be read, drain, write or router',
  ],
  [
    'a setting of lists at another field',
    { fields: { 'Person.email': { scope: 'pii', page: 3 } } },
    'fields.Person.email: there is no such list. The paged lists are: Query.people,',
  ],
])('%s is refused at the start, with what to write instead', async (_, overrides, mistake) => {
  const { code, stdout, stderr } = await run(['schema', 'print'], overrides);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(mistake);
});

test('the schema that callers see does not change with scopes', async () => {
  const [withScopes, without] = await Promise.all([
    run(['schema', 'print'], scopes),
    run(['schema', 'print'], {}),
  ]);
  expect(withScopes).toEqual(without);
});

test('keys new makes keys with the scopes of fields, and names them', async () => {
  const { code, stdout } = await run(['keys', 'new', 'payroll', '--scopes', 'read+pii'], scopes);
  expect(code).toBe(0);
  expect(stdout).toMatch(/payroll:[\da-f]{64}:read\+pii\n/);
  expect(stdout).toMatch(/ x pii +the fields to which adapters\.json gives this scope/);
  expect(stdout).toMatch(/ - pay +the fields/);
});
