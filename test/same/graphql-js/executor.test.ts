import { GraphQLError } from 'graphql';
import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../../support/imitations/honest.ts';
import { sameAnswers, sideBySide } from '../side-by-side.ts';

/** The operations of graphql-js's own executor tests that a caller can send. */
sameAnswers('fields', fruits, [
  [
    'resolvers, promises, lists with holes, a variable and fragments',
    'data',
    `query ($size: Int) {
      a, b, x: c ...Rest f
      ... on Query { pic(size: $size) promise { a } }
      deep { a b c deeper { a b } }
    }
    fragment Rest on Query { d e }`,
    { variables: { size: 100 } },
  ],
  [
    'parallel fragments are merged',
    'data',
    `{ a ...One ...Two }
    fragment One on Query { b deep { b deeper: deeper { b } } }
    fragment Two on Query { c deep { c deeper: deeper { c } } }`,
  ],
  [
    'the fields keep the order of the operation, however long each takes',
    'data',
    '{ slow a slower quick: a e: slow deep { slow a } }',
  ],
  ['a field asked twice is answered once', 'data', '{ a a x: a a x: a deep { a } deep { b a } }'],
  [
    'a fragment that is spread twice',
    'data',
    '{ ...A ...A } fragment A on Query { a ...B } fragment B on Query { b }',
  ],
  ['a field without a resolver is null', 'data', '{ nothing deep { nothing } }'],
  [
    'a function is called with its arguments',
    'data',
    '{ b pic(size: 3) pic2: pic args(text: "t", number: 1) }',
  ],
  [
    'arguments that were not given are not passed',
    'data',
    'query ($no: String, $null: Int) { args(text: $no, number: $null) none: args some: args(flag: true, number: 0) }',
    { variables: { null: null } },
  ],
  [
    'the name of the type anywhere',
    'data',
    '{ __typename a deep { x: __typename deeper { __typename } } }',
  ],
  ['an alias that is the name of another field', 'data', '{ a: b b: a c: __typename __typename }'],
]);

sameAnswers('operations', fruits, [
  ['an inline operation', 'data', '{ a }'],
  ['the only operation of a document', 'data', 'query Example { a }'],
  [
    'the named operation',
    'data',
    'query Example { first: a } query Other { second: a }',
    { operationName: 'Other' },
  ],
  [
    'the first one, named',
    'data',
    'query Example { first: a } query Other { second: a }',
    { operationName: 'Example' },
  ],
  ['a query beside a mutation', 'data', 'query Q { a } mutation M { c }', { operationName: 'Q' }],
  ['a mutation beside a query', 'data', 'query Q { a } mutation M { c }', { operationName: 'M' }],
  [
    'variables of another operation',
    'data',
    'query A($n: Int!) { pic(size: $n) } query B($t: String) { args(text: $t) }',
    { operationName: 'B', variables: { t: 'T', n: 4 } },
  ],
  ['a field that does not exist', 'refused', '{ thisDoesNotExist }'],
  ['a syntax error', 'refused', '{ a'],
  ['a fragment of itself', 'refused', '{ ...A } fragment A on Query { a ...A }'],
  ['a definition that cannot be executed', 'refused', '{ a } type Query { b: String }'],
  ['an object without a selection', 'refused', '{ deep }'],
]);

test.each([
  ['no operation', 'fragment Example on Query { a }', undefined],
  ['several operations without a name', 'query Example { a } query Other { a }', undefined],
  ['an unknown operation', 'query Example { a } query Other { a }', 'Unknown'],
  ['an unknown operation beside a single one', 'query Example { a }', 'Unknown'],
  ['an empty name', 'query Example { a } query Other { a }', ''],
])(
  '%s is refused as the service refuses it, with a message of the gateway',
  async (_, query, name) => {
    const world = await sideBySide(fruits());
    const { direct, through, sent } = await world.both({ query, operationName: name });
    for (const { data, errors } of [direct, through]) {
      expect({ data, errors }).toEqual({ data: undefined, errors: [expect.any(String)] });
    }
    expect(sent).toEqual([]);
  },
);

