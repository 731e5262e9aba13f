import { expect, test } from 'vitest';
import { createCallerBudgets, createPageBudget } from '../../src/paging/page-budget.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';

test('all operations of a caller share one minute, however long one of them lasts', () => {
  const clock = new ManualClock();
  const callers = createCallerBudgets(20, clock);
  const long = createPageBudget(callers, { name: 'key:portal', mayDrain: true });
  long.spend(5);
  clock.jump(2 * MINUTE);
  callers.spend('key:other', 1);
  callers.spend('key:portal', 15);
  long.spend(5);
  expect(() => long.spend(1)).toThrow(/20 pages a minute/);
  expect(() => callers.check('key:portal', 1)).toThrow(/20 pages a minute/);
});
