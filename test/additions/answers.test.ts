import type { SubschemaConfig } from '@graphql-tools/delegate';
import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { peopleWith, person } from '../support/additions/people.ts';
import { makeExecutableSchema } from '../support/imitations/honest.ts';
import { ratingOf, reviews } from '../support/additions/reviews.ts';

type Fields = Readonly<Record<string, unknown>>;

const additions: Additions = {
  typeDefs: `
    extend type Person { shout: String! }
    extend type Query { topPerson: Person best: [Person!]! }
  `,
  resolvers: {
    Person: {
      shout: { selectionSet: '{ name }', resolve: ({ name }: Fields) => `${String(name)}!` },
    },
    Query: {
      topPerson: () => ({ id: '2' }),
      best: () => ['1', '2', '3'].map((id) => ({ id })),
    },
  },
};

test('a resolver that returns only what is selected costs no request', async () => {
  const { ask, requests } = peopleWith(additions);
  expect((await ask('{ topPerson { id } }')).data).toEqual({ topPerson: { id: '2' } });
  expect(requests).toEqual([]);
});

test('records of which resolvers return ids are requested together', async () => {
  const { ask, requests } = peopleWith(additions);
  const { data } = await ask('{ best { name } }');
  expect(data).toEqual({ best: ['1', '2', '3'].map((id) => ({ name: `Name ${id}` })) });
  expect(requests).toHaveLength(1);
});

test('an operation that selects nothing added is for the plans', () => {
  const { isTouched } = peopleWith({ ...additions, subschemas: [reviews()] });
  expect(isTouched('{ persons { items { name } } }')).toBe(false);
  expect(isTouched('query Other { persons { items { name } } }')).toBe(false);
  expect(isTouched('{ persons { items { ...P } } } fragment P on Person { rating }')).toBe(true);
  expect(isTouched('{ named { ... on Person { shout } } }')).toBe(true);
  expect(isTouched('{ topReviews { id } }')).toBe(true);
});

const computed = (merge: object): Additions => {
  const service = reviews();
  return {
    subschemas: [{ ...service, merge: { Person: { ...service.merge!['Person'], ...merge } } }],
  };
};

test.each<readonly [string, Additions]>([
  [
    'a key that is another field',
    computed({ selectionSet: '{ name }', key: ({ name }: Fields) => String(name).slice(5) }),
  ],
  ['an alias in it', computed({ selectionSet: '{ key: id }', key: ({ key }: Fields) => key })],
  [
    'arguments instead of keys',
    computed({
      argsFromKeys: undefined,
      key: undefined,
      fieldName: 'reviewedOne',
      args: ({ id }: Fields) => ({ id }),
    }),
  ],
])('merges may have %s', async (_, added) => {
  const { ask } = peopleWith(added);
  const { data, errors } = await ask(
    '{ persons(first: 1) { items { id: email name: id rating } } }',
  );
  expect(errors).toEqual([]);
  const [items] = [(data as { persons: { items: Fields[] } }).persons.items];
  expect(items).toEqual([{ id: person('1')['email'], name: '1', rating: ratingOf('1') }]);
});

test('a record of which a resolver returns the key of an interface has what the interface is merged with', async () => {
  const sdl = `
    interface Named { name: String! }
    type Person implements Named { name: String! floor: Int }
    type Query { atDesk(names: [String!]!): [Person]! }
  `;
  const desks: SubschemaConfig = {
    schema: makeExecutableSchema(sdl, {
      Query: {
        atDesk: (_: unknown, { names }: { names: string[] }) =>
          names.map((name) => ({ name, floor: 3 })),
      },
    }),
    merge: {
      Named: {
        selectionSet: '{ name }',
        fieldName: 'atDesk',
        key: ({ name }: Fields) => name,
        argsFromKeys: (names) => ({ names }),
      },
    },
  };
  const { ask } = peopleWith({
    typeDefs: 'extend type Query { visitor: Person }',
    resolvers: { Query: { visitor: () => ({ name: 'Ada' }) } },
    subschemas: [desks],
  });
  const { data, errors } = await ask('{ visitor { floor } }');
  expect(errors).toEqual([]);
  expect(data).toEqual({ visitor: { floor: 3 } });
});
