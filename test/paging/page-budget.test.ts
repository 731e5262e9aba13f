import { expect, test } from 'vitest';
import { createCallerBudgets } from '../../src/paging/page-budget.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';

test('all operations of a caller share one minute, however long one of them lasts', () => {
  const clock = new ManualClock();
  const callers = createCallerBudgets(20, clock);
  const long = callers.of('key:portal');
  long.spend(5);
  clock.jump(2 * MINUTE);
  callers.of('key:other').spend(1);
  callers.of('key:portal').spend(15);
  long.spend(5);
  expect(() => long.spend(1)).toThrow(/20 pages a minute/);
  expect(() => callers.of('key:portal').check(1)).toThrow(/20 pages a minute/);
});
