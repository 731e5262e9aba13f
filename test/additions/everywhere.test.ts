import {
  buildSchema,
  getIntrospectionQuery,
  buildClientSchema,
  printSchema,
  type IntrospectionQuery,
} from 'graphql';
import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { makeExecutableSchema, personPages } from '../support/imitations/honest.ts';
import { reviews } from '../support/additions/reviews.ts';

const SDL = `
  scalar Long
  enum Stage { NEW HIRED }
  interface Named { name: String! }
  type Person implements Named { id: ID! name: String! salary: Long score: Float stage: Stage! boss: Person extra: Long pages: [Found!]! }
  type Robot implements Named { id: ID! name: String! maker: String }
  union Found = Person | Robot
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { persons(first: Int, after: String): PersonPage! found: [Found!]! named: [Named!]! }
  type Mutation { promote(id: ID!, stage: Stage!): Person }
`;

const { rawJSON: rawJson } = JSON as JSON & { rawJSON: (text: string) => unknown };
const LONG = '12345678901234567890';

function person(id: string): object {
  return {
    __typename: 'Person',
    id,
    name: `Name ${id}`,
    stage: 'HIRED',
    salary: rawJson(LONG),
    score: 0.5,
    extra: { deep: [rawJson('9007199254740993')], name: 'x' },
    boss: () => person(`${id}b`),
    pages: () => [person(`${id}p`), robot],
  };
}

const robot = { __typename: 'Robot', id: 'r', name: 'Robot', maker: 'Ours' };

const service = makeExecutableSchema(SDL, {
  Query: {
    persons: personPages(['1', '2', '3']),
    found: () => [person('1'), robot],
    named: () => [robot, person('2')],
  },
  Person: Object.fromEntries(
    ['name', 'stage', 'salary', 'score', 'extra', 'boss', 'pages'].map((field) => [
      field,
      ({ id }: { id: string }) => {
        const value = (person(id) as Record<string, unknown>)[field];
        return typeof value === 'function' ? (value as () => unknown)() : value;
      },
    ]),
  ),
  Mutation: { promote: (_: unknown, { id }: { id: string }) => person(id) },
});

const additions = (prefix = ''): Additions => ({
  typeDefs: `
    extend interface ${prefix}Named { length: Int! }
    extend type ${prefix}Person { shout: String! hired: Boolean! fixed: String! pay: String length: Int! }
    extend type ${prefix}Robot { shout: String! length: Int! }
    type Badge { label: String! of: ${prefix}Person all: [${prefix}Person!] }
    extend type Query {
      topPerson: ${prefix}Person top: [${prefix}Person] anyone: ${prefix}Named badges: [Badge!]!
      own(big: ${prefix}Long): String!
    }
    extend type Mutation { praise(id: ID!): ${prefix}Person }
  `,
  resolvers: {
    [`${prefix}Named`]: {
      length: { selectionSet: '{ name }', resolve: ({ name }: Fields) => String(name).length },
    },
    [`${prefix}Person`]: {
      shout: { selectionSet: '{ name }', resolve: ({ name }: Fields) => `${String(name)}!` },
      hired: { selectionSet: '{ stage }', resolve: ({ stage }: Fields) => stage === 'HIRED' },
      fixed: () => 'fixed',
      pay: { selectionSet: '{ salary }', resolve: ({ salary }: Fields) => String(salary) },
    },
    [`${prefix}Robot`]: {
      shout: { selectionSet: '{ maker }', resolve: ({ maker }: Fields) => `${String(maker)}!` },
    },
    Query: {
      topPerson: () => ({ id: '2' }),
      top: () => [{ id: '2' }, null, Promise.resolve({ id: '1' })],
      anyone: () => ({ __typename: `${prefix}Person`, id: '3' }),
      own: () => 'own',
      badges: () => [
        { label: 'First', of: { id: '1' }, all: () => [{ id: '2' }] },
        { label: 'None', of: null },
      ],
    },
    Mutation: { praise: (_: unknown, { id }: Fields) => ({ id }) },
  },
});

type Fields = Record<string, unknown>;

function start(config: object = {}, prefix = '') {
  return startGatewayOverSandbox(
    { schema: service },
    { snapshot: SDL, additions: additions(prefix), config },
  );
}

