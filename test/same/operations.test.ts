/** Operations that the service itself understands, beside what random ones show (test/judge). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forwardedService } from '../service/clashing.ts';
import { startSideBySide, type SideBySide } from './side-by-side.ts';

const { schema, added } = forwardedService();
let world: SideBySide;
beforeAll(async () => {
  world = await startSideBySide({ schema });
});
afterAll(() => world[Symbol.asyncDispose]());

type Row = [promise: string, query: string, variables?: Record<string, unknown>];

const ANSWERED: readonly Row[] = [
  [
    'variables in fields of an input object',
    'query ($a: String, $c: String!, $b: [String]) { some(or: { a: $a, b: $b, c: $c, inner: { c: $c } }) }',
    { c: 'C', a: null },
  ],
  ['one value for a list', '{ some(or: { b: "bar", c: "baz", list: BLUE }) given(lists: 1) }'],
  [
    'null for a strict argument with a default',
    'query ($v: String) { given(strict: $v) name }',
    { v: null },
  ],
  [
    'introspection of root types with other names, and of the description of the schema',
    `{ __schema { description queryType { name } mutationType { name } }
       __type(name: "QueryRoot") { name kind } payload: __type(name: "Payload") { name fields { name } } }`,
  ],
  ['an operation without a name', '{ operation }'],
];

/** The messages of the service say what is wrong. */
const REFUSED: readonly Row[] = [
  [
    'several mistakes, deep inside',
    'query ($v: Some!) { some(or: $v) }',
    { v: { c: 'foo', inner: { a: 'foo', c: 7 }, list: ['GREEN'] } },
  ],
  ['null in a strict variable', 'query ($v: Int!) { asUser(id: $v) { name } }', { v: null }],
  ['null in a strict list', 'query ($v: [String!]) { given(texts: $v) }', { v: ['A', null] }],
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
  await using narrow = await startSideBySide({ schema, config: { mutations } });
  expect(await narrow.through({ query, variables })).toMatchObject({
    errors: [expect.any(String)],
  });
  expect(added).toEqual([]);
});

test('with MUTATIONS=self the mutation self is sent, however deep', async () => {
  await using narrow = await startSideBySide({ schema, config: { mutations: ['self'] } });
  await narrow.expectSame({
    query: `mutation { self { self { __typename } t: __typename } ...M }
      fragment M on Changes { b: self { c: self { __typename } } }`,
  });
});
