import { expect, test } from 'vitest';
import { SizeRefusedError, type FetchPage } from '../../src/paging/page.ts';
import { PageSize } from '../../src/paging/page-size.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';

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

test('the page limit is learned from a page that the service cuts, and not from the number of records', async () => {
  const world = startWorld({ limit: 20 });
  await world.fetch(null, 50);
  expect(world.size.limit).toBe(20);
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
