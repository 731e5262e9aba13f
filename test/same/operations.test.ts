/** Operations that the service itself understands, side by side over a schema that clashes with the gateway's names. */
import { GraphQLError, type GraphQLFieldResolver, type ValueNode } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeExecutableSchema } from '../service/lists.ts';
import { sideBySide, startSideBySide, type SideBySide } from './side-by-side.ts';

/** Names with a meaning in JavaScript or its libraries, but not in GraphQL. */
const NAMES =
  'then constructor toString toJSON hasOwnProperty prototype length data errors extensions query variables null'.split(
    ' ',
  );
const fieldsOf = (fields: (name: string) => string) => NAMES.map(fields).join(' ');

/** A field without a resolver of its own returns its arguments. */
const SDL = `
  "All about people."
  schema { query: QueryRoot mutation: Changes }
  scalar Json
  scalar _Any
  scalar Picky
  enum Colour { RED BLUE }
  input Odd { ${fieldsOf((name) => `${name}: Json`)} }
  input TestInput { a: String b: [String] c: String! d: Picky }
  input Nested { na: TestInput! nb: String! }
  input Defaults { a: String = "A" b: Int! = 2 list: [Colour!] = [RED] }
  type PageInfo { a: Int }
  type _Service { sdl: String }
  union _Entity = PageInfo
  type QueryRoot {
    ${fieldsOf((name) => `${name}: Json odd_${name}(${name}: Json, in: Odd): Json`)}
    object(in: TestInput): Json nested(in: Nested): Json defaults(in: Defaults = { a: "whole" }): Json
    enum(in: Colour): Json enums(in: [Colour!]): Json text(in: String): Json strict(in: String!): Json
    withDefault(in: String = "Hello"): Json strictDefault(in: String! = "Hello"): Json
    id(in: ID): Json lists(in: [[Int]]): Json texts(in: [String!]): Json any(in: _Any): Json
    asUser(id: Int!): QueryRoot users: [QueryRoot!] name: String operation(x: Int): String
    pageInfo: PageInfo service: _Service entity: _Entity
    door: Changes either: Either
  }
  interface Adding { add(n: Int!): Int }
  type Changes implements Adding {
    self: Changes add(n: Int!): Int put(n: Int!): Payload operation: String
  }
  type Payload { sum: Int self: Changes query: QueryRoot }
  type Inner { door: Changes }
  union Either = Inner | Changes`;

const added: number[] = [];
const schema = makeSchema();
let world: SideBySide;
beforeAll(async () => {
  world = await startSideBySide({ schema });
});
afterAll(() => world[Symbol.asyncDispose]());

function makeSchema() {
  const made = makeExecutableSchema(SDL, {
    QueryRoot: {
      asUser: (_: unknown, { id }: { id: number }) => ({ id }),
      users: ({ id = 0 }: { id?: number }) => [{ id: id * 10 + 1 }, { id: id * 10 + 2 }],
      name: ({ id }: { id?: number }) => `User ${id ?? 'nobody'}`,
      operation,
      pageInfo: () => ({ a: 1 }),
      service: () => ({ sdl: 'of its own' }),
      entity: () => ({ __typename: 'PageInfo', a: 2 }),
      door: changes,
      either: changes,
    },
    Changes: {
      self: changes,
      add,
      put: (_: unknown, args: { n: number }) => ({ sum: add(undefined, args) }),
      operation,
    },
    Payload: { self: changes, query: () => ({}) },
  });
  for (const field of Object.values(made.getQueryType()!.getFields()))
    field.resolve ??= (_, args) => args as unknown;
  Object.assign(made.getType('Picky')!, {
    parseValue: picky,
    parseLiteral: (node: ValueNode) => picky('value' in node && node.value),
  });
  return made;
}

function operation(...[, , , info]: Parameters<GraphQLFieldResolver<never, unknown, never>>) {
  return info.operation.name?.value ?? 'none';
}

function changes() {
  return { __typename: 'Changes' };
}

function add(_: unknown, { n }: { n: number }) {
  added.push(n);
  return n * 2;
}

function picky(value: unknown) {
  if (value === 'right') return value;
  throw new GraphQLError('Wrong.', { extensions: { code: 'FAULTY' } });
}

type Row = [promise: string, query: string, variables?: Record<string, unknown>];

