import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import { parseSelectionSet } from '@graphql-tools/utils';
import {
  buildASTSchema,
  getNamedType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  parse,
  print,
  visit,
  type FieldDefinitionNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import {
  byKeys,
  delegated,
  PEOPLE,
  requiring,
  secondService,
  startPeople,
} from '../additions/people.ts';
import { blockWith } from '../support/docs/documents.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { servedOffline } from '../support/gateway/served.ts';
import { compose } from '../support/supergraph/composition.ts';

type Way = [way: string, scope: string, query: string, variables?: Record<string, unknown>];

const entity = (type: string, id: string, field: string) =>
  `{ _entities(representations: [{ __typename: "${type}", id: "${id}" }]) { ... on ${type} { ${field} } } }`;

/** Each reads what needs the scope on a way that no path of fields shows. */
const WAYS: readonly Way[] = [
  [
    'a fragment in a fragment',
    'pii',
    '{ me { ...F } } fragment F on Person { ...G } fragment G on Person { email }',
  ],
  ['an interface', 'pii', '{ anyone { nick } }'],
  ['a union', 'pay', '{ found { ... on Robot { maker } } }'],
  ['an entity', 'pii', entity('Person', '2', 'email')],
  ['an entity of a list field', 'pii', entity('Note', 'n', 'text')],
  ['an entity of a type', 'pay', entity('Robot', 'r', 'maker')],
  [
    'what a variable includes',
    'pii',
    'query ($yes: Boolean!) { me { email @include(if: $yes) } }',
    { yes: true },
  ],
  ['what is not included', 'pii', '{ me { name email @include(if: false) } }'],
  ['the second of two mutations', 'pii', 'mutation { promote(id: "1") { name } mail(to: "x") }'],
  ['a field that another service has too', 'pii', '{ me { shout email } }'],
];

const PII = { scope: 'pii' };
const PAY = { scope: 'pay' };
const SCOPES = {
  fields: {
    'Person.email': PII,
    'Person.boss': PII,
    'Person.nick': PII,
    'Mutation.mail': PII,
    'Query.notes': PII,
    // Of what a company adds.
    'Person.fixed': PII,
    'Person.room': PAY,
    'Query.own': PAY,
  },
  types: { Robot: PAY },
};

const COMPUTED = {
  ...byKeys('rank'),
  fields: { rank: { selectionSet: '{ email }', computed: true } },
};

const ADDITIONS: Additions = {
  typeDefs: `
    extend type Query { look: Person mine: Robot }
    extend interface Named { label: String }
    extend type Robot { label: String }
    extend type Person { label: String farewell: String }`,
  resolvers: {
    Query: {
      look: delegated('person', {
        args: { id: '2' },
        selectionSet: parseSelectionSet('{ id email }'),
        skipTypeMerging: true,
      }) as never,
    },
    Robot: { label: requiring('nick') },
    Person: { label: requiring('nick'), farewell: requiring('rank') },
  },
  subschemas: [
    // It has the same personal data.
    secondService('rank', COMPUTED, { more: 'email: String room: String' }),
    // It finds people by personal data, which its field does not show.
    secondService('desk', {
      ...byKeys('desk'),
      selectionSet: '{ email }',
      key: ({ email }: { readonly email: unknown }) => ({ id: email }),
    }),
  ],
};

const OF_OPERATIONS = ['read', 'drain', 'write', 'router'];
/** Callers with both scopes of fields, without one of them, and without both. */
const AUTH = {
  apiKeys: [
    entryFor('all', 'all', ...OF_OPERATIONS, 'pii', 'pay'),
    entryFor('no-pii', 'no-pii', ...OF_OPERATIONS, 'pay'),
    entryFor('no-pay', 'no-pay', ...OF_OPERATIONS, 'pii'),
    entryFor('few', 'few', ...OF_OPERATIONS),
  ],
  jwt: undefined,
};
const as = (key: string) => ({ headers: { 'x-api-key': key } });

type World = Awaited<ReturnType<typeof startPeople>>;

const start = ({ config, plugins = [] }: TestGatewayOptions = {}) =>
  startPeople(ADDITIONS, { overrides: SCOPES, config: { auth: AUTH, ...config }, plugins });

let world: World;
beforeAll(async () => {
  world = await start();
});
afterAll(() => world[Symbol.asyncDispose]());

describe.each([
  ['without plugins', []],
  ['with a plugin that has every hook', [everyHook()]],
])('%s', (_, plugins) => {
  let here: World;
  beforeAll(async () => {
    here = await start({ plugins });
  });
  afterAll(() => here[Symbol.asyncDispose]());

  test.each(WAYS)(
    'a caller with the scope reads %s, and one who lacks it is refused before anything is sent',
    async (_way, scope, query, variables) => {
      const all = await here.ask(query, variables, as('all'));
      expect(all.errors).toBeUndefined();
      expect(JSON.stringify(all.data)).not.toContain('null');
      const before = here.service.received.length;
      const { data, errors } = await here.ask(query, variables, as(`no-${scope}`));
      expect(data).toBeUndefined();
      expect(errors!.length).toBeGreaterThan(0);
      for (const error of errors!) {
        expect(error).toEqual({
          message: expect.stringMatching(
            `^The (field \\w+\\.\\w+|type \\w+) needs the scope "${scope}", which this credential does not have\\. The operator`,
          ),
          extensions: { code: 'FORBIDDEN' },
        });
      }
      expect(here.service.received).toHaveLength(before);
    },
  );

  test('each field is refused, before anything is sent, exactly where the SDL has @requiresScopes', async () => {
    const { data } = await here.ask<{ _service: { sdl: string } }>(SDL, {}, as('all'));
    const operations = operationsFor(buildASTSchema(parse(data._service.sdl), NOT_CHECKED));
    for (const [query, needs] of operations) {
      for (const lacks of ['pii', 'pay']) {
        const before = here.service.received.length;
        const { data: answered, errors } = await here.ask(query, {}, as(`no-${lacks}`));
        const code = errors?.[0]?.extensions['code'];
        const isRefused = answered === undefined && code === 'FORBIDDEN';
        expect([query, lacks, isRefused]).toEqual([query, lacks, needs.includes(lacks)]);
        if (isRefused) expect(here.service.received).toHaveLength(before);
      }
    }
    expect(operations.filter(([, needs]) => needs.length > 0).length).toBeGreaterThan(40);
  });
});

const SDL = '{ _service { sdl } }';
/** The directives of Federation are not defined in the SDL. */
const NOT_CHECKED = { assumeValidSDL: true };

test('a resolver does not read for a caller what the caller may not read', async () => {
  const before = world.service.received.length;
  const { errors } = await world.ask('{ look { id } }', {}, as('no-pii'));
  expect(errors).toMatchObject([{ path: ['look'], extensions: { code: 'FORBIDDEN' } }]);
  expect(world.service.received).toHaveLength(before);
  const { data } = await world.ask('{ look { id } }', {}, as('all'));
  expect(data).toEqual({ look: { id: '2' } });
});

test('what needs no scope is answered, and so is an operation beside one that does', async () => {
  const { data } = await world.ask('{ me { name desk } }', {}, as('few'));
  expect(data).toEqual({ me: { name: 'Name 1', desk: 'desk of 1@example.com' } });
  const query = '{ me { name shout } found { __typename ... on Person { name } } }';
  expect((await world.ask(query, {}, as('few'))).errors).toBeUndefined();
  const both = 'query A { me { name } } query B { me { ...F } } fragment F on Person { email }';
  const ask = (operationName: string) => post(world, { query: both, operationName });
  expect(await (await ask('A')).json()).toEqual({ data: { me: { name: 'Name 1' } } });
  expect(await (await ask('B')).json()).toMatchObject({ errors: [{}] });
});

function post({ fetch }: World, body: object, accept = 'application/json') {
  return fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept, ...as('few').headers },
    body: JSON.stringify(body),
  });
}

