import { buildSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { everyHook } from '../support/gateway/every-hook.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { text } from '../support/imitations/scripted.ts';
import { startSideBySide, type SideBySide } from './side-by-side.ts';

let answer: string;
let world: SideBySide;
beforeAll(async () => {
  world = await startSideBySide({
    schema: buildSchema(
      `scalar Any
       type Query { any: Any float: Float id: ID list: [One] }
       type One { any: Any many: [Any] }`,
    ),
    service: () => answer,
  });
});
afterAll(() => world[Symbol.asyncDispose]());

test.each(['12345678901234567890', '-9007199254740993', '9007199254740993'])(
  'the integer %s of an answer keeps its digits',
  async (number) => {
    await expectPassedOn(`{"any":${number}}`, '{ any }');
    await expectPassedOn(`{"any":{"deep":[${number},{"b":${number},"a":1}],"n":null}}`, '{ any }');
    await expectPassedOn(`{"list":[{"any":${number}},{"any":2}]}`, '{ list { any } }');
    await expectPassedOn(`{"list":[{"many":[${number},1,${number}]}]}`, '{ list { many } }');
    await expectPassedOn(`{"float":${number}}`, '{ float }');
    await expectPassedOn(`{"id":${number}}`, '{ id }');
  },
);

test.each([
  ['no plugin', []],
  ['a plugin that sees the result', [everyHook()]],
])('the integers of records keep their digits, with %s', async (_, plugins) => {
  const snapshot = `
    type Query { rows(first: Int, after: String): Rows! }
    type Rows { items: [Row!]! pageInfo: PageInfo! }
    type Row { id: ID! size: Any many: [Any] }
    type PageInfo { hasNextPage: Boolean! endCursor: String }
    scalar Any`;
  await using gateway = await startGatewayOverFake({}, { snapshot, plugins });
  const row = '{"id":"1","size":-9007199254740993,"many":[1,9007199254740993]}';
  const page = `{"items":[${row}],"pageInfo":{"hasNextPage":false,"endCursor":null}}`;
  gateway.upstream.answer(text(`{"data":{"rows":${page}}}`));
  for (const query of [
    '{ rows { items { id size many } } }',
    '{ allRows { id size many } }',
    '{ rowsConnection { nodes { id size many } } }',
  ]) {
    const response = await gateway.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    expect(await response.text()).toContain(row);
  }
});

test.each(['12345678901234567890', '9'.repeat(400)])(
  'the integer %s beside errors, and in the extensions of errors and of the answer, keeps its digits',
  async (number) => {
    const extensions = `{"at":${number},"cost":1.5}`;
    const error = `{"message":"m","path":["any"],"extensions":${extensions}}`;
    answer = `{"data":{"any":${number}},"errors":[${error}],"extensions":${extensions}}`;
    await world.expectSame({ query: '{ any }' });
  },
);

test.each(['0.1', '1.5e-7', '1e21', '0', '4294967296'])(
  'the number %s of an answer is passed on',
  async (number) => {
    answer = `{"data":{"any":${number}}}`;
    const { through } = await world.both({ query: '{ any }' });
    expect(JSON.parse(through.data!)).toEqual({ any: Number(number) });
  },
);

async function expectPassedOn(data: string, query: string): Promise<void> {
  answer = `{"data":${data}}`;
  const { through } = await world.both({ query });
  expect(through.errors).toBeUndefined();
  expect(through.data).toBe(data);
}
