import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runHere } from '../../support/gateway/run-here.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { peopleSdl, scopes } from './people.ts';

const ADDED = `export default {
  typeDefs: 'extend type Person { greeting: String } type Review { text: String } extend type Query { review: Review }',
  resolvers: { Person: { greeting: () => 'Hello' }, Query: { review: () => null } },
};`;

async function run(command: readonly string[], overrides: unknown, config?: string) {
  using folder = temporaryFolder();
  writeFileSync(folder.file('upstream.graphql'), peopleSdl);
  writeFileSync(folder.file('adapters.json'), JSON.stringify(overrides));
  const env = { RECRUITING_SCHEMA: folder.file('upstream.graphql') };
  if (config === undefined) return await runHere([...command], env);
  writeFileSync(folder.file('gateway.config.ts'), config);
  return await runHere([...command], { ...env, GATEWAY_CONFIG: folder.file('gateway.config.ts') });
}

const PII = { scope: 'pii' };

test.each<[string, object, string]>([
  [
    'a misspelled type',
    { fields: { 'Persn.email': PII } },
    'fields.Persn.email: there is no type Persn with fields. Was Person meant?',
  ],
  [
    'a misspelled field',
    { fields: { 'Person.emial': PII } },
    'fields.Person.emial: the service has no field Person.emial. Was email meant?',
  ],
  [
    'a name that is like no other',
    { fields: { 'Contacts.zip': PII } },
    'fields.Contacts.zip: the service has no field Contacts.zip. Write one of address, city.',
  ],
  [
    'a derived field',
    { fields: { 'Query.allPeople': PII } },
    'Fields that the gateway derives have the scopes of the field that they are derived from.',
  ],
  [
    'something that is not a field',
    { fields: { email: PII } },
    'fields.email: this is not a field. Write Type.field.',
  ],
  [
    'an argument',
    { fields: { 'Query.people(email:)': PII } },
    'fields.Query.people(email:): this is not a field. Write Type.field.',
  ],
  [
    'a field of an interface',
    { fields: { 'Named.nick': PII } },
    'fields.Named.nick.scope: Named is an interface. Write the scope at the fields of its types: Person.nick, Team.nick.',
  ],
  [
    'an interface',
    { types: { Named: PII } },
    'types.Named.scope: only object types and fields have scopes. Write it at its types: Person, Team.',
  ],
  [
    'a union',
    { types: { Anything: PII } },
    'types.Anything.scope: only object types and fields have scopes. Write it at its types: Person, Team.',
  ],
  [
    'a type that does not exist',
    { types: { Salery: PII } },
    'types.Salery: the service has no such type. Was Salary meant?',
  ],
  [
    'a misspelled key',
    { fields: { 'Person.email': { scop: 'pii' } } },
    'fields.Person.email: "scop" is unknown. Write "skip", "all", "connection", "page", "identity", "count", "member", "after" and "scope".',
  ],
  [
    'a scope with a space',
    { fields: { 'Person.email': { scope: 'p ii' } } },
    'fields.Person.email.scope: must be a scope',
  ],
  [
    'a scope of operations',
    { fields: { 'Person.email': { scope: 'read' } } },
    'fields.Person.email.scope: must not be read, drain, write or router',
  ],
  [
    'settings of lists at another field',
    { fields: { 'Person.email': { scope: 'pii', all: 'mails' } } },
    'fields.Person.email: there is no such list. Write one of Query.people,',
  ],
])('%s is refused at the start, with what to write instead', async (_, overrides, mistake) => {
  const { code, stdout, stderr } = await run(['schema', 'print'], overrides);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(mistake);
});

