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

/** Makes the service answer every request with this body. */
function serving(body: string): void {
  answer = body;
}

test.each([
  ['in one line', BODY],
  ['pretty-printed', JSON.stringify({ data: DATA }, undefined, 2)],
  ['with white space around it', `\r\n\t ${BODY} \n`],
  ['with other escapes', escaped(BODY)],
  ['with extensions before the data', `{"extensions":{"a":1},${BODY.slice(1)}`],
  ['with null for errors', `${BODY.slice(0, -1)},"errors":null}`],
])('an answer %s is passed on', async (_, body) => {
  serving(body);
  const { through } = await world.both({ query: QUERY });
  expect(through.data).toBe(canonical(JSON.stringify(DATA)));
  expect(through.errors ?? []).toEqual([]);
});

test('an answer with another order of keys is passed on completely', async () => {
  const other = reversed(DATA);
  serving(JSON.stringify({ data: reversed(DATA) }));
  const { through } = await world.both({ query: QUERY });
  // In the order of the service, or in that of the operation, as the specification requires.
  const { json, ...fields } = DATA;
  const inOrder = { ...fields, json: reversed(json) };
  expect([JSON.stringify(other), JSON.stringify(inOrder)].map(canonical)).toContain(through.data);
});

test('errors before the data of an answer are passed on', async () => {
  const body =
    '{"errors":[{"path":["a"],"message":"m","extensions":{"x":1}}],"data":{"a":null,"b":1}}';
  serving(body);
  await world.expectSame({ query: '{ a b }' });
});

test.each([
  ['a field', '{"data":{"a":"first","b":1,"a":"last"}}', '{ a b }', { a: 'last', b: 1 }],
  [
    'a field of a list',
    '{"data":{"people":[{"name":"1","name":"2"}]}}',
    '{ people { name } }',
    { people: [{ name: '2' }] },
  ],
  ['the data', '{"data":{"b":1},"data":{"b":2}}', '{ b }', { b: 2 }],
])(
  '%s that comes twice counts as JSON readers count it: the last',
  async (_, body, query, expected) => {
    serving(body);
    const { through } = await world.both({ query });
    expect(JSON.parse(through.data!)).toEqual(expected);
    expect(through.errors).toBeUndefined();
  },
);

/** Escapes what need not be escaped in the text. */
function escaped(text: string): string {
  return text.replaceAll(/[a-zA-Zé/](?=[^"]*"(?:[^"]*"[^"]*")*[^"]*$)/gu, (letter) =>
    letter === '/'
      ? '\\/'
      : `\\u${letter.codePointAt(0)!.toString(16).padStart(4, '0').toUpperCase()}`,
  );
}

function reversed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(reversed);
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
}
