import { describe, expect, test } from 'vitest';
import { KnownLists } from '../../src/paging/known-lists.ts';
import { post } from '../support/clients/post.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { failure, range } from '../service/lists.ts';
import { after, honest, json } from '../service/replies.ts';
import { startTeams } from '../support/gateway/teams.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';

const TOTAL = '{ personsConnection { totalCount } }';

interface Total {
  personsConnection: { totalCount: number };
}

/** Totals are kept for five minutes. */
async function startPersons(config: TestGatewayOptions['config'] = {}, persons = 137) {
  const clock = new ManualClock();
  const world = await startGatewayOverService({ persons }, { clock, config });
  const total = async () => {
    const { data, errors } = await world.ask<Total>(TOTAL);
    expect(errors).toBeUndefined();
    return data.personsConnection.totalCount;
  };
  const requestsOf = async (action: () => Promise<unknown>) => {
    const before = world.service.received.length;
    await action();
    return world.service.received.length - before;
  };
  /** Waits until no walk is under way. */
  const settled = async () => {
    const line = 'recruiting_drains_running 0\n';
    await expect.poll(() => world.gateway.metrics.metrics(), { timeout: 20_000 }).toContain(line);
  };
  return { ...world, clock, persons: world.service.persons, total, requestsOf, settled };
}

test('a total is returned up to twice TOTAL_COUNT_SECONDS, renewed from half of that on, and only a list without one can fail', async () => {
  await using world = await startPersons();
  expect(await world.total()).toBe(137);
  world.persons.insert(0, 3);
  world.service.answer(json({}, 400));
  world.clock.jump(5 * MINUTE - 1);
  expect(await world.requestsOf(world.total)).toBe(0);
  world.clock.jump(5 * MINUTE);
  expect(await world.total()).toBe(137);
  await world.settled();
  world.clock.jump(1);
  const { data, errors } = await world.ask<Total>(TOTAL);
  expect(data.personsConnection.totalCount).toBeNull();
  expect(errors).toMatchObject([{ path: ['personsConnection', 'totalCount'] }]);
  world.service.answer(honest);
  expect(await world.total()).toBe(140);
  world.persons.remove(0, 40);
  world.clock.jump(5 * MINUTE);
  expect(await world.total()).toBe(140);
  await world.settled();
  expect(await world.requestsOf(async () => expect(await world.total()).toBe(100))).toBe(0);
});

const TABLE = 'personsConnection(first: 5) { nodes { id } totalCount }';

test.each([
  ['that is not selected', 'personsConnection(first: 5) { nodes { id } }', 1, 1],
  ['that is skipped', TABLE.replace('totalCount', 'totalCount @skip(if: true)'), 1, 1],
  ['with edges', TABLE, 1 + 3, 1],
  [
    'in fragments and under aliases',
    `a: personsConnection { ...Total }
     b: personsConnection { how: totalCount many: totalCount }
     c: personsConnection(last: 4) { ... on PersonConnection { totalCount } }`,
    3,
    0,
  ],
])(
  'a totalCount %s costs the pages of one walk for many callers, and then none',
  async (_, fields, pages, again) => {
    // As many as are counted here are not too many.
    await using world = await startPersons({ drainMaxItems: 137 });
    const fragment = 'fragment Total on PersonConnection { totalCount __typename }';
    const query = `{ ${fields} } ${fields.includes('...Total') ? fragment : ''}`;
    const ask = async () => expect((await world.ask(query)).errors).toBeUndefined();
    expect(await world.requestsOf(() => Promise.all(range(10).map(ask)))).toBe(pages);
    expect(await world.requestsOf(ask)).toBe(again);
  },
);

test.each([
  ['a drain', '{ allPersons { id } }', 0],
  ['a stream', '{ allPersons @stream { id } }', 0],
  ['reading from the end', '{ personsConnection(last: 1) { nodes { id } } }', 0],
  ['looking for an unknown id', '{ person(id: "unknown") { id } }', 0],
  [
    'no part of the list',
    '{ allPersons(limit: 130) { id } personsConnection(first: 120) { nodes { id } } }',
    3,
  ],
])('a total is renewed by %s', async (_, query, requests) => {
  await using world = await startPersons();
  const response = await world.fetch(
    '/graphql',
    post({ query }, { accept: 'multipart/mixed, application/json' }),
  );
  await response.text();
  expect(await world.requestsOf(world.total)).toBe(requests);
});

