import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../../support/executable-schema.ts';
import { startGatewayOverFake } from '../../support/fake-upstream.ts';

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
