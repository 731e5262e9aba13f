import { expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import {
  failure,
  makeExecutableSchema,
  pageOf,
  type PageArgs,
} from '../support/imitations/honest.ts';

const SDL = `
  scalar Json
  type Query {
    teams(first: Int, after: String): TeamPage!
    members(first: Int, after: String): MemberPage!
    team(id: Int!): Team
    search: [Hit!]!
    page: PageInfo
  }
  type Mutation { rename(id: Int!, name: String!): Team }
  union Hit = Team | Person
  interface Member { id: ID! name: String }
  type Person implements Member { id: ID! name: String note: Json }
  type Team {
    id: Int!
    name: String
    big: Json
    fails: String
    people(first: Int, after: String): PersonPage!
  }
  type TeamPage { items: [Team!]! pageInfo: PageInfo! }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type MemberPage { items: [Member!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;

const TEAMS = Array.from({ length: 120 }, (_, id) => ({
  __typename: 'Team',
  id,
  name: `Team ${id}`,
}));
const PEOPLE = Array.from({ length: 130 }, (_, id) => ({
  __typename: 'Person',
  id: `p${id}`,
  name: `Person ${id}`,
  note: { __typename: 'PageInfo', _rs: 1 },
}));
async function startTeams(config = {}): Promise<TestGateway & { requests(): number }> {
  let renamed = '';
  const team = (one: (typeof TEAMS)[number]) => ({
    ...one,
    name: one.id === 0 && renamed ? renamed : one.name,
  });
  const schema = makeExecutableSchema(SDL, {
    Query: {
      teams: (_: unknown, args: PageArgs) => pageOf(TEAMS.map(team), args),
      members: (_: unknown, args: PageArgs) => pageOf(PEOPLE, args),
      team: (_: unknown, { id }: { id: number }) => TEAMS[id] ?? null,
      search: () => [PEOPLE[0], TEAMS[1]],
      page: () => ({ hasNextPage: false }),
    },
    Mutation: {
      rename: (_: unknown, { id, name }: { id: number; name: string }) => {
        renamed = name;
        return team(TEAMS[id]!);
      },
    },
    Team: {
      people: ({ id }: { id: number }, args: PageArgs) => pageOf(PEOPLE.slice(0, id), args),
      fails: ({ id }: { id: number }) => {
        throw failure(`No value for ${id}.`, { code: 'TEAPOT' });
      },
      big: () => ({ id: 1 }),
    },
  });
  const world = await startGatewayOverSandbox({ schema }, { snapshot: SDL, config });
  return { ...world, requests: () => world.sandbox.stats.requests.graphql };
}

const ALIASES = ['a', 'b', 'c', 'd', 'e'];

/** Operations with their answers. An error is its message and its path. */
const ANSWERS: readonly {
  readonly title: string;
  readonly query: string;
  readonly variables?: Record<string, unknown>;
  readonly data: unknown;
  readonly errors?: readonly (readonly [message: string, path: readonly (string | number)[]])[];
}[] = [
  {
    title: 'names in a JSON scalar stay as they are',
    query: '{ search { ... on Person { note } } allMembers(limit: 1) { ... on Person { note } } }',
    data: {
      search: [{ note: { __typename: 'PageInfo', _rs: 1 } }, {}],
      allMembers: [{ note: { __typename: 'PageInfo', _rs: 1 } }],
    },
  },
  {
    title: 'each of several hundred nested lists is below its own parent',
    query: `{ teams(first: 50) { items { ${ALIASES.map((key) => `${key}: allPeople(limit: 1) { id }`).join(' ')} } } }`,
    data: {
      teams: {
        items: TEAMS.slice(0, 50).map(({ id }) =>
          Object.fromEntries(ALIASES.map((key) => [key, id === 0 ? [] : [{ id: 'p0' }]])),
        ),
      },
    },
  },
  {
    title: 'the ids 0 and "" are ids of entities like others',
    query: `{ _entities(representations: [{ __typename: "Team", id: 0 }, { __typename: "Person", id: "" }]) {
      ... on Team { name } ... on Person { name }
    } }`,
    data: { _entities: [{ name: 'Team 0' }, null] },
  },
];

test.each(ANSWERS)('$title', async ({ query, variables, data, errors = [] }) => {
  await using world = await startTeams();
  const answer = await world.ask(query, variables);
  expect(answer.data).toEqual(data);
  expect(answer.errors?.map(({ message, path }) => [message, path]) ?? []).toEqual(errors);
});

test.each([
  ['a field of the service', '{ team(id: 1) { big } }', 1],
  [
    'fields of the service beside a derived one',
    '{ team(id: 1) { id } page { hasNextPage } allTeams(limit: 1) { id } }',
    2,
  ],
  [
    'two aliases of one page',
    '{ a: teamsConnection(first: 5) { nodes { id } } b: teamsConnection(first: 5) { nodes { id } } }',
    1,
  ],
  [
    'the first pages of the nested lists of 30 parents',
    '{ teams(first: 30) { items { allPeople { id } } } }',
    2,
  ],
  [
    '30 nested counts beside them',
    '{ teams(first: 30) { items { peopleConnection { nodes { id } } } } }',
    2,
  ],
  [
    '50 entities',
    `{ _entities(representations: [${TEAMS.slice(0, 50)
      .map(({ id }) => `{ __typename: "Team", id: ${id} }`)
      .join(' ')}]) { __typename } }`,
    1,
  ],
  [
    'records of equal selections',
    '{ a: _entities(representations: [{ __typename: "Team", id: 1 }]) { ... on Team { name } } b: _entities(representations: [{ __typename: "Team", id: 2 }, { __typename: "Team", id: 1 }]) { ... on Team { name } } }',
    1,
  ],
  ['introspection', '{ __schema { types { name } } __typename }', 0],
])('the service gets as few requests as possible: %s', async (_, query, expected) => {
  await using world = await startTeams();
  const before = world.requests();
  const { errors } = await world.ask(query);
  expect(errors).toBeUndefined();
  expect(world.requests() - before).toBe(expected);
});

test('a mutation is only sent if it is allowed, wherever it is selected, and lists are read anew after it', async () => {
  await using world = await startTeams({ mutations: ['rename'] });
  const first = '{ allTeams(limit: 1) { name } }';
  expect((await world.ask(first)).data).toEqual({ allTeams: [{ name: 'Team 0' }] });
  const { data } = await world.ask('mutation { rename(id: 0, name: "Anna") { name } }');
  expect(data).toEqual({ rename: { name: 'Anna' } });
  expect((await world.ask(first)).data).toEqual({ allTeams: [{ name: 'Anna' }] });
  await using closed = await startTeams();
  const { errors } = await closed.ask('mutation { rename(id: 0, name: "Anna") { name } }');
  expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
});

const LONG_NAMES = Array.from({ length: 6 }, (_, at) => `${'x'.repeat(200)}${at}: name`).join(' ');

test.each([
  ['a drain', `{ a: allMembers { ${LONG_NAMES} } }`, { a: null }, ['a']],
  [
    'entities',
    `{ _entities(representations: [${TEAMS.map(({ id }) => `{ __typename: "Team", id: ${id} }`).join(' ')}]) {
      ... on Team { ${LONG_NAMES} }
    } }`,
    null,
    ['_entities'],
  ],
])(
  'what an answer holds in memory is limited, and is released when the answer is sent: %s',
  async (_, query, expected, path) => {
    await using world = await startTeams({ answerBytes: 20_000 });
    for (let time = 0; time < 2; time += 1) {
      const { data, errors } = await world.ask<object | null>(query);
      expect(data).toEqual(expected);
      expect(errors).toMatchObject([{ path, extensions: { code: 'OPERATION_TOO_COMPLEX' } }]);
      expect((await world.ask('{ allMembers { id } }')).errors).toBeUndefined();
    }
  },
);
