import type { MergedTypeConfig, SubschemaConfig } from '@graphql-tools/delegate';
import { forwardArgsToSelectionSet } from '@graphql-tools/stitch';
import { parseSelectionSet, type ExecutionRequest, type Executor } from '@graphql-tools/utils';
import { buildSchema, execute } from 'graphql';
import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { peopleWith } from '../support/additions/people.ts';
import { ratingOf, reviews } from '../support/additions/reviews.ts';

type Fields = Readonly<Record<string, unknown>>;

const seen = (parent: Fields) => `${String(parent['id'])} ${String(parent['name'])}`;

/** Each own field returns what its resolver got. */
const additions = (): Additions => ({
  typeDefs: `
    extend type Query { own: String! }
    extend type Person { own: String! }
    extend type Robot { own: String! }
  `,
  resolvers: {
    Query: { own: () => 'own' },
    Person: { own: { selectionSet: '{ id name }', resolve: seen } },
    Robot: { own: { selectionSet: '{ id name }', resolve: seen } },
  },
  subschemas: [reviews()],
});

test.each([
  ['the name of another field', '{ persons { items { name: email own id: name rating } } }'],
  [
    'a condition that is false',
    '{ persons { items { name @skip(if: true) id @include(if: false) own rating } } }',
  ],
])('a resolver and a second service get the true values beside %s', async (_, query) => {
  const { ask } = peopleWith(additions());
  const { data, errors } = await ask(query);
  expect(errors).toEqual([]);
  const { items } = (data as { persons: { items: Fields[] } }).persons;
  expect(items.map(({ own, rating }) => [own, rating])).toEqual(
    ['1', '2', '3'].map((id) => [`${id} Name ${id}`, ratingOf(id)]),
  );
});

/** How a service of badges finds people. */
const BADGES = {
  fieldName: 'badged',
  argsFromKeys: (keys: readonly unknown[]) => ({ keys }),
};

test.each<[string, MergedTypeConfig, string]>([
  [
    'requirements of single fields',
    {
      selectionSet: '{ id }',
      fields: { badge: { selectionSet: '{ name }', computed: true } },
      key: ({ id, name }: Fields) => ({ id, name }),
      ...BADGES,
    },
    '1 Name 1',
  ],
  [
    'entry points',
    { entryPoints: [{ selectionSet: '{ id }', key: ({ id }: Fields) => ({ id }), ...BADGES }] },
    '1 without name',
  ],
])('a second service with %s gets the true values', async (_, merge, badge) => {
  const schema = buildSchema(`
    type Query { badged(keys: [Key!]!): [Person]! }
    input Key { id: ID! name: String }
    type Person { id: ID! badge: String }
  `);
  const rootValue = {
    badged: ({ keys }: { keys: Fields[] }) =>
      keys.map(({ id, name = 'without name' }) => ({ id, badge: `${String(id)} ${String(name)}` })),
  };
  const badges: SubschemaConfig = {
    schema,
    executor: (({ document, variables }: ExecutionRequest) =>
      execute({ schema, document, rootValue, variableValues: variables })) as Executor,
    merge: { Person: merge },
  };
  const { ask } = peopleWith({ subschemas: [badges] });
  const { data, errors } = await ask('{ persons { items { name: email id: name badge } } }');
  expect(errors).toEqual([]);
  expect(data).toMatchObject({
    persons: { items: [{ name: '1@example.com', id: 'Name 1', badge }, {}, {}] },
  });
});

test('a resolver that requires a field with arguments or an alias gets it by its name', async () => {
  const { ask, requests } = peopleWith({
    typeDefs:
      'extend type Person { all: String kind: String nested: String above(first: Int): Int }',
    resolvers: {
      Person: {
        kind: { selectionSet: '{ type: __typename }', resolve: ({ type }: Fields) => type },
        nested: {
          selectionSet: '{ boss { id } ... on Person { mail: email } }',
          resolve: ({ boss, mail }: Fields) => `${(boss as { id: string }).id} ${String(mail)}`,
        },
        all: { selectionSet: '{ skills }', resolve: ({ skills }: Fields) => String(skills) },
        above: {
          selectionSet: () => parseSelectionSet('{ id }'),
          resolve: ({ id }: Fields) => Number(id),
        },
      },
    },
  });
  const { data, errors } = await ask(
    '{ persons(first: 1) { items { boss { name } kind nested all above } } }',
  );
  expect(errors).toEqual([]);
  expect(data).toEqual({
    persons: {
      items: [
        {
          boss: { name: 'Name 1b' },
          kind: 'Person',
          nested: '1b 1@example.com',
          all: 'a',
          above: 1,
        },
      ],
    },
  });
  expect(requests).toHaveLength(1);
});

test('a resolver gets arguments passed on by forwardArgsToSelectionSet', async () => {
  const { ask, requests } = peopleWith({
    typeDefs:
      'extend type Query { total(first: Int): Int } extend type Person { skilled(x: Int): String }',
    resolvers: {
      Query: { total: () => 1 },
      Person: {
        skilled: {
          selectionSet: forwardArgsToSelectionSet('{ name }', { name: [] }),
          resolve: ({ name }: Fields) => name,
        } as never,
      },
    },
  });
  expect(await ask('{ total person(id: "1") { skilled(x: 1) } }')).toMatchObject({
    data: { total: 1, person: { skilled: 'Name 1' } },
    errors: [],
  });
  expect(requests[0]).not.toContain('x: 1');
});
