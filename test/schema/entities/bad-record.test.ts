import { expect, test } from 'vitest';
import { makeExecutableSchema, personPages, PERSONS } from '../../support/imitations/honest.ts';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';

const SDL = `${PERSONS}
  type Person { id: ID! rank: Int! }
`;
const ids = Array.from({ length: 120 }, (_, at) => `p${at}`);

test('a record that is null because a field in it failed is reported as failed', async () => {
  await using gateway = await startWorld((id) => id === 'p3' || id === 'p70', '[Person]!');
  for (let round = 0; round < 2; round += 1) {
    const { data, errors } = await gateway.entities(['p2', 'p3', 'p70', 'p71']);
    expect(data).toEqual({
      _entities: [{ id: 'p2', rank: 2 }, null, null, { id: 'p71', rank: 71 }],
    });
    expect(errors).toMatchObject([{ path: ['_entities', 1] }, { path: ['_entities', 2] }]);
  }
});

test('when a field fails for all records, each has the error, and the number of requests is bounded', async () => {
  await using gateway = await startWorld(() => true);
  await gateway.ask('{ allPersons { id } }');
  const { received } = gateway.upstream;
  const before = received.length;
  const { data, errors = [] } = await gateway.entities(ids);
  expect(data).toEqual({ _entities: ids.map(() => null) });
  expect(errors).toHaveLength(ids.length);
  expect(errors.every(({ message }) => message.startsWith('No rank for p'))).toBe(true);
  expect(received.length - before).toBeLessThanOrEqual(3 + 2 * 3 * 3);
});

async function startWorld(fails: (id: string) => boolean, listed = '[Person!]!') {
  const sdl = SDL.replace('[Person!]!', listed);
  const schema = makeExecutableSchema(sdl, {
    Query: {
      persons: personPages(ids),
    },
    Person: {
      rank: ({ id }: { id: string }) => {
        if (fails(id)) throw new Error(`No rank for ${id}.`);
        return Number(id.slice(1));
      },
    },
  });
  const gateway = await startGatewayOverFake({ schema }, { snapshot: sdl });
  return {
    ...gateway,
    entities: (requested: readonly string[]) =>
      gateway.ask(
        `query ($representations: [_Any!]!) {
          _entities(representations: $representations) { ... on Person { id rank } }
        }`,
        { representations: requested.map((id) => ({ __typename: 'Person', id })) },
      ),
  };
}
