import { GraphQLError, type GraphQLScalarType, type ValueNode } from 'graphql';
import { makeExecutableSchema } from '../../support/imitations/honest.ts';
import { sameAnswers, type Case } from '../side-by-side.ts';

const OBJECT = 'query ($in: TestInput) { object(in: $in) }';
const LISTS = ['[String]', '[String]!', '[String!]', '[String!]!'];

sameAnswers('input objects', echoing, [
  ['written out', 'data', '{ object(in: { a: "foo", b: ["bar"], c: "baz" }) }'],
  ['one value for a list', 'data', '{ object(in: { a: "foo", b: "bar", c: "baz" }) }'],
  ['a null value', 'data', '{ object(in: { a: "foo", b: null, c: "C", d: null }) }'],
  ['a null in a list', 'data', '{ object(in: { b: ["A", null, "C"], c: "C" }) }'],
  ['a value that the scalar parses', 'data', '{ object(in: { c: "foo", d: "SerializedValue" }) }'],
  [
    'a scalar that the service refuses',
    'refused',
    '{ object(in: { c: "foo", d: "FaultyValue" }) }',
  ],
  ['no object', 'refused', '{ object(in: ["foo", "bar", "baz"]) }'],
  ['an unknown field', 'refused', '{ object(in: { c: "x", extra: 1 }) }'],
  [
    'variables in fields',
    'data',
    'query ($a: String, $c: String!, $b: [String]) { object(in: { a: $a, b: $b, c: $c }) }',
    { variables: { c: 'C', a: null } },
  ],
  [
    'variables in lists',
    'data',
    'query ($a: String) { object(in: { b: [$a, "x", $a], c: "C" }) }',
    { variables: { a: 'A' } },
  ],
  ['a variable', 'data', OBJECT, { variables: { in: { a: 'foo', b: ['bar'], c: 'baz' } } }],
  [
    'a variable with keys in another order',
    'data',
    OBJECT,
    { variables: { in: { c: 'baz', b: ['bar'], a: 'foo' } } },
  ],
  [
    'a variable, one value for a list',
    'data',
    OBJECT,
    { variables: { in: { a: 'foo', b: 'bar', c: 'baz' } } },
  ],
  [
    'a variable with a scalar',
    'data',
    OBJECT,
    { variables: { in: { c: 'foo', d: 'SerializedValue' } } },
  ],
  ['a variable that is null', 'data', OBJECT, { variables: { in: null } }],
  ['no variable', 'data', OBJECT],
  [
    'a default that is used',
    'data',
    'query ($in: TestInput = { a: "foo", b: ["bar"], c: "baz" }) { object(in: $in) }',
  ],
  [
    'a default that is not used',
    'data',
    'query ($in: TestInput = { c: "no" }) { object(in: $in) }',
    { variables: { in: { c: 'given' } } },
  ],
  [
    'null instead of the default',
    'data',
    'query ($in: TestInput = { c: "no" }) { object(in: $in) }',
    { variables: { in: null } },
  ],
  ['a default that is null', 'data', 'query ($in: TestInput = null) { object(in: $in) }'],
  [
    'defaults of the fields',
    'data',
    '{ defaults(in: {}) some: defaults(in: { a: null }) none: defaults }',
  ],
  [
    'defaults of the fields of a variable',
    'data',
    'query ($in: Defaults) { defaults(in: $in) }',
    { variables: { in: { b: 3 } } },
  ],
  ['a faulty scalar', 'refused', OBJECT, { variables: { in: { c: 'foo', d: 'FaultyValue' } } }],
  [
    'a null for a non-null field',
    'refused',
    OBJECT,
    { variables: { in: { a: 'foo', b: 'bar', c: null } } },
  ],
  ['a wrong type', 'refused', OBJECT, { variables: { in: 'foo bar' } }],
  ['a field that is missing', 'refused', OBJECT, { variables: { in: { a: 'foo', b: 'bar' } } }],
  [
    'a field that is not known',
    'refused',
    OBJECT,
    { variables: { in: { a: 'foo', c: 'baz', extra: 'dog' } } },
  ],
  [
    'several mistakes at once, deep inside',
    'refused',
    'query ($in: Nested) { nested(in: $in) }',
    { variables: { in: { na: { a: 'foo', c: 7 } } } },
  ],
  [
    'a deep object',
    'data',
    'query ($in: Nested) { nested(in: $in) }',
    { variables: { in: { na: { c: 'c' }, nb: 'b' } } },
  ],
]);

