import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import type { Additions } from '../../src/stitching/additions.ts';

const fullName: Additions = {
  typeDefs: 'extend type Person { fullName: String! }',
  resolvers: {
    Person: {
      fullName: {
        selectionSet: '{ firstName id }',
        resolve: ({ firstName, id }: Record<string, unknown>) =>
          `${String(firstName)} (${String(id)})`,
      },
    },
  },
};

interface Named {
  id?: string;
  firstName?: string;
  fullName: string;
}

test.each([
  ['persons(first: 3) { items { ...P } }', ['persons', 'items']],
  ['allPersons(limit: 3) { ...P }', ['allPersons']],
  ['personsConnection(first: 3) { nodes { ...P } }', ['personsConnection', 'nodes']],
])('an own field is answered in %s', async (selection, path) => {
  await using gateway = await startGatewayOverSandbox({ persons: 20 }, { additions: fullName });
  const fragment = 'fragment P on Person { id firstName fullName }';
  const { data, errors } = await gateway.ask(`{ ${selection} } ${fragment}`);
  expect(errors).toBeUndefined();
  const records = path.reduce(
    (value: unknown, key) => (value as Record<string, unknown>)[key],
    data,
  ) as Named[];
  expect(records).toHaveLength(3);
  for (const record of records) expect(record.fullName).toBe(`${record.firstName} (${record.id})`);
});
