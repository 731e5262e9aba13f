import { expect, test } from 'vitest';
import { CallerBudgets, PageBudget, spendTogether } from '../../src/paging/page-budget.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';

test('all operations of a caller share one minute, however long one of them lasts', () => {
  const clock = new ManualClock();
  const callers = new CallerBudgets(20, clock);
  const long = new PageBudget(callers, 'key:portal', true);
  times(5, () => long.spend());
  clock.jump(2 * MINUTE);
  callers.spend('key:other');
  times(15, () => callers.spend('key:portal'));
  times(5, () => long.spend());
  expect(() => long.spend()).toThrow(/20 pages a minute/);
});

test('pages come back at a constant rate, and a refusal says when the next one is there', () => {
  const clock = new ManualClock();
  const callers = new CallerBudgets(20, clock);
  times(20, () => callers.spend('key:portal'));
  expect(() => callers.spend('key:portal')).toThrow(
    expect.objectContaining({ extensions: expect.objectContaining({ retryAfter: 3 }) }),
  );
  clock.jump(3 * SECOND);
  callers.spend('key:portal');
  expect(() => callers.spend('key:portal')).toThrow(/20 pages a minute/);
  clock.jump(MINUTE);
  times(20, () => callers.spend('key:portal'));
});

test('without a limit every page may be requested', () => {
  const callers = new CallerBudgets(0, new ManualClock());
  expect(() => times(10_000, () => callers.spend('key:portal'))).not.toThrow();
});

test('records of more than 12 pages need the scope drain, and pages that only count or find do not', () => {
  const callers = new CallerBudgets(0, new ManualClock());
  const budget = new PageBudget(callers, 'key:portal', false);
  times(12, () => budget.spend());
  expect(() => budget.spend()).toThrow(
    expect.objectContaining({ extensions: expect.objectContaining({ code: 'FORBIDDEN' }) }),
  );
  times(100, () => budget.forOverhead.spend());
  const draining = new PageBudget(callers, 'key:portal', true);
  times(100, () => draining.spend());
});

test('a page that several operations wait for costs each caller one, and whoever cannot pay gets none of it', () => {
  const callers = new CallerBudgets(20, new ManualClock());
  const budgetOf = (caller: string) => new PageBudget(callers, caller, true);
  const [one, equal, other] = [
    budgetOf('key:portal'),
    budgetOf('key:portal'),
    budgetOf('key:other'),
  ];
  times(20, () => expect(spendTogether([one, equal, other]).size).toBe(0));
  callers.spend('address:1', 20);
  const broke = [one, equal, other, budgetOf('address:1'), budgetOf('address:1')];
  const paying = budgetOf('address:2');
  expect([...spendTogether([...broke, paying]).keys()]).toEqual(broke);
});

test('a refusal says what the whole operation has used, whatever its pages were read for', () => {
  for (const mayDrain of [false, true]) {
    const budget = new PageBudget(new CallerBudgets(20, new ManualClock()), 'key:portal', mayDrain);
    times(4, () => budget.spend());
    times(10, () => budget.forOverhead.spend());
    // The records of pages that were read to find them.
    budget.spend(2, { isCharged: true });
    times(6, () => budget.spend());
    const extensions = { code: 'RATE_LIMITED', pages: 21, pagesPerMinute: 20 };
    expect(() => budget.forOverhead.spend()).toThrow(
      expect.objectContaining({ extensions: expect.objectContaining(extensions) }),
    );
  }
});

test('a caller whose pages have come back is forgotten, and one whose pages have not is not', () => {
  const clock = new ManualClock();
  const callers = new CallerBudgets(60, clock);
  times(60, () => callers.spend('key:portal'));
  for (let caller = 0; caller < 10_000; caller += 1) callers.spend(`address:${caller}`);
  expect(() => callers.spend('key:portal')).toThrow(/60 pages a minute/);
});

function times(count: number, work: () => void): void {
  for (let done = 0; done < count; done += 1) work();
}