sameAnswers('enums', echoing, [
  [
    'as literals',
    'data',
    '{ a: enum(in: RED) b: enum(in: BLUE) c: enum d: enum(in: null) list: enums(in: [RED, BLUE]) }',
  ],
  [
    'as variables',
    'data',
    'query ($a: Colour, $b: [Colour!] = RED) { enum(in: $a) enums(in: $b) }',
    { variables: { a: 'BLUE' } },
  ],
  ['as text', 'refused', '{ enum(in: "RED") }'],
  [
    'that do not exist',
    'refused',
    'query ($a: Colour) { enum(in: $a) }',
    { variables: { a: 'PINK' } },
  ],
  ['as numbers', 'refused', 'query ($a: Colour) { enum(in: $a) }', { variables: { a: 1 } }],
]);

sameAnswers('scalars that may be null', echoing, [
  ['left out', 'data', '{ text }'],
  ['left out in a variable', 'data', 'query ($v: String) { text(in: $v) }'],
  ['a variable that nobody declared', 'refused', '{ text(in: $v) }'],
  ['a variable that nobody uses', 'refused', 'query ($v: String, $w: Int) { text(in: $v) }'],
  ['null in a variable', 'data', 'query ($v: String) { text(in: $v) }', { variables: { v: null } }],
  [
    'a value in a variable',
    'data',
    'query ($v: String) { text(in: $v) }',
    { variables: { v: 'a' } },
  ],
  [
    'a value',
    'data',
    '{ text(in: "a") block: text(in: """ "b" \\n """) escaped: text(in: "\\u00e9\\n\\"") }',
  ],
  [
    'further variables that nobody declared',
    'data',
    'query ($v: String) { text(in: $v) }',
    { variables: { v: 'a', more: { b: 1 } } },
  ],
]);

sameAnswers('scalars that may not be null', echoing, [
  ['a default of the variable', 'data', 'query ($v: String = "default") { strict(in: $v) }'],
  ['a default of the argument', 'data', '{ withDefault }'],
  [
    'a default of the argument, a variable that is left out',
    'data',
    'query ($v: String) { withDefault(in: $v) }',
  ],
  [
    'a default of the argument, and null',
    'data',
    'query ($v: String) { withDefault(in: $v) }',
    { variables: { v: null } },
  ],
  [
    'a strict argument with a default',
    'data',
    'query ($v: String) { strictDefault a: strictDefault(in: "x") b: strictDefault(in: $v) }',
  ],
  [
    'a strict argument with a default, and null',
    'errors',
    'query ($v: String) { strictDefault(in: $v) text }',
    { variables: { v: null } },
  ],
  ['an argument that cannot be read', 'refused', '{ withDefault(in: WRONG_TYPE) }'],
  ['left out in a variable', 'refused', 'query ($v: String!) { strict(in: $v) }'],
  [
    'null in a variable',
    'refused',
    'query ($v: String!) { strict(in: $v) }',
    { variables: { v: null } },
  ],
  [
    'a value in a variable',
    'data',
    'query ($v: String!) { strict(in: $v) }',
    { variables: { v: 'a' } },
  ],
  ['a value', 'data', '{ strict(in: "a") }'],
  ['missing', 'refused', '{ strict }'],
  [
    'a list for a text',
    'refused',
    'query ($v: String!) { strict(in: $v) }',
    { variables: { v: [1, 2, 3] } },
  ],
  [
    'an object for a text',
    'refused',
    'query ($v: String!) { strict(in: $v) }',
    { variables: { v: {} } },
  ],
  [
    'a number for a text',
    'refused',
    'query ($v: String!) { strict(in: $v) }',
    { variables: { v: 7 } },
  ],
  [
    'numbers and texts for an ID',
    'data',
    'query ($v: ID, $w: ID) { id(in: $v) b: id(in: $w) c: id(in: 7) d: id(in: "7") }',
    { variables: { v: 7, w: '7' } },
  ],
  [
    'a whole number for a Float',
    'data',
    'query ($v: Float) { float(in: $v) b: float(in: 3) c: float(in: 0.5) }',
    { variables: { v: 2 } },
  ],
  [
    'a fraction for an Int',
    'refused',
    'query ($v: Int) { int(in: $v) }',
    { variables: { v: 1.5 } },
  ],
  [
    'too much for an Int',
    'refused',
    'query ($v: Int) { int(in: $v) }',
    { variables: { v: 2_147_483_648 } },
  ],
]);

