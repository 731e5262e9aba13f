import { writeFileSync } from 'node:fs';
import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import { parse, print, visit, type FieldDefinitionNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blockWith } from '../support/docs/documents.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { compose } from '../support/supergraph/composition.ts';
import { printedSubgraph } from '../support/supergraph/printed-subgraph.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  additions,
  allScopes,
  as,
  keys,
  peopleSdl,
  peopleService,
  scopes,
  SECRET,
} from './people.ts';

type Way = [way: string, scope: 'pii' | 'pay', query: string, variables?: Record<string, unknown>];

/** Each reads what needs the scope on another way. */
const WAYS: readonly Way[] = [
  ['a field of the service', 'pii', '{ me { id email } }'],
  ['an object', 'pii', '{ me { contacts { city } } }'],
  ['a non-null field', 'pii', '{ me { phone } }'],
  ['a page', 'pii', '{ people(first: 3) { items { email } } }'],
  [
    'a fragment in a fragment',
    'pii',
    '{ me { ...F } } fragment F on Person { ...G } fragment G on Person { email }',
  ],
  ['an interface', 'pii', '{ named { nick } }'],
  ['a union', 'pay', '{ paid { ... on Salary { amount } } }'],
  ['a drained list', 'pii', '{ allPeople(limit: 3) { email } }'],
  ['edges', 'pii', '{ peopleConnection(first: 3) { edges { node { email } } } }'],
  ['a record by its id', 'pii', '{ person(id: "p2") { email } }'],
  ['a nested page', 'pii', '{ team(id: "t1") { members { items { email } } } }'],
  ['an entity', 'pii', ...entity('Person', 'p2', 'email')],
  [
    'what a variable includes',
    'pii',
    'query ($yes: Boolean!) { me { email @include(if: $yes) } }',
    { yes: true },
  ],
  ['what is not included', 'pii', '{ me { name email @include(if: false) } }'],
  ['a type', 'pay', '{ salaries { items { id } } }'],
  ['the name of a type', 'pay', '{ me { salary { __typename } } }'],
  ['the number of records of a type', 'pay', '{ salariesConnection { totalCount } }'],
  ['an entity of a type', 'pay', ...entity('Salary', 'SECRET-s1', 'amount')],
  ['a mutation', 'pii', 'mutation { rename(id: "p1", name: "Bo") { name } mail(email: "x") }'],
  ['the result of a mutation', 'pii', 'mutation { rename(id: "p1", name: "Bo") { email } }'],
  ['a list field', 'pii', '{ secrets { items { text } } }'],
  ['a list field, drained', 'pii', '{ allSecrets { text } }'],
  ['a list field, as a connection', 'pii', '{ secretsConnection { edges { cursor } } }'],
  ['a record of a list field', 'pii', '{ note(id: "n1") { text } }'],
  ['an entity of a list field', 'pii', ...entity('Note', 'n1', 'text')],
  ['an added field that requires a field', 'pii', '{ me { name greeting } }'],
  ['a field that another service computes of a field', 'pii', '{ me { rank } }'],
  ['an added field that requires a computed one', 'pii', '{ me { farewell } }'],
  ['an added field in a drained list', 'pii', '{ allPeople(limit: 2) { greeting } }'],
  ['a non-null added field', 'pii', '{ me { loud } }'],
  ['an added field whose requirement is a function', 'pii', '{ me { dynamic } }'],
  ['an added field of an interface', 'pii', '{ me { label } }'],
  ['an added field with a scope', 'pii', '{ me { badge } }'],
  ['an added root field', 'pay', '{ payday }'],
  ['a field below an added field', 'pii', '{ boss { name email } }'],
  ['a field that another service has too', 'pii', '{ me { initials email } }'],
  ['a field of another service', 'pay', '{ me { room } }'],
  ['a type of another service', 'pay', '{ entries { id } }'],
  ['a field that only another service is asked for', 'pii', '{ entries { person { email } } }'],
  ['an interface of another service', 'pii', '{ entries { named { email } } }'],
  ['a fragment on it', 'pii', '{ entries { named { ... on HasMail { mail: email } } } }'],
];

/** What they return has no value that needs a scope: their callers know what they asked for. */
const SILENT = /^(the n|what is not|a list field, as|a mutation)/;

/** Only its resolver knows what it reads. */
const DELEGATED = '{ mailOf(id: "p2") }';

function entity(type: string, id: string, field: string) {
  const query = `query ($of: [_Any!]!) { _entities(representations: $of) { ... on ${type} { ${field} } } }`;
  return [query, { of: [{ __typename: type, id }] }] as const;
}

