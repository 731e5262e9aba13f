// Imports the engine's insides, and goes when the engine is replaced.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createCallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';

test('all operations of a caller share one minute, however long one of them lasts', () => {
  const clock = new ManualClock();
  const callers = createCallerBudgets(20, clock);
  const long = new PageBudget(callers, { name: 'key:portal', mayDrain: true });
  long.spend(5);
  clock.jump(2 * MINUTE);
  callers.spend('key:other', 1);
  callers.spend('key:portal', 15);
  long.spend(5);
  expect(() => long.spend(1)).toThrow(/20 pages a minute/);
  expect(() => callers.check('key:portal', 1)).toThrow(/20 pages a minute/);
});

test('callers whose pages have come back take no memory, however many there were within a minute', () => {
  const clock = new ManualClock();
  const callers = createCallerBudgets(6_000, clock);
  const before = heap();
  for (let caller = 0; caller < 59_000; caller += 1) {
    callers.spend(`address:2001:db8:${caller}`, 1);
    clock.jump(1);
  }
  expect(heap() - before).toBeLessThan(2_000_000);
  callers.spend('key:portal', 6_000);
  for (let caller = 0; caller < 3_000; caller += 1) callers.spend(`address:${caller}`, 6_000);
  expect(() => callers.check('key:portal', 1)).toThrow(/6000 pages a minute/);
});

function heap(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
