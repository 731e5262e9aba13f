/** Mutations of the service, beside what random operations show (test/judge). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forwardedService } from '../service/clashing.ts';
import { startSideBySide, type SideBySide } from './side-by-side.ts';

const { schema, added } = forwardedService();
let world: SideBySide;
beforeAll(async () => {
  world = await startSideBySide({ schema });
});
afterAll(() => world[Symbol.asyncDispose]());

test('the result of a mutation is read in the request of the mutation', async () => {
  added.length = 0;
  const query = 'mutation { put(n: 1) { sum query { name } self { operation } } }';
  const { sent } = await world.expectSame({ query });
  expect([sent.length, added]).toEqual([1, [1, 1]]);
});

test.each<[string, ['self'] | 'off' | 'all', string, object?]>([
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
  expect(
    await narrow.through({ query, variables: variables as Record<string, unknown> }),
  ).toMatchObject({
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
