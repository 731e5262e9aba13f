import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CallerBudgets, PageBudget, spendTogether } from '../../src/paging/page-budget.ts';
import { ReadPage } from '../../src/paging/page.ts';
import { walkInTurn, WalkSlots, type WalkTurn } from '../../src/paging/walk-slots.ts';
import type { WalkedPages } from '../../src/paging/walk.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { pageOf } from './world.ts';

const PER_MINUTE = 20;
/** A page is back after so long. */
const PAGE_MS = MINUTE / PER_MINUTE;

const coded = (extensions: object) =>
  expect.objectContaining({ extensions: expect.objectContaining(extensions) }) as Error;

function budgets(mayDrain = true, perMinute = PER_MINUTE) {
  const clock = new ManualClock();
  const callers = new CallerBudgets(perMinute, clock);
  return { clock, callers, of: (caller = 'key') => new PageBudget(callers, caller, mayDrain) };
}

test('each caller has the same pages a minute, which come back at a constant rate, and a refusal says when', () => {
  const use = fc.record({
    caller: fc.constantFrom('key', 'other'),
    // The time that has passed, in quarters of a page.
    passed: fc.oneof(fc.nat(6), fc.nat(200)),
    count: fc.nat(PER_MINUTE + 2),
    isLong: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(use, { maxLength: 20 }), (uses) => {
      const { clock, callers, of } = budgets();
      const long = of();
      /** In quarters of a page. */
      const left = { key: 4 * PER_MINUTE, other: 4 * PER_MINUTE };
      for (const { caller, passed, count, isLong } of uses) {
        clock.jump((passed * PAGE_MS) / 4);
        for (const each of ['key', 'other'] as const)
          left[each] = Math.min(4 * PER_MINUTE, left[each] + passed);
        for (let page = 0; page < count; page += 1) {
          const spend = () => (isLong && caller === 'key' ? long.spend() : callers.spend(caller));
          if (left[caller] >= 4) {
            spend();
            left[caller] -= 4;
          } else {
            const retryAfter = Math.ceil(((4 - left[caller]) * PAGE_MS) / 4 / SECOND);
            expect(spend).toThrow(coded({ code: 'RATE_LIMITED', retryAfter }));
          }
        }
      }
    }),
    { numRuns: randomRuns(300) },
  );
});

test('more pages at once than a minute has are refused for good, and without a limit none are', () => {
  const { callers } = budgets();
  const tooMany = coded({ code: 'OPERATION_TOO_COMPLEX', pages: 21, pagesPerMinute: 20 });
  expect(() => callers.spend('key', PER_MINUTE + 1)).toThrow(tooMany);
  callers.spend('key', PER_MINUTE);
  const unlimited = budgets(true, 0).callers;
  expect(() => times(10_000, () => unlimited.spend('key', 100))).not.toThrow();
});

test('a page that several operations wait for costs each caller one, and whoever cannot pay gets none of it', () => {
  const { callers, of } = budgets();
  const [one, equal, other] = [of('portal'), of('portal'), of('other')];
  times(PER_MINUTE, () => expect(spendTogether([one, equal, other]).size).toBe(0));
  callers.spend('poor', PER_MINUTE);
  const broke = [one, equal, other, of('poor'), of('poor')];
  expect([...spendTogether([...broke, of('rich')]).keys()]).toEqual(broke);
});

test('records of more than 12 pages need the scope drain, and pages that only count or find do not', () => {
  const budget = budgets(false, 0).of();
  times(12, () => budget.spend());
  expect(() => budget.spend()).toThrow(coded({ code: 'FORBIDDEN' }));
  times(100, () => budget.forOverhead.spend());
  const draining = budgets(true, 0).of();
  times(100, () => draining.spend());
});

test('a refusal says what the whole operation has used, whatever its pages were read for', () => {
  for (const mayDrain of [false, true]) {
    const budget = budgets(mayDrain).of();
    times(4, () => budget.spend());
    times(10, () => budget.forOverhead.spend());
    // The records of pages that were read to find them.
    budget.spend(2, { isCharged: true });
    times(6, () => budget.spend());
    const refusal = coded({ code: 'RATE_LIMITED', pages: 21, pagesPerMinute: 20 });
    expect(() => budget.forOverhead.spend()).toThrow(refusal);
  }
});

