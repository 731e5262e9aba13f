import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../../support/imitations/honest.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import { json } from '../../support/imitations/scripted.ts';

const SDL = `
  scalar Code
  type Job { id: Code! title: String! }
  type Query { job(id: Code!): Job! }
`;

const JOB = 'type Job { id: ID! } type Query { job(id: ID!): Job }';

test('when one id fails the whole request, the other ids are requested singly and answered', async () => {
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
  const { data, errors } = await askFor(gateway, ['a', 'gone', 'b'], 'id title');
  expect(data).toEqual({
    _entities: [{ id: 'a', title: 'Job a' }, null, { id: 'b', title: 'Job b' }],
  });
  expect(errors).toMatchObject([{ message: 'There is no such job.', path: ['_entities', 1] }]);
  // One request for all, and then one for each.
  expect(received.length - before).toBe(4);
});

test('an error without a path may belong to any null record, so none of them is reported as not existing', async () => {
  await using gateway = await startGatewayOverFake({}, { snapshot: JOB });
  const job = { id: 'b' };
  gateway.upstream.answer(
    json({
      data: { _rsRecord0: null, _rsRecord1: job, _rsRecord2: null },
      errors: [{ message: 'The database is down.' }],
    }),
  );
  const { data, errors } = await askFor(gateway, ['a', 'b', 'c']);
  expect(data).toEqual({ _entities: [null, job, null] });
  expect(errors?.map(({ path }) => path)).toEqual([
    ['_entities', 0],
    ['_entities', 2],
  ]);
});

test('when the request is refused whatever its ids, they are not requested singly', async () => {
  await using gateway = await startGatewayOverFake({}, { snapshot: JOB });
  const { received } = gateway.upstream;
  const before = received.length;
  gateway.upstream.answer(json({ errors: [{ message: 'There is no field job.' }] }));
  const ids = Array.from({ length: 100 }, (_, at) => String(at));
  const { errors = [] } = await askFor(gateway, ids);
  expect(errors).toHaveLength(100);
  expect(errors[99]).toMatchObject({ message: 'There is no field job.', path: ['_entities', 99] });
  // For each 50: one request for all, and two single ones.
  expect(received.length - before).toBe(6);
});

function askFor({ ask }: GatewayOverFake, ids: readonly string[], selection = 'id') {
  return ask(
    `query ($representations: [_Any!]!) {
      _entities(representations: $representations) { ... on Job { ${selection} } }
    }`,
    { representations: ids.map((id) => ({ __typename: 'Job', id })) },
  );
}
