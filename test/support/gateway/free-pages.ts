import { createCallerBudgets, PageBudget } from '../../../src/paging/page-budget.ts';
import { systemClock } from '../../../src/clock.ts';

/** The budget of a caller without limits. */
export function freePages(): PageBudget {
  return new PageBudget(createCallerBudgets(0, systemClock), { name: 'anybody', mayDrain: true });
}
