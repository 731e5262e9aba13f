import { expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';

interface Person {
  id: string;
  firstName: string | null;
}

test('12,345 persons are drained, each exactly once and in order', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 12_345 });
  const { data, errors } = await gateway.ask<{ allPersons: Person[] }>(
    '{ allPersons { id firstName } }',
  );
  expect(errors).toBeUndefined();
  const expected = gateway.sandbox.persons.all().map(({ id, firstName }) => ({ id, firstName }));
  expect(data.allPersons).toEqual(expected);
  // The first page tells the page limit; the others leave room for an overlap with the next one.
  expect(gateway.sandbox.stats.requests.graphql).toBe(1 + Math.ceil((12_345 - 50) / 48));
});

test.each([0, 1, 49, 50, 51, 137])(
  'a list of %i persons is drained to its end',
  async (persons) => {
    await using gateway = await startGatewayOverSandbox({ persons });
    const { data } = await gateway.ask<{ allPersons: Person[] }>('{ allPersons { id } }');
    expect(data.allPersons.map(({ id }) => id)).toEqual(
      gateway.sandbox.persons.all().map(({ id }) => id),
    );
  },
);

test('`limit` stops the drain, and no more records are requested', async () => {
  await using gateway = await startGatewayOverSandbox();
  for (const limit of [0, 1, 50, 51, 120, 136, 137, 138, 1000]) {
    const before = gateway.sandbox.stats.requests.graphql;
    const { data } = await gateway.ask<{ allPersons: Person[] }>(
      'query ($limit: Int) { allPersons(limit: $limit) { id } }',
      { limit },
    );
    const expected = Math.min(limit, 137);
    expect(data.allPersons).toHaveLength(expected);
    expect(gateway.sandbox.stats.requests.graphql - before).toBe(Math.ceil(expected / 50));
  }
});

test('a drain can start after the record of any cursor', async () => {
  await using gateway = await startGatewayOverSandbox();
  const ids = gateway.sandbox.persons.all().map(({ id }) => id);
  const { data } = await gateway.ask<{
    personsConnection: { edges: { cursor: string }[] };
  }>('{ personsConnection(first: 137) { edges { cursor } } }');
  for (const index of [0, 24, 49, 50, 135, 136]) {
    const rest = await gateway.ask<{ allPersons: Person[] }>(
      'query ($after: String) { allPersons(after: $after) { id } }',
      { after: data.personsConnection.edges[index]!.cursor },
    );
    expect(rest.data.allPersons.map(({ id }) => id)).toEqual(ids.slice(index + 1));
  }
});

test('aliases, fragments and an alias `id` for another field do not disturb a drain', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 120 });
  const { data } = await gateway.ask<{
    people: { id: string; again: string; __typename: string }[];
  }>(`query ($not: Boolean = false) {
    people: allPersons { ...Fields again: id }
  }
  fragment Fields on Person { id: firstName hidden: id @include(if: $not) __typename }`);
  expect(data.people).toEqual(
    gateway.sandbox.persons
      .all()
      .map(({ id, firstName }) => ({ id: firstName, __typename: 'Person', again: id })),
  );
});

test('a drain of more records than allowed ends with an error to resume from, and is never cut silently', async () => {
  await using gateway = await startGatewayOverSandbox({}, { config: { drainMaxItems: 60 } });
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
    gateway.sandbox.persons.slice(60, 65).map(({ id }) => id),
  );
});

test('a list of exactly the allowed length is drained', async () => {
  await using gateway = await startGatewayOverSandbox({}, { config: { drainMaxItems: 137 } });
  const { data } = await gateway.ask<{ allPersons: Person[] }>('{ allPersons { id } }');
  expect(data.allPersons).toHaveLength(137);
});

test('all drains of an operation share one budget', async () => {
  await using gateway = await startGatewayOverSandbox({}, { config: { drainMaxItems: 200 } });
  const { errors } = await gateway.ask('{ a: allPersons { id } b: allPersons { id } }');
  const codes = new Set(errors?.map(({ extensions }) => extensions['code']));
  expect([...codes]).toEqual(['DRAIN_LIMIT_EXCEEDED']);
  const again = await gateway.ask('{ a: allPersons { id } }');
  expect(again.errors).toBeUndefined();
});

test.each([-1, -2147483648])('a `limit` of %i is refused', async (limit) => {
  await using gateway = await startGatewayOverSandbox();
  const { data, errors } = await gateway.ask<{ allPersons: null }>(
    `{ allPersons(limit: ${limit}) { id } }`,
  );
  expect(data.allPersons).toBeNull();
  expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
  expect(gateway.sandbox.stats.requests.graphql).toBe(0);
});

test('a drain that a failing page interrupts says how many records it has, and how to resume without losing one', async () => {
  let failing = true;
  const { gateway, ids } = await overPages({
    before: (start) => {
      if (start >= 96 && failing) throw new Error('The index is rebuilding.');
    },
  });
  await using _ = gateway;
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
  expect(returned.map(({ id }) => id)).toEqual(ids);
});

