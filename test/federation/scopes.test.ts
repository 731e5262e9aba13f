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

/** Every @requiresScopes, by the coordinate where it is. */
function scopesIn(sdl: string): Record<string, string> {
  const found: Record<string, string> = {};
  const note = (
    place: string,
    { directives = [] }: Pick<ObjectTypeDefinitionNode, 'directives'>,
  ) => {
    const kept = directives.filter(({ name }) => name.value === 'requiresScopes');
    if (kept.length > 0) found[place] = kept.map((node) => print(node)).join(' ');
  };
  for (const definition of parse(sdl).definitions) {
    if (!('name' in definition) || !definition.name) continue;
    const type = definition.name.value;
    note(type, definition as ObjectTypeDefinitionNode);
    for (const field of (definition as ObjectTypeDefinitionNode).fields ?? []) {
      note(`${type}.${field.name.value}`, field);
    }
  }
  return found;
}

const scope = (name: string) => `@requiresScopes(scopes: [["${name}"]])`;
const PII = scope('pii');
const PAY = scope('pay');

describe('the SDL of the subgraph', () => {
  test('has the scopes of fields, and derived fields have those of what they are derived from', async () => {
    const sdl = await subgraphSdl(scopes);
    expect(sdl).toContain(
      '@link(\n    url: "https://specs.apollo.dev/federation/v2.5"\n    import: ["@key", "@shareable", "@requiresScopes"]',
    );
    expect(scopesIn(sdl)).toEqual({
      'Person.email': PII,
      'Person.phone': PII,
      'Person.contacts': PII,
      'Person.nick': PII,
      'Mutation.mail': PII,
      // A type has them wherever it is returned.
      Salary: PAY,
      'Query.allSalaries': PAY,
      'Query.salariesConnection': PAY,
      'Query.salary': PAY,
      'Person.salary': PAY,
      'Mutation.raise': PAY,
      'SalaryPage.items': PAY,
      'SalaryConnection.nodes': PAY,
      'SalaryEdge.node': PAY,
    });
  });

  test('has the scope of a list at everything that is read through it', async () => {
    expect(scopesIn(await subgraphSdl(scopesOfList))).toEqual({
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
        'Query.people': { count: 'total' },
        'Team.members': { count: 'total' },
        'PersonPage.total': { scope: 'count' },
        'SalaryPage.items': { scope: 'pay' },
        'Note.id': { scope: 'pii' },
      },
    };
    expect(scopesIn(await subgraphSdl(overrides, {}, snapshot))).toEqual({
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
    expect(person).toMatch(/email: String.*@requiresScopes\(scopes: \[\["pii"\]\]\)/);
  });

  test('uses served names with a prefix, in adapters.json too', async () => {
    const overrides = {
      fields: {
        'RecruitingPerson.email': { scope: 'pii' },
        'Query.recruitingPeople': { scope: 'pii' },
      },
    };
    const found = scopesIn(await subgraphSdl(overrides, { SCHEMA_PREFIX: 'Recruiting' }));
    expect(found).toEqual({
      'RecruitingPerson.email': PII,
      'Query.recruitingPeople': PII,
      'Query.recruitingAllPeople': PII,
      'Query.recruitingPeopleConnection': PII,
      'Query.recruitingPerson': PII,
    });
  });
});

test('the adapters.json of the documentation gives the documented SDL, and its scopes to keys', async () => {
  const overrides = blockWith('docs/schema.md', '"Person.contacts"');
  const snapshot = peopleSdl.replace('people(', 'persons(');
  const [field] = blockWith('docs/supergraph.md', 'contacts: Contacts').split('\n');
  expect(await subgraphSdl(JSON.parse(overrides) as object, {}, snapshot)).toContain(field);

  using folder = temporaryFolder();
  writeFileSync(folder.file('adapters.json'), overrides);
  const command = blockWith('docs/callers.md', 'keys new payroll');
  const [, args = ''] = /^npm start -- (.*)$/m.exec(command)!;
  const { code, stdout } = await runHere(args.split(' '), {
    RECRUITING_SCHEMA: folder.file('upstream.graphql'),
  });
  expect(code).toBe(0);
  expect(stdout).toMatch(/payroll:[\da-f]{64}:read\+drain\+pii/);
});