sameAnswers('errors', failing, [
  [
    'each failing field is null, and reported at its path',
    'errors',
    `{ sync throws throwsText returnsError returnsErrors later rejects rejectsText rejectsNothing
       returnsRejection withExtensions nested { throws sync } }`,
  ],
  ['under aliases', 'errors', '{ a: throws b: nested { c: throws d: nested { e: rejects } } }'],
  ['at an element of a list', 'errors', '{ returnsErrors list { sync throws strict } }'],
  [
    'the whole path of a field that may not be null',
    'errors',
    '{ nested { list { nested { strictNested { strictThrows } } } } }',
  ],
  [
    'an error in a non-null field of a list nulls the element',
    'errors',
    '{ list { strict sync } }',
  ],
  ['non-null elements null the list', 'errors', '{ strictList { strict sync } sync }'],
  [
    'the same field fails in two fragments',
    'errors',
    '{ ...A ...A ... on Query { throws } } fragment A on Query { throws rejects }',
  ],
  ['a scalar without a value', 'errors', '{ noValue badInt badFloat badBoolean badEnum }'],
  ['a text where a list is', 'errors', '{ textForList sync }'],
]);

const later = (text: string, turns: number) => async () => {
  for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
  return text;
};

const pic = ({ size }: { size?: number }) => `Pic of size: ${size}`;

const args = (values: object) => JSON.stringify(values);

function fruits() {
  const letters = {
    a: 'Apple',
    b: () => 'Banana',
    c: () => 'Cookie',
    d: 'Donut',
    e: 'Egg',
    f: 'Fish',
  };
  const timed = { slow: later('slow', 20), slower: later('slower', 60) };
  const data: Record<string, unknown> = { ...letters, ...timed, pic, args };
  const deep: Record<string, unknown> = {
    ...letters,
    ...timed,
    c: ['Contrived', undefined, 'Confusing'],
  };
  data['promise'] = () => Promise.resolve(data);
  data['deep'] = () => deep;
  deep['deeper'] = () => [data, null, data];
  const schema = makeExecutableSchema(
    `type Query {
       a: String b: String c: String d: String e: String f: String nothing: String
       slow: String slower: String
       pic(size: Int): String
       args(text: String, number: Int, flag: Boolean): String
       deep: Deep
       promise: Query
     }
     type Deep { a: String b: String c: [String] nothing: Int slow: String deeper: [Fruits] }
     type Fruits { a: String b: String c: String }
     type Mutation { c: String }`,
    {},
  );
  return { schema, service: { rootValue: data } };
}

const thrower = (error: unknown) => () => {
  throw error;
};

function failing() {
  const extensions = { code: 'SPECIAL', foo: 'bar', list: [1, { a: null }] };
  const object: Record<string, unknown> = {
    sync: 'sync',
    throws: thrower(new Error('throws')),
    throwsText: thrower('a text'),
    returnsError: () => new Error('returned'),
    returnsErrors: () => ['0', new Error('first'), '2', new Error('third')],
    later: () => Promise.resolve('later'),
    rejects: () => Promise.reject(new Error('rejected')),
    // oxlint-disable-next-line prefer-promise-reject-errors
    rejectsText: () => Promise.reject('a text, rejected'),
    // oxlint-disable-next-line prefer-promise-reject-errors
    rejectsNothing: () => Promise.reject(),
    returnsRejection: () => Promise.resolve(new Error('resolved with an error')),
    withExtensions: thrower(new GraphQLError('extended', { extensions })),
    strictThrows: () => Promise.reject(new Error('strict')),
    noValue: 'x',
    badInt: 'many',
    badFloat: Number.NaN,
    badBoolean: 'yes',
    badEnum: 'BLUE',
    textForList: 'a text',
  };
  object['nested'] = () => object;
  object['strictNested'] = () => object;
  object['list'] = () => [object, null, { ...object, strict: 'there' }];
  object['strictList'] = () => [
    { sync: 'in vain', strict: 'there' },
    { strict: thrower(new Error('strict')) },
  ];
  const schema = makeExecutableSchema(
    `scalar Never
     enum Colour { RED }
     type Query {
       sync: String throws: String throwsText: String returnsError: String returnsErrors: [String]
       later: String rejects: String rejectsText: String rejectsNothing: String returnsRejection: String
       withExtensions: String strict: String! strictThrows: String!
       nested: Query_ strictNested: Query_! list: [Query_] strictList: [Query_!]
       noValue: Never badInt: Int badFloat: Float badBoolean: Boolean badEnum: Colour textForList: [String]
     }
     type Query_ {
       sync: String throws: String rejects: String strict: String! strictThrows: String!
       nested: Query_ strictNested: Query_! list: [Query_]
     }`,
    {},
  );
  const never = schema.getType('Never') as { serialize?: unknown };
  never.serialize = () => undefined;
  return { schema, service: { rootValue: object } };
}