test.each<[string, object, string]>([
  [
    'a scope with a space at an added type',
    { types: { Review: { scope: 'a b' } } },
    'types.Review.scope: must be a scope',
  ],
  [
    'a misspelled key at an added field',
    { fields: { 'Person.greeting': { scop: 'ids' } } },
    'fields.Person.greeting: "scop" is unknown.',
  ],
  [
    'a misspelled key at a field of the service',
    { fields: { 'Person.email': { scop: 'ids' } } },
    'fields.Person.email: "scop" is unknown.',
  ],
  [
    'a setting of lists at an added field',
    { fields: { 'Person.greeting': { page: 3 } } },
    'fields.Person.greeting: the service has no such list, and an added field takes only "scope". Write one of Query.people,',
  ],
  [
    'a setting of lists beside the scope of an added field',
    { fields: { 'Person.greeting': { scope: 'ids', page: 3 } } },
    'fields.Person.greeting: the service has no such list, and an added field takes only "scope".',
  ],
  [
    'a setting of types at an added type',
    { types: { Review: { byId: null } } },
    'types.Review: the service has no type of that name, and an added type takes only "scope".',
  ],
  [
    'a setting of types beside the scope of an added type',
    { types: { Review: { scope: 'ids', byId: null } } },
    'types.Review: the service has no type of that name, and an added type takes only "scope".',
  ],
])('%s is refused with one line', async (_, overrides, mistake) => {
  const { code, stderr } = await run(['schema', 'print'], overrides, ADDED);
  expect(code).toBe(2);
  expect(stderr).toContain(`has a mistake:\n- ${mistake}`);
});

test.each([[{ fields: { 'Person.greeting': PII } }], [{ types: { Review: PII } }]])(
  '%j for an added name is refused without gateway.config.ts, with how to load it',
  async (overrides) => {
    const ADVICE =
      'No gateway.config.ts is loaded. If one adds what the service lacks here, set GATEWAY_CONFIG to its path.';
    expect(await run(['schema', 'print'], overrides, ADDED)).toMatchObject({ code: 0, stderr: '' });
    const { code, stderr } = await run(['schema', 'print'], overrides);
    expect(code).toBe(2);
    expect(stderr).toMatch(/has a mistake:\n- .*: the service has no /);
    expect(stderr).toContain(`\n${ADVICE}`);
    const others = { fields: { 'Person.email': { scope: 'pii', all: 'mails' } } };
    expect((await run(['schema', 'print'], others)).stderr).not.toContain('gateway.config.ts');
  },
);

test('all mistakes are reported together', async () => {
  const { stderr } = await run(['schema', 'print'], {
    fields: { 'Persn.email': PII, 'Person.emial': PII, 'Query.people': { count: 'none' } },
    types: { Salery: PII },
  });
  expect(stderr).toMatch(/adapters\.json, beside the schema snapshot, has 4 mistakes:/);
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

const KEYS_NEW = ['keys', 'new', 'payroll', '--scopes', 'read+pi'];

test('keys new says where the scopes of fields are read, if it does not know one', async () => {
  using folder = temporaryFolder();
  const env = { RECRUITING_SCHEMA: folder.file('upstream.graphql') };
  const LOOKED = `It was looked for in ${folder.path}: set RECRUITING_SCHEMA if yours is elsewhere.`;
  const none = await runHere(KEYS_NEW, env);
  expect(none).toMatchObject({ code: 2, stdout: '' });
  expect(none.stderr).toContain(`${refused('read, drain, write, router')}${LOOKED}`);
  writeFileSync(folder.file('adapters.json'), JSON.stringify(scopes));
  const other = await runHere(KEYS_NEW, env);
  expect(other).toMatchObject({ code: 2, stdout: '' });
  expect(other.stderr).toContain(`${refused('read, drain, write, router, pii, pay')}${LOOKED}`);
});

test('keys new says why it cannot read adapters.json, if it does not know a scope', async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file('adapters.json'), '{');
  const env = { RECRUITING_SCHEMA: folder.file('upstream.graphql') };
  expect((await runHere(['keys', 'new', 'payroll'], env)).code).toBe(0);
  const { code, stderr } = await runHere(KEYS_NEW, env);
  expect(code).toBe(2);
  expect(stderr).toContain(`${folder.file('adapters.json')} is not JSON`);
  const settings = await runHere(KEYS_NEW, { ...env, CONNECTION_MAX: 'many' });
  expect(settings.code).toBe(2);
  expect(settings.stderr).toContain('CONNECTION_MAX');
});

function refused(known: string): string {
  return (
    `The key has the unknown scope "pi"; the scopes are ${known}, and several are joined by +. ` +
    'Correct --scopes, or add the scope to a field in adapters.json. '
  );
}