sameAnswers('lists', echoing, [
  ...LISTS.flatMap((type, index) => {
    const query = `query ($v: ${type}) { list${index}(in: $v) }`;
    const strict = type.endsWith('!');
    const strictItems = type.includes('String!');
    return [
      [`${type}: null`, strict ? 'refused' : 'data', query, { variables: { v: null } }],
      [`${type}: left out`, strict ? 'refused' : 'data', query],
      [`${type}: values`, 'data', query, { variables: { v: ['A', 'B'] } }],
      [`${type}: none`, 'data', query, { variables: { v: [] } }],
      [`${type}: one value`, 'data', query, { variables: { v: 'A' } }],
      [
        `${type}: a null in it`,
        strictItems ? 'refused' : 'data',
        query,
        { variables: { v: ['A', null, 'B'] } },
      ],
      [`${type}: a number in it`, 'refused', query, { variables: { v: ['A', 1] } }],
    ] satisfies Case[];
  }),
  [
    'a list of lists',
    'data',
    'query ($v: [[Int]]) { lists(in: $v) a: lists(in: [[1], null, [null]]) b: lists(in: 1) }',
    { variables: { v: [[1, 2], null, []] } },
  ],
  ['a type that is no input', 'refused', 'query ($v: Query) { text(in: $v) }'],
  [
    'a type that does not exist',
    'refused',
    'query ($v: Unknown) { text(in: $v) }',
    { variables: { v: 'x' } },
  ],
]);

sameAnswers('one of several', echoing, [
  ['one', 'data', '{ a: one(in: { a: "x" }) b: one(in: { b: 1 }) }'],
  ['a variable', 'data', 'query ($v: One!) { one(in: $v) }', { variables: { v: { a: 'x' } } }],
  [
    'a variable inside',
    'data',
    'query ($v: String!) { one(in: { a: $v }) }',
    { variables: { v: 'x' } },
  ],
  ['a default', 'data', 'query ($v: One! = { a: "d" }) { one(in: $v) }'],
  ['two', 'refused', '{ one(in: { a: "x", b: 1 }) }'],
  [
    'two in a variable',
    'refused',
    'query ($v: One!) { one(in: $v) }',
    { variables: { v: { a: 'x', b: 1 } } },
  ],
  [
    'one and a null in a variable',
    'refused',
    'query ($v: One!) { one(in: $v) }',
    { variables: { v: { a: 'x', b: null } } },
  ],
  ['none', 'refused', '{ one(in: {}) }'],
]);

const echo = (_: unknown, args: object) => JSON.stringify(args);

function echoing() {
  const schema = makeExecutableSchema(
    `scalar Complex
     enum Colour { RED BLUE }
     input TestInput { a: String b: [String] c: String! d: Complex }
     input Nested { na: TestInput! nb: String! }
     input Defaults { a: String = "A" b: Int! = 2 list: [Colour!] = [RED] }
     input One @oneOf { a: String b: Int }
     type Query {
       object(in: TestInput): String nested(in: Nested): String defaults(in: Defaults = { a: "whole" }): String
       enum(in: Colour): String enums(in: [Colour!]): String
       text(in: String): String strict(in: String!): String
       withDefault(in: String = "Hello"): String strictDefault(in: String! = "Hello"): String
       id(in: ID): String float(in: Float): String int(in: Int): String
       ${LISTS.map((type, index) => `list${index}(in: ${type}): String`).join(' ')}
       lists(in: [[Int]]): String
       one(in: One!): String
     }`,
    {},
  );
  const fields = schema.getQueryType()!.getFields();
  for (const field of Object.values(fields)) field.resolve = echo;
  const complex = schema.getType('Complex') as GraphQLScalarType;
  Object.assign(complex, { parseValue, parseLiteral });
  return { schema };
}

function parseValue(value: unknown): string {
  if (value !== 'SerializedValue') {
    throw new GraphQLError('Only one value is right.', { extensions: { code: 'FAULTY' } });
  }
  return 'DeserializedValue';
}

function parseLiteral(node: ValueNode): string {
  return parseValue('value' in node && node.value);
}
