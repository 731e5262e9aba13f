import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../../support/executable-schema.ts';
import { json, startGatewayOverFake } from '../../support/fake-upstream.ts';

const SDL = `
  scalar Code
  type Job { id: Code! title: String! }
  type Query { job(id: Code!): Job! }
`;

test('when one id fails the whole request, the others are asked for singly and are answered', async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: {
      job: (_: unknown, { id }: { id: string }) => {
        if (id === 'gone') throw new Error('There is no such job.');
        return { id, title: `Job ${id}` };
      },
    },
  });
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: SDL });
  const { received } = gateway.upstream;
  const before = received.length;
  const { data, errors } = await gateway.ask(
    `query ($representations: [_Any!]!) {
      _entities(representations: $representations) { ... on Job { id title } }
    }`,
    { representations: ['a', 'gone', 'b'].map((id) => ({ __typename: 'Job', id })) },
  );
  expect(data).toEqual({
    _entities: [{ id: 'a', title: 'Job a' }, null, { id: 'b', title: 'Job b' }],
  });
  expect(errors).toMatchObject([{ message: 'There is no such job.', path: ['_entities', 1] }]);
  // All together, and then each.
  expect(received.length - before).toBe(4);
});

test('an error that stands nowhere may be of any that is null: none of them is said not to be there', async () => {
  await using gateway = await startGatewayOverFake(
    {},
    { snapshot: 'type Job { id: ID! } type Query { job(id: ID!): Job }' },
  );
  const job = { id: 'b' };
  gateway.upstream.answer(
    json({
      data: { _rsRecord0: null, _rsRecord1: job, _rsRecord2: null },
      errors: [{ message: 'The database is down.' }],
    }),
  );
  const { data, errors } = await gateway.ask(
    `query ($representations: [_Any!]!) {
      _entities(representations: $representations) { ... on Job { id } }
    }`,
    { representations: ['a', 'b', 'c'].map((id) => ({ __typename: 'Job', id })) },
  );
  expect(data).toEqual({ _entities: [null, job, null] });
  expect(errors?.map(({ path }) => path)).toEqual([
    ['_entities', 0],
    ['_entities', 2],
  ]);
});
