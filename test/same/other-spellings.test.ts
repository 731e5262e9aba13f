import { buildSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { canonical } from './exact-json.ts';
import { startSideBySide, type SideBySide } from './side-by-side.ts';

const schema = buildSchema(
  `scalar Json
   type Query { a: String b: Int people(first: Int): [Person] any: Thing json: Json }
   interface Thing { id: ID! }
   type Person implements Thing { id: ID! name: String score: Float tags: [String!] friend: Person }
   type Place implements Thing { id: ID! city: String }`,
);

const QUERY = `query People { a b people(first: 2) { id name score tags friend { id __typename } }
  any { __typename id ... on Place { city } ... on Person { name } } json }`;

const DATA = {
  a: 'é "\\/ \u2028 😀',
  b: 7,
  people: [
    {
      id: '1',
      name: 'Ada',
      score: 0.5,
      tags: ['x', ''],
      friend: { id: '2', __typename: 'Person' },
    },
    null,
    { id: '2', name: null, score: null, tags: null, friend: null },
  ],
  any: { __typename: 'Place', id: '9', city: 'Køln' },
  json: { b: [1, { a: null }], a: {} },
};

const BODY = JSON.stringify({ data: DATA });

let answer: string;
let world: SideBySide;
beforeAll(async () => {
  world = await startSideBySide({ schema, service: () => answer });
});
afterAll(() => world[Symbol.asyncDispose]());

test.each([
  ['pretty-printed', JSON.stringify({ data: DATA }, undefined, 2)],
  ['with white space around it', `\r\n\t ${BODY} \n`],
  ['with other escapes', escaped(BODY)],
  ['with extensions before the data', `{"extensions":{"a":1},${BODY.slice(1)}`],
  ['with null for errors', `${BODY.slice(0, -1)},"errors":null}`],
])('an answer %s is passed on', async (_, body) => {
  answer = body;
  const { through } = await world.both({ query: QUERY });
  expect(through.data).toBe(canonical(JSON.stringify(DATA)));
  expect(through.errors ?? []).toEqual([]);
});

test('errors before the data of an answer are passed on', async () => {
  answer = '{"errors":[{"path":["a"],"message":"m","extensions":{"x":1}}],"data":{"a":null,"b":1}}';
  await world.expectSame({ query: '{ a b }' });
});

/** Escapes what need not be escaped in the text. */
function escaped(text: string): string {
  return text.replaceAll(/[a-zA-Zé/](?=[^"]*"(?:[^"]*"[^"]*")*[^"]*$)/gu, (letter) =>
    letter === '/'
      ? '\\/'
      : `\\u${letter.codePointAt(0)!.toString(16).padStart(4, '0').toUpperCase()}`,
  );
}
