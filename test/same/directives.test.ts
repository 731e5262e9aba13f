import { print, visit, type GraphQLFieldResolver } from 'graphql';
import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../support/imitations/executable-schema.ts';
import { sideBySide } from './side-by-side.ts';

test.each([
  ['an operation', 'query @inContext(country: "FR") { seen }', ['@inContext(country: "FR")']],
  [
    'a named operation, with a variable',
    'query Shop($in: String = "DE") @inContext(country: $in) { seen }',
    ['@inContext(country: $in)'],
  ],
  ['a mutation', 'mutation @inContext(country: "FR") { seen }', ['@inContext(country: "FR")']],
  [
    'a spread at the root',
    '{ ...F @tag(name: "x") } fragment F on Query { seen }',
    ['@tag(name: "x")'],
  ],
  ['an inline fragment at the root', '{ ... @tag(name: "x") { seen } }', ['@tag(name: "x")']],
  [
    'a typed inline fragment at the root',
    '{ ... on Query @tag(name: "x") { seen } }',
    ['@tag(name: "x")'],
  ],
  ['a fragment', '{ ...F } fragment F on Query @tag(name: "f") { seen }', ['@tag(name: "f")']],
  [
    'a root field',
    '{ seen @tag(name: "x") @tag(name: "y") }',
    ['@tag(name: "x")', '@tag(name: "y")'],
  ],
  [
    'a field and a spread below the root',
    '{ shop { ...S @tag(name: "s") } } fragment S on Shop { seen @tag(name: "x") }',
    ['@tag(name: "s")', '@tag(name: "x")'],
  ],
  ['a variable', 'query ($in: Int @tag(name: "v")) { seen(first: $in) }', ['@tag(name: "v")']],
])('a custom directive on %s reaches the service', async (_, query, expected) => {
  const world = await sideBySide({ schema: shopSchema() });
  const { through } = await world.expectSame({ query });
  for (const directive of expected)
    expect(through.data).toContain(JSON.stringify(directive).slice(1, -1));
});

test('the directives of an operation that was not selected do not reach the service', async () => {
  const world = await sideBySide({ schema: shopSchema() });
  const query = `query A @inContext(country: "FR") { seen }
    query B @inContext(country: "IT") { seen ...F @tag(name: "b") }
    fragment F on Query { shop { name } }`;
  for (const operationName of ['A', 'B']) await world.expectSame({ query, operationName });
});

test.each([true, false])('@skip and @include at the root are obeyed, variable %s', async (on) => {
  const world = await sideBySide({ schema: shopSchema() });
  const query = `query Some($on: Boolean!, $off: Boolean = false) {
    ...F @include(if: $on)
    ... @skip(if: $on) { b: __typename }
    ... on Query @skip(if: $off) @include(if: $on) { shop { name } }
    c: shop @skip(if: $on) { name }
    d: shop @include(if: $off) { name }
    e: __typename
  }
  fragment F on Query { a: shop { name @skip(if: $off) __typename @include(if: $on) } }`;
  await world.expectSame({ query, variables: { on } });
});

test('an operation whose fields are all skipped is answered with an empty object', async () => {
  const world = await sideBySide({ schema: shopSchema() });
  await world.expectSame({
    query: 'query ($on: Boolean!) { shop @skip(if: $on) { name } }',
    variables: { on: true },
  });
  await world.expectSame({
    query: 'query ($on: Boolean!) { shop { name @skip(if: $on) } }',
    variables: { on: true },
  });
});

/** The custom directives that reached the service in the operation and its fragments. */
const seen = (...[, , , info]: Parameters<GraphQLFieldResolver<never, unknown, never>>) => {
  const { operation, fragments } = info;
  const found = new Set<string>();
  for (const node of [operation, ...Object.values(fragments)]) {
    visit(node, {
      Directive: (directive) => {
        if (!['skip', 'include'].includes(directive.name.value)) found.add(print(directive));
      },
    });
  }
  return [...found].toSorted().join(' ');
};

function shopSchema() {
  return makeExecutableSchema(
    `directive @inContext(country: String) on QUERY | MUTATION
     directive @tag(name: String!) repeatable on
       FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT | FRAGMENT_DEFINITION | VARIABLE_DEFINITION
     type Query { seen(first: Int): String shop: Shop }
     type Mutation { seen: String }
     type Shop { seen: String name: String }`,
    {
      Query: { seen, shop: () => ({ name: 'Shop' }) },
      Mutation: { seen },
      Shop: { seen },
    },
  );
}