test('DRAIN_MAX_ITEMS limits a count like any drain: the total is null with an error, and the edges stay', async () => {
  await using world = await startPersons({ drainMaxItems: 100 });
  const query = '{ personsConnection(first: 2) { nodes { id } totalCount again: totalCount } }';
  const nodes = world.persons.slice(0, 2).map(({ id }) => ({ id }));
  const extensions = { code: 'DRAIN_LIMIT_EXCEEDED', max: 100 };
  expect(await world.ask(query)).toMatchObject({
    data: { personsConnection: { nodes, totalCount: null } },
    errors: ['totalCount', 'again'].map((key) => ({
      path: ['personsConnection', key],
      extensions,
    })),
  });
});

describe('a count in the background', () => {
  test('is charged to no caller, and needs no scope of theirs', async () => {
    await using world = await startPersons({ pagesPerMinute: 5 });
    const page = '{ personsConnection(first: 1) { totalCount nodes { id } } }';
    expect((await world.ask(page)).errors).toBeUndefined();
    world.clock.jump(5 * MINUTE);
    // One page each, of the five that are left: the walk of three pages takes none of them.
    for (let request = 0; request < 5; request += 1)
      expect((await world.ask(page)).errors).toBeUndefined();
    await world.settled();
    const { errors } = await world.ask(page);
    expect(errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }]);
  });

  test('lets a drain that waits for a slot begin first', async () => {
    await using world = await startPersons({ maxDrains: 1 }, 1_000);
    await world.total();
    world.clock.jump(5 * MINUTE);
    const gate = Promise.withResolvers<void>();
    world.service.answer(after(gate.promise, honest));
    await world.total();
    await world.service.arrived(world.service.received.length);
    const order: string[] = [];
    const drained = world.ask('{ allPersons { firstName } }').then(() => order.push('drain'));
    const counted = world.settled().then(() => order.push('count'));
    gate.resolve();
    await Promise.all([drained, counted]);
    expect(order).toEqual(['drain', 'count']);
  });
});

function startTotals() {
  const clock = new ManualClock();
  const known = new KnownLists({ clock, maxIds: 0, totalSeconds: 300 });
  const renewals: { readonly list: string; readonly signal: AbortSignal }[] = [];
  async function* renew(list: string, signal: AbortSignal) {
    renewals.push({ list, signal });
    yield await new Promise(() => {});
  }
  const of = (list: string) => known.totalOf(list, (signal) => renew(list, signal));
  return { clock, known, renewals, of };
}

test('totals are renewed once for all who ask, and those of walks before a mutation neither kept nor renewed', () => {
  const { clock, known, renewals, of } = startTotals();
  const kept = ['a', 'b'].map((list) => known.begin(list));
  // They are as old as their walks.
  clock.jump(5 * MINUTE);
  for (const keep of kept) keep(1, undefined);
  const before = known.begin('a');
  ['a', 'a', 'b'].forEach(of);
  expect(renewals.map(({ list }) => list)).toEqual(['a', 'b']);
  known.forget();
  before(3, undefined);
  expect(of('a')).toBeUndefined();
  expect(renewals.map(({ signal }) => signal.aborted)).toEqual([true, true]);
  known.begin('a')(2, undefined);
  expect(of('a')).toBe(2);
});

describe('where adapters.json names the count of a page', () => {
  const count = { count: 'total' };
  const overrides = { fields: { 'Query.teams': count, 'Team.members': count } };
  const start = (total?: () => unknown) => startTeams({ teams: 120, total }, { overrides });

  test.each([
    ['', 120],
    ['(lead: "Ada")', 60],
    ['(lead: "Nobody")', 0],
  ])('totalCount of teamsConnection%s is one small request', async (filter, totalCount) => {
    await using world = await start();
    const { data } = await world.ask(`{ teamsConnection${filter} { totalCount } }`);
    expect(data).toEqual({ teamsConnection: { totalCount } });
    const [request, ...more] = world.service.received;
    expect(JSON.parse(request!.body)).toMatchObject({ variables: { _rs_first: 1 } });
    expect(more).toEqual([]);
  });

  test('those of nested lists come in one request for many parents', async () => {
    await using world = await start();
    const members = 'membersConnection(first: 1) { totalCount nodes { id } }';
    const { data } = await world.ask(`{ teams(first: 10) { items { ${members} } } }`);
    const items = range(10).map((number) => ({
      membersConnection: { totalCount: 2, nodes: [{ id: `${number - 1}-0` }] },
    }));
    expect(data).toEqual({ teams: { items } });
    // The parents, then the first pages of their lists, and the counts.
    expect(world.service.received).toHaveLength(3);
  });

  test.each([
    ['null', () => null],
    ['negative', () => -1],
    [
      'an error',
      () => {
        throw failure('No count today.');
      },
    ],
  ])('a list is counted where its count is %s, and nothing of it is reported', async (_, total) => {
    await using world = await start(total);
    expect(await world.ask('{ teamsConnection { totalCount } }')).toEqual({
      data: { teamsConnection: { totalCount: 120 } },
    });
  });
});
