import { expect, test } from 'vitest';
import {
  makeExecutableSchema,
  pageOf,
  PERSONS,
  type PageArgs,
} from '../../support/imitations/honest.ts';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';
import { ManualClock } from '../../support/random/manual-clock.ts';

const SDL = `${PERSONS}
  type Person { id: ID! rank: Int! }
`;

interface Person {
  readonly id: string;
  readonly rank: number;
}

test('a record that moved far since the walk of this half minute is found by another walk', async () => {
  const list = { all: people(2_400) };
  await using gateway = await startWorld(list, pageOf);
  await gateway.entities(['unknown']);
  list.all = [...people(900, 'new'), ...list.all];
  const ids = ['p700', 'p1000', 'p1500', 'p2399'];
  const before = gateway.requests();
  expect((await gateway.entities(ids)).data._entities).toEqual(ids.map((id) => ({ id })));
  // Once these records are known to have moved, one walk serves all of them.
  expect(gateway.requests() - before).toBeLessThanOrEqual(1.5 * 68 + 40);
});

test('records removed after a walk passed them cost one more walk, not one each', async () => {
  const list = { all: people(3_000) };
  await using gateway = await startWorld(list, byKey);
  await gateway.entities(['p2500']);
  const before = gateway.requests();
  list.all = list.all.filter(({ rank }) => rank % 10 !== 3);
  const removed = Array.from({ length: 200 }, (_, at) => `p${at * 10 + 3}`);
  expect((await gateway.entities(removed)).data._entities).toEqual(removed.map(() => null));
  expect(gateway.requests() - before).toBeLessThan(250);
});

function people(count: number, name = 'p'): Person[] {
  return Array.from({ length: count }, (_, rank) => ({ id: `${name}${rank}`, rank }));
}

type Pages = (all: readonly Person[], args: PageArgs) => object;

function byKey(all: readonly Person[], { first, after }: PageArgs) {
  const index = after ? all.findIndex(({ rank }) => rank > Number(after)) : 0;
  const start = index < 0 ? all.length : index;
  const items = all.slice(start, start + Math.min(first ?? 50, 50));
  const hasNextPage = start + items.length < all.length;
  return { items, pageInfo: { hasNextPage, endCursor: String(items.at(-1)?.rank) } };
}

async function startWorld(
  list: { all: readonly Person[] },
  pages: Pages,
  clock = new ManualClock(),
  fails: (rank: number) => boolean = () => false,
) {
  const schema = makeExecutableSchema(SDL, {
    Query: { persons: (_: unknown, args: PageArgs) => pages(list.all, args) },
    Person: {
      rank: ({ rank }: Person) => {
        if (fails(rank)) throw new Error(`No rank for p${rank}.`);
        return rank;
      },
    },
  });
  const gateway = await startGatewayOverFake({ schema }, { snapshot: SDL, clock });
  return {
    ...gateway,
    requests: () => gateway.upstream.received.length,
    entities: (ids: readonly string[], selection = 'id') =>
      gateway.ask<{ _entities: unknown[] }>(
        `query ($representations: [_Any!]!) {
          _entities(representations: $representations) { ... on Person { ${selection} } }
        }`,
        { representations: ids.map((id) => ({ __typename: 'Person', id })) },
      ),
  };
}
