import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { walkInTurn, WalkSlots, type WalkTurn } from '../../src/paging/walk-slots.ts';
import type { WalkedPages } from '../../src/paging/walk.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { readPageOf } from './world.ts';

const PER_MINUTE = 20;
/** A page is back after so long. */
const PAGE_MS = MINUTE / PER_MINUTE;

const coded = (extensions: object) =>
  expect.objectContaining({ extensions: expect.objectContaining(extensions) }) as Error;

function budgets(perMinute = PER_MINUTE) {
  const clock = new ManualClock();
  return { clock, callers: new CallerBudgets(perMinute, clock) };
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
      const { clock, callers } = budgets();
      const long = new PageBudget(callers, 'key', true);
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

test('without a limit no pages are refused, and with one a caller stays refused when many others come and go', () => {
  const unlimited = budgets(0).callers;
  expect(() => times(10_000, () => unlimited.spend('key', 100))).not.toThrow();
  const { callers } = budgets();
  callers.spend('key', PER_MINUTE);
  times(9_000, (caller) => callers.spend(`address:${caller}`));
  expect(() => callers.spend('key')).toThrow(/20 pages a minute/);
});

test('without the scope drain an operation has 12 pages, however many are requested at once, and overhead is charged', () => {
  const { callers } = budgets();
  const budget = new PageBudget(callers, 'key', false);
  budget.spend(7);
  expect(() => budget.spend(6)).toThrow(coded({ code: 'FORBIDDEN', scope: 'drain' }));
  budget.spend(5);
  budget.forOverhead.spend(8);
  expect(() => callers.spend('key')).toThrow(coded({ code: 'RATE_LIMITED' }));
});

/** Slots, and what became of each walk that asked for one. */
function startSlots(max: number) {
  const clock = new ManualClock();
  const slots = new WalkSlots(max, clock);
  const begun: string[] = [];
  const take = async (turn: WalkTurn = turnOf()) => {
    await slots.take(turn);
    begun.push(turn.caller);
    return () => slots.giveBack();
  };
  return { clock, slots, begun, take };
}

test('an operation that gets no slot in 30 s is refused, and one that had a slot is not', async () => {
  const { clock, slots, take } = startSlots(1);
  const turn = turnOf();
  const giveBack = await take(turn);
  const again = take(turn);
  const refused = take().catch((error: unknown) => error);
  const pass = async (ms: number) => {
    clock.jump(ms);
    await setImmediate();
  };
  await pass(30 * SECOND - 1);
  expect(slots).toMatchObject({ taken: 1, waiting: 2 });
  await pass(1);
  expect(await refused).toMatchObject({
    message: expect.stringMatching(/could not begin within 30 s.*MAX_DRAINS/),
    extensions: { code: 'RATE_LIMITED', retryAfter: 30, limit: 'MAX_DRAINS' },
  });
  giveBack();
  (await again)();
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
});

test('callers take turns, an operation with a thousand lists waits as one, and a slot for one of them is a slot for all', async () => {
  const { clock, begun, take } = startSlots(1);
  const [greedy, modest] = [turnOf('greedy'), turnOf('modest')];
  const taken: (() => void)[] = [];
  const turns = [...Array<WalkTurn>(1_000).fill(greedy), modest];
  const walks = turns.map(async (turn) => taken.push(await take(turn)));
  for (let served = 1; served <= walks.length; served += 1) {
    await setImmediate();
    expect(begun).toHaveLength(served);
    if (served % 100 === 0) clock.jump(MINUTE);
    taken.at(-1)!();
  }
  await Promise.all(walks);
  expect(begun.indexOf('modest')).toBeLessThanOrEqual(2);
});

test('a walk whose reader does not read on gives its slot to others, and is not refused when it resumes', async () => {
  const { clock, slots, take } = startSlots(1);
  const inner = pages(9);
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
  await setImmediate();
  await setImmediate();
  // The slot that it has given back again is not given back once more when it leaves.
  await walk.return();
  expect(await inner.next()).toMatchObject({ done: true });
  expect(slots).toMatchObject({ taken: 0, waiting: 0 });
  // Nor is it given back again later if the reader leaves at once.
  const left = walkInTurn(slots, turnOf(), () => pages(3));
  await left.next();
  await left.return();
  await setImmediate();
  await setImmediate();
  expect(slots.taken).toBe(0);
});

function turnOf(caller: string = crypto.randomUUID()): WalkTurn {
  return { caller, operation: {}, signal: new AbortController().signal };
}

async function* pages(count: number): WalkedPages {
  for (let read = 0; read < count; read += 1) yield { page: readPageOf(null, []), offsets: [] };
}

function times(count: number, work: (turn: number) => void): void {
  for (let done = 0; done < count; done += 1) work(done);
}
