import { printSchema, type GraphQLSchema } from 'graphql';
import { expect, onTestFinished, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { serviceOf, type ReceivedOperation } from '../same/service.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { makeExecutableSchema, personPages, PERSONS } from '../support/imitations/honest.ts';

test.each([
  ['a field', '{ added shop @tag(name: "x") { name } }'],
  ['a field below', '{ added shop { name @tag(name: "x") } }'],
  ['a field of a record', '{ allPersons { id @tag(name: "x") shout } }'],
  ['a mutation', 'mutation { promote(id: "1") @tag(name: "x") { shout } }'],
])('a directive of the service on %s beside an added field is sent', async (_, query) => {
  const gateway = await start();
  const { data, errors } = await gateway.ask(query);
  expect(errors).toBeUndefined();
  expect(data).not.toBeNull();
  expect(requests(gateway).join()).toContain('@tag(name: "x")');
});

test('the variables of directives at fields with an added field are sent', async () => {
  const gateway = await start();
  const query =
    'query ($name: String!, $of: String) { added shop(of: $of) @tag(name: $name) { name } }';
  const { data, errors } = await gateway.ask(query, { name: 'x', of: 'me' });
  expect(errors).toBeUndefined();
  expect(data).toEqual({ added: 'added', shop: { name: 'Shop of me' } });
  const [{ query: sent, variables }] = received(gateway) as [ReceivedOperation];
  const [, name] = /@tag\(name: \$(\w+)\)/.exec(sent)!;
  expect(variables).toMatchObject({ [name!]: 'x' });
});

test.each([
  ['a connection', '{ added personsConnection @tag(name: "x") { totalCount } }'],
  ['a fragment around a list', '{ added ... @tag(name: "x") { allPersons { id } } }'],
  [
    'the definition of a fragment',
    '{ added shop { ...S } } fragment S on Shop @tag(name: "x") { name }',
  ],
  ['a variable', 'query ($id: ID! = "1" @tag(name: "x")) { person(id: $id) { shout } }'],
  ['an operation', 'query @inContext(country: "FR") { added shop { name } }'],
])('a directive of the service on %s beside an added field is refused', async (_, query) => {
  const gateway = await start();
  const { errors } = await gateway.ask(query);
  expect(errors).toEqual([
    expect.objectContaining({
      message: expect.stringMatching(/^@(tag|inContext) can(not)? be used /),
      extensions: { code: 'BAD_USER_INPUT' },
    }),
  ]);
  expect(requests(gateway)).toEqual([]);
});

test('a directive of a company stays in the gateway', async () => {
  const gateway = await start();
  const query = `query @traced { ... @traced { added shop { ...S } } } fragment S on Shop @traced { name }`;
  const { data, errors } = await gateway.ask(query);
  expect(errors).toBeUndefined();
  expect(data).toEqual({ added: 'added', shop: { name: 'Shop of all' } });
  expect(requests(gateway).join()).not.toContain('@traced');
});

async function start() {
  const schema = persons();
  const gateway = await startGatewayOverFake(
    { persons: 0 },
    { snapshot: printSchema(schema), additions, config: { mutations: 'all' } },
  );
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const service = serviceOf({ schema });
  gateway.upstream.answer(async (response, { body }) => {
    const text = await service(JSON.parse(body) as ReceivedOperation);
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  });
  return gateway;
}

/** The operations that the service received. */
function received({ upstream }: Pick<GatewayOverFake, 'upstream'>): readonly ReceivedOperation[] {
  return upstream.received.map(({ body }) => JSON.parse(body) as ReceivedOperation);
}

function requests({ upstream }: Pick<GatewayOverFake, 'upstream'>): readonly string[] {
  return received({ upstream }).map(({ query }) => query);
}

function persons(): GraphQLSchema {
  const sdl = `
    directive @tag(name: String!) on
      FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT | FRAGMENT_DEFINITION | VARIABLE_DEFINITION
    directive @inContext(country: String) repeatable on QUERY | MUTATION
    ${PERSONS}
    type Person { id: ID! name: String! }
    type Shop { name: String! }
    extend type Query { shop(of: String): Shop }
    type Mutation { promote(id: ID!): Person }`;
  return makeExecutableSchema(sdl, {
    Query: {
      persons: personPages(['1', '2']),
      shop: (_: unknown, { of = 'all' }: { of?: string }) => ({ name: `Shop of ${of}` }),
    },
    Mutation: { promote: (_: unknown, { id }: { id: string }) => ({ id }) },
    Person: { name: ({ id }: { id: string }) => `Name ${id}` },
  });
}

const additions: Additions = {
  typeDefs: `
    directive @traced on QUERY | INLINE_FRAGMENT | FRAGMENT_DEFINITION
    extend type Person { shout: String! }
    extend type Query { added: String! }`,
  resolvers: {
    Query: { added: () => 'added' },
    Person: {
      shout: {
        selectionSet: '{ name }',
        resolve: ({ name }: Record<string, unknown>) => `${String(name)}!`,
      },
    },
  },
};