const ANSWERED: readonly Row[] = [
  [
    'variables in fields of an input object',
    'query ($a: String, $c: String!, $b: [String]) { object(in: { a: $a, b: $b, c: $c, d: "right" }) }',
    { c: 'C', a: null },
  ],
  ['one value for a list', '{ object(in: { a: "foo", b: "bar", c: "baz" }) }'],
  [
    'defaults of a variable and of its fields',
    'query ($x: TestInput = { b: ["bar"], c: "baz" }, $y: Defaults) { object(in: $x) defaults(in: $y) }',
    { y: { b: 3 } },
  ],
  [
    'enums',
    'query ($a: Colour, $b: [Colour!] = RED) { enum(in: $a) enums(in: $b) }',
    { a: 'BLUE' },
  ],
  [
    'defaults of arguments, for a variable that is left out',
    'query ($v: String) { withDefault(in: $v) strictDefault(in: $v) defaults }',
  ],
  [
    'numbers and texts for an ID',
    'query ($v: ID, $w: ID) { id(in: $v) b: id(in: $w) c: id(in: 7) d: id(in: "7") }',
    { v: 7, w: '7' },
  ],
  ['a list of lists', 'query ($v: [[Int]]) { lists(in: $v) }', { v: [[1, 2], null, []] }],
  [
    'null for a strict argument with a default',
    'query ($v: String) { strictDefault(in: $v) text }',
    { v: null },
  ],
  ...NAMES.map((name): Row => [
    `arguments, variables, fields and aliases called ${name}`,
    `query ($${name}: Json, $in: Odd) {
      ${name} odd_${name}(${name}: $${name}, in: $in) asUser(id: 1) { ${name}: name users { ${name} } }
    }`,
    { [name]: { [name]: 1 }, in: { [name]: [name] } },
  ]),
  [
    'the query type below itself, which is no root there',
    `query Deep($id: Int!) {
      name
      asUser(id: 2) { name deeper: asUser(id: $id) { ...Names } __typename }
      again: asUser(id: 9) { ...Names }
    }
    fragment Names on QueryRoot { name users { name } }`,
    { id: 3 },
  ],
  [
    'a type called PageInfo, where there is no connection',
    '{ pageInfo { ...F t: __typename } entity { ... on PageInfo { a __typename } } } fragment F on PageInfo { a __typename }',
  ],
  [
    'root types with other names',
    '{ __typename ...F asUser(id: 1) { __typename } } fragment F on QueryRoot { name __typename }',
  ],
  [
    'the type of mutations with another name',
    'mutation { __typename ... on Changes { operation } }',
  ],
  [
    'introspection of them, and of the description of the schema',
    `{ __schema { description queryType { name } mutationType { name } }
       __type(name: "QueryRoot") { name kind } page: __type(name: "PageInfo") { name fields { name } } }`,
  ],
  ['an operation without a name', '{ operation }'],
];

/** The messages of the service say what is wrong. */
const REFUSED: readonly Row[] = [
  ['a literal that a scalar refuses', '{ object(in: { c: "foo", d: "wrong" }) }'],
  [
    'a variable that a scalar refuses',
    'query ($v: TestInput) { object(in: $v) }',
    { v: { c: 'foo', d: 'wrong' } },
  ],
  [
    'several mistakes, deep inside',
    'query ($v: Nested) { nested(in: $v) }',
    { v: { na: { a: 'foo', c: 7 } } },
  ],
  ['null in a strict variable', 'query ($v: String!) { strict(in: $v) }', { v: null }],
  ['null in a strict list', 'query ($v: [String!]) { texts(in: $v) }', { v: ['A', null] }],
];

test.each<Row>([...ANSWERED, ...REFUSED])(
  'the service and the gateway answer alike: %s',
  async (promise, query, variables) => {
    const { direct } = await world.expectSame({ query, variables });
    expect(direct.data === undefined).toBe(REFUSED.some(([refused]) => refused === promise));
  },
);

test.each(['Hello', 'Other', 'Change'])(
  'the service receives only the operation that operationName selects: %s',
  async (operationName) => {
    const query = `query Hello { operation ...F } query Other($x: Int) { b: operation(x: $x) }
      mutation Change { operation } fragment F on QueryRoot { again: operation }`;
    const { sent, through } = await world.expectSame({ query, operationName });
    expect(sent.join().match(/Hello|Other|Change/g)).toContain(operationName);
    expect(new Set(sent.join().match(/Hello|Other|Change/g))).toEqual(new Set([operationName]));
    expect(through.data).toContain(`"${operationName}"`);
  },
);

test('types called _Service and _Any, which every subgraph has, are served under other names', async () => {
  const { data } = await world.through({
    query: `query ($in: Upstream_Any) {
      service { ... on Upstream_Service { sdl __typename } } any(in: $in)
    }`,
    variables: { in: { __typename: 'PageInfo' } },
  });
  expect(data).toBe(
    '{"service":{"sdl":"of its own","__typename":"Upstream_Service"},"any":{"in":{"__typename":"PageInfo"}}}',
  );
});

test('the result of a mutation is read in the request of the mutation', async () => {
  added.length = 0;
  const query = 'mutation { put(n: 1) { sum query { name } self { operation } } }';
  const { sent } = await world.expectSame({ query });
  expect([sent.length, added]).toEqual([1, [1, 1]]);
});

test.each<[string, ['self'] | 'off' | 'all', string, Row[2]?]>([
  ['in a fragment', ['self'], 'mutation { self { ...M } } fragment M on Changes { add(n: 5) }'],
  ['on an interface of its type', ['self'], 'mutation { self { ... on Adding { add(n: 5) } } }'],
  ['beside an allowed one', ['self'], 'mutation { self { __typename } add(n: 5) }'],
  ['below a query field', 'off', '{ door { add(n: 5) } }'],
  ['below a query field of a union', 'off', '{ either { ... on Changes { add(n: 5) } } }'],
  // Some services take null for false.
  [
    'with null for a condition',
    'all',
    'mutation ($n: Boolean = true) { self { __typename } add(n: 5) @skip(if: $n) }',
    { n: null },
  ],
])('a mutation that is not allowed is not sent: %s', async (_, mutations, query, variables) => {
  added.length = 0;
  const { through } = await sideBySide({ schema, config: { mutations } });
  expect(await through({ query, variables })).toMatchObject({ errors: [expect.any(String)] });
  expect(added).toEqual([]);
});

test('with MUTATIONS=self the mutation self is sent, however deep', async () => {
  const narrow = await sideBySide({ schema, config: { mutations: ['self'] } });
  await narrow.expectSame({
    query: `mutation { self { self { __typename } t: __typename } ...M }
      fragment M on Changes { b: self { c: self { __typename } } }`,
  });
});
