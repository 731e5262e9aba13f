/** Records that are found by their ids in lists that are odd, or that change. */
import { expect, test } from 'vitest';
import {
  makeExecutableSchema,
  pageOf,
  personPages,
  PERSONS,
  type PageArgs,
} from '../../support/imitations/honest.ts';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';

const ids = Array.from({ length: 120 }, (_, at) => `p${at}`);

test('a record that is null because a field in it failed is reported as failed', async () => {
  await using gateway = await startRanked((id) => id === 'p3' || id === 'p70', '[Person]!');
  for (let round = 0; round < 2; round += 1) {
    const { data, errors } = await gateway.entities(['p2', 'p3', 'p70', 'p71']);
    expect(data).toEqual({
      _entities: [{ id: 'p2', rank: 2 }, null, null, { id: 'p71', rank: 71 }],
    });
    expect(errors).toMatchObject([{ path: ['_entities', 1] }, { path: ['_entities', 2] }]);
  }
});

test('when a field fails for all records, each has the error, and each page is requested once', async () => {
  await using gateway = await startRanked(() => true);
  await gateway.ask('{ allPersons { id } }');
  const { received } = gateway.upstream;
  const before = received.length;
  const { data, errors = [] } = await gateway.entities(ids);
  expect(data).toEqual({ _entities: ids.map(() => null) });
  expect(errors).toHaveLength(ids.length);
  expect(errors.every(({ message }) => message.startsWith('No rank for p'))).toBe(true);
  expect(received.length - before).toBe(3);
});

test.each([
  ['a null in the list', null],
  ['an id that comes twice', { id: 'p70' }],
])(
  '%s does not prevent other records from being found after a walk of the whole list',
  async (_what, odd) => {
    const sdl = `${PERSONS} type Person { id: ID! }`.replace('[Person!]!', '[Person]!');
    const all = ids.map((id, at) => (at === 71 ? odd : { id }));
    const schema = makeExecutableSchema(sdl, {
      Query: { persons: (_: unknown, args: PageArgs) => pageOf(all, args) },
    });
    await using gateway = await startGatewayOverFake({ schema }, { snapshot: sdl });
    const find = async (id: string) => (await gateway.ask(`{ person(id: "${id}") { id } }`)).data;
    expect(await find('unknown')).toEqual({ person: null });
    const { received } = gateway.upstream;
    const before = received.length;
    expect(await find('p90')).toEqual({ person: { id: 'p90' } });
    expect(await find('other')).toEqual({ person: null });
    expect(received.length - before).toBe(1);
  },
);

test('a record inserted by a mutation is found at once, anywhere in the list', async () => {
  const sdl = `${PERSONS} type Person { id: ID! } type Mutation { hire(id: ID!, at: Int!): Person }`;
  const present = [...ids];
  const schema = makeExecutableSchema(sdl, {
    Query: { persons: personPages(present) },
    Mutation: {
      hire: (_: unknown, { id, at }: { id: string; at: number }) => {
        present.splice(at, 0, id);
        return { id };
      },
    },
  });
  const config = { mutations: 'all' } as const;
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: sdl, config });
  const ask = () => gateway.ask('{ person(id: "new") { id } }');
  expect(await ask()).toEqual({ data: { person: null } });
  await gateway.ask('mutation { hire(id: "new", at: 60) { id } }');
  expect(await ask()).toEqual({ data: { person: { id: 'new' } } });
});

test('an id of a custom scalar finds its record as a number and as a string, even in one request', async () => {
  const sdl = `
    scalar Code
    type Job { id: Code! }
    type JobPage { items: [Job!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }
    type Query { jobs(first: Int, after: String): JobPage! }`;
  const schema = makeExecutableSchema(sdl, {
    Query: { jobs: () => ({ items: [{ id: 12 }], pageInfo: { hasNextPage: false } }) },
  });
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: sdl });
  const { data } = await gateway.ask(
    `{ a: job(id: 12) { id } b: job(id: "12") { id }
       _entities(representations: [{ __typename: "Job", id: 12 }, { __typename: "Job", id: "12" }]) {
         ... on Job { id }
       } }`,
  );
  const job = { id: 12 };
  expect(data).toEqual({ a: job, b: job, _entities: [job, job] });
});

/** A service whose people have a rank, which fails for some of them. */
async function startRanked(fails: (id: string) => boolean, listed = '[Person!]!') {
  const sdl = `${PERSONS} type Person { id: ID! rank: Int! }`.replace('[Person!]!', listed);
  const schema = makeExecutableSchema(sdl, {
    Query: { persons: personPages(ids) },
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
        'query ($all: [_Any!]!) { _entities(representations: $all) { ... on Person { id rank } } }',
        { all: requested.map((id) => ({ __typename: 'Person', id })) },
      ),
  };
}