const { schema, mutations } = peopleService();

function start({ config, ...options }: TestGatewayOptions = {}) {
  return startGatewayOverService(
    { schema },
    {
      snapshot: peopleSdl,
      overrides: scopes,
      config: { auth: keys, mutations: 'all', ...config },
      ...options,
    },
  );
}

describe.each([
  ['without plugins', []],
  ['with a plugin that has every hook', [everyHook()]],
])('%s', (_, plugins) => {
  let world: GatewayOverService;
  beforeAll(async () => {
    world = await start({ overrides: allScopes, additions, plugins });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test.each(WAYS)(
    'a caller with the scope reads %s, and one who lacks it is refused before anything is sent',
    async (way, scope, query, variables) => {
      const all = await world.ask(query, variables, as('all'));
      expect(all.errors).toBeUndefined();
      if (!SILENT.test(way)) expect(JSON.stringify(all.data)).toContain(SECRET);
      const before = [world.service.received.length, mutations.count];
      const { data, errors } = await world.ask(query, variables, as(`no-${scope}`));
      expect(data).toBeUndefined();
      expect(errors!.length).toBeGreaterThan(0);
      for (const error of errors!) {
        expect(error).toEqual({
          message: expect.stringMatching(
            `^The (field|type) \\S+ needs the scope "${scope}", which this credential does not have\\. The operator`,
          ),
          extensions: { code: 'FORBIDDEN' },
        });
      }
      expect([world.service.received.length, mutations.count]).toEqual(before);
    },
  );

  test('a resolver does not read for a caller what the caller may not read', async () => {
    expect(JSON.stringify(await world.ask(DELEGATED, {}, as('all')))).toContain(SECRET);
    const before = world.service.received.length;
    expect(JSON.stringify(await world.ask(DELEGATED, {}, as('no-pii')))).not.toContain(SECRET);
    for (const { body } of world.service.received.slice(before))
      expect(body).not.toContain('email');
  });

  test('what needs no scope is answered, and so is an operation beside one that does', async () => {
    const query =
      '{ me { name initials } team(id: "t1") { label } paid { __typename ... on Person { name } } }';
    expect((await world.ask(query, {}, as('few'))).errors).toBeUndefined();
    const both = 'query A { me { name } } query B { me { ...F } } fragment F on Person { email }';
    const ask = (operationName: string) => post(world, { query: both, operationName });
    expect(await (await ask('A')).json()).toEqual({ data: { me: { name: 'Ada 1' } } });
    expect(await (await ask('B')).json()).toMatchObject({ errors: [{}] });
  });
});

function post(world: GatewayOverService, body: object, accept = 'application/json') {
  return world.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept, ...as('few').headers },
    body: JSON.stringify(body),
  });
}

test('a refusal has status 403 for clients that accept it, and a program needs no credential', async () => {
  await using world = await start();
  const query = '{ me { email } }';
  expect((await post(world, { query }, 'application/graphql-response+json')).status).toBe(403);
  expect((await post(world, { query })).status).toBe(200);
  const result = await world.gateway.executor({ document: parse(query) });
  expect(result).toEqual({ data: { me: { email: `${SECRET} mail 1` } } });
});

test('callers that need no credential read everything, and the log warns of it', async () => {
  await using world = await start({ config: { auth: undefined } });
  expect(JSON.stringify(await world.ask('{ me { email } }'))).toContain(SECRET);
  expect(world.logged.map(({ msg }) => msg)).toContainEqual(
    expect.stringMatching(/^adapters\.json has scopes, but callers need no credential/),
  );
});

const adding: Plugin = {
  onParse: ({ params, setParsedDocument }) => {
    if (params.source) setParsedDocument(parse('{ me { id email } }'));
  },
};

test.each<[string, Plugin, string]>([
  [
    'a response cache that all callers share',
    useResponseCache({ session: () => null }),
    '{ me { id email } }',
  ],
  ['a plugin that adds a field to the document', adding, '{ me { id } }'],
])('%s gives nothing to a caller without the scope', async (_, plugin, query) => {
  await using world = await start({ plugins: [plugin] });
  const all = await world.ask(query, {}, as('all'));
  expect(JSON.stringify(all.data)).toContain(SECRET);
  expect(await world.ask(query, {}, as('no-pay'))).toEqual(all);
  const before = world.service.received.length;
  const { data, errors } = await world.ask(query, {}, as('few'));
  expect(data ?? null).toBeNull();
  expect(errors!.map(({ extensions }) => extensions)).toEqual([{ code: 'FORBIDDEN' }]);
  expect(world.service.received.length).toBe(before);
});

