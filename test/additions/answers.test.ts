import {
  buildClientSchema,
  getIntrospectionQuery,
  printSchema,
  type IntrospectionQuery,
} from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { altered, honest } from '../service/replies.ts';
import { post } from '../support/clients/post.ts';
import { makeExecutableSchema } from '../service/lists.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { byKeys, LONG, rawJson, secondService, startPeople } from './people.ts';

type Fields = Readonly<Record<string, unknown>>;

const ratings = secondService('rating');

/** Second services, by how they find people. Each has a field of its name. */
const SECOND = [
  ratings,
  secondService('byName', {
    ...byKeys('byName'),
    selectionSet: '{ name }',
    key: ({ name }: Fields) => ({ id: String(name).slice(5) }),
  }),
  secondService('byAlias', {
    ...byKeys('byAlias'),
    selectionSet: '{ key: id }',
    key: ({ key }: Fields) => ({ id: key }),
  }),
  secondService('byArguments', {
    selectionSet: '{ id }',
    fieldName: 'byArgumentsBy',
    args: ({ id }: Fields) => ({ id }),
  }),
  secondService('byEntry', { entryPoints: [byKeys('byEntry')] }),
  secondService('computed', {
    ...byKeys('computed'),
    fields: { computed: { selectionSet: '{ name }', computed: true } },
    key: ({ id, name }: Fields) => ({ id, name }),
  }),
];

/** What a company adds, and what a caller asks. */
const ANSWERED: readonly [what: string, query: string, data: unknown, requests?: number][] = [
  [
    'a record of which nothing else is selected or required',
    '{ allPersons(limit: 1) { fixed } c: personsConnection(first: 1) { edges { node { fixed } } } }',
    { allPersons: [{ fixed: 'fixed' }], c: { edges: [{ node: { fixed: 'fixed' } }] } },
  ],
  [
    'an added field of an interface',
    '{ named { length } found { ... on Named { length } } }',
    { named: [{ length: 5 }, { length: 6 }], found: [{ length: 6 }, { length: 5 }] },
  ],
  [
    'an own scalar, and an own interface',
    '{ loud labelled { label } }',
    { loud: 'loud!', labelled: { label: 'L' } },
  ],
  [
    'records of which resolvers return ids',
    '{ top { shout } anyone { name ... on Person { shout } } }',
    {
      top: [{ shout: 'Name 2!' }, null, { shout: 'Name 1!' }],
      anyone: { name: 'Name 3', shout: 'Name 3!' },
    },
  ],
  [
    'records of which a resolver returns ids, requested together',
    '{ best { name } }',
    { best: [{ name: 'Name 1' }, { name: 'Name 2' }, { name: 'Name 3' }] },
    1,
  ],
  [
    'a record of which a resolver returns all that is selected',
    '{ top { key: id __typename } }',
    { top: [{ key: '2', __typename: 'Person' }, null, { key: '1', __typename: 'Person' }] },
    0,
  ],
  [
    'records below a type of the company',
    '{ badges { caps of { name shout } all { shout } } }',
    {
      badges: [
        { caps: 'FIRST', of: { name: 'Name 1', shout: 'Name 1!' }, all: [{ shout: 'Name 2!' }] },
        { caps: 'NONE', of: null, all: null },
      ],
    },
  ],
  [
    'a mutation of the service and one of the company',
    'mutation { promote(id: "1") { id shout } praise(id: "2") { name shout } }',
    { promote: { id: '1', shout: 'Name 1!' }, praise: { name: 'Name 2', shout: 'Name 2!' } },
  ],
  [
    'fragments of nothing but the type name, with a condition',
    `{ own persons { ... on PersonPage { __typename } ...F } __typename }
     fragment F on PersonPage { ...Total ...Name }
     fragment Total on PersonPage { total }
     fragment Name on PersonPage { __typename @include(if: true) }`,
    { own: 'own', persons: { __typename: 'PersonPage', total: 3 }, __typename: 'Query' },
  ],
  [
    'fields that are skipped once and selected once',
    '{ allPersons(limit: 1) { fixed name @skip(if: true) name boss @skip(if: true) { id } boss { name } } persons { pageInfo @skip(if: true) { hasNextPage endCursor } pageInfo { hasNextPage } } }',
    {
      allPersons: [{ fixed: 'fixed', name: 'Name 1', boss: { name: 'Name 1b' } }],
      persons: { pageInfo: { hasNextPage: false } },
    },
  ],
  [
    'requirements with aliases, with fields below, in fragments, and made by a function',
    '{ allPersons(limit: 1) { mail: name type: nick boss { name } renamed } }',
    {
      allPersons: [
        {
          mail: 'Name 1',
          type: 'N1',
          boss: { name: 'Name 1b' },
          renamed: 'Person,1b,1@example.com',
        },
      ],
    },
    1,
  ],
  [
    'second services that find records in other ways',
    '{ allPersons(limit: 1) { id: email name: id byName byAlias byArguments byEntry computed } }',
    {
      allPersons: [
        {
          id: '1@example.com',
          name: '1',
          byName: 'byName of 1',
          byAlias: 'byAlias of 1',
          byArguments: 'byArguments of 1',
          byEntry: 'byEntry of 1',
          computed: 'computed of 1,Name 1',
        },
      ],
    },
    1,
  ],
  [
    'a list with @stream, and fields of a second service',
    '{ allPersons(limit: 1) @stream { rating } }',
    { allPersons: [{ rating: 'rating of 1' }] },
  ],
  [
    'records to which a second service refers',
    '{ ratingKnown { name rating } }',
    {
      ratingKnown: [
        { name: 'Name 2', rating: 'rating of 2' },
        { name: 'Name 1', rating: 'rating of 1' },
      ],
    },
    1,
  ],
  [
    'a directive of the company',
    'query ($of: String = "me") @traced { own ... @traced { shop(of: $of) } }',
    { own: 'own', shop: 'Shop of me' },
    1,
  ],
];

