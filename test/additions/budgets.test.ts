import { readFileSync } from 'node:fs';
import { delegateToSchema } from '@graphql-tools/delegate';
import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverSandbox, type TestGatewayOptions } from '../support/gateway/gateway.ts';

const richSdl = readFileSync('schema/rich.graphql', 'utf8');

const shout: Additions = {
  typeDefs: 'extend type Person { shout: String! } extend type Query { own: String! }',
  resolvers: {
    Query: { own: () => 'own' },
    Person: {
      shout: {
        selectionSet: '{ firstName }',
        resolve: ({ firstName }: Record<string, unknown>) => `${String(firstName)}!`,
      },
    },
  },
};

function start(config: TestGatewayOptions['config'] = {}, persons = 120, additions = shout) {
  return startGatewayOverSandbox({ persons }, { additions, config });
}

test('an operation with own fields and too many values is refused with advice', async () => {
  await using gateway = await start({}, 6000);
  const { data, errors } = await gateway.ask(
    '{ allPersons { id a: id b: id c: id d: id e: id f: id g: id shout } }',
  );
  expect(data).toEqual({ allPersons: null });
  expect(errors).toEqual([
    {
      message: expect.stringContaining('`first` of a connection'),
      path: ['allPersons'],
      extensions: { code: 'OPERATION_TOO_COMPLEX' },
    },
  ]);
});

test('the records of all drains of an operation with own fields count together', async () => {
  await using gateway = await start({ drainMaxItems: 150 });
  const { errors } = await gateway.ask('{ own a: allPersons { id shout } b: allPersons { id } }');
  expect(errors!.map(({ path, extensions }) => [path, extensions?.['code']])).toEqual([
    [['a'], 'DRAIN_LIMIT_EXCEEDED'],
    [['b'], 'DRAIN_LIMIT_EXCEEDED'],
  ]);
});

test('the pages of delegations are charged to the caller', async () => {
  await using gateway = await start({ pagesPerMinute: 3 });
  const first = await gateway.ask('{ personsConnection(first: 100) { nodes { shout } } }');
  expect(first.errors).toBeUndefined();
  const second = await gateway.ask('{ personsConnection(first: 100) { nodes { shout } } }');
  expect(second.errors).toEqual([
    expect.objectContaining({ extensions: expect.objectContaining({ code: 'RATE_LIMITED' }) }),
  ]);
});

test('what delegations return counts against ANSWER_BYTES', async () => {
  await using gateway = await start({ answerBytes: 100_000 }, 2000);
  const { errors } = await gateway.ask(
    `{ own personsConnection(first: 500) { nodes { shout ${'x'.repeat(200)}: firstName } } }`,
  );
  expect(errors).toEqual([
    expect.objectContaining({
      extensions: expect.objectContaining({ code: 'OPERATION_TOO_COMPLEX' }),
    }),
  ]);
  expect(errors![0]!.message).toContain('ANSWER_BYTES');
});

const KEYS = {
  apiKeys: [
    entryFor('r', 'reader', 'read'),
    entryFor('w', 'writer', 'read', 'write', 'drain'),
    entryFor('o', 'only', 'write'),
  ],
  jwt: undefined,
};

const writing: Additions = {
  typeDefs: `
    extend type Query { sneaky: Comment orphan: PersonPage }
    extend type Mutation { praise: Person }
  `,
  resolvers: {
    Query: {
      sneaky: (_: unknown, __: unknown, context: object, info: never) =>
        delegateToSchema({
          schema: served(info),
          operation: 'mutation' as never,
          fieldName: 'addComment',
          args: { candidateId: '1', text: 'x' },
          context,
          info,
        }),
      orphan: (_: unknown, __: unknown, ___: unknown, info: never) =>
        delegateToSchema({
          schema: served(info),
          operation: 'query' as never,
          fieldName: 'persons',
          context: {},
          info,
        }),
    },
    Mutation: { praise: () => ({ id: '1' }) },
  },
};

function served(info: {
  schema: { extensions: { stitchingInfo: { subschemaMap: Map<object, never> } } };
}) {
  return [...info.schema.extensions.stitchingInfo.subschemaMap.keys()][0] as never;
}

test('a resolver cannot do for a caller what the scopes of the caller do not allow', async () => {
  await using gateway = await startGatewayOverSandbox(
    { schema: 'rich' },
    { snapshot: richSdl, additions: writing, config: { auth: KEYS, mutations: 'all' } as never },
  );
  const reader = await gateway.ask('{ sneaky { text } }', {}, { headers: { 'x-api-key': 'r' } });
  expect(reader.errors).toEqual([
    {
      message: expect.stringContaining('"write"'),
      path: ['sneaky'],
      extensions: { code: 'FORBIDDEN' },
    },
  ]);
  const refused = await gateway.ask(
    'mutation { praise { firstName } }',
    {},
    { headers: { 'x-api-key': 'r' } },
  );
  expect(refused.errors).toEqual([expect.objectContaining({ extensions: { code: 'FORBIDDEN' } })]);
  const entities = await gateway.ask(
    '{ _entities(representations: []) { __typename } sneaky { text } }',
    {},
    { headers: { 'x-api-key': 'w' } },
  );
  expect(entities.errors).toEqual([expect.objectContaining({ extensions: { code: 'FORBIDDEN' } })]);
});

test('a mutation that is switched off stays so for resolvers', async () => {
  await using gateway = await startGatewayOverSandbox(
    { schema: 'rich' },
    { snapshot: richSdl, additions: writing },
  );
  const { errors } = await gateway.ask('{ sneaky { text } }');
  expect(errors).toEqual([
    {
      message: expect.stringContaining('MUTATIONS'),
      path: ['sneaky'],
      extensions: { code: 'FORBIDDEN' },
    },
  ]);
});

test('a delegation without the context of a request is refused', async () => {
  await using gateway = await startGatewayOverSandbox(
    { schema: 'rich' },
    { snapshot: richSdl, additions: writing },
  );
  const { errors } = await gateway.ask('{ orphan { items { id } } }');
  expect(errors).toEqual([
    expect.objectContaining({ path: ['orphan'], extensions: { code: 'UNAUTHENTICATED' } }),
  ]);
});

test.each([
  ['introspection', '{ own __schema { types { name } } }', 'OPERATION_TOO_COMPLEX'],
  [
    'a condition that is null',
    'query ($if: Boolean = true) { own @include(if: $if) }',
    'BAD_USER_INPUT',
  ],
])('%s beside an own field is refused', async (_, query, code) => {
  await using gateway = await start();
  const { errors } = await gateway.ask(query, { if: null });
  expect(errors).toEqual([expect.objectContaining({ extensions: { code } })]);
});
