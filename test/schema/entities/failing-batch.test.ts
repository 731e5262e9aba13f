import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../../support/imitations/honest.ts';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';
import { json } from '../../support/imitations/scripted.ts';

const SDL = `
  scalar Code
  type Job { id: Code! title: String! }
  type Query { job(id: Code!): Job! }
`;

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
  // One request for all, and then one for each.
  expect(received.length - before).toBe(4);
});

test('an error without a path may belong to any null record, so none of them is reported as not existing', async () => {
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

test('when the request is refused whatever its ids, they are not requested singly', async () => {
  await using gateway = await startGatewayOverFake(
    {},
    { snapshot: 'type Job { id: ID! } type Query { job(id: ID!): Job }' },
  );
  const { received } = gateway.upstream;
  const before = received.length;
  gateway.upstream.answer(json({ errors: [{ message: 'There is no field job.' }] }));
  const representations = Array.from({ length: 100 }, (_, at) => ({ __typename: 'Job', id: at }));
  const { errors = [] } = await gateway.ask(
    `query ($representations: [_Any!]!) {
      _entities(representations: $representations) { ... on Job { id } }
    }`,
    { representations },
  );
  expect(errors).toHaveLength(100);
  expect(errors[99]).toMatchObject({ message: 'There is no field job.', path: ['_entities', 99] });
  // For each 50: one request for all, and two single ones.
  expect(received.length - before).toBe(6);
});

test('when the service refuses one id, the others are answered', async () => {
  await using gateway = await startGatewayOverFake(
    {},
    { snapshot: 'type Job { id: ID! } type Query { job(id: ID!): Job }' },
  );
  gateway.upstream.answer((response, { body }) => {
    const { variables } = JSON.parse(body) as { variables: Record<string, string> };
    const isBad = Object.values(variables).includes('bad');
    const data = Object.fromEntries(
      Object.entries(variables).map(([key, id]) => [key.replace('Key', 'Record'), { id }]),
    );
    const answer = isBad ? { errors: [{ message: 'bad is no id.' }] } : { data };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  const { data, errors } = await gateway.ask(
    `query ($representations: [_Any!]!) {
      _entities(representations: $representations) { ... on Job { id } }
    }`,
    { representations: ['a', 'bad', 'b', 'c'].map((id) => ({ __typename: 'Job', id })) },
  );
  expect(data).toEqual({ _entities: [{ id: 'a' }, null, { id: 'b' }, { id: 'c' }] });
  expect(errors).toMatchObject([{ message: 'bad is no id.', path: ['_entities', 1] }]);
});
