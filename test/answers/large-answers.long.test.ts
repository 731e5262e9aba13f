/** Answers with plain lists of thousands of records. */
import { expect, test } from 'vitest';
import { buildSchema } from 'graphql';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { json, text } from '../support/imitations/scripted.ts';

const SDL = `
  scalar JSON
  interface Thing { id: ID! name: String! }
  type Person implements Thing { id: ID! name: String! nick: String tags: [String] extra: JSON at: Place }
  type Robot implements Thing { id: ID! name: String! model: Int }
  type Place { x: Float! }
  type Query { things: [Thing]! one: Int }
`;
const THINGS = `{ things {
  __typename id name ... on Person { alias: nick tags extra at { x } } ... on Robot { model }
} }`;
const COUNT = 12_000;

interface Thing {
  readonly sent: Readonly<Record<string, unknown>>;
  readonly served: unknown;
}

const things = Array.from({ length: COUNT }, (_, id): Thing => {
  const name = `Thing ${id} "ä" \\ 😀`;
  if (id % 7 === 3) return { sent: null!, served: null };
  if (id % 5 === 1) {
    const rest = { __typename: 'Robot', id: String(id), name, model: id };
    return { sent: { _rsType: 'Robot', ...rest, id }, served: rest };
  }
  const rest = {
    __typename: 'Person',
    id: String(id),
    name,
    alias: id % 3 === 0 ? null : 'x'.repeat(id % 50),
    tags: Array.from({ length: id % 4 }, (__, tag) => `tag ${tag}`),
    extra: id % 11 === 0 ? { deep: [{ id }, 1.5, true] } : id,
    at: id % 2 === 0 ? { x: id / 4 } : null,
  };
  return { sent: { _rsType: 'Person', ...rest, id }, served: rest };
});
const served = things.map((thing) => thing.served);
const sent = things.map((thing) => thing.sent);
const reversed = sent.map(
  (thing) => thing && Object.fromEntries(Object.entries(thing).toReversed()),
);
const ERROR = { message: 'No nick.', path: ['things', 5, 'alias'] };
/** Only the general reading takes it: it is no string. */
const broken = sent.map((thing, at) => (at === COUNT - 2 ? { ...thing, alias: 5 } : thing));
const brokenServed = (served as Record<string, unknown>[]).map((thing, at) =>
  at === COUNT - 2 ? { ...thing, alias: null } : thing,
);

test.each([
  ['as scanners take it', JSON.stringify({ data: { things: sent } }), served, []],
  ['indented', JSON.stringify({ data: { things: sent } }, null, 2), served, []],
  ['with its keys in another order', JSON.stringify({ data: { things: reversed } }), served, []],
  ['with an error', JSON.stringify({ data: { things: sent }, errors: [ERROR] }), served, [ERROR]],
  [
    'with a value that its type does not allow',
    JSON.stringify({ data: { things: broken } }),
    brokenServed,
    [{ path: ['things', COUNT - 2, 'alias'], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }],
  ],
])('a large answer is passed on whole: %s', async (_, body, expected, errors) => {
  await using gateway = await startGatewayOverFake({ schema: buildSchema(SDL) }, { snapshot: SDL });
  gateway.upstream.answer(text(body));
  const answer = await gateway.ask<{ things: unknown[] }>(THINGS);
  // Compared as text, because comparing this many objects takes seconds.
  expect(JSON.stringify(answer.data.things) === JSON.stringify(expected)).toBe(true);
  expect(answer.errors ?? []).toMatchObject(errors);
});

test('an answer with thousands of broken values reports the first of them, and that there are more', async () => {
  await using gateway = await startGatewayOverFake({ schema: buildSchema(SDL) }, { snapshot: SDL });
  const bad = Array.from({ length: 20_000 }, (_, id) => ({ _rsType: 'Robot', id, name: id }));
  gateway.upstream.answer(json({ data: { things: bad } }));
  const { data, errors = [] } = await gateway.ask<{ things: unknown[] }>('{ things { id name } }');
  expect(data.things.every((thing) => thing === null)).toBe(true);
  expect(data.things).toHaveLength(20_000);
  expect(errors).toHaveLength(3_001);
  expect(errors[2_999]).toMatchObject({ path: ['things', 2_999, 'name'] });
  expect(errors[3_000]?.message).toContain('returned more values');
});
