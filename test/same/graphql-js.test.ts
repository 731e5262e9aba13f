import { GraphQLError, type ValueNode } from 'graphql';
import { makeExecutableSchema } from '../support/imitations/honest.ts';
import { sameAnswers } from './side-by-side.ts';

/* Cases of graphql-js about variables. */

const OBJECT = 'query ($in: TestInput) { object(in: $in) }';

sameAnswers('input objects', echoing, [
  ['one value for a list', 'data', '{ object(in: { a: "foo", b: "bar", c: "baz" }) }'],
  [
    'a scalar that the service refuses',
    'refused',
    '{ object(in: { c: "foo", d: "FaultyValue" }) }',
  ],
  [
    'variables in fields',
    'data',
    'query ($a: String, $c: String!, $b: [String]) { object(in: { a: $a, b: $b, c: $c }) }',
    { variables: { c: 'C', a: null } },
  ],
  [
    'a default that is used',
    'data',
    'query ($in: TestInput = { a: "foo", b: ["bar"], c: "baz" }) { object(in: $in) }',
  ],
  [
    'defaults of the fields of a variable',
    'data',
    'query ($in: Defaults) { defaults(in: $in) }',
    { variables: { in: { b: 3 } } },
  ],
  ['a faulty scalar', 'refused', OBJECT, { variables: { in: { c: 'foo', d: 'FaultyValue' } } }],
  [
    'several mistakes at once, deep inside',
    'refused',
    'query ($in: Nested) { nested(in: $in) }',
    { variables: { in: { na: { a: 'foo', c: 7 } } } },
  ],
]);

sameAnswers('enums', echoing, [
  [
    'as variables',
    'data',
    'query ($a: Colour, $b: [Colour!] = RED) { enum(in: $a) enums(in: $b) }',
    { variables: { a: 'BLUE' } },
  ],
]);

sameAnswers('scalars that may not be null', echoing, [
  [
    'a default of the argument, a variable that is left out',
    'data',
    'query ($v: String) { withDefault(in: $v) }',
  ],
  [
    'a strict argument with a default, and null',
    'errors',
    'query ($v: String) { strictDefault(in: $v) text }',
    { variables: { v: null } },
  ],
  [
    'null in a variable',
    'refused',
    'query ($v: String!) { strict(in: $v) }',
    { variables: { v: null } },
  ],
  [
    'numbers and texts for an ID',
    'data',
    'query ($v: ID, $w: ID) { id(in: $v) b: id(in: $w) c: id(in: 7) d: id(in: "7") }',
    { variables: { v: 7, w: '7' } },
  ],
]);

sameAnswers('lists', echoing, [
  [
    'a list of lists',
    'data',
    'query ($v: [[Int]]) { lists(in: $v) }',
    { variables: { v: [[1, 2], null, []] } },
  ],
  [
    'a null in it',
    'refused',
    'query ($v: [String!]) { texts(in: $v) }',
    { variables: { v: ['A', null] } },
  ],
]);

const echo = (_: unknown, args: object) => JSON.stringify(args);

function echoing() {
  const schema = makeExecutableSchema(
    `scalar Complex
     enum Colour { RED BLUE }
     input TestInput { a: String b: [String] c: String! d: Complex }
     input Nested { na: TestInput! nb: String! }
     input Defaults { a: String = "A" b: Int! = 2 list: [Colour!] = [RED] }
     type Query {
       object(in: TestInput): String nested(in: Nested): String defaults(in: Defaults = { a: "whole" }): String
       enum(in: Colour): String enums(in: [Colour!]): String text(in: String): String strict(in: String!): String
       withDefault(in: String = "Hello"): String strictDefault(in: String! = "Hello"): String
       id(in: ID): String int(in: Int): String lists(in: [[Int]]): String texts(in: [String!]): String
     }`,
    {},
  );
  for (const field of Object.values(schema.getQueryType()!.getFields())) field.resolve = echo;
  Object.assign(schema.getType('Complex')!, {
    parseValue,
    parseLiteral: (node: ValueNode) => parseValue('value' in node && node.value),
  });
  return { schema };
}

function parseValue(value: unknown): string {
  if (value === 'SerializedValue') return 'DeserializedValue';
  throw new GraphQLError('Only one value is right.', { extensions: { code: 'FAULTY' } });
}
