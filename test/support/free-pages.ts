import { createAccounts, createPageMeter, type PageMeter } from '../../src/paging/page-budget.ts';
import { systemClock } from '../../src/clock.ts';

/** Of somebody who may have as many as he wants. */
export function freePages(): PageMeter {
  return createPageMeter(createAccounts(0, systemClock).of('anybody'), true);
}
