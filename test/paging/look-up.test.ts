import { describe, expect, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import { MISSING_MS } from '../../src/paging/known-lists.ts';
import { PageFailedError, type FetchPage } from '../../src/paging/page.ts';
import { walkList } from '../../src/paging/walk.ts';
import type { Serials } from '../service/list-model.ts';
import { recordsOf, World } from './world.ts';

const LIMIT = 12;

test('a record that fails with the fields of the lookup is returned with its failure, not called missing or moved', async () => {
  for (const length of [5, 80]) {
    const world = new World(length, { limit: LIMIT });
    const fetchPage: FetchPage<Serials> = async (...request) => {
      const page = await world.fetchPage(...request);
      return { ...page, ids: page.ids.map((id) => (id === '3' ? null : id)) };
    };
    for (const isWalked of [false, true]) {
      if (isWalked) await world.drain();
      const list = { ...world.list, fetchPage };
      expect(await world.find([2, 3, 999], { list })).toEqual([2, 3, undefined]);
    }
  }
});

test('a record that failed in a drain is not called missing', async () => {
  const world = new World(80, { limit: LIMIT });
  const fetchPage: FetchPage<Serials> = async (...request) => {
    const page = await world.fetchPage(...request);
    return { ...page, ids: page.ids.map((id) => (id === '40' ? null : id)) };
  };
  await recordsOf(walkList({ ...world.list, fetchPage }, { after: null }));
  expect(await world.find([40])).toEqual([40]);
});

test('a record that was pushed out of its page behind a walk is found by another one', async () => {
  const world = new World(500);
  world.onRead = () => {
    if (world.requests === 10) world.service.apply({ do: 'insert', at: 434, count: 120 });
  };
  expect(await world.find([435])).toEqual([435]);
});

test('a record that came to the end of a list of one page is found where its own pages are smaller', async () => {
  const world = new World(30);
  await world.drain();
  world.service.apply({ do: 'insert', at: 30, count: 1 });
  const fetchPage: FetchPage<Serials> = (after, first) =>
    world.fetchPage(after, Math.min(20, first));
  expect(await world.find([30], { list: { ...world.list, fetchPage } })).toEqual([30]);
});

const refused = () => Promise.reject(new Error('The budget is used up.'));

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

describe('the requests of lookups', () => {
  test('for unknown ids are one walk in 30 seconds, until a mutation is sent', async () => {
    const world = new World(500);
    const walk = await world.costOf(() =>
      Promise.all(range(900, 930).map((id) => world.find([id]))),
    );
    expect(walk).toBeLessThanOrEqual(12);
    world.clock.jump(MISSING_MS - 1);
    // The first and the last page.
    expect(await world.costOf(() => world.find([950]))).toBe(2);
    await expect(
      world.find([950], { list: { ...world.list, fetchPage: refused } }),
    ).rejects.toThrow('used up');
    world.service.apply({ do: 'insert', at: 250, count: 1 });
    expect(await world.find([500])).toEqual([undefined]);
    world.known.forget();
    expect(await world.find([500])).toEqual([500]);
    world.clock.jump(MISSING_MS);
    expect(await world.costOf(() => world.find([960]))).toBeGreaterThan(10);
  });

  test('for unknown ids join a walk that takes longer than that', async () => {
    const world = new World(500);
    const lookUps = [world.find([900])];
    world.onRead = () => {
      if (world.requests !== 5) return;
      world.clock.jump(MISSING_MS);
      lookUps.push(world.find([901]));
    };
    expect(await lookUps[0]).toEqual([undefined]);
    expect(await lookUps[1]).toEqual([undefined]);
    expect(world.requests).toBeLessThan(16);
  });

  test('for records that were removed behind a walk are one more walk, not one each', async () => {
    const world = new World(500);
    await world.find([480]);
    const removed = range(0, 40).map((at) => at * 10 + 3);
    world.remove(...removed);
    const lookUp = async () =>
      expect(await world.find(removed)).toEqual(removed.map(() => undefined));
    expect(await world.costOf(lookUp)).toBeLessThan(50);
  });

  test('end once every caller has left', async () => {
    const world = new World(500);
    const leaving = new AbortController();
    const lookUp = world.find([999], { signal: leaving.signal });
    world.onRead = () => {
      if (world.requests === 3) leaving.abort();
    };
    await expect(lookUp).rejects.toThrow('aborted');
    expect(world.requests).toBe(3);
  });
});

test('all lookups that wait for a page spend for it, and one that cannot afford it disturbs no other', async () => {
  const world = new World(500);
  const poor = world.find([300], { budget: world.budgetOf('poor', 2) });
  const rich = world.find([300], { budget: world.budgetOf('rich', 20) });
  expect((await poor).map(codeOf)).toEqual(['RATE_LIMITED']);
  expect(await rich).toEqual([300]);
  expect(await world.costOf(() => world.find([300]))).toBe(1);
});

describe('a failure', () => {
  test('of a page fails the records that are expected there, and no others', async () => {
    const world = new World(200);
    await world.drain();
    const failure = new Error('A record is broken.');
    const fetchPage: FetchPage<Serials> = async (...request) => {
      const page = await world.fetchPage(...request);
      if (page.records.includes(60)) throw new PageFailedError('failed', { cause: failure });
      return page;
    };
    expect(await world.find([20, 60, 150], { list: { ...world.list, fetchPage } })).toEqual([
      20,
      failure,
      150,
    ]);
  });

  test('of a walk that reads too many records says that it was ended', async () => {
    const world = new World(500, { mostLookedUp: 100 });
    const [near, far] = await world.find([60, 300]);
    expect([near, codeOf(far)]).toEqual([60, 'DRAIN_LIMIT_EXCEEDED']);
  });
});
