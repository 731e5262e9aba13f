import { expect, test } from 'vitest';
import { createAccounts } from '../../src/paging/page-budget.ts';
import { ManualClock, MINUTE } from '../support/manual-clock.ts';

test('a caller has one budget, however long an operation holds its account', () => {
  const clock = new ManualClock();
  const accounts = createAccounts(20, clock);
  const long = accounts.of('key:portal');
  long.take(5);
  clock.jump(2 * MINUTE);
  accounts.of('key:other').take(1);
  accounts.of('key:portal').take(15);
  long.take(5);
  expect(() => long.take(1)).toThrow(/20 pages a minute/);
  expect(() => accounts.of('key:portal').check(1)).toThrow(/20 pages a minute/);
});