test('a refusal has status 403 for clients that accept it, and a program needs no credential', async () => {
  const query = '{ me { email } }';
  expect((await post(world, { query }, 'application/graphql-response+json')).status).toBe(403);
  expect((await post(world, { query })).status).toBe(200);
  const result = await world.gateway.executor({ document: parse(query) });
  expect(result).toEqual({ data: { me: { email: '1@example.com' } } });
});

test('callers that need no credential read everything', async () => {
  await using open = await start({ config: { auth: undefined } });
  expect(await open.ask('{ me { email } }')).toEqual({ data: { me: { email: '1@example.com' } } });
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
  await using plugged = await start({ plugins: [plugin] });
  const all = await plugged.ask(query, {}, as('all'));
  expect(all).toEqual({ data: { me: { id: '1', email: '1@example.com' } } });
  expect(await plugged.ask(query, {}, as('no-pay'))).toEqual(all);
  const before = plugged.service.received.length;
  const { data, errors } = await plugged.ask(query, {}, as('few'));
  expect(data ?? null).toBeNull();
  expect(errors!.map(({ extensions }) => extensions)).toEqual([{ code: 'FORBIDDEN' }]);
  expect(plugged.service.received).toHaveLength(before);
});

describe('the SDL of the subgraph', () => {
  test('has the scopes of fields, and derived and added fields have those of what they read', async () => {
    const { data } = await world.ask<{ _service: { sdl: string } }>(SDL, {}, as('all'));
    const { sdl } = data._service;
    expect(sdl).toContain(
      '@link(url: "https://specs.apollo.dev/federation/v2.5", import: ["@key","@shareable","@requiresScopes"])',
    );
    const published = { name: 'recruiting', sdl, url: 'http://a.test/graphql' };
    expect(compose([published]).errors).toBeUndefined();
    expect(scopesIn(sdl)).toEqual({
      pii: words(`
        Mutation.mail Person.boss Person.contact Person.email Person.farewell
        Person.fixed Person.label Person.nick Person.rank Person.renamed
        Query.allNotes Query.note Query.notes Query.notesConnection`),
      // A type has them wherever it is returned.
      pay: words(`
        Person.robot Person.room Query.allRobots Query.mine Query.own Query.robot
        Query.robotsConnection Robot Robot.label Robot.length Robot.seen Robot.shout
        RobotConnection.nodes RobotEdge.node RobotPage.items`),
    });
  });

  test('has the scopes of pages, counts and identities at the fields that read them, under served names', async () => {
    const overrides = {
      fields: {
        'Query.atsPersons': { count: 'total' },
        'AtsPersonPage.total': { scope: 'count' },
        'AtsRobotPage.items': { scope: 'pay' },
        'AtsNote.id': { scope: 'pii' },
        'Query.atsRobots': PII,
      },
    };
    const { subgraphSdl } = servedOffline(PEOPLE, { prefix: 'Ats', overrides });
    expect(scopesIn(subgraphSdl())).toEqual({
      count: words('AtsPersonPage.total Query.atsPersonsConnection'),
      pay: words('AtsRobotPage.items'),
      'pay and pii': words('Query.atsAllRobots Query.atsRobot Query.atsRobotsConnection'),
      pii: words('AtsNote.id Query.atsAllNotes Query.atsNotesConnection Query.atsRobots'),
    });
    await using prefixed = await startPeople(
      {},
      { overrides, config: { auth: AUTH, schemaPrefix: 'Ats' } },
    );
    const refused = await prefixed.ask('{ atsAllRobots { id } }', {}, as('no-pay'));
    expect(refused.errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  });

  test('omits _entities, which needs its own scope and that of the field by which records are found', () => {
    const sdl = 'type Query { job(id: ID!): Job } type Job { id: ID! }';
    const fields = { 'Query.job': PII, 'Query._entities': PAY };
    const { scopes } = servedOffline(sdl, { overrides: { fields, types: { Job: PAY } } });
    expect(scopes.get('Query._entities')).toEqual(['pay', 'pii']);
    expect(scopes.get('Query.job')).toEqual(['pii', 'pay']);
  });

  test('is that of the documentation for its adapters.json', () => {
    const snapshot = `
      type Query { person: Person } type Person { contacts: Contacts salary: Salary }
      type Contacts { city: String } type Salary { amount: String }`;
    const overrides = blockWith('docs/schema.md', '"Person.contacts"');
    const [field] = blockWith('docs/supergraph.md', 'contacts: Contacts').split('\n');
    const { subgraphSdl } = servedOffline(snapshot, { overrides: JSON.parse(overrides) });
    expect(subgraphSdl()).toContain(field);
  });
});

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

/** An operation for each field of a schema, with the scopes that its SDL has on the way to it. */
function operationsFor(schema: GraphQLSchema): [query: string, needs: string[]][] {
  const operations: [string, string[]][] = [];
  const seen = new Set<GraphQLObjectType>();
  const add = (type: GraphQLObjectType, within: (selected: string) => string, above: string[]) => {
    if (seen.has(type)) return;
    seen.add(type);
    for (const field of Object.values(type.getFields())) {
      const needs = [...above, ...scopesOf(type), ...scopesOf(field)];
      const args = field.args.filter(isRequiredArgument).map(({ name }) => `(${name}: "1")`);
      const call = field.name + args.join('');
      const inner = getNamedType(field.type);
      operations.push([within(isLeafType(inner) ? call : `${call} { __typename }`), needs]);
      if (isObjectType(inner)) add(inner, (selected) => within(`${call} { ${selected} }`), needs);
    }
  };
  add(schema.getQueryType()!, (selected) => `{ ${selected} }`, []);
  add(schema.getMutationType()!, (selected) => `mutation { ${selected} }`, []);
  return operations;
}

function scopesOf({
  astNode,
}: Pick<GraphQLObjectType | GraphQLField<unknown, unknown>, 'astNode'>) {
  const directive = astNode?.directives?.find(({ name }) => name.value === 'requiresScopes');
  return directive ? (JSON.parse(print(directive.arguments![0]!.value)) as string[][]).flat() : [];
}

/** The coordinates of every `@requiresScopes`, in alphabetical order, by its scopes. */
function scopesIn(sdl: string): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  visit(parse(sdl), {
    Directive: ({ name, arguments: args }, _key, _parent, _path, ancestors) => {
      if (name.value !== 'requiresScopes') return;
      const [all, ...others] = JSON.parse(print(args![0]!.value)) as string[][];
      expect(others).toEqual([]);
      const named = ancestors.filter((node): node is FieldDefinitionNode => 'name' in node);
      (found[all!.toSorted().join(' and ')] ??= []).push(
        named.map((node) => node.name.value).join('.'),
      );
    },
  });
  return found;
}