let world: Awaited<ReturnType<typeof startPeople>>;
beforeAll(async () => {
  world = await startPeople({ subschemas: SECOND });
});
afterAll(() => world[Symbol.asyncDispose]());

test.each(ANSWERED)('what a company adds is answered in %s', async (_, query, data, requests) => {
  const { received } = world.service;
  const before = received.length;
  expect(await world.ask(query)).toEqual({ data });
  if (requests !== undefined) expect(received.length - before).toBe(requests);
  for (const { body } of received.slice(before)) {
    expect(body).not.toContain('@traced');
  }
});

test.each([
  ['a page', 'persons { items { id rating } }', 'items', 1],
  ['a drain', 'allPersons { id rating }', undefined, undefined],
  ['a connection', 'personsConnection(first: 3) { nodes { id rating } }', 'nodes', 1],
])('a second service is asked once for the records of %s', async (_, query, key, requests) => {
  const before = [ratings.requests.length, world.service.received.length] as const;
  const { data, errors } = await world.ask<Record<string, Fields>>(`{ list: ${query} }`);
  expect(errors).toBeUndefined();
  expect(key === undefined ? data['list'] : data['list']![key]).toEqual(
    ['1', '2', '3'].map((id) => ({ id, rating: `rating of ${id}` })),
  );
  expect(ratings.requests.slice(before[0])).toEqual([[{ id: '1' }, { id: '2' }, { id: '3' }]]);
  if (requests !== undefined) expect(world.service.received.length - before[1]).toBe(requests);
});

/** What is refused in operations with added fields, before the service is asked. */
test.each([
  ['a long integer in an argument', '{ own(big: 9007199254740993) }'],
  ['a directive of the service', '{ own shop @tag(name: "x") }'],
  [
    'objects without an end',
    '{ numbers { many(n: 50000) { __typename } } }',
    'OPERATION_TOO_COMPLEX',
  ],
  [
    'objects without an end in lists',
    '{ numbers { many(n: 300) { many(n: 300) { __typename } } } }',
    'OPERATION_TOO_COMPLEX',
  ],
])('%s beside added fields is refused', async (_, query, code = 'BAD_USER_INPUT') => {
  const before = world.service.received.length;
  const { errors } = await world.ask(query);
  expect(errors).toMatchObject([{ extensions: { code } }]);
  expect(world.service.received).toHaveLength(before);
});

