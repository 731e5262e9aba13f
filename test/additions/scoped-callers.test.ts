import { buildSchema, execute, parse, print, type OperationDefinitionNode } from 'graphql';
import type { ExecutionRequest } from '@graphql-tools/utils';
import { delegateToSchema } from '@graphql-tools/delegate';
import type { Plugin } from 'graphql-yoga';
import { describe, expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { as, keys, peopleSdl, peopleService, scopes, SECRET } from '../schema/scopes/people.ts';

const { schema } = peopleService();

const person = (id: string) => ({
  __typename: 'Person',
  id,
  email: `${SECRET} directory ${id}`,
  room: `room of ${id}`,
});

/** Another service, which has the same personal data of the same persons. */
function directory() {
  const sdl = `
    type Query { personsById(ids: [ID!]!): [Person]! entries: [Entry!]! }
    type Entry { id: ID! person: Person named: HasMail }
    interface HasMail { email: String }
    type Person implements HasMail { id: ID! email: String room: String }
  `;
  const reviewSchema = buildSchema(sdl);
  const rootValue = {
    personsById: ({ ids }: { ids: string[] }) => ids.map(person),
    entries: () => [{ id: 'e1', person: person('p1'), named: person('p1') }],
  };
  return {
    schema: reviewSchema,
    executor: ({ document, variables }: ExecutionRequest) =>
      execute({
        schema: reviewSchema,
        document,
        rootValue,
        variableValues: variables as never,
      }) as never,
    merge: {
      Person: {
        selectionSet: '{ id }',
        fieldName: 'personsById',
        key: ({ id }: { id: string }) => id,
        argsFromKeys: (ids: readonly string[]) => ({ ids }),
      },
    },
  };
}

const additions: Additions = {
  typeDefs: `
    extend type Query { own: String! boss: Person mailOf(id: ID!): String }
    extend type Person { shout: String dynamic: String initials: String loud: String! }
  `,
  resolvers: {
    Query: {
      own: () => 'own',
      boss: () => ({ __typename: 'Person', id: 'p1', email: `${SECRET} own`, name: 'Ada' }),
      mailOf: async (_parent, { id }: { id: string }, context, info) => {
        const record = (await delegateToSchema({
          schema: servedIn(info),
          operation: 'query' as never,
          fieldName: 'person',
          args: { id },
          context,
          info,
          selectionSet: firstSelectionSet('{ id email }'),
          skipTypeMerging: true,
          returnType: info.schema.getType('Person') as never,
        })) as { email?: string } | null;
        if (record instanceof Error) throw record;
        return record?.email ?? null;
      },
    },
    Person: {
      // Requires what the caller may not read.
      shout: {
        selectionSet: '{ email }',
        resolve: ({ email }: { email?: string }) => `shout ${email}`,
      },
      dynamic: {
        selectionSet: () => firstSelectionSet('{ email }'),
        resolve: ({ email }: { email?: string }) => email,
      },
      loud: {
        selectionSet: '{ phone }',
        resolve: ({ phone }: { phone?: string }) => `loud ${phone}`,
      },
      initials: {
        selectionSet: '{ name }',
        resolve: ({ name }: { name: string }) => name[0],
      },
    },
  },
  subschemas: [directory()],
};

function servedIn(info: { schema: { extensions: unknown } }) {
  const { stitchingInfo } = info.schema.extensions as {
    stitchingInfo: { subschemaMap: Map<object, never> };
  };
  return [...stitchingInfo.subschemaMap.keys()][0] as never;
}

function firstSelectionSet(text: string) {
  const [definition] = parse(text).definitions;
  return (definition as OperationDefinitionNode).selectionSet;
}

const WAYS: readonly [way: string, query: string, plugins?: Plugin[]][] = [
  ['a field below an own field', '{ boss { name email } }'],
  ['a field that another service has too', '{ me { room email } }'],
  ['a field that only another service is asked for', '{ entries { person { email } } }'],
  ['an interface of another service', '{ entries { named { email } } }'],
  ['a fragment on it', '{ entries { named { ... on HasMail { mail: email } } } }'],
  ['a field that an own field requires', '{ me { name shout } }'],
  ['a field that an own field requires in a list', '{ allPeople(limit: 2) { shout } }'],
  ['a non-null field that an own field requires', '{ me { loud } }'],
  ['an own field whose requirement is a function', '{ me { dynamic } }'],
];
/** Only the resolver knows what it needs. */
const DELEGATED = '{ mailOf(id: "p2") }';

const start = (overrides: object = scopes, added = additions, plugins: Plugin[] = []) =>
  startGatewayOverFake(
    { schema },
    { snapshot: peopleSdl, overrides, additions: added, config: { auth: keys }, plugins },
  );

test.each<(typeof WAYS)[number]>([
  ...WAYS,
  ['a field that a resolver delegates for', DELEGATED],
  ['a field that a resolver delegates for, with a plugin', DELEGATED, [everyHook()]],
])('a caller without the scope cannot read %s', async (_, query, plugins) => {
  await using world = await start(scopes, additions, plugins);
  const all = await world.ask(query, {}, as('all'));
  expect(all.errors).toBeUndefined();
  expect(JSON.stringify(all.data)).toContain(SECRET);
  const before = world.upstream.received.length;
  const few = await world.ask(query, {}, as('few'));
  expect(JSON.stringify(few)).not.toContain(SECRET);
  const sent = world.upstream.received.slice(before).map(({ body }) => body);
  for (const body of sent) expect(body).not.toMatch(/email|phone|amount|SECRET/);
  const codes = new Set((few.errors ?? []).map(({ extensions }) => extensions?.['code']));
  if (query === DELEGATED) return;
  expect(few.data).toBeUndefined();
  expect(sent).toEqual([]);
  expect(codes).toEqual(new Set(['FORBIDDEN']));
});

test('an own field that requires nothing with a scope is answered', async () => {
  await using world = await start();
  const answer = await world.ask('{ own me { initials room } }', {}, as('few'));
  expect(answer).toEqual({ data: { own: 'own', me: { initials: 'A', room: 'room of p1' } } });
});

describe('what adapters.json says about additions', () => {
  const overrides = {
    fields: {
      'Person.email': { scope: 'pii' },
      'Person.room': { scope: 'pay' },
      'Person.initials': { scope: 'pay' },
    },
    types: { Entry: { scope: 'pay' } },
  };

  test.each([
    ['an own field', '{ me { initials } }', 'The field Person.initials needs the scope "pay"'],
    [
      'a field of another service',
      '{ me { room } }',
      'The field Person.room needs the scope "pay"',
    ],
    [
      'a type of another service',
      '{ entries { __typename } }',
      'The type Entry needs the scope "pay"',
    ],
  ])('a caller without the scope of %s cannot read it', async (_, query, message) => {
    await using world = await start(overrides);
    const few = await world.ask(query, {}, as('few'));
    expect(few.data).toBeUndefined();
    expect(few.errors!.map((error) => error.message).join()).toContain(message);
    expect((await world.ask(query, {}, as('all'))).errors).toBeUndefined();
  });

  test('the SDL of the subgraph has their scopes, and those of what they require', async () => {
    await using world = await start(overrides);
    const { data } = await world.ask<{ _service: { sdl: string } }>(
      '{ _service { sdl } }',
      {},
      as('all'),
    );
    const { sdl } = data._service;
    const [PII, PAY] = ['pii', 'pay'].map((name) => `@requiresScopes(scopes: [["${name}"]])`);
    expect(sdl).toContain(`shout: String ${PII}`);
    expect(sdl).toContain(`initials: String ${PAY}`);
    expect(sdl).toContain(`room: String ${PAY}\n`);
    expect(sdl).toContain(`entries: [Entry!]! ${PAY}`);
    expect(sdl).toContain(`type Entry ${PAY}`);
  });

  test('names that neither the service nor the company has are refused, all at once', async () => {
    await expect(
      start({
        fields: { 'Person.inital': { scope: 'pay' } },
        types: { Entri: { scope: 'pay' } },
      }),
    ).rejects.toThrow(/Person\.inital: [^]*\n.*Entri: /);
  });

  test('an own field of an interface has the scopes of what it requires of each type', async () => {
    await using world = await start(
      { fields: { 'Person.nick': { scope: 'pii' }, 'Team.lead': { scope: 'pay' } } },
      {
        typeDefs: `
          extend interface Named { label: String }
          extend type Person { label: String }
          extend type Team { label: String }
        `,
        resolvers: {
          Named: {
            label: {
              selectionSet: '{ nick }',
              resolve: ({ nick }: { nick: string }) => `label ${nick}`,
            },
          },
        },
      },
    );
    const { data } = await world.ask<{ _service: { sdl: string } }>(
      '{ _service { sdl } }',
      {},
      as('all'),
    );
    const sdl = parse(data._service.sdl);
    const labels = sdl.definitions.flatMap((definition) =>
      'fields' in definition
        ? (definition.fields ?? [])
            .filter(({ name }) => name.value === 'label')
            .map((field) => `${definition.name.value}.${print(field)}`)
        : [],
    );
    expect(labels).toEqual([
      'Named.label: String',
      'Person.label: String @requiresScopes(scopes: [["pii"]])',
      'Team.label: String',
    ]);
    const few = await world.ask('{ me { label } }', {}, as('few'));
    expect(few.errors!.map(({ message }) => message)).toEqual([
      expect.stringContaining('The field Person.label needs the scope "pii"'),
    ]);
    expect(await world.ask('{ team(id: "t1") { label } }', {}, as('few'))).toEqual({
      data: { team: { label: 'label T1' } },
    });
  });
});
