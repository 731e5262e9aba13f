import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Totals } from '../../src/paging/totals.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { failure, makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';
import { after, honest, json } from '../service/replies.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';

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
    await expect.poll(() => world.gateway.metrics.text(), { timeout: 20_000 }).toContain(line);
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

test.each([
  ['that is not selected', 'personsConnection(first: 5) { nodes { id } }', 1],
  ['that is skipped', 'personsConnection(first: 5) { totalCount @skip(if: true) nodes { id } }', 1],
  ['with edges', 'personsConnection(first: 5) { nodes { id } totalCount }', 1 + 3],
  [
    'in fragments and under aliases',
    `a: personsConnection { ...Total }
     b: personsConnection { how: totalCount many: totalCount }
     c: personsConnection(last: 4) { ... on PersonConnection { totalCount } }`,
    3,
  ],
])('a totalCount %s costs no more pages than its walk', async (_, fields, pages) => {
  await using world = await startPersons();
  const fragment = 'fragment Total on PersonConnection { totalCount __typename }';
  const query = `{ ${fields} } ${fields.includes('...Total') ? fragment : ''}`;
  const ask = async () => expect((await world.ask(query)).errors).toBeUndefined();
  expect(await world.requestsOf(ask)).toBe(pages);
});

test('one walk counts for many callers at once', async () => {
  await using world = await startPersons();
  const ask = () => Promise.all(Array.from({ length: 30 }, () => world.total()));
  expect(await world.requestsOf(ask)).toBe(3);
});

test('each page of a table with a total is one request, however often it is asked for', async () => {
  await using world = await startPersons({}, 1_000);
  const table = '{ personsConnection(first: 20) { totalCount edges { node { id } } } }';
  const page = async () => expect((await world.ask(table)).errors).toBeUndefined();
  expect(await world.requestsOf(page)).toBeGreaterThan(20);
  for (let time = 0; time < 3; time += 1) expect(await world.requestsOf(page)).toBe(1);
});

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
  const response = await world.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'multipart/mixed, application/json' },
    body: JSON.stringify({ query }),
  });
  await response.text();
  expect(await world.requestsOf(world.total)).toBe(requests);
});

