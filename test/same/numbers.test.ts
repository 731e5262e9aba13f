import fc from 'fast-check';
import { buildSchema } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  makeExecutableSchema,
  pageOf,
  PERSONS,
  type PageArgs,
} from '../support/imitations/honest.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { canonical, Verbatim } from './exact-json.ts';
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

describe('a number of a variable reaches the service digit for digit', () => {
  test.each(SPELLINGS)('%s', async (number) => {
    const value = new Verbatim(number);
    const { through } = await echoing.expectSame({
      query: 'query ($value: Any) { echo(value: $value) }',
      variables: { value },
    });
    expect(through.data).toBe(`{"echo":${number}}`);
    await echoing.expectSame({
      query: 'query ($value: [Any!], $in: In) { echoes(values: $value) echoIn(in: $in) }',
      variables: { value: [value, 1, value], in: { any: { b: [value], a: value }, list: [value] } },
    });
    await echoing.expectSame({
      query: 'query ($value: Any) { echoIn(in: { any: [$value, 1], list: [1, $value] }) }',
      variables: { value },
    });
  });

  test.each(SPELLINGS.filter((text) => !text.includes('e400')))('%s, a Float', async (number) => {
    const { sentText } = await echoing.both({
      query: 'query ($float: Float) { float(value: $float) }',
      variables: { float: new Verbatim(number) },
    });
    expect(sentText.map(canonical)).toEqual([expect.stringMatching(after(number))]);
  });
});

test('any number of a variable reaches the service digit for digit', async () => {
  const number = fc.stringMatching(/^-?(0|[1-9]\d{0,19})(\.\d{1,19})?([eE][+-]?\d{1,2})?$/);
  await fc.assert(
    fc.asyncProperty(number, async (text) => {
      const { data } = await echoing.through({
        query: 'query ($value: Any) { echo(value: $value) }',
        variables: { value: new Verbatim(text) },
      });
      expect(data).toBe(`{"echo":${text}}`);
    }),
    { numRuns: randomRuns(300) },
  );
});

describe('a number of a variable is found in the body of its request', () => {
  const query =
    '"query":"query ($value: Any, $other: Any) { echo(value: $value) other: echo(value: $other) }"';
  test.each([
    [
      'behind other variables with brackets and quotes',
      '"variables":{"x":["]}",{"\\"":"\\\\"}],"value":1.50}',
    ],
    [
      'behind another one of 1,000 levels',
      `"variables":{"x":${'['.repeat(1_000)}${']'.repeat(1_000)},"value":1.50}`,
    ],
    ['behind an earlier value of its name', '"variables":{"value":"a","value" : 1.50 }'],
    ['behind earlier variables', '"variables":{"value":2},"variables":{"value":1.50}'],
    ['under a name with escapes', '"\\u0076ariables":{"v\\u0061lue":1.50}'],
  ])('%s', async (_, variables) => {
    const { gateway } = echoing;
    await gateway.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: ` { ${query} , ${variables} } `,
    });
    expect(gateway.upstream.received.at(-1)!.body).toContain('"variables":{"value":1.50}');
  });

  test.each(['null', '{}', '{"other":null}'])('where the variables are %s', async (variables) => {
    const { gateway } = echoing;
    const response = await gateway.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{${query},"extensions":{"cost":1.50},"variables":${variables}}`,
    });
    expect(await response.json()).toEqual({ data: { echo: null, other: null } });
  });
});

describe('filters that JavaScript cannot tell apart are of two lists', () => {
  test.each([
    ['1e400', '1e500'],
    ['1e-400', '0'],
    ['12345678.123456789', '12345678.1234567891'],
    ['0.1', '0.1000000000000000055511151231257827021181583404541015625'],
  ])('%s and %s', async (left, right) => {
    await using persons = await startSideBySide({ schema: filteredSchema() });
    const ask = async (min: string, position: string | null) => {
      const { data, errors } = await persons.through({
        query:
          'query ($min: Any, $after: String) { personsConnection(first: 1, min: $min, after: $after) { edges { cursor } } }',
        variables: { min: new Verbatim(min), after: position },
      });
      return { cursor: /"cursor":"([^"]+)"/.exec(data ?? '')?.[1], errors };
    };
    const { cursor } = await ask(left, null);
    expect((await ask(left, cursor!)).errors).toBeUndefined();
    expect((await ask(right, cursor!)).errors?.join()).toContain('CURSOR_INVALID');
  });
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

test.each(['{"b":1,"1":2}', '{"b":1,"\\u0031":2}', '{"b":{"a":1,"1\\u00302":2}}'])(
  'the keys of a variable keep their order, numeric keys included: %s',
  async (text) => {
    const { sentText } = await echoing.both({
      query: 'query ($value: Any) { echo(value: $value) }',
      variables: { value: new Verbatim(text) },
    });
    expect(sentText.map(canonical)).toEqual([
      expect.stringContaining(`"variables":{"value":${canonical(text)}}`),
    ]);
  },
);

function after(number: string): RegExp {
  return new RegExp(`:${number.replaceAll(/[.+]/g, '\\$&')}[,}]`);
}

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

function filteredSchema() {
  const persons = Array.from({ length: 3 }, (_, at) => ({ id: String(at) }));
  const sdl = PERSONS.replace('persons(', 'persons(min: Any, ');
  return makeExecutableSchema(`scalar Any type Person { id: ID! } ${sdl}`, {
    Query: { persons: (_: unknown, args: PageArgs) => pageOf(persons, args) },
  });
}
