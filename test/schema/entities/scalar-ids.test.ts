import { expect, test } from 'vitest';
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

test('a number is the id that graphql-js makes of it, and none if it is not whole', async () => {
  const schema = makeExecutableSchema(`${PERSONS} type Person { id: ID! }`, {
    Query: { persons: personPages(['12']) },
  });
  const { through } = await sideBySide({ schema });
  const { data, errors } = await through({
    query: `query ($all: [_Any!]!) { _entities(representations: $all) { ... on Person { id } } }`,
    variables: {
      all: [new Verbatim('12'), new Verbatim('12.0'), new Verbatim('12.5')].map((id) => ({
        __typename: 'Person',
        id,
      })),
    },
  });
  expect(data).toBe('{"_entities":[{"id":"12"},{"id":"12"},null]}');
  expect(errors).toEqual([expect.stringContaining('must be of the type ID')]);
});