test.each([
  [
    'a record of which nothing else is selected or required',
    '{ allPersons(limit: 1) { fixed } personsConnection(first: 1) { edges { node { fixed } } } }',
    {
      allPersons: [{ fixed: 'fixed' }],
      personsConnection: { edges: [{ node: { fixed: 'fixed' } }] },
    },
  ],
  [
    'an interface whose resolver answers for all of its types',
    '{ named { name: __typename length } allPersons(limit: 1) { length } found { ... on Named { length } } }',
    {
      named: [
        { name: 'Robot', length: 5 },
        { name: 'Person', length: 6 },
      ],
      allPersons: [{ length: 6 }],
      found: [{ length: 6 }, { length: 5 }],
    },
  ],
  [
    'a record of which a resolver returns the id',
    '{ topPerson { __typename name: __typename id stage shout } top { shout } }',
    {
      topPerson: {
        __typename: 'Person',
        name: 'Person',
        id: '2',
        stage: 'HIRED',
        shout: 'Name 2!',
      },
      top: [{ shout: 'Name 2!' }, null, { shout: 'Name 1!' }],
    },
  ],
  [
    'such a record of an interface',
    '{ anyone { name ... on Person { shout } } }',
    { anyone: { name: 'Name 3', shout: 'Name 3!' } },
  ],
  [
    'a record below a type of a company',
    '{ badges { label of { name shout } all { shout } } }',
    {
      badges: [
        { label: 'First', of: { name: 'Name 1', shout: 'Name 1!' }, all: [{ shout: 'Name 2!' }] },
        { label: 'None', of: null, all: null },
      ],
    },
  ],
  [
    'a mutation of the service',
    'mutation { promote(id: "1", stage: HIRED) { id shout } }',
    { promote: { id: '1', shout: 'Name 1!' } },
  ],
  [
    'a mutation of the service and one of a company',
    'mutation { promote(id: "1", stage: NEW) { shout } praise(id: "2") { name shout } }',
    { promote: { shout: 'Name 1!' }, praise: { name: 'Name 2', shout: 'Name 2!' } },
  ],
  [
    'an operation with a fragment of nothing but the type name',
    '{ own persons { ... on PersonPage { __typename } } __typename }',
    { own: 'own', persons: { __typename: 'PersonPage' }, __typename: 'Query' },
  ],
])('own fields are answered in %s', async (_, query, expected) => {
  await using gateway = await start({ mutations: 'all' });
  const { data, errors } = await gateway.ask(query);
  expect(errors).toBeUndefined();
  expect(data).toEqual(expected);
});

test('integers that JavaScript cannot hold keep their digits, and reach resolvers as their text', async () => {
  await using gateway = await start();
  const body = JSON.stringify({
    query: '{ topPerson { hired } persons(first: 1) { items { salary score extra pay } } }',
  });
  const response = await gateway.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  const text = await response.text();
  expect(text).toContain(`"salary":${LONG}`);
  expect(text).toContain(`"pay":"${LONG}"`);
  expect(text).toContain('"extra":{"deep":[9007199254740993],"name":"x"}');
  expect(text).toContain('"score":0.5');
});

test('a long integer in an argument beside an own field is refused', async () => {
  await using gateway = await start();
  const { errors } = await gateway.ask(`{ own(big: ${LONG}) }`);
  expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
});

test('with SCHEMA_PREFIX additions use the names that callers see', async () => {
  await using gateway = await start({ schemaPrefix: 'Rec' }, 'Rec');
  const { data, errors } = await gateway.ask(
    '{ recAllPersons(limit: 1) { __typename shout hired } recFound { __typename ... on RecRobot { shout } } topPerson { shout } }',
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    recAllPersons: [{ __typename: 'RecPerson', shout: 'Name 1!', hired: true }],
    recFound: [{ __typename: 'RecPerson' }, { __typename: 'RecRobot', shout: 'Ours!' }],
    topPerson: { shout: 'Name 2!' },
  });
});

test('introspection, the subgraph SDL and its entities show what was added', async () => {
  await using gateway = await startGatewayOverSandbox(
    { schema: service },
    { snapshot: SDL, additions: { ...additions(), subschemas: [reviews()] } },
  );
  const { data } = await gateway.ask<IntrospectionQuery>(getIntrospectionQuery());
  const sdl = printSchema(buildClientSchema(data));
  expect(sdl).toContain('shout: String!');
  expect(sdl).toContain('type Review');
  const { data: named } = await gateway.ask('{ __type(name: "Badge") { fields { name } } }');
  expect(named).toEqual({
    __type: { fields: [{ name: 'label' }, { name: 'of' }, { name: 'all' }] },
  });
  const { data: subgraph } = await gateway.ask<{ _service: { sdl: string } }>(
    '{ _service { sdl } }',
  );
  expect(subgraph._service.sdl).toMatch(
    /type Person implements Named @key\(fields: "id"\) \{[^}]*shout: String!/,
  );
  expect(subgraph._service.sdl).toContain('type Review');
  expect(subgraph._service.sdl).not.toContain('_entities');
  expect(() => buildSchema(sdl)).not.toThrow();
});

test('@stream on an operation with own fields is answered whole', async () => {
  await using gateway = await start();
  const query = '{ allPersons(limit: 2) @stream(initialCount: 1) { id shout } }';
  const ask = async (accept: string) => {
    const response = await gateway.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept },
      body: JSON.stringify({ query }),
    });
    return { type: response.headers.get('content-type'), text: await response.text() };
  };
  const expected =
    '{"data":{"allPersons":[{"id":"1","shout":"Name 1!"},{"id":"2","shout":"Name 2!"}]}}';
  expect((await ask('application/json')).text).toBe(expected);
  const parts = await ask('multipart/mixed;deferSpec=20220824');
  expect(parts.text).toContain(expected);
  const both = await ask('multipart/mixed;deferSpec=20220824, application/json;q=0.5');
  expect(both.text).toContain(expected);
  const { errors } = await gateway.ask('{ allPersons @stream(initialCount: -1) { shout } }');
  expect(errors).toEqual([expect.objectContaining({ extensions: { code: 'BAD_USER_INPUT' } })]);
});
