import { buildSchema, type GraphQLFieldResolver } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeExecutableSchema } from '../support/imitations/honest.ts';
import { canonical } from './exact-json.ts';
import { sideBySide, startSideBySide, type SideBySide } from './side-by-side.ts';

const schema = buildSchema(
  `type Query { a: String b: String c: String! list: [Item] items: [Item!]! }
   type Mutation { a: String b: String }
   type Item { a: String b: String! }`,
);

let answer: string;
let canned: SideBySide;
beforeAll(async () => {
  canned = await startSideBySide({ schema, service: () => answer });
});
afterAll(() => canned[Symbol.asyncDispose]());

/** A service that answers every request with this body. */
function expectPassedOn(body: string, query: string) {
  answer = body;
  return canned.expectSame({ query });
}

test.each([
  [
    'the extensions of an answer',
    '{"data":{"a":"x"},"extensions":{"cost":{"b":1,"a":2.50},"list":[1,null]}}',
  ],
  [
    'the further keys of an error',
    '{"data":{"a":null},"errors":[{"type":"NOT_FOUND","message":"m","path":["a"],"severity":{"level":1.5},"code":7,"extensions":{"code":"X"}}]}',
  ],
  [
    'the keys of the extensions of an error, in their order',
    '{"data":{"a":null},"errors":[{"message":"m","path":["a"],"extensions":{"z":1,"y":"two","a":[{"then":1}],"code":"OWN"}}]}',
  ],
  [
    'extensions that would mean something to the gateway',
    '{"data":{"a":null},"errors":[{"message":"m","path":["a"],"extensions":{"http":{"status":418,"headers":{"x-a":"b"}},"unexpected":true,"originalError":{"message":"o"}}}]}',
  ],
  ['an error without a path', '{"data":{"a":"x"},"errors":[{"message":"A part of it is old."}]}'],
  [
    'an error with a path that leads nowhere',
    '{"data":{"a":"x"},"errors":[{"message":"m","path":["z",1]}]}',
  ],
  [
    'two errors of one field',
    '{"data":{"a":null},"errors":[{"message":"1","path":["a"]},{"message":"2","path":["a"]}]}',
  ],
  ['data that is null, and an error without a path', '{"data":null,"errors":[{"message":"m"}]}'],
  ['an error without data', '{"errors":[{"message":"No.","extensions":{"code":"NO"}}]}'],
  [
    'errors without data, with further keys',
    '{"errors":[{"message":"1","type":"X"},{"message":"2"}],"extensions":{"id":"r1"}}',
  ],
])('%s is passed on unchanged', async (_, body) => {
  await expectPassedOn(body, body.includes('"c"') ? '{ a c }' : '{ a }');
});

test.each([
  ['{ a b c }'],
  ['query Named { x: a ...F } fragment F on Query { y: b z: c }'],
  ['mutation { a b }'],
])(
  'an error of the whole request is reported once, and not for each root field: %s',
  async (query) => {
    for (const body of [
      '{"errors":[{"message":"You may not ask this.","extensions":{"code":"ACCESS_DENIED"}}]}',
      '{"data":null,"errors":[{"message":"Closed","extensions":{"code":"CLOSED"}}],"extensions":{"cost":1}}',
    ]) {
      const { through, sent } = await expectPassedOn(body, query);
      expect(through.errors).toHaveLength(1);
      expect(sent).toHaveLength(1);
    }
  },
);

test('errors at several places keep their paths and their order', async () => {
  const body = canonical(`{
    "data": { "a": null, "list": [{ "a": "1", "n": "n" }, null, { "a": null, "n": "n" }, null], "b": "b" },
    "errors": [
      { "message": "third", "path": ["list", 2, "a"], "extensions": { "k": 1 } },
      { "message": "first", "path": ["a"] },
      { "message": "null in the place of b", "path": ["list", 1, "n"] },
      { "message": "item", "path": ["list", 3] },
      { "message": "of nothing" }
    ] }`);
  await expectPassedOn(body, '{ a list { a n: b } b }');
});

test('two non-null root fields that fail at once are reported as the service reports them', async () => {
  const oneError = '{"data":null,"errors":[{"message":"1","path":["c"]}]}';
  const twoErrors =
    '{"data":null,"errors":[{"message":"2","path":["items"]},{"message":"1","path":["c"]}]}';
  for (const body of [oneError, twoErrors]) {
    await expectPassedOn(body, '{ c items { a } a }');
  }
});

test('the service receives only the selected operation, with its name', async () => {
  const world = await sideBySide({ schema: namesSchema() });
  for (const [query, name] of [
    ['query Hello { operation }', 'Hello'],
    ['{ operation }', 'none'],
  ] as const) {
    const { through } = await world.expectSame({ query });
    expect(through.data).toBe(`{"operation":"${name}"}`);
  }

  const query = `query Hello { operation ...F } query Other($x: Int) { b: operation(x: $x) }
    mutation Change { operation } fragment F on Query { again: operation }`;
  for (const operationName of ['Hello', 'Other', 'Change']) {
    const { sent } = await world.expectSame({ query, operationName });
    expect(sent).toEqual([
      expect.objectContaining({ query: expect.stringContaining(operationName) }),
    ]);
    for (const other of ['Hello', 'Other', 'Change']) {
      if (other !== operationName) expect(sent[0]!.query).not.toContain(other);
    }
  }
});

test('the description of the schema is served', async () => {
  const described = '"""All about people."""\nschema { query: Query }\ntype Query { a: String }';
  const world = await sideBySide({ schema: buildSchema(described), snapshot: described });
  await world.expectSame({ query: '{ __schema { description } }' });
});

const operation = (...[, , , info]: Parameters<GraphQLFieldResolver<never, unknown, never>>) =>
  info.operation.name?.value ?? 'none';

function namesSchema() {
  return makeExecutableSchema(
    'type Query { operation(x: Int): String } type Mutation { operation: String }',
    { Query: { operation }, Mutation: { operation } },
  );
}