describe('the SDL of the subgraph', () => {
  test('has the scopes of fields, and derived and added fields have those of what they read', async () => {
    await using world = await start({ overrides: allScopes, additions });
    const query = '{ _service { sdl } }';
    const { data } = await world.ask<{ _service: { sdl: string } }>(query, {}, as('all'));
    const { sdl } = data._service;
    expect(sdl).toContain(
      '@link(\n    url: "https://specs.apollo.dev/federation/v2.5"\n    import: ["@key", "@shareable", "@requiresScopes"]',
    );
    const published = { name: 'recruiting', sdl, url: 'http://a.test/graphql' };
    expect(compose([published]).errors).toBeUndefined();
    expect(scopesIn(sdl)).toEqual({
      pii: words(`
        Mutation.mail Person.badge Person.contacts Person.dynamic Person.email Person.farewell
        Person.greeting Person.label Person.loud Person.nick Person.phone Person.rank
        Query.allSecrets Query.note Query.secrets Query.secretsConnection`),
      // A type has them wherever it is returned.
      pay: words(`
        Entry Person.room Person.salary Query.allSalaries Query.entries Query.payday
        Query.salariesConnection Query.salary
        Salary SalaryConnection.nodes SalaryEdge.node SalaryPage.items`),
    });
  });

  test('has the scopes of pages, counts and identities at the fields that read them, under served names', async () => {
    const overrides = {
      fields: {
        'Query.atsPeople': { count: 'total' },
        'AtsTeam.members': { count: 'total' },
        'AtsPersonPage.total': { scope: 'count' },
        'AtsSalaryPage.items': { scope: 'pay' },
        'AtsNote.id': { scope: 'pii' },
        'Query.atsSalaries': { scope: 'list' },
      },
    };
    const env = { SCHEMA_PREFIX: 'Ats' };
    expect(scopesIn(await printedSubgraph({ snapshot: peopleSdl, overrides, env }))).toEqual({
      count: words('AtsPersonPage.total AtsTeam.membersConnection Query.atsPeopleConnection'),
      pay: words('AtsSalaryPage.items'),
      list: words('Query.atsSalaries'),
      'list and pay': words('Query.atsAllSalaries Query.atsSalariesConnection Query.atsSalary'),
      pii: words('AtsNote.id Query.atsAllSecrets Query.atsSecretsConnection'),
    });
    await using world = await start({ overrides, config: { schemaPrefix: 'Ats' } });
    const refused = await world.ask('{ atsAllSalaries { id } }', {}, as('few'));
    expect(refused.errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  });

  test('is that of the documentation for its adapters.json, and keys get its scopes', async () => {
    const overrides = blockWith('docs/schema.md', '"Person.contacts"');
    const [field] = blockWith('docs/supergraph.md', 'contacts: Contacts').split('\n');
    const printed = printedSubgraph({ snapshot: peopleSdl, overrides: JSON.parse(overrides) });
    expect(await printed).toContain(field);

    using folder = temporaryFolder();
    writeFileSync(folder.file('adapters.json'), overrides);
    const command = blockWith('docs/callers.md', 'keys new payroll');
    const [, args = ''] = /^npm start -- (.*)$/m.exec(command)!;
    const env = { RECRUITING_SCHEMA: folder.file('upstream.graphql') };
    const { code, stdout } = await runHere(args.split(' '), env);
    expect(code).toBe(0);
    expect(stdout).toMatch(/payroll:[\da-f]{64}:read\+drain\+pii/);
    expect(stdout).toMatch(/ x pii +the fields to which adapters\.json gives this scope/);
    expect(stdout).toMatch(/ - pay +the fields/);
  });
});

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

/** The coordinates of every `@requiresScopes`, in alphabetical order, by its scope. */
function scopesIn(sdl: string): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  visit(parse(sdl), {
    Directive: ({ name, arguments: args }, _key, _parent, _path, ancestors) => {
      if (name.value !== 'requiresScopes') return;
      const [all, ...others] = JSON.parse(print(args![0]!.value)) as string[][];
      expect(others).toEqual([]);
      const scope = all!.toSorted().join(' and ');
      const named = ancestors.filter((node): node is FieldDefinitionNode => 'name' in node);
      (found[scope] ??= []).push(named.map((node) => node.name.value).join('.'));
    },
  });
  return Object.fromEntries(
    Object.entries(found).map(([scope, places]) => [scope, places.toSorted()]),
  );
}
