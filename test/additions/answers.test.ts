import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { peopleWith, person } from '../support/additions/people.ts';
import { ratingOf, reviews } from '../support/additions/reviews.ts';

type Fields = Readonly<Record<string, unknown>>;

const additions: Additions = {
  typeDefs: `
    extend type Person { shout: String! hired: Boolean! greeting: String! }
    extend type Robot { shout: String! }
    extend interface Named { length: Int! }
    extend type Person { length: Int! }
    extend type Robot { length: Int! }
    type Badge { label: String! of: Person all: [Person!] }
    extend type Query { topPerson: Person top: [Person] badges: [Badge!]! anyone: Named own: String! }
    extend type Mutation { praise(id: ID!): Person }
  `,
  resolvers: {
    Person: {
      shout: { selectionSet: '{ name }', resolve: ({ name }: Fields) => `${String(name)}!` },
      hired: { selectionSet: '{ stage }', resolve: ({ stage }: Fields) => stage === 'HIRED' },
      greeting: () => 'Hello',
    },
    Robot: {
      shout: { selectionSet: '{ id }', resolve: ({ id }: Fields) => `Robot ${String(id)}!` },
    },
    Named: {
      length: { selectionSet: '{ name }', resolve: ({ name }: Fields) => String(name).length },
    },
    Query: {
      topPerson: () => ({ id: '2' }),
      top: () => [{ id: '2' }, null, Promise.resolve({ id: '1' })],
      badges: () => [
        { label: 'First', of: { id: '1' }, all: () => [{ id: '2' }] },
        { label: 'None', of: null },
      ],
      anyone: () => ({ __typename: 'Person', id: '3' }),
      own: () => 'own',
    },
    Mutation: { praise: (_: unknown, { id }: Fields) => ({ id }) },
  },
};

test.each([
  [
    'a page',
    '{ persons(first: 1) { items { shout } } }',
    { persons: { items: [{ shout: 'Name 1!' }] } },
  ],
  [
    'a drain',
    '{ allPersons { shout } }',
    { allPersons: ['1', '2', '3'].map((id) => ({ shout: `Name ${id}!` })) },
  ],
  [
    'a union whose types require fields of one name and different types',
    '{ found { ... on Person { shout } ... on Robot { shout } } }',
    { found: [{ shout: 'Name 1!' }, { shout: 'Robot 7!' }] },
  ],
  [
    'an interface',
    '{ named { name ... on Person { shout } } }',
    { named: [{ name: 'Robot' }, { name: 'Name 2', shout: 'Name 2!' }] },
  ],
  [
    'an interface whose resolver answers for all of its types',
    '{ named { name: __typename length } found { ... on Named { length } } }',
    {
      named: [
        { name: 'Robot', length: 5 },
        { name: 'Person', length: 6 },
      ],
      found: [{ length: 6 }, { length: 5 }],
    },
  ],
  [
    'a fragment in a fragment',
    '{ named { ...N } } fragment N on Named { ... on Robot { ...R } } fragment R on Robot { shout }',
    { named: [{ shout: 'Robot 7!' }, {}] },
  ],
  [
    'a nested object',
    '{ persons(first: 1) { items { boss { boss { name: shout } } } } }',
    { persons: { items: [{ boss: { boss: { name: 'Name 1bb!' } } }] } },
  ],
  [
    'a record by its id',
    '{ person(id: "3") { hired shout } }',
    { person: { hired: true, shout: 'Name 3!' } },
  ],
  [
    'an entity',
    '{ _entities(representations: [{ __typename: "Person", id: "2" }]) { ... on Person { shout } } }',
    { _entities: [{ shout: 'Name 2!' }] },
  ],
  [
    'an object without any other field, where it requires nothing',
    '{ persons(first: 1) { items { greeting } } }',
    { persons: { items: [{ greeting: 'Hello' }] } },
  ],
  [
    'a record of which a resolver returns the id',
    '{ topPerson { __typename name: __typename id stage shout } top { shout } }',
    {
      topPerson: {
        __typename: 'Person',
        name: 'Person',
        id: '2',
        stage: 'HIRED',
        shout: 'Name 2!',
      },
      top: [{ shout: 'Name 2!' }, null, { shout: 'Name 1!' }],
    },
  ],
  [
    'such a record of an interface',
    '{ anyone { name ... on Person { shout } } }',
    { anyone: { name: 'Name 3', shout: 'Name 3!' } },
  ],
  [
    'a record below a type of a company',
    '{ badges { label of { name shout } all { shout } } }',
    {
      badges: [
        { label: 'First', of: { name: 'Name 1', shout: 'Name 1!' }, all: [{ shout: 'Name 2!' }] },
        { label: 'None', of: null, all: null },
      ],
    },
  ],
  [
    'a mutation of the service, and one of a company',
    'mutation { promote(id: "1") { id shout } praise(id: "2") { name shout } }',
    { promote: { id: '1', shout: 'Name 1!' }, praise: { name: 'Name 2', shout: 'Name 2!' } },
  ],
  [
    'an operation with a fragment of nothing but the type name',
    '{ own persons { ... on PersonPage { __typename } } __typename }',
    { own: 'own', persons: { __typename: 'PersonPage' }, __typename: 'Query' },
  ],
])('added fields are answered in %s', async (_, query, expected) => {
  const { ask } = peopleWith(additions);
  expect(await ask(query)).toMatchObject({ data: expected, errors: [] });
});

test('a resolver that returns only what is selected costs no request', async () => {
  const { ask, requests } = peopleWith(additions);
  expect((await ask('{ topPerson { id } }')).data).toEqual({ topPerson: { id: '2' } });
  expect(requests).toEqual([]);
});

test('records of which resolvers return ids are requested together', async () => {
  const { ask, requests } = peopleWith({
    typeDefs: 'extend type Query { best: [Person!]! }',
    resolvers: { Query: { best: () => ['1', '2', '3'].map((id) => ({ id })) } },
  });
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

test('records have the fields of a second service, which is asked once for all of them', async () => {
  const service = reviews();
  const { ask, requests } = peopleWith({ subschemas: [service] });
  const { data, errors } = await ask('{ persons { items { id rating } } allPersons { rating } }');
  expect(errors).toEqual([]);
  const rated = ['1', '2', '3'].map((id) => ({ id, rating: ratingOf(id) }));
  expect(data).toEqual({
    persons: { items: rated },
    allPersons: rated.map(({ rating }) => ({ rating })),
  });
  expect(service.requests).toHaveLength(1);
  expect(requests).toHaveLength(2);
});

test('records of a second service have the fields of the service', async () => {
  const service = reviews({ people: ['1', '2'] });
  const { ask, requests } = peopleWith({ ...additions, subschemas: [service] });
  const { data, errors } = await ask('{ topReviews { body person { id: name shout rating } } }');
  expect(errors).toEqual([]);
  expect(data).toEqual({
    topReviews: ['1', '2'].map((id) => ({
      body: `about ${id}`,
      person: { id: `Name ${id}`, shout: `Name ${id}!`, rating: ratingOf(id) },
    })),
  });
  expect(requests).toHaveLength(1);
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
