import { expect, test } from 'vitest';
import { makeExecutableSchema, personPages, PERSONS } from '../../support/imitations/honest.ts';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';

const SDL = `${PERSONS}
  type Person { id: ID! }
  type Mutation { hire(id: ID!, at: Int!): Person }
`;

test('a record inserted by a mutation is found at once, anywhere in the list', async () => {
  const ids = Array.from({ length: 200 }, (_, at) => `p${at}`);
  const schema = makeExecutableSchema(SDL, {
    Query: {
      persons: personPages(ids),
    },
    Mutation: {
      hire: (_: unknown, { id, at }: { id: string; at: number }) => {
        ids.splice(at, 0, id);
        return { id };
      },
    },
  });
  await using gateway = await startGatewayOverFake(
    { schema },
    { snapshot: SDL, config: { mutations: 'all' } },
  );
  const ask = () => gateway.ask('{ person(id: "new") { id } }');
  expect(await ask()).toEqual({ data: { person: null } });
  await gateway.ask('mutation { hire(id: "new", at: 100) { id } }');
  expect(await ask()).toEqual({ data: { person: { id: 'new' } } });
});