test('DRAIN_MAX_ITEMS limits a count like any drain: the total is null with an error, and the edges stay', async () => {
  await using world = await startPersons({ drainMaxItems: 100 });
  const query = '{ personsConnection(first: 2) { nodes { id } totalCount } }';
  const nodes = world.persons.slice(0, 2).map(({ id }) => ({ id }));
  const extensions = { code: 'DRAIN_LIMIT_EXCEEDED', max: 100 };
  expect(await world.ask(query)).toMatchObject({
    data: { personsConnection: { nodes, totalCount: null } },
    errors: [{ path: ['personsConnection', 'totalCount'], extensions }],
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

  const KEPT = 300;

  /** Totals whose walks in the background the test ends. */
  function startTotals(seconds = KEPT) {
    const clock = new ManualClock();
    const totals = new Totals(clock, seconds);
    const renewals: (PromiseWithResolvers<number> & { list: string; signal: AbortSignal })[] = [];
    const total = (list = 'persons') =>
      totals.of(list, async function* renew(signal) {
        const keep = totals.begin(list);
        const walk = { ...Promise.withResolvers<number>(), list, signal };
        renewals.push(walk);
        keep(await walk.promise);
        yield;
      });
    const walked = (count: number, list = 'persons') => totals.begin(list)(count);
    return { clock, totals, renewals, total, walked };
  }

  test('is made once at a time, and again after it failed', async () => {
    const { clock, renewals, total, walked } = startTotals();
    walked(7);
    clock.jump(KEPT * SECOND);
    expect([total(), total()]).toEqual([7, 7]);
    expect(renewals).toHaveLength(1);
    renewals[0]!.reject(new Error('down'));
    await setImmediate();
    expect(total()).toBe(7);
    expect(renewals).toHaveLength(2);
  });

  test('begins at the age of TOTAL_COUNT_SECONDS, which counts from the beginning of a walk', async () => {
    const { clock, renewals, total, walked } = startTotals();
    walked(7);
    clock.jump(KEPT * SECOND - 1);
    expect(total()).toBe(7);
    expect(renewals).toHaveLength(0);
    clock.jump(1);
    total();
    clock.jump(KEPT * SECOND - 1);
    renewals[0]!.resolve(8);
    await setImmediate();
    expect(total()).toBe(8);
    expect(renewals).toHaveLength(1);
    clock.jump(1);
    expect(total()).toBe(8);
    expect(renewals).toHaveLength(2);
    clock.jump(KEPT * SECOND);
    expect(total()).toBeUndefined();
  });

  test('is made for two lists at a time', () => {
    const { clock, renewals, total, walked } = startTotals();
    for (const list of ['a', 'b', 'c']) walked(1, list);
    clock.jump(KEPT * SECOND);
    expect(['a', 'b', 'c'].map((list) => total(list))).toEqual([1, 1, 1]);
    expect(renewals.map(({ list }) => list)).toEqual(['a', 'b']);
  });

  test('from before a mutation, or that began before another walk, does not replace the total of it', async () => {
    const { clock, totals, renewals, total, walked } = startTotals();
    walked(7);
    const older = totals.begin('persons');
    clock.jump(KEPT * SECOND);
    total();
    totals.clear();
    expect(renewals[0]!.signal.aborted).toBe(true);
    older(7);
    renewals[0]!.resolve(7);
    await setImmediate();
    expect(total()).toBeUndefined();
    const slow = totals.begin('persons');
    clock.jump(SECOND);
    walked(8);
    slow(7);
    expect(total()).toBe(8);
  });

  test('is not made with TOTAL_COUNT_SECONDS=0: a total is counted every time', () => {
    const { total, walked } = startTotals(0);
    walked(7);
    expect(total()).toBeUndefined();
  });
});

const ROWS = /* GraphQL */ `
  type Query {
    rows(first: Int, after: String, kind: Int): RowPage!
    group(id: Int!): Group
    groups: [Group!]!
  }
  type Row {
    id: Int!
  }
  type RowPage {
    items: [Row!]!
    pageInfo: PageInfo!
    total: Int
  }
  type Group {
    id: Int!
    rows(first: Int, after: String): RowPage!
  }
  type PageInfo {
    hasNextPage: Boolean!
    endCursor: String
  }
`;

/** @param total the count that the service reports. Default: the number of records of the list */
async function startRows(total?: () => unknown, count: object = { count: 'total' }) {
  const rows = Array.from({ length: 130 }, (_, index) => ({ id: index + 1 }));
  const page = ({ kind, ...args }: PageArgs & { kind?: number | null }) => {
    const kept = rows.filter(({ id }) => kind == null || id % 2 === kind);
    return { ...pageOf(kept, args), total: total ?? (() => kept.length) };
  };
  const groups = Array.from({ length: 10 }, (_, index) => ({ id: index + 1, rows: page }));
  const schema = makeExecutableSchema(ROWS, {
    Query: {
      rows: (_: unknown, args: PageArgs) => page(args),
      group: (_: unknown, { id }: { id: number }) => groups[id - 1],
      groups: () => groups,
    },
  });
  const overrides = { fields: { 'Query.rows': count, 'Group.rows': count } };
  const world = await startGatewayOverService({ schema }, { snapshot: ROWS, overrides });
  const ask = async (query: string) => {
    const before = world.service.received.length;
    const { data, errors } = await world.ask(query);
    expect(errors).toBeUndefined();
    return { data, requests: world.service.received.length - before };
  };
  return { ...world, ask };
}

const counted = (totalCount: number) => ({ rowsConnection: { totalCount } });

describe('where adapters.json names the count of a page', () => {
  test('totalCount is one small request, for each list with its filters', async () => {
    await using world = await startRows();
    for (const [filter, total] of [
      ['', 130],
      ['(kind: 1)', 65],
      ['(kind: 7)', 0],
    ] as const) {
      const answer = await world.ask(`{ rowsConnection${filter} { totalCount } }`);
      expect(answer).toEqual({ data: counted(total), requests: 1 });
      const request = JSON.parse(world.service.received.at(-1)!.body) as { variables: object };
      expect(request.variables).toMatchObject({ _rs_first: 1 });
    }
    await using uncounted = await startRows(() => 7, {});
    expect(await uncounted.ask('{ rowsConnection { totalCount } }')).toEqual({
      data: counted(130),
      requests: 3,
    });
  });

  test('totalCount of nested lists comes along with their parents', async () => {
    await using world = await startRows();
    const rowsConnection = { totalCount: 130, nodes: [{ id: 1 }, { id: 2 }] };
    // The parents, then the first pages of their lists, then the counts.
    expect(
      await world.ask('{ groups { rowsConnection(first: 2) { totalCount nodes { id } } } }'),
    ).toEqual({
      data: { groups: Array.from({ length: 10 }, () => ({ rowsConnection })) },
      requests: 3,
    });
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
    await using world = await startRows(total);
    expect(await world.ask('{ allRows { id } }')).toMatchObject({
      data: { allRows: { length: 130 } },
    });
    expect((await world.ask('{ rowsConnection { totalCount } }')).data).toEqual(counted(130));
  });
});
