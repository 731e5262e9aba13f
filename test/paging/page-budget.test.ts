import { expect, test } from 'vitest';
import { createCallerBudgets } from '../../src/paging/page-budget.ts';
import { ManualClock, MINUTE } from '../support/random/manual-clock.ts';

test('all operations of a caller share one minute, however long one of them lasts', () => {
  const clock = new ManualClock();
  const callers = createCallerBudgets(20, clock);
  callers.spend('key:portal', 5);
  clock.jump(2 * MINUTE);
  callers.spend('key:other', 1);
  callers.spend('key:portal', 15);
  callers.spend('key:portal', 5);
  expect(() => callers.spend('key:portal', 1)).toThrow(/20 pages a minute/);
  expect(() => callers.check('key:portal', 1)).toThrow(/20 pages a minute/);
});