test('integers that JavaScript cannot hold keep their digits, and reach resolvers as their text', async () => {
  const query = '{ persons(first: 1) { items { salary extra pay } } }';
  const response = await world.fetch('/graphql', post({ query }));
  expect(await response.text()).toContain(
    `{"salary":${LONG},"extra":{"deep":[9007199254740993],"name":"x"},"pay":"${LONG}"}`,
  );
  // An id is text, even if the service writes a number.
  const withNumbers = altered(({ data }) => {
    Object.assign(data['persons']!.items[0]!, { id: rawJson(LONG), rate: rawJson(LONG) });
  });
  world.service.answer(withNumbers, honest);
  const { data } = await world.ask('{ persons(first: 1) { items { id rate shout } } }');
  expect(data).toEqual({
    persons: { items: [{ id: LONG, rate: Number(LONG), shout: 'Name 1!' }] },
  });
});

test('introspection, the subgraph SDL and its entities show what was added', async () => {
  const { data } = await world.ask<IntrospectionQuery>(
    getIntrospectionQuery({ schemaDescription: true }),
  );
  const sdl = printSchema(buildClientSchema(data));
  const { data: subgraph } = await world.ask<{ _service: { sdl: string } }>('{ _service { sdl } }');
  for (const text of [sdl, subgraph._service.sdl]) {
    expect(text).toMatch(/type Person [^}]*shout: String!/);
    expect(text).toMatch(/type Person [^}]*rating: String/);
    expect(text).toContain('type Badge implements Labelled {');
    expect(text).toMatch(/^"""All people."""$/m);
    expect(text).toMatch(/^"""One of the people."""\ntype Person/m);
  }
  expect(subgraph._service.sdl).toMatch(/type Person .*@key\(fields: "id"\)/);
  expect(subgraph._service.sdl).not.toContain('_entities');
});

test('with SCHEMA_PREFIX additions use the names that callers see', async () => {
  await using prefixed = await startPeople({}, { config: { schemaPrefix: 'Rec' } });
  const { data, errors } = await prefixed.ask(
    '{ recAllPersons(limit: 1) { __typename shout } recFound { __typename ... on RecRobot { shout } } top { shout } }',
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    recAllPersons: [{ __typename: 'RecPerson', shout: 'Name 1!' }],
    recFound: [{ __typename: 'RecPerson' }, { __typename: 'RecRobot', shout: 'Ours!' }],
    top: [{ shout: 'Name 2!' }, null, { shout: 'Name 1!' }],
  });
});

test('records to which nothing but a second service refers get their other fields', async () => {
  const schema = makeExecutableSchema('type Query { best: Person } type Person { id: ID! }', {
    Query: { best: () => alone.service.persons.all()[0] },
  });
  await using alone = await startGatewayOverService(
    {},
    { additions: { subschemas: [{ schema }] } },
  );
  const { firstName } = alone.service.persons.all()[0]!;
  expect(await alone.ask('{ best { firstName } }')).toEqual({ data: { best: { firstName } } });
});

test('the first mutation of a gateway whose service has none is answered', async () => {
  const additions = {
    typeDefs: 'type Mutation { welcome(id: ID!): Person }',
    resolvers: { Mutation: { welcome: (_: unknown, { id }: Fields) => ({ id }) } },
  };
  await using first = await startGatewayOverService({}, { additions });
  const [{ id, firstName }] = first.service.persons.all() as [{ id: string; firstName: string }];
  const { data, errors } = await first.ask(
    'mutation ($id: ID!) { welcome(id: $id) { firstName } again: __typename }',
    { id },
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({ welcome: { firstName }, again: 'Mutation' });
  expect(await first.ask('mutation { __typename }')).toEqual({ data: { __typename: 'Mutation' } });
});
