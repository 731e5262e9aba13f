import { makeExecutableSchema } from '../../support/imitations/honest.ts';
import { sameAnswers, type Case } from '../side-by-side.ts';

/** Each kind of list with each kind of content; the value is there at once, arrives later, or fails. */
const LISTS = ['[Int]', '[Int]!', '[Int!]', '[Int!]!', '[[Int!]!]'] as const;
const CONTENTS = {
  values: [1, 2],
  nothing: [],
  aNull: [1, null, 2],
  notANumber: [1, 'two', 3],
  beyondInt: [1, 2_147_483_648],
  anError: [1, new Error('in the list'), 2],
  aRejection: [1, Promise.reject(new Error('rejected in the list')), 2],
  null: null,
  noList: 7,
  text: '12',
  nested: [[1], [null, 2], []],
} as const;
// Node would end the process for a rejection without a handler.
void CONTENTS.aRejection[1].catch(() => {});

const NAMES = LISTS.map((_, index) => `list${index}`);

sameAnswers('lists', lists, [
  ...Object.keys(CONTENTS).flatMap((content) =>
    NAMES.map((name, index): Case => {
      const query = `query ($of: String!) { holder(of: $of) { ${name} } before: holder(of: "values") { list0 } }`;
      return [
        `${LISTS[index]} with ${content}`,
        givesOf(content, name),
        query,
        { variables: { of: content } },
      ];
    }),
  ),
  ['a list that is an error', 'errors', '{ failing { list0 list2 } }'],
  ['lists of objects with holes', 'data', '{ holders { list0 } }'],
]);

/** Each null and each error, at each place of a tree of nullable and non-null fields. */
const TREE = `a: scalar nest { scalar nest { strict scalar } } promiseNest { scalar strictNest { scalar } }
  strictNest { scalar nest { strict } }`;

sameAnswers('nulls where none may be', nulls, [
  ['a nullable field that is null', 'data', '{ null { scalar } }'],
  ['a nullable field that fails', 'errors', '{ error { scalar } }'],
  ['an object with a non-null field that is null', 'errors', '{ null { nest { strict } } }'],
  ['an object with a non-null field that fails', 'errors', '{ error { nest { strict } } }'],
  [
    'an object behind a promise',
    'errors',
    '{ null { promiseNest { strict } } error { promiseNest { strict } } }',
  ],
  ['a non-null object in a nullable one', 'errors', '{ null { nest { strictNest { strict } } } }'],
  ['a whole tree', 'errors', `{ null { ${TREE} } }`],
  ['a whole tree of errors', 'errors', `{ error { ${TREE} } }`],
  [
    'a long chain of non-null fields nulls the first that may be',
    'errors',
    '{ null { nest { strictNest { strictNest { strictPromiseNest { strictNest { strict } } } } } } }',
  ],
  ['the top level', 'errors', '{ null { scalar } strictNull { strict } }'],
  [
    'the top level by an error',
    'errors',
    '{ strictError { strictNest { strict } } null { scalar } }',
  ],
  [
    'only what may not be null is nulled',
    'errors',
    '{ a: null { nest { strict } } b: null { scalar } values { strict scalar } }',
  ],
]);

sameAnswers('arguments that may not be null', argumentsOf, [
  ['a literal', 'data', '{ echo(text: "literal") }'],
  ['a variable', 'data', 'query ($v: String!) { echo(text: $v) }', { variables: { v: 'given' } }],
  [
    'a variable with a default that is not given',
    'data',
    'query ($v: String = "default") { echo(text: $v) }',
  ],
  [
    'a variable with a default that is null',
    'errors',
    'query ($v: String = "default") { other echo(text: $v) }',
    { variables: { v: null } },
  ],
  ['missing', 'refused', '{ echo }'],
  ['null', 'refused', '{ echo(text: null) }'],
  ['a variable that may be null', 'refused', 'query ($v: String) { echo(text: $v) }'],
  ['a variable that is missing', 'refused', 'query ($v: String!) { echo(text: $v) }'],
  [
    'a variable that is null',
    'refused',
    'query ($v: String!) { echo(text: $v) }',
    { variables: { v: null } },
  ],
]);

function givesOf(content: string, name: string): 'data' | 'errors' {
  const isNested = name === 'list4';
  if (content === 'nothing') return 'data';
  if (content === 'values') return isNested ? 'errors' : 'data';
  if (content === 'nested') return 'errors';
  if (content === 'aNull') return name === 'list0' || name === 'list1' ? 'data' : 'errors';
  if (content === 'null') return ['list0', 'list2', 'list4'].includes(name) ? 'data' : 'errors';
  return 'errors';
}

function lists() {
  const fields = NAMES.map((name, index) => `${name}: ${LISTS[index]}`).join(' ');
  const holder = (of: keyof typeof CONTENTS) =>
    Object.fromEntries(NAMES.map((name) => [name, CONTENTS[of]]));
  const schema = makeExecutableSchema(
    `type Query { holder(of: String!): Holder failing: Holder holders: [Holder] }
     type Holder { ${fields} }`,
    {
      Query: {
        holder: (_: unknown, { of }: { of: keyof typeof CONTENTS }) => holder(of),
        failing: () => ({
          list0: new Error('as a value'),
          list2: () => Promise.reject(new Error('later')),
        }),
        holders: () => [holder('values'), null, Promise.resolve(holder('aNull'))],
      },
    },
  );
  return { schema };
}

function nulls() {
  const node = (end: () => unknown): Record<string, unknown> => ({
    scalar: end,
    strict: end,
    nest: () => node(end),
    strictNest: () => node(end),
    promiseNest: () => Promise.resolve(node(end)),
    strictPromiseNest: () => Promise.resolve(node(end)),
  });
  const none = node(() => null);
  const failing = node(() => {
    throw new Error('The end of a branch.');
  });
  const schema = makeExecutableSchema(
    `type Query { null: Node error: Node strictNull: Node! strictError: Node! values: Node }
     type Node {
       scalar: String strict: String! nest: Node strictNest: Node!
       promiseNest: Node strictPromiseNest: Node!
     }`,
    {},
  );
  const rootValue = {
    null: none,
    strictNull: none,
    error: failing,
    strictError: failing,
    values: { scalar: 's', strict: 't' },
  };
  return { schema, service: { rootValue } };
}

function argumentsOf() {
  const schema = makeExecutableSchema('type Query { echo(text: String!): String other: String }', {
    Query: { echo: (_: unknown, args: object) => JSON.stringify(args), other: () => 'other' },
  });
  return { schema };
}