test('ten thousand other callers do not make a caller forgotten who has used its pages', () => {
  const { callers } = budgets();
  callers.spend('key', PER_MINUTE);
  times(10_000, (caller) => callers.spend(`address:${caller}`));
  expect(() => callers.spend('key')).toThrow(/20 pages a minute/);
});

/** Slots, and what became of each walk that asked for one. */
function startSlots(max: number) {
  const clock = new ManualClock();
  const slots = new WalkSlots(max, clock);
  const begun: string[] = [];
  const take = async (turn: WalkTurn = turnOf()) => {
    const giveBack = await slots.take(turn);
    begun.push(turn.caller);
    return giveBack;
  };
  return { clock, slots, begun, take };
}

test('MAX_DRAINS walks run at a time; the others wait, and all come to an end', async () => {
  const { slots } = startSlots(2);
  const begun: number[] = [];
  const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
  const walks = ends.map(async ({ promise }, number) => {
    const walk = walkInTurn(slots, turnOf(), () => {
      begun.push(number);
      return pages(1, promise);
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

test('callers take turns, and one with too many waiting operations is refused', async () => {
  const { slots, begun, take } = startSlots(1);
  const giveBack = await take();
  const waiting = Array.from({ length: 100 }, () => take(turnOf('greedy')));
  await expect(take(turnOf('greedy'))).rejects.toThrow(
    coded({ code: 'RATE_LIMITED', retryAfter: 5, limit: 'MAX_DRAINS' }),
  );
  waiting.push(take(turnOf('modest')));
  expect(slots.waiting).toBe(101);
  giveBack();
  await Promise.all(waiting.map(async (taken) => (await taken)()));
  expect(begun.slice(1).indexOf('modest')).toBeLessThanOrEqual(1);
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
});

test('a walk that gets no slot within 30 s is refused, and the running one continues', async () => {
  const { clock, slots, take } = startSlots(1);
  const giveBack = await take();
  const refused = take().catch((error: unknown) => error);
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

test('an operation is patient for 30 s from when one of its walks has ended', async () => {
  const { clock, slots, take } = startSlots(1);
  const turn = turnOf();
  const first = await take(turn);
  const other = take();
  const second = take(turn);
  clock.jump(20 * SECOND);
  first();
  const giveBack = await other;
  clock.jump(20 * SECOND);
  await setImmediate();
  expect(slots.waiting).toBe(1);
  giveBack();
  (await second)();
});

test('an operation with a thousand lists waits as one, and a slot for one of them is a slot for all', async () => {
  const { clock, begun, take } = startSlots(1);
  const turn = turnOf();
  const taken: (() => void)[] = [];
  const walks = Array.from({ length: 1_000 }, async () => taken.push(await take(turn)));
  for (let served = 1; served <= walks.length; served += 1) {
    await setImmediate();
    expect(begun).toHaveLength(served);
    if (served % 100 === 0) clock.jump(MINUTE);
    taken.at(-1)!();
  }
  await Promise.all(walks);
});

test('a walk whose reader does not read on gives its slot to others, and is not refused when it resumes', async () => {
  const { clock, slots, take } = startSlots(1);
  const inner = pages(3);
  const walk = walkInTurn(slots, turnOf(), () => inner);
  // A reader that is back after a turn of the event loop keeps the slot.
  for (let read = 0; read < 2; read += 1) {
    await walk.next();
    await setImmediate();
    expect(slots.taken).toBe(1);
  }
  await setImmediate();
  expect(slots.taken).toBe(0);
  const giveBack = await take();
  const resuming = walk.next();
  for (let minute = 0; minute < 5; minute += 1) {
    clock.jump(MINUTE);
    await setImmediate();
  }
  expect(slots).toMatchObject({ taken: 1, waiting: 1 });
  giveBack();
  expect((await resuming).done).toBe(false);
  await walk.return();
  expect(await inner.next()).toMatchObject({ done: true });
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
});

function turnOf(caller: string = crypto.randomUUID()): WalkTurn {
  return { caller, operation: {}, signal: new AbortController().signal };
}

async function* pages(count: number, until?: Promise<void>): WalkedPages {
  await until;
  for (let read = 0; read < count; read += 1)
    yield { page: new ReadPage(null, pageOf([])), offsets: [] };
}

function times(count: number, work: (turn: number) => void): void {
  for (let done = 0; done < count; done += 1) work(done);
}
