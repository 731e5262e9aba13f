import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';

interface Person {
  id: string;
  firstName: string | null;
}

test('12,345 persons are drained, each exactly once and in order', async () => {
  await using gateway = await startGatewayOverService({ persons: 12_345 });
  const { data, errors } = await gateway.ask<{ allPersons: Person[] }>(
    '{ allPersons { id firstName } }',
  );
  expect(errors).toBeUndefined();
  const expected = gateway.service.persons.all().map(({ id, firstName }) => ({ id, firstName }));
  expect(data.allPersons).toEqual(expected);
  // The first page tells the page limit; the others leave room for an overlap with the next one.
  expect(gateway.service.stats.requests.graphql).toBe(1 + Math.ceil((12_345 - 50) / 48));
});

test('`limit` stops the drain, and no more records are requested', async () => {
  await using gateway = await startGatewayOverService();
  for (const limit of [0, 1, 50, 51, 120, 136, 137, 138, 1000]) {
    const before = gateway.service.stats.requests.graphql;
    const { data } = await gateway.ask<{ allPersons: Person[] }>(
      'query ($limit: Int) { allPersons(limit: $limit) { id } }',
      { limit },
    );
    const expected = Math.min(limit, 137);
    expect(data.allPersons).toHaveLength(expected);
    expect(gateway.service.stats.requests.graphql - before).toBe(Math.ceil(expected / 50));
  }
});

test('a drain of more records than allowed ends with an error to resume from, and is never cut silently', async () => {
  await using gateway = await startGatewayOverService({}, { config: { drainMaxItems: 60 } });
  const { data, errors } = await gateway.ask<{ allPersons: null }>('{ allPersons { id } }');
  expect(data.allPersons).toBeNull();
  expect(errors).toMatchObject([
    {
      message: expect.stringContaining('None of them is in this answer.'),
      path: ['allPersons'],
      extensions: { code: 'DRAIN_LIMIT_EXCEEDED', drained: 60, max: 60 },
    },
  ]);
  const rest = await gateway.ask<{ allPersons: Person[] }>(
    'query ($after: String) { allPersons(after: $after, limit: 5) { id } }',
    { after: errors![0]!.extensions['resumeAfter'] },
  );
  expect(rest.data.allPersons.map(({ id }) => id)).toEqual(
    gateway.service.persons.slice(60, 65).map(({ id }) => id),
  );
});

test('a drain that a failing page interrupts says how many records it has, and how to resume without losing one', async () => {
  let failing = true;
  const all = Array.from({ length: 230 }, (_, index) => ({ id: `p${index}` }));
  const persons = (_: unknown, args: PageArgs) => {
    if (failing && Number(args.after ?? 0) >= 96) throw new Error('The index is rebuilding.');
    return pageOf(all, args);
  };
  const schema = makeExecutableSchema(documentedSdl, { Query: { persons } });
  await using gateway = await startGatewayOverService({ schema });
  const { data, errors } = await gateway.ask<{ allPersons: null }>('{ allPersons { id } }');
  expect(data.allPersons).toBeNull();
  expect(errors).toMatchObject([
    { path: ['allPersons'], extensions: { code: 'DRAIN_INTERRUPTED', drained: 96 } },
  ]);
  const { message, extensions } = errors![0]!;
  expect(message).toContain('The index is rebuilding.');
  expect(message).toContain('None of them is in this answer. Send the operation again; or');
  const limit = Number(/`limit: (\d+)`/.exec(message)?.[1]);
  const first = await gateway.ask<{ allPersons: Person[] }>(
    'query ($limit: Int) { allPersons(limit: $limit) { id } }',
    { limit },
  );
  failing = false;
  const rest = await gateway.ask<{ allPersons: Person[] }>(
    'query ($after: String) { allPersons(after: $after) { id } }',
    { after: extensions['resumeAfter'] },
  );
  const returned = [...first.data.allPersons, ...rest.data.allPersons];
  expect(returned).toEqual(all);
});

test('records that an error made null are returned once, in a second drain too', async () => {
  const all = Array.from({ length: 230 }, (_, index) => ({ id: `p${index}` }));
  let failing = false;
  const snapshot = documentedSdl
    .replace('items: [Person!]!', 'items: [Person]!')
    .replace('firstName: String', 'firstName: String!');
  const schema = makeExecutableSchema(snapshot, {
    Person: {
      firstName: () => {
        if (failing) throw new Error('Not now.');
        return 'Ada';
      },
    },
    Query: { persons: (_: unknown, args: PageArgs) => pageOf(all, args) },
  });
  await using gateway = await startGatewayOverService({ schema }, { snapshot });
  const ask = () => gateway.ask<{ allPersons: unknown[] }>('{ allPersons { firstName } }');
  expect((await ask()).data.allPersons).toHaveLength(230);
  failing = true;
  const { data, errors } = await ask();
  expect(data.allPersons).toEqual(Array.from({ length: 230 }, () => null));
  expect(errors).toHaveLength(230);
});
