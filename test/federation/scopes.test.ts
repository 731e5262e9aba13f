import { writeFileSync } from 'node:fs';
import { buildASTSchema, parse, print, type ObjectTypeDefinitionNode } from 'graphql';
import { describe, expect, test } from 'vitest';
import { peopleSdl, scopes, scopesOfList } from '../schema/scopes/people.ts';
import { blockWith } from '../support/docs/documents.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { compose } from '../support/supergraph/composition.ts';
import { printedSubgraph } from '../support/supergraph/printed-subgraph.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

function subgraphSdl(overrides: object, env: Record<string, string> = {}, snapshot = peopleSdl) {
  return printedSubgraph({ snapshot, overrides, env });
}

/** Every directive of scopes and tags, by the coordinate where it is. */
function marksIn(sdl: string): Record<string, string> {
  const marks: Record<string, string> = {};
  const note = (
    place: string,
    { directives = [] }: Pick<ObjectTypeDefinitionNode, 'directives'>,
  ) => {
    const kept = directives.filter(({ name }) => ['requiresScopes', 'tag'].includes(name.value));
    if (kept.length > 0) marks[place] = kept.map((node) => print(node)).join(' ');
  };
  for (const definition of parse(sdl).definitions) {
    if (!('name' in definition) || !definition.name) continue;
    const type = definition.name.value;
    note(type, definition as ObjectTypeDefinitionNode);
    for (const field of (definition as ObjectTypeDefinitionNode).fields ?? []) {
      note(`${type}.${field.name.value}`, field);
      for (const argument of field.arguments ?? []) {
        note(`${type}.${field.name.value}(${argument.name.value}:)`, argument);
      }
    }
  }
  return marks;
}

const scope = (name: string) => `@requiresScopes(scopes: [["${name}"]])`;
const PII = scope('pii');
const PAY = `${scope('pay')} @tag(name: "pay")`;

