import { GraphQLError, type ValueNode } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeExecutableSchema } from '../service/lists.ts';
import { startSideBySide, type SideBySide } from './side-by-side.ts';

/** Every field returns its arguments. */
const SDL = `
  scalar Complex
  enum Colour { RED BLUE }
  input TestInput { a: String b: [String] c: String! d: Complex }
  input Nested { na: TestInput! nb: String! }
  input Defaults { a: String = "A" b: Int! = 2 list: [Colour!] = [RED] }
  type Query {
    object(in: TestInput): String nested(in: Nested): String defaults(in: Defaults = { a: "whole" }): String
    enum(in: Colour): String enums(in: [Colour!]): String text(in: String): String strict(in: String!): String
    withDefault(in: String = "Hello"): String strictDefault(in: String! = "Hello"): String
    id(in: ID): String lists(in: [[Int]]): String texts(in: [String!]): String
  }`;

let world: SideBySide;
beforeAll(async () => {
  const schema = makeExecutableSchema(SDL, {});
  for (const field of Object.values(schema.getQueryType()!.getFields())) {
    field.resolve = (_, args) => JSON.stringify(args);
  }
  Object.assign(schema.getType('Complex')!, {
    parseValue,
    parseLiteral: (node: ValueNode) => parseValue('value' in node && node.value),
  });
  world = await startSideBySide({ schema });
});
afterAll(() => world[Symbol.asyncDispose]());

function parseValue(value: unknown): string {
  if (value === 'SerializedValue') return 'DeserializedValue';
  throw new GraphQLError('Only one value is right.', { extensions: { code: 'FAULTY' } });
}

const OBJECT = 'query ($in: TestInput) { object(in: $in) }';
const COLOURS = 'query ($a: Colour, $b: [Colour!] = RED) { enum(in: $a) enums(in: $b) }';

type Case = [name: string, query: string, variables?: Record<string, unknown>];

test.each<Case>([
  ['one value for a list', '{ object(in: { a: "foo", b: "bar", c: "baz" }) }'],
  [
    'variables in fields of an input object',
    'query ($a: String, $c: String!, $b: [String]) { object(in: { a: $a, b: $b, c: $c }) }',
    { c: 'C', a: null },
  ],
  [
    'a default of a variable',
    'query ($in: TestInput = { a: "foo", b: ["bar"], c: "baz" }) { object(in: $in) }',
  ],
  [
    'defaults of the fields of a variable',
    'query ($in: Defaults) { defaults(in: $in) }',
    { in: { b: 3 } },
  ],
  ['enums', COLOURS, { a: 'BLUE' }],
  [
    'a default of an argument, for a variable that is left out',
    'query ($v: String) { withDefault(in: $v) }',
  ],
  [
    'numbers and texts for an ID',
    'query ($v: ID, $w: ID) { id(in: $v) b: id(in: $w) c: id(in: 7) d: id(in: "7") }',
    { v: 7, w: '7' },
  ],
  ['a list of lists', 'query ($v: [[Int]]) { lists(in: $v) }', { v: [[1, 2], null, []] }],
])('%s reach the service as the caller means them', async (_, query, variables) => {
  const { direct } = await world.expectSame({ query, variables });
  expect([direct.data === undefined, direct.errors]).toEqual([false, undefined]);
});

test('null for a strict argument with a default is an error of the service', async () => {
  const query = 'query ($v: String) { strictDefault(in: $v) text }';
  const { direct } = await world.expectSame({ query, variables: { v: null } });
  expect(direct.errors).toHaveLength(1);
});

test.each<Case>([
  ['a literal that a scalar of the service refuses', '{ object(in: { c: "foo", d: "Faulty" }) }'],
  ['a variable that a scalar of the service refuses', OBJECT, { in: { c: 'foo', d: 'Faulty' } }],
  [
    'several mistakes, deep inside',
    'query ($in: Nested) { nested(in: $in) }',
    { in: { na: { a: 'foo', c: 7 } } },
  ],
  ['null in a strict variable', 'query ($v: String!) { strict(in: $v) }', { v: null }],
  ['null in a strict list', 'query ($v: [String!]) { texts(in: $v) }', { v: ['A', null] }],
])('%s is refused with the messages of the service', async (_, query, variables) => {
  const { direct } = await world.expectSame({ query, variables });
  expect(direct.data).toBeUndefined();
});
