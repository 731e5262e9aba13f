import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { beginExecution, callWith } from '../../src/additions/execution.ts';
import { callOf, peopleWith } from '../support/additions/people.ts';
import { reviews } from '../support/additions/reviews.ts';

function* endless() {
  for (let n = 0; ; n += 1) yield n;
}

const additions: Additions = {
  typeDefs: `
    extend type Person { shout: String numbers: [[Int]] }
    extend type Query { own(big: Long): String endless: [Int] row: Row seenBy: String }
    type Row { cells: [Int] }
  `,
  resolvers: {
    Person: {
      shout: { selectionSet: '{ name }', resolve: () => 'shout' },
      numbers: () => Array.from({ length: 100 }, () => Array.from({ length: 200 }, () => 1)),
    },
    Query: {
      own: () => 'own',
      endless,
      row: () => ({ cells: Array.from({ length: 60_000 }, () => 1) }),
      seenBy: (_: unknown, __: unknown, context: { readonly user?: string }) => context.user,
    },
  },
};

const TOO_COMPLEX = expect.objectContaining({ code: 'OPERATION_TOO_COMPLEX' });
const BAD_INPUT = { extensions: { code: 'BAD_USER_INPUT' } };

test.each([
  ['records', 20_000, '{ allPersons { name shout } }'],
  [
    'records of a connection in several fields',
    9_000,
    '{ a: allPersons { shout } b: allPersons { shout } c: allPersons { shout } }',
  ],
  ['nested lists of a resolver', 3, '{ allPersons { numbers } }'],
  ['elements of a list without an end', 1, '{ endless }'],
  ['elements of a list in an object that a resolver returned', 1, '{ row { cells } }'],
  ['values of a second service', 1, '{ person(id: "1") { reviews(first: 30000) { id } } }'],
])('more than 50,000 values of %s are OPERATION_TOO_COMPLEX', async (_, count, query) => {
  const { ask } = peopleWith({ ...additions, subschemas: [reviews()] }, { count });
  expect((await ask(query)).errors).toContainEqual(TOO_COMPLEX);
});

test('fewer values are answered', async () => {
  const { ask } = peopleWith(additions, { count: 8_000 });
  const { data, errors } = await ask('{ allPersons { name shout } }');
  expect(errors).toEqual([]);
  expect(data!['allPersons']).toHaveLength(8_000);
});

test.each([
  ['introspection', '{ own __schema { types { name } } }', 'OPERATION_TOO_COMPLEX'],
  ['a long integer', '{ own(big: 12345678901234567890) }', 'BAD_USER_INPUT'],
  [
    'a directive of the service at the operation',
    'query @tag(name: "x") { own }',
    'BAD_USER_INPUT',
  ],
  ['one at a fragment', '{ own ... @tag(name: "x") { found { __typename } } }', 'BAD_USER_INPUT'],
  ['one at a spread', '{ own ...F @tag(name: "x") } fragment F on Query { own }', 'BAD_USER_INPUT'],
  [
    'one at a definition',
    '{ own ...F } fragment F on Query @tag(name: "x") { own }',
    'BAD_USER_INPUT',
  ],
  [
    'one at a variable',
    'query ($n: Int = 1 @tag(name: "x")) { own persons(first: $n) { items { id } } }',
    'BAD_USER_INPUT',
  ],
])('%s beside an added field is refused', async (_, query, code) => {
  const { ask, requests } = peopleWith(additions);
  await expect(ask(query)).rejects.toMatchObject({ extensions: { code } });
  expect(requests).toEqual([]);
});

test('a directive of the service at a field is sent', async () => {
  const { ask, requests } = peopleWith(additions);
  expect((await ask('{ own persons @tag(name: "x") { items { id shout } } }')).errors).toEqual([]);
  expect(requests.join()).toContain('@tag(name: "x")');
});

test('a condition that is null is refused', async () => {
  const { ask } = peopleWith(additions);
  const query = 'query ($if: Boolean = true) { own @include(if: $if) }';
  await expect(ask(query, { if: null })).rejects.toMatchObject(BAD_INPUT);
  expect((await ask(query, { if: false })).data).toEqual({});
});

test('@stream has no effect, and a wrong one is refused', async () => {
  const { ask } = peopleWith(additions, { count: 1 });
  const query = 'query ($n: Int) { allPersons @stream(initialCount: $n) { shout } }';
  expect((await ask(query, { n: 0 })).data).toEqual({ allPersons: [{ shout: 'shout' }] });
  await expect(ask(query, { n: -1 })).rejects.toMatchObject(BAD_INPUT);
});

test.each([
  ['of its own', (): object => ({ user: 'Ada' })],
  ['that is frozen', () => Object.freeze({ user: 'Ada' })],
  [
    'that a plugin gives to all requests',
    () => {
      const context = { user: 'Ada' };
      beginExecution(callOf(context));
      return context;
    },
  ],
])(
  'resolvers get the context of the request, %s, and may delegate with a copy',
  async (_, make) => {
    const { ask } = peopleWith(additions);
    expect((await ask('{ seenBy persons { items { id } } }', {}, make())).data).toMatchObject({
      seenBy: 'Ada',
      persons: {},
    });
    const call = callOf(make());
    const { context } = beginExecution(call);
    expect(callWith({ ...context })).toBe(call);
    expect(callWith({})).toBeUndefined();
  },
);
