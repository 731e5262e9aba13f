import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Totals } from '../../src/paging/totals.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';

const KEPT = 300;

test('a total is returned for TOTAL_COUNT_SECONDS without another walk', () => {
  const world = startWorld();
  expect(world.total()).toBeUndefined();
  world.walked(7);
  world.clock.jump(KEPT * SECOND - 1);
  expect(world.total()).toBe(7);
  expect(world.renewals).toHaveLength(0);
});

test('an older total is returned while one walk renews it, up to twice its age', async () => {
  const world = startWorld();
  world.walked(7);
  world.clock.jump(KEPT * SECOND);
  expect([world.total(), world.total()]).toEqual([7, 7]);
  expect(world.renewals).toHaveLength(1);
  world.clock.jump(KEPT * SECOND - 1);
  expect(world.total()).toBe(7);
  world.renewals[0]!.finish(8);
  await setImmediate();
  // Its age counts from the beginning of the walk.
  expect(world.total()).toBe(8);
  expect(world.renewals).toHaveLength(1);
  world.clock.jump(1);
  expect(world.total()).toBe(8);
  expect(world.renewals).toHaveLength(2);
});

test('a total twice that old is counted before it is returned', () => {
  const world = startWorld();
  world.walked(7);
  world.clock.jump(2 * KEPT * SECOND);
  expect(world.total()).toBeUndefined();
  expect(world.renewals).toHaveLength(0);
});

test('an older walk does not replace the total of one that began later', () => {
  const world = startWorld();
  const older = world.totals.begin('persons');
  world.clock.jump(SECOND);
  world.walked(8);
  older(7);
  expect(world.total()).toBe(8);
});

test('after a failed walk in the background the total stays, and the next walk waits for ten seconds', async () => {
  const world = startWorld();
  world.walked(7);
  world.clock.jump(KEPT * SECOND);
  world.total();
  world.renewals[0]!.fail();
  await setImmediate();
  expect(world.total()).toBe(7);
  world.clock.jump(10 * SECOND - 1);
  world.total();
  expect(world.renewals).toHaveLength(1);
  world.clock.jump(1);
  world.total();
  expect(world.renewals).toHaveLength(2);
});

test('no more than two lists are counted in the background at a time', () => {
  const world = startWorld();
  const lists = ['a', 'b', 'c'];
  for (const list of lists) world.totals.begin(list)(1);
  world.clock.jump(KEPT * SECOND);
  expect(lists.map((list) => world.total(list))).toEqual([1, 1, 1]);
  expect(world.renewals.map(({ list }) => list)).toEqual(['a', 'b']);
});

test('with TOTAL_COUNT_SECONDS=0 a total is counted every time', () => {
  const world = startWorld(0);
  world.walked(7);
  expect(world.total()).toBeUndefined();
});

test('after a mutation totals are counted anew, and a walk that began before leaves none', async () => {
  const world = startWorld();
  world.walked(7);
  world.clock.jump(KEPT * SECOND);
  world.total();
  const before = world.totals.begin('persons');
  world.totals.clear();
  expect(world.renewals[0]!.signal.aborted).toBe(true);
  before(7);
  world.renewals[0]!.finish(7);
  await setImmediate();
  expect(world.total()).toBeUndefined();
  world.walked(8);
  expect(world.total()).toBe(8);
});

/** Totals whose walks in the background the test ends. */
function startWorld(seconds = KEPT) {
  const clock = new ManualClock();
  const totals = new Totals(clock, seconds);
  const renewals: {
    list: string;
    signal: AbortSignal;
    finish: (total: number) => void;
    fail: () => void;
  }[] = [];
  const total = (list = 'persons') =>
    totals.of(list, (signal) => {
      const keep = totals.begin(list);
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      const fail = () => reject(new Error('down'));
      renewals.push({ list, signal, finish: resolve, fail });
      return walkUntil(promise, keep);
    });
  return {
    clock,
    totals,
    renewals,
    total,
    walked: (count: number) => totals.begin('persons')(count),
  };
}

async function* walkUntil(end: Promise<number>, keep: (total: number) => void) {
  keep(await end);
  yield 'the last page';
}
