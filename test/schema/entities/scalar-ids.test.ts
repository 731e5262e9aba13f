import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../../support/imitations/executable-schema.ts';
import { startGatewayOverFake } from '../../support/imitations/fake-upstream.ts';

const SDL = `
  scalar Code
  type Job { id: Code! }
  type JobPage { items: [Job!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { jobs(first: Int, after: String): JobPage! }
`;

test('the global id of a custom scalar finds its record, whether the service has a number or a string', async () => {
  const items = [{ id: 12 }, { id: '{"a":1}' }];
  const schema = makeExecutableSchema(SDL, {
    Query: { jobs: () => ({ items, pageInfo: { hasNextPage: false } }) },
  });
  await using gateway = await startGatewayOverFake(
    { schema },
    { snapshot: SDL, config: { nodeInterface: true } },
  );
  const { data } = await gateway.ask<{ allJobs: { id: string; recordId: unknown }[] }>(
    '{ allJobs { id recordId } }',
  );
  const ids = data.allJobs.map(({ id }) => id);
  expect(data.allJobs.map(({ recordId }) => recordId)).toEqual(items.map(({ id }) => id));
  const found = await gateway.ask(
    'query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on Job { recordId } } }',
    { ids },
  );
  expect(found.data).toEqual({ nodes: data.allJobs });
});

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