describe('the SDL of the subgraph', () => {
  test('has the scopes and tags of fields, and derived fields have those of what they are derived from', async () => {
    const sdl = await subgraphSdl(scopes);
    expect(sdl).toContain(
      '@link(\n    url: "https://specs.apollo.dev/federation/v2.5"\n    import: ["@key", "@shareable", "@requiresScopes", "@tag"]',
    );
    expect(marksIn(sdl)).toEqual({
      'Person.email': `${PII} @tag(name: "pii")`,
      'Person.phone': `${PII} @tag(name: "pii") @tag(name: "contact")`,
      'Person.contacts': PII,
      'Person.nick': PII,
      // Arguments have no scopes in Federation.
      'Query.people(email:)': '@tag(name: "pii")',
      'Query.allPeople(email:)': '@tag(name: "pii")',
      'Query.peopleConnection(email:)': '@tag(name: "pii")',
      'Mutation.mail': PII,
      // A type has them wherever it is returned. Without it, its pages would be empty.
      Salary: PAY,
      'Query.allSalaries': PAY,
      'Query.salariesConnection': PAY,
      'Query.salary': PAY,
      'Person.salary': PAY,
      'Mutation.raise': PAY,
      'Query.salaries': '@tag(name: "pay")',
      SalaryPage: '@tag(name: "pay")',
      'SalaryPage.items': PAY,
      SalaryConnection: '@tag(name: "pay")',
      'SalaryConnection.edges': '@tag(name: "pay")',
      'SalaryConnection.nodes': PAY,
      SalaryEdge: '@tag(name: "pay")',
      'SalaryEdge.node': PAY,
    });
  });

  test('has the scope of a list at everything that is read through it', async () => {
    expect(marksIn(await subgraphSdl(scopesOfList))).toEqual({
      'Team.nick': '@requiresScopes(scopes: [["pay"]])',
      'Query.secrets': PII,
      'Query.allSecrets': PII,
      'Query.secretsConnection': PII,
      'Query.note': PII,
    });
  });

  test('has the scopes of pages, counts and identities at the fields that read them', async () => {
    const snapshot = peopleSdl.replace('type PersonPage {', 'type PersonPage {\n    total: Int!');
    const overrides = {
      fields: {
        'PersonPage.total': { scope: 'count' },
        'SalaryPage.items': { scope: 'pay' },
        'Note.id': { scope: 'pii' },
      },
    };
    expect(marksIn(await subgraphSdl(overrides, {}, snapshot))).toEqual({
      'PersonPage.total': scope('count'),
      'Query.peopleConnection': scope('count'),
      'Team.membersConnection': scope('count'),
      'SalaryPage.items': scope('pay'),
      'Query.allSalaries': scope('pay'),
      'Query.salariesConnection': scope('pay'),
      'Query.salary': scope('pay'),
      'Note.id': PII,
      'Query.allSecrets': PII,
      'Query.secretsConnection': PII,
    });
  });

  test('composes', async () => {
    const sdl = await subgraphSdl(scopes);
    const { errors, supergraphSdl } = compose([
      { name: 'recruiting', sdl, url: 'http://localhost/graphql' },
    ]);
    expect(errors?.map(String)).toBeUndefined();
    const { Person: type } = buildASTSchema(parse(supergraphSdl!), {
      assumeValid: true,
    }).getTypeMap();
    const person = print(type!.astNode!);
    expect(person).toMatch(
      /email: String.*@requiresScopes\(scopes: \[\["pii"\]\]\).*@tag\(name: "pii"\)|email: String.*@tag\(name: "pii"\).*@requiresScopes/,
    );
  });

  test('uses served names with a prefix, in adapters.json too', async () => {
    const overrides = {
      fields: {
        'RecruitingPerson.email': { scope: 'pii' },
        'Query.recruitingPeople': { scope: 'pii' },
      },
    };
    const marks = marksIn(await subgraphSdl(overrides, { SCHEMA_PREFIX: 'Recruiting' }));
    expect(marks).toEqual({
      'RecruitingPerson.email': PII,
      'Query.recruitingPeople': PII,
      'Query.recruitingAllPeople': PII,
      'Query.recruitingPeopleConnection': PII,
      'Query.recruitingPerson': PII,
    });
  });

  test('has only tags, and the version of Federation that was set, without scopes', async () => {
    const overrides = {
      fields: { 'Person.email': { tags: ['pii'] }, 'Named.nick': { tags: ['pii'] } },
      types: { Named: { tags: ['public'] }, Anything: { tags: ['public'] } },
    };
    const sdl = await subgraphSdl(overrides);
    expect(sdl).toContain(
      'url: "https://specs.apollo.dev/federation/v2.3"\n    import: ["@key", "@shareable", "@tag"]',
    );
    expect(marksIn(sdl)).toEqual({
      'Person.email': '@tag(name: "pii")',
      'Named.nick': '@tag(name: "pii")',
      Named: '@tag(name: "public")',
      'Query.named': '@tag(name: "public")',
      Anything: '@tag(name: "public")',
      'Query.anything': '@tag(name: "public")',
    });
    const { errors } = compose([{ name: 'recruiting', sdl, url: 'http://localhost/graphql' }]);
    expect(errors).toBeUndefined();
  });
});

test('the adapters.json of the documentation gives the documented SDL, and its scopes to keys', async () => {
  const overrides = blockWith('docs/schema.md', '"Person.contacts"');
  const snapshot = peopleSdl.replace('people(', 'persons(');
  const [field] = blockWith('docs/supergraph.md', 'contacts: Contacts').split('\n');
  expect(await subgraphSdl(JSON.parse(overrides) as object, {}, snapshot)).toContain(field);

  using folder = temporaryFolder();
  writeFileSync(folder.file('adapters.json'), overrides);
  const command = blockWith('docs/authentication.md', 'keys new payroll');
  const [, args = ''] = /^npm start -- (.*)$/m.exec(command)!;
  const { code, stdout } = await runHere(args.split(' '), {
    RECRUITING_SCHEMA: folder.file('upstream.graphql'),
  });
  expect(code).toBe(0);
  expect(stdout).toMatch(/payroll:[\da-f]{64}:read\+drain\+pii/);
});
