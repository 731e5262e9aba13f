import { buildSchema } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeExecutableSchema } from '../support/imitations/honest.ts';
import { canonical } from './exact-json.ts';
import { startSideBySide, type SideBySide } from './side-by-side.ts';

/** JavaScript would write each of them differently, or as another number. */
const SPELLINGS = [
  '12345678901234567890',
  '-9007199254740993',
  '1e400',
  '-1e400',
  '1.0',
  '100E-2',
  '1e5',
  '-0',
  '0.1000000000000000055511151231257827021181583404541015625',
  '3.14159265358979323846264338327950288419716939937510',
  '123456789012345678901234567890.123456789',
  '12345678.123456789',
  '90071992.547409931',
  '0.00000015',
];

let answer: string;
let canned: SideBySide;
let echoing: SideBySide;
beforeAll(async () => {
  canned = await startSideBySide({
    schema: buildSchema(
      `scalar Any
       type Query { any: Any float: Float id: ID list: [One] }
       type One { any: Any many: [Any] }`,
    ),
    service: () => answer,
  });
  echoing = await startSideBySide({ schema: echoSchema() });
});
afterAll(async () => {
  await canned[Symbol.asyncDispose]();
  await echoing[Symbol.asyncDispose]();
});

describe('a number of an answer is passed on digit for digit', () => {
  test.each(SPELLINGS)('%s', async (number) => {
    await answersSame(`{"any":${number}}`);
    await answersSame(`{"any":{"deep":[${number},{"b":${number},"a":1}],"n":null}}`);
    await answersSame(`{"list":[{"any":${number}},{"any":2}]}`, '{ list { any } }');
    await answersSame(`{"list":[{"many":[${number},1,${number}]}]}`, '{ list { many } }');
  });

  test.each(SPELLINGS)('%s, a Float', (number) => answersSame(`{"float":${number}}`, '{ float }'));

  test('in the extensions of errors and of the answer', async () => {
    const extensions = '{"at":12345678901234567890,"cost":1.50}';
    const error = `{"message":"m","path":["any"],"extensions":${extensions}}`;
    answer = `{"data":{"any":1},"errors":[${error}],"extensions":${extensions}}`;
    await canned.expectSame({ query: '{ any }' });
  });

  test.each(['12345678901234567890', '1.0'])(
    'an ID that is the number %s keeps its digits',
    async (number) => {
      answer = `{"data":{"id":${number}}}`;
      const { data } = await canned.through({ query: '{ id }' });
      // The type promises text, and the service sent a number: both forms are accepted.
      expect([`{"id":${number}}`, `{"id":"${number}"}`]).toContain(data);
    },
  );
});

describe('a literal number in an operation reaches the service digit for digit', () => {
  test.each(SPELLINGS.filter((text) => text !== '-0'))('%s', async (number) => {
    const { through } = await echoing.expectSame({ query: `{ echo(value: ${number}) }` });
    expect(through.data).toBe(`{"echo":${number}}`);
    await echoing.expectSame({
      query: `{ echoIn(in: { any: { b: ${number}, a: [${number}] } }) }`,
    });
    await echoing.expectSame({ query: `query ($v: Any = ${number}) { echo(value: $v) }` });
  });
});

test('the keys of a custom scalar keep their order, numeric keys included', async () => {
  await answersSame('{"any":{"2":1,"1":2,"b":{"10":0,"9":0},"a":3}}');
  await answersSame('{"list":[{"any":{"z":1,"10":2,"2":3}}]}', '{ list { any } }');
});

async function answersSame(data: string, query = '{ any }'): Promise<void> {
  answer = `{"data":${data}}`;
  const { through } = await canned.expectSame({ query });
  expect(through.data).toBe(canonical(data));
}

const echo = (_: unknown, args: Record<string, unknown>) => Object.values(args)[0];

function echoSchema() {
  return makeExecutableSchema(
    `scalar Any
     input In { any: Any list: [Any!] }
     type Query { echo(value: Any): Any echoes(values: [Any!]): Any echoIn(in: In): Any float(value: Float): Float }`,
    { Query: { echo, echoes: echo, echoIn: echo, float: echo } },
  );
}