test('a count that a failing page interrupts says to send the operation again, and has no resumeAfter', async () => {
  const { gateway } = await overPages({
    before: (start) => {
      if (start >= 96) throw new Error('The index is rebuilding.');
    },
  });
  await using _ = gateway;
  const { errors } = await gateway.ask('{ personsConnection(first: 1) { totalCount } }');
  expect(errors).toMatchObject([
    {
      message: expect.stringMatching(/Send the operation again\.$/),
      extensions: { code: 'DRAIN_INTERRUPTED', drained: 96, resumeAfter: null },
    },
  ]);
});

test('if the first page fails, the error is that of the service', async () => {
  const { gateway } = await overPages({
    before: () => {
      throw new Error('No rights for this list.');
    },
  });
  await using _ = gateway;
  const { errors } = await gateway.ask('{ allPersons { id } }');
  expect(errors).toMatchObject([{ message: 'No rights for this list.', path: ['allPersons'] }]);
});

test.each([
  ['no cursor at all', () => null],
  ['the same cursor for ever', () => '50'],
])(
  'a next page with %s ends with DRAIN_STALLED, not in an endless loop',
  async (_name, endCursor) => {
    const { gateway } = await overPages({ endCursor, hasNextPage: () => true });
    await using _ = gateway;
    const { errors } = await gateway.ask('{ allPersons { id } }');
    expect(errors).toMatchObject([{ path: ['allPersons'], extensions: { code: 'DRAIN_STALLED' } }]);
    expect(errors?.[0]?.message).toMatch(/The drain ended after \d+ records: The/);
    expect(errors![0]!.extensions['drained']).toBeGreaterThanOrEqual(48);
  },
);

test('empty pages with a moving cursor are skipped', async () => {
  const starts: number[] = [];
  const { gateway, ids } = await overPages({
    items: (start, items) => {
      starts.push(start);
      return starts.length % 2 === 0 ? [] : items;
    },
  });
  await using _ = gateway;
  const { data } = await gateway.ask<{ allPersons: Person[] }>('{ allPersons { id } }');
  const pageAt = (index: number) => starts.findLastIndex((start) => start <= index);
  const expected = ids.filter((_id, index) => pageAt(index) % 2 === 0);
  expect(data.allPersons.map(({ id }) => id)).toEqual(expected);
});

test('a record that two pages contain, because the list moved, is returned once', async () => {
  const { gateway, ids } = await overPages({
    items: (start, items, all) => (start === 0 ? items : [all[start - 1]!, ...items]),
  });
  await using _ = gateway;
  const { data } = await gateway.ask<{ allPersons: Person[] }>('{ allPersons { id } }');
  expect(data.allPersons.map(({ id }) => id)).toEqual(ids);
});

test('a list with an id twice in one page drops no record for a repeated id', async () => {
  const { gateway } = await overPages({
    items: (_start, items) => items.map((item) => ({ ...item, id: 'same' })),
  });
  await using _ = gateway;
  const { data } = await gateway.ask<{ allPersons: Person[] }>('{ allPersons { id } }');
  expect(data.allPersons).toHaveLength(230);
});

/** 230 persons in pages of 50, with cursors that are the offset of the next one, changed as a test wants. */
async function overPages(bent: {
  before?: (start: number) => void;
  items?: (start: number, items: Person[], all: Person[]) => Person[];
  endCursor?: (end: number) => string | null;
  hasNextPage?: (end: number) => boolean;
}): Promise<{ gateway: TestGateway; ids: string[] }> {
  const all = Array.from({ length: 230 }, (_, index) => ({ id: `p${index}`, firstName: null }));
  const schema = makeExecutableSchema(documentedSdl, {
    Query: {
      persons: (_: unknown, { first, after }: PageArgs) => {
        const start = Number(after ?? 0);
        bent.before?.(start);
        const size = Math.min(first ?? 50, 50);
        const end = start + size;
        const items = all.slice(start, end);
        return {
          items: bent.items?.(start, items, all) ?? items,
          pageInfo: {
            first: size,
            hasNextPage: bent.hasNextPage?.(end) ?? end < all.length,
            endCursor: bent.endCursor ? bent.endCursor(end) : String(end),
          },
        };
      },
    },
  });
  const gateway = await startGatewayOverSandbox({ schema });
  return { gateway, ids: all.map(({ id }) => id) };
}

test('records that an error made null are returned once, in a second drain too', async () => {
  const all = Array.from({ length: 230 }, (_, index) => ({ id: `p${index}` }));
  let failing = false;
  const schema = makeExecutableSchema(
    documentedSdl
      .replace('items: [Person!]!', 'items: [Person]!')
      .replace('firstName: String', 'firstName: String!'),
    {
      Person: {
        firstName: () => {
          if (failing) throw new Error('Not now.');
          return 'Ada';
        },
      },
      Query: { persons: (_: unknown, args: PageArgs) => pageOf(all, args) },
    },
  );
  const snapshot = documentedSdl
    .replace('items: [Person!]!', 'items: [Person]!')
    .replace('firstName: String', 'firstName: String!');
  await using gateway = await startGatewayOverSandbox({ schema }, { snapshot });
  const ask = () => gateway.ask<{ allPersons: unknown[] }>('{ allPersons { firstName } }');
  expect((await ask()).data.allPersons).toHaveLength(230);
  failing = true;
  const { data, errors } = await ask();
  expect(data.allPersons).toEqual(Array.from({ length: 230 }, () => null));
  expect(errors).toHaveLength(230);
});
