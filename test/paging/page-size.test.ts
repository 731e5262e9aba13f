import { expect, test } from 'vitest';
import { Pace } from '../../src/paging/pace.ts';
import { PageFailedError, SizeRefusedError, type FetchPage } from '../../src/paging/page.ts';
import { PageSize } from '../../src/paging/page-size.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';

test('a page that is refused as too big is requested again in half the size, which is kept', async () => {
  const world = startWorld({ accepts: 12 });
  await world.fetch(null, 50);
  expect(world.requested).toEqual([50, 25, 12]);
  expect(world.size.limit).toBe(12);
  await world.fetch(null, 50);
  await world.fetch(null, 3);
  expect(world.requested.slice(3)).toEqual([12, 3]);
});

test('a larger page is tried again after ten minutes, one step after the other', async () => {
  const world = startWorld({ accepts: 12 });
  await world.fetch(null, 50);
  world.requested.length = 0;
  world.clock.jump(10 * MINUTE);
  await world.fetch(null, 50);
  expect(world.requested).toEqual([24, 12]);
  world.accept(50);
  for (const expected of [24, 48, 50, 50]) {
    world.clock.jump(10 * MINUTE);
    await world.fetch(null, 50);
    expect(world.requested.at(-1)).toBe(expected);
  }
});

test('pages that are refused at the same time halve the size once', async () => {
  const world = startWorld({ accepts: 25 });
  await Promise.all([1, 2, 3, 4].map(() => world.fetch(null, 50)));
  expect(world.size.limit).toBe(25);
});

test('a single record that is refused is a failure with the error of the service', async () => {
  const world = startWorld({ accepts: 0 });
  const failure = await world.fetch(null, 50).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(PageFailedError);
  expect(failure).toMatchObject({ cause: 'complexity' });
  expect(world.requested).toEqual([50, 25, 12, 6, 3, 1]);
});

test('the page limit is learned from a page that the service cuts, and not from the number of records', async () => {
  const world = startWorld({ limit: 20 });
  await world.fetch(null, 50);
  expect(world.size.limit).toBe(20);
});

test('a burst of refusals halves the pace once, and every full round of good answers raises it by one', () => {
  const pace = new Pace(8);
  const burst = Array.from({ length: 8 }, () => pace.begin());
  for (const request of burst) {
    request.overloaded();
    request.arrived();
  }
  expect(pace.limit).toBe(4);
  for (const [arrivals, limit] of [
    [3, 4],
    [1, 5],
    [5, 6],
    [6, 7],
    [7, 8],
    [99, 8],
  ] as const) {
    for (let arrived = 0; arrived < arrivals; arrived += 1) pace.begin().arrived();
    expect(pace.limit).toBe(limit);
  }
  for (let halved = 0; halved < 9; halved += 1) pace.begin().overloaded();
  expect(pace.limit).toBe(1);
});

/** A service that hides all records, so that only `size` says something. */
function startWorld({ accepts = Infinity, limit = 50 }: { accepts?: number; limit?: number }) {
  const clock = new ManualClock();
  const size = new PageSize(clock);
  const requested: number[] = [];
  let accepted = accepts;
  const fetchPage: FetchPage = async (_, first) => {
    requested.push(first);
    if (first > accepted) throw new SizeRefusedError('too big', { cause: 'complexity' });
    return {
      records: [],
      ids: [],
      hasNextPage: true,
      endCursor: 'x',
      size: Math.min(first, limit),
    };
  };
  return {
    clock,
    size,
    requested,
    fetch: size.fetching(fetchPage),
    accept: (records: number) => {
      accepted = records;
    },
  };
}
