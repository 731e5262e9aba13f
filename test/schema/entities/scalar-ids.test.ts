import { describe, expect, test } from 'vitest';
import { Verbatim } from '../../same/exact-json.ts';
import { sideBySide } from '../../same/side-by-side.ts';
import { makeExecutableSchema, personPages, PERSONS } from '../../support/imitations/honest.ts';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';

const SDL = `
  scalar Code
  type Job { id: Code! }
  type JobPage { items: [Job!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { jobs(first: Int, after: String): JobPage! }
`;

test('an id of a custom scalar finds its record as a number and as a string, even in one request', async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: { jobs: () => ({ items: [{ id: 12 }], pageInfo: { hasNextPage: false } }) },
  });
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: SDL });
  const { data } = await gateway.ask(
    `{ a: job(id: 12) { id } b: job(id: "12") { id }
       _entities(representations: [{ __typename: "Job", id: 12 }, { __typename: "Job", id: "12" }]) {
         ... on Job { id }
       } }`,
  );
  const job = { id: 12 };
  expect(data).toEqual({ a: job, b: job, _entities: [job, job] });
});

describe('a number with more digits than JavaScript can hold is the id with these digits', () => {
  const LARGE = '12345678901234567890';
  const [r, same] = [new Verbatim(LARGE), new Verbatim('12')];
  const ON_PERSON = '{ ... on Person { id } }';

  const ways = [
    ['a variable', 'query ($r: ID!) { person(id: $r) { id } }', { r }],
    ['the default of a variable', `query ($r: ID = ${LARGE}) { person(id: $r) { id } }`, {}],
    ['a literal', `{ person(id: ${LARGE}) { id } }`, {}],
    [
      'a variable in a representation',
      `query ($r: ID!) { _entities(representations: [{ __typename: "Person", id: $r }]) ${ON_PERSON} }`,
      { r },
    ],
    [
      'a literal in a representation',
      `{ _entities(representations: [{ __typename: "Person", id: ${LARGE} }]) ${ON_PERSON} }`,
      {},
    ],
    [
      'a representation in a variable',
      `query ($all: [_Any!]!) { _entities(representations: $all) ${ON_PERSON} }`,
      { all: [{ __typename: 'Person', id: r }] },
    ],
    [
      'a single representation in a variable',
      `query ($all: [_Any!]!) { _entities(representations: $all) ${ON_PERSON} }`,
      { all: { __typename: 'Person', id: r } },
    ],
    [
      'a representation in the default of a variable',
      `query ($all: [_Any!]! = [{ __typename: "Person", id: ${LARGE} }]) { _entities(representations: $all) ${ON_PERSON} }`,
      {},
    ],
  ] as const;

  test.each(ways)('%s, in a list', async (_, query, variables) => {
    const schema = makeExecutableSchema(`${PERSONS} type Person { id: ID! }`, {
      Query: { persons: personPages(['12345678901234567000', LARGE]) },
    });
    const { through } = await sideBySide({ schema });
    const { data, errors } = await through({ query, variables });
    expect(errors).toBeUndefined();
    expect(data).toContain(`{"id":"${LARGE}"}`);
  });

  test.each(ways.slice(3))(
    '%s, for the by-id field of the service',
    async (_, query, variables) => {
      const schema = makeExecutableSchema(
        `${PERSONS} type Person { id: ID! } extend type Query { person(id: ID!): Person }`,
        { Query: { person: (__: unknown, { id }: { id: string }) => ({ id }) } },
      );
      const { through } = await sideBySide({ schema });
      const { data, errors } = await through({ query, variables });
      expect(errors).toBeUndefined();
      expect(data).toBe(`{"_entities":[{"id":"${LARGE}"}]}`);
    },
  );

  test.each([LARGE, '0.1000000000000000055511151231257827', '12.50'])(
    'also where the id is a custom scalar: %s',
    async (id) => {
      const schema = makeExecutableSchema(`${SDL} extend type Query { job(id: Code!): Job }`, {
        Query: { job: (_: unknown, args: { id: unknown }) => args },
      });
      const { through } = await sideBySide({ schema });
      const representation = { __typename: 'Job', id: new Verbatim(id) };
      for (const [query, variables] of [
        [
          'query ($all: [_Any!]!) { _entities(representations: $all) { ... on Job { id } } }',
          { all: [representation] },
        ],
        [
          `{ _entities(representations: [{ __typename: "Job", id: ${id} }]) { ... on Job { id } } }`,
          {},
        ],
      ] as const) {
        const { data } = await through({ query, variables });
        expect(data).toBe(`{"_entities":[{"id":${id}}]}`);
      }
    },
  );

  test('it is refused beside values so deep that numbers are not kept exactly', async () => {
    const schema = makeExecutableSchema(`${PERSONS} type Person { id: ID! }`, {
      Query: { persons: personPages(['12345678901234567000', LARGE]) },
    });
    const { through } = await sideBySide({ schema });
    const deep = new Verbatim(`${'['.repeat(1_000)}${']'.repeat(1_000)}`);
    const { data, errors } = await through({
      query: `query ($all: [_Any!]!) { _entities(representations: $all) ${ON_PERSON} }`,
      variables: { all: [{ __typename: 'Person', id: r, deep }] },
    });
    expect(data).toBe('{"_entities":[null]}');
    expect(errors).toEqual([expect.stringContaining('must be of the type ID')]);
  });

  test('another number is the id that graphql-js makes of it, and none if it is not whole', async () => {
    const schema = makeExecutableSchema(`${PERSONS} type Person { id: ID! }`, {
      Query: { persons: personPages(['12']) },
    });
    const { through } = await sideBySide({ schema });
    const { data, errors } = await through({
      query: `query ($all: [_Any!]!) { _entities(representations: $all) ${ON_PERSON} }`,
      variables: {
        all: [same, new Verbatim('12.0'), new Verbatim('12.5')].map((id) => ({
          __typename: 'Person',
          id,
        })),
      },
    });
    expect(data).toBe('{"_entities":[{"id":"12"},{"id":"12"},null]}');
    expect(errors).toEqual([expect.stringContaining('must be of the type ID')]);
  });
});
