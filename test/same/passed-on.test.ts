import { buildSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { canonical, startSideBySide, type SideBySide } from './side-by-side.ts';

let answer: string;
let world: SideBySide;
beforeAll(async () => {
  const schema = buildSchema(`
    scalar Json
    type Query {
      a(x: String): String b: String c: String! list: [Item] items: [Item!]! json: Json float: Float
    }
    type Mutation { a: String b: String }
    type Item { a: String b: String! json: Json many: [Json] }`);
  world = await startSideBySide({ schema, service: () => answer });
});
afterAll(() => world[Symbol.asyncDispose]());

type Row = readonly [query: string, body: string];

const error = (members: string) => `{"message":"m",${members}}`;

/** Answers of the service, which callers get as they are. */
const PASSED_ON: Readonly<Record<string, Row>> = {
  'extensions of an answer': [
    '{ a }',
    '{"data":{"a":"x"},"extensions":{"cost":{"b":1,"a":2.50},"list":[1,null]}}',
  ],
  'further keys of an error': [
    '{ a }',
    `{"data":{"a":null},"errors":[${error('"type":"NOT_FOUND","path":["a"],"severity":{"level":1.5},"code":7,"extensions":{"code":"X"}')}]}`,
  ],
  'extensions of an error, in their order': [
    '{ a }',
    `{"data":{"a":null},"errors":[${error('"path":["a"],"extensions":{"z":1,"y":"two","a":[{"then":1}],"code":"OWN"}')}]}`,
  ],
  'extensions that would mean something to the gateway': [
    '{ a }',
    `{"data":{"a":null},"errors":[${error('"path":["a"],"extensions":{"unexpected":true,"originalError":{"message":"o"}}')}]}`,
  ],
  'an error whose path leads nowhere': [
    '{ a }',
    `{"data":{"a":"x"},"errors":[${error('"path":["z",1]')}]}`,
  ],
  'two errors of one field': [
    '{ a }',
    '{"data":{"a":null},"errors":[{"message":"1","path":["a"]},{"message":"2","path":["a"]}]}',
  ],
  'one error of the whole request': [
    'query Named { x: a ...F } fragment F on Query { y: b z: c }',
    '{"errors":[{"message":"You may not ask this.","extensions":{"code":"ACCESS_DENIED"}}]}',
  ],
  'one error of a whole mutation, and null for the data': [
    'mutation { a b }',
    '{"data":null,"errors":[{"message":"Closed"}],"extensions":{"cost":1}}',
  ],
  'errors at several places, in their order': [
    '{ a list { a n: b } b }',
    `{"data":{"a":null,"list":[{"a":"1","n":"n"},null,{"a":null,"n":"n"},null],"b":"b"},
      "errors":[{"message":"third","path":["list",2,"a"],"extensions":{"k":1}},{"message":"first","path":["a"]},
        {"message":"b","path":["list",1,"n"]},{"message":"item","path":["list",3]},{"message":"of nothing"}]}`,
  ],
  'errors of two required fields': [
    '{ c items { a } a }',
    '{"data":null,"errors":[{"message":"2","path":["items"]},{"message":"1","path":["c"]}]}',
  ],
  'errors before the data': [
    '{ a b }',
    '{"errors":[{"path":["a"],"message":"m","extensions":{"x":1}}],"data":{"a":null,"b":"1"}}',
  ],
  'JSON scalars with odd keys, in their order': [
    '{ json list { json many } }',
    `{"data":{"json":{"b":{"then":[{}],"length":1},"__proto__":1,"":{"0":[]},"é\\"\\\\":null,"a":"\\u0000"},"list":[{"json":[{"then":{"x":[]}}],"many":[{"b":1,"a":[null]}]}]}}`,
  ],
};

test.each(Object.entries(PASSED_ON))('a caller gets %s as the service sent it', async (_, row) => {
  const [query, body] = row;
  answer = canonical(body);
  const { through, sent } = await world.expectSame({ query });
  expect(sent).toHaveLength(1);
  expect(through.errors?.length ?? 0).toBe(
    (JSON.parse(body) as { errors?: [] }).errors?.length ?? 0,
  );
});

test.each([{ x: 'y' }, { x: null }, {}])(
  'the service gets variables as the caller sent them: %j',
  async (variables) => {
    answer = '{"data":{"a":"x"}}';
    const query = 'query ($x: String = "by default") { a(x: $x) }';
    const { sent } = await world.expectSame({ query, variables });
    expect(sent.map((body) => JSON.parse(body) as object)).toMatchObject([{ variables }]);
  },
);

const LONG = ['12345678901234567890', '-9007199254740993', '9'.repeat(400)];

test.each([...LONG, '9007199254740993', '0.1', '1.5e-7', '1e21', '4294967296'])(
  'the number %s is the same wherever it is in an answer',
  async (number) => {
    const extensions = `{"at":${number}}`;
    const data = `{"json":{"deep":[${number},{"b":${number},"a":1}]},"float":${number},"list":[{"many":[${number},1,${number}]}]}`;
    answer = `{"data":${data},"errors":[{"message":"m","extensions":${extensions}}],"extensions":${extensions}}`;
    const through = await world.through({ query: '{ json float list { many } }' });
    const digits = /^-?\d+$/.test(number) ? number : String(Number(number));
    for (const part of [through.data!, through.errors!.join(), through.extensions!]) {
      const numbers = part.match(/-?\d[\d.e+-]{2,}/g) ?? [];
      expect(new Set(numbers.map((each) => (each === number ? digits : each)))).toEqual(
        new Set([digits]),
      );
    }
  },
);
