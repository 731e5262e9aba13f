import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { CallerBudgets, PageBudget, spendTogether } from '../../src/paging/page-budget.ts';
import { ReadPage } from '../../src/paging/page.ts';
import { walkInTurn, WalkSlots, type WalkTurn } from '../../src/paging/walk-slots.ts';
import type { WalkedPages } from '../../src/paging/walk.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { pageOf } from './world.ts';

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

/** Operations that may wait for each walk that may run. */
const MAY_WAIT = 100;

test('MAX_DRAINS walks run at a time; the others wait, and all come to an end', async () => {
  const slots = new WalkSlots(2, new ManualClock());
  const begun: number[] = [];
  const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
  const walks = ends.map(async ({ promise }, number) => {
    const walk = walkInTurn(slots, turnOf(), () => {
      begun.push(number);
      return onePage(promise);
    });
    for await (const _ of walk);
  });
  await setImmediate();
  expect(begun).toEqual([0, 1]);
  ends[1]!.resolve();
  await walks[1];
  await setImmediate();
  expect(begun).toEqual([0, 1, 2]);
  for (const { resolve } of ends) resolve();
  await Promise.all(walks);
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
});

test('callers take turns: a caller with many walks does not make others wait for all of them', async () => {
  const slots = new WalkSlots(1, new ManualClock());
  const served: string[] = [];
  const giveBack = await slots.take(turnOf('greedy'));
  const callers = [...Array.from({ length: 10 }, () => 'greedy'), 'modest'];
  const waiting = callers.map(async (caller) => {
    const done = await slots.take(turnOf(caller));
    served.push(caller);
    done();
  });
  giveBack();
  await Promise.all(waiting);
  expect(served.indexOf('modest')).toBeLessThanOrEqual(1);
});

test('a walk that gets no slot within 30 s is refused, and the running one continues', async () => {
  const clock = new ManualClock();
  const slots = new WalkSlots(1, clock);
  const giveBack = await slots.take(turnOf());
  const refused = slots.take(turnOf()).catch((error: unknown) => error);
  await setImmediate();
  clock.jump(30 * SECOND - 1);
  await setImmediate();
  expect(slots.waiting).toBe(1);
  clock.jump(1);
  expect(await refused).toMatchObject({
    message: expect.stringMatching(/could not begin within 30 s.*MAX_DRAINS/),
    extensions: { code: 'RATE_LIMITED', retryAfter: 30, limit: 'MAX_DRAINS' },
  });
  expect(slots).toMatchObject({ taken: 1, waiting: 0 });
  giveBack();
  expect(slots.taken).toBe(0);
});

test('a caller with too many waiting operations is refused, and another caller is not', async () => {
  const slots = new WalkSlots(1, new ManualClock());
  const giveBack = await slots.take(turnOf('greedy'));
  const waiting = Array.from({ length: MAY_WAIT }, () => slots.take(turnOf('greedy')));
  await expect(slots.take(turnOf('greedy'))).rejects.toMatchObject({
    extensions: { code: 'RATE_LIMITED', retryAfter: 5 },
  });
  waiting.push(slots.take(turnOf('modest')));
  expect(slots.waiting).toBe(MAY_WAIT + 1);
  giveBack();
  await Promise.all(waiting.map(async (taken) => (await taken)()));
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
});

test('an operation with a thousand lists waits as one, and a slot for one of them is a slot for all', async () => {
  const clock = new ManualClock();
  const slots = new WalkSlots(1, clock);
  const turn = turnOf();
  const taken: (() => void)[] = [];
  const walks = Array.from({ length: 1_000 }, async () => taken.push(await slots.take(turn)));
  for (let served = 1; served <= walks.length; served += 1) {
    await setImmediate();
    expect(taken).toHaveLength(served);
    if (served % 100 === 0) clock.jump(MINUTE);
    taken.at(-1)!();
  }
  await Promise.all(walks);
});

test('a walk whose reader does not read on gives its slot to others, and is not refused when it resumes', async () => {
  const clock = new ManualClock();
  const slots = new WalkSlots(1, clock);
  const walk = walkInTurn(slots, turnOf(), () => pages(3));
  await walk.next();
  await setImmediate();
  expect(slots.taken).toBe(1);
  await setImmediate();
  expect(slots.taken).toBe(0);
  const giveBack = await slots.take(turnOf());
  const resuming = walk.next();
  for (let minute = 0; minute < 5; minute += 1) {
    clock.jump(MINUTE);
    await setImmediate();
  }
  expect(slots).toMatchObject({ taken: 1, waiting: 1 });
  giveBack();
  expect((await resuming).done).toBe(false);
  await walk.return();
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
});

function turnOf(caller: string = crypto.randomUUID()): WalkTurn {
  return { caller, operation: {}, signal: new AbortController().signal };
}

async function* onePage(until: Promise<void>): WalkedPages {
  await until;
  yield* pages(1);
}

async function* pages(count: number): WalkedPages {
  for (let read = 0; read < count; read += 1)
    yield { page: new ReadPage(null, pageOf([])), offsets: [] };
}

function times(count: number, work: () => void): void {
  for (let done = 0; done < count; done += 1) work();
}
