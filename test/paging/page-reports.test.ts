import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PageLedger, PageReport } from '../../src/page-ledger.ts';
import { createCallerBudgets, type CallerBudgets } from '../../src/paging/page-budget.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const RUNS = randomRuns(150);
const CALLER = 'key:portal';

describe('two processes that share a ledger', () => {
  test('give a caller one minute of pages together, but for a twentieth, and say when there are pages again', async () => {
    const { clock, start } = world(60);
    const [first, second] = [start(), start()];
    expect(await spendAll(first, 40)).toBe(40);
    expect(await spendAll(second, 40)).toBeLessThanOrEqual(20 + 3);
    expect(await spendAll(first, 40)).toBeLessThanOrEqual(3);
    expect(await spendAll(second, 40)).toBe(0);
    expect(() => first.check(CALLER, 30)).toThrow(/60 pages a minute.*Try again in 3\d s/);
    clock.jump(40 * SECOND);
    const [spentByFirst, spentBySecond] = [await spendAll(first, 60), await spendAll(second, 60)];
    expect(spentByFirst + spentBySecond).toBeGreaterThanOrEqual(34);
    expect(spentByFirst + spentBySecond).toBeLessThanOrEqual(40 + 3);
    expect(await spendAll(first, 61, 'key:other')).toBe(60);
  });

  test('send few reports, each for all callers, and none for what they refuse', async () => {
    const { clock, ledger, start } = world(6_000);
    const budgets = start();
    for (let spent = 0; spent < 1_000; spent += 1) {
      budgets.spend(`key:${spent % 2}`, 1);
      // A thousand in two seconds.
      clock.jump(2);
      await setImmediate();
    }
    clock.jump(SECOND);
    await setImmediate();
    expect(ledger.reports.length).toBeLessThanOrEqual(6);
    expect(totalOf(ledger.reports)).toBe(1_000);
    budgets.spend('key:0', 5_500);
    await setImmediate();
    const { length } = ledger.reports;
    for (let refused = 0; refused < 100; refused += 1) {
      expect(() => budgets.spend('key:0', 500)).toThrow(/6000 pages a minute/);
      await setImmediate();
    }
    clock.jump(SECOND);
    await setImmediate();
    expect(ledger.reports).toHaveLength(length);
  });

  test('count what they give while a report is under way', async () => {
    const { ledger, start } = world(60);
    const [first, second] = [start(), start()];
    expect(await spendAll(second, 49)).toBe(49);
    ledger.isHeld = true;
    expect(await spendAll(first, 6)).toBe(6);
    ledger.release();
    // The next report.
    ledger.isHeld = true;
    await setImmediate();
    expect(() => first.check(CALLER, 6)).toThrow(/Try again in 1 s/);
    expect(() => first.check(CALLER, 5)).not.toThrow();
  });

  test('pay back excess pages in the next minute', async () => {
    const { clock, ledger, start } = world(60);
    const [first, second] = [start(), start()];
    ledger.isHeld = true;
    expect(await spendAll(first, 60)).toBe(60);
    expect(await spendAll(second, 60)).toBe(60);
    ledger.release();
    await setImmediate();
    await setImmediate();
    expect(() => second.spend(CALLER, 1)).toThrow(/Try again in 61 s/);
    clock.jump(70 * SECOND);
    expect(await spendAll(second, 60)).toBe(10);
    expect(await spendAll(first, 60)).toBeLessThanOrEqual(3);
  });

  test('report what is left when they end, and do not wait long for an answer', async () => {
    const { clock, ledger, start } = world(6_000);
    const first = start();
    expect(await spendAll(first, 10)).toBe(10);
    await first.close();
    expect(totalOf(ledger.reports)).toBe(10);
    const other = start();
    other.spend(CALLER, 5_990);
    expect(() => other.spend(CALLER, 1)).not.toThrow();
    ledger.isHeld = true;
    clock.jump(SECOND);
    const closing = other.close();
    await setImmediate();
    clock.jump(SECOND);
    await closing;
  });
});

test('a single process gives a caller exactly what it would without a ledger, even if the ledger is late or fails', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 120 }),
      fc.array(
        fc.oneof(
          fc.record({ do: fc.constant('spend' as const), pages: fc.integer({ min: 1, max: 30 }) }),
          fc.record({ do: fc.constant('jump' as const), ms: fc.integer({ min: 1, max: 20_000 }) }),
          fc.record({ do: fc.constantFrom('hold' as const, 'release' as const, 'fail' as const) }),
        ),
        { minLength: 30, maxLength: 60 },
      ),
      async (perMinute, steps) => {
        const { clock, ledger, start } = world(perMinute);
        const shared = start();
        const plain = createCallerBudgets(perMinute, clock);
        for (const step of steps) {
          if (step.do === 'spend') {
            const spend = (budgets: CallerBudgets) => attempt(budgets, step.pages);
            expect(spend(shared)).toEqual(spend(plain));
          } else if (step.do === 'jump') clock.jump(step.ms);
          else if (step.do === 'hold') ledger.isHeld = true;
          else if (step.do === 'release') ledger.release();
          else ledger.fail();
          await setImmediate();
        }
      },
    ),
    { numRuns: RUNS },
  );
});

test('processes whose reports are late, fail or get lost exceed one bucket at most by unreported pages, and never refuse pages that the caller has left', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        perMinute: fc.integer({ min: 1, max: 60 }),
        processes: fc.integer({ min: 2, max: 4 }),
      }),
      fc.array(
        fc.record({
          by: fc.nat(3),
          what: fc.oneof(
            { weight: 20, arbitrary: fc.constant('spend' as const) },
            { weight: 20, arbitrary: fc.constant('answer' as const) },
            { weight: 4, arbitrary: fc.constantFrom('arrive' as const, 'jump' as const) },
            { weight: 1, arbitrary: fc.constantFrom('fail' as const, 'kill' as const) },
          ),
          amount: fc.nat(100),
        }),
        { minLength: 100, maxLength: 200 },
      ),
      async ({ perMinute, processes }, steps) => {
        const clock = new ManualClock();
        const ledger = createCallerBudgets(perMinute, clock);
        const start = () => {
          const line = new Line(ledger, clock);
          return { line, budgets: createCallerBudgets(perMinute, clock, line), spent: 0, most: 0 };
        };
        const all = Array.from({ length: processes }, start);
        const rest: Pick<(typeof all)[number], 'most'>[] = [];
        const lag = () =>
          (Math.max(0, ...lines.map(({ longest }) => longest)) * perMinute) / MINUTE;
        const lines = all.map(({ line }) => line);
        /** One bucket that knows everything at once. */
        let level = perMinute;
        let at = clock.elapsed();
        for (const { by, what, amount } of steps) {
          const process = all[by % processes]!;
          const { line, budgets } = process;
          level = Math.min(perMinute, level + ((clock.elapsed() - at) * perMinute) / MINUTE);
          at = clock.elapsed();
          if (what === 'jump') clock.jump(amount * 100);
          else if (what === 'arrive') await line.arrive();
          else if (what === 'answer') await line.answer();
          else if (what === 'fail') line.fail();
          else if (what === 'kill') {
            rest.push(process);
            all[by % processes] = start();
            lines.push(all[by % processes]!.line);
          } else {
            const pages = 1 + (amount % Math.min(10, perMinute));
            if (attempt(budgets, pages) === undefined) {
              level -= pages;
              process.spent += pages;
              process.most = Math.max(process.most, process.spent - line.answered);
            } else expect(level).toBeLessThan(pages + lag() + 0.001);
          }
          await setImmediate();
          const unknown = [...all, ...rest].reduce((sum, { most }) => sum + most, 0);
          const lost = lines.reduce((sum, { failed }) => sum + failed, 0);
          expect(-level).toBeLessThanOrEqual(unknown + lost + lag() + 0.001);
        }
      },
    ),
    { numRuns: RUNS },
  );
});

/** The way to the ledger, on which each step of a report is made by the test. */
class Line implements PageLedger {
  /** Pages whose report was answered, and pages whose report failed. */
  answered = 0;
  failed = 0;
  /** The longest time from the first page of a report to its arrival. */
  longest = 0;
  readonly #to: PageLedger;
  readonly #clock: ManualClock;
  #report: (PageReport & { readonly since: number }) | undefined;
  #left: readonly number[] | undefined;
  #reply = Promise.withResolvers<readonly number[]>();

  constructor(to: PageLedger, clock: ManualClock) {
    this.#to = to;
    this.#clock = clock;
  }

  take(report: PageReport): Promise<readonly number[]> {
    this.#report = { ...report, since: this.#clock.elapsed() - report.ago };
    this.#left = undefined;
    this.#reply = Promise.withResolvers();
    return this.#reply.promise;
  }

  async arrive(): Promise<void> {
    if (!this.#report || this.#left) return;
    this.longest = Math.max(this.longest, this.#clock.elapsed() - this.#report.since);
    this.#left = await this.#to.take(this.#report);
  }

  async answer(): Promise<void> {
    await this.arrive();
    if (!this.#report) return;
    this.answered += totalOf([this.#report]);
    this.#report = undefined;
    this.#reply.resolve(this.#left!);
  }

  fail(): void {
    if (!this.#report) return;
    const pages = totalOf([this.#report]);
    this.answered += pages;
    this.failed += pages;
    this.#report = undefined;
    this.#reply.reject(new Error('the ledger is down'));
  }
}

/** A ledger that counts every report at once, and processes that share it. */
function world(perMinute: number) {
  const clock = new ManualClock();
  const counts = createCallerBudgets(perMinute, clock);
  const waiting: PromiseWithResolvers<void>[] = [];
  const ledger = {
    reports: [] as PageReport[],
    /** Whether answers wait. */
    isHeld: false,
    take: async (report: PageReport) => {
      ledger.reports.push(report);
      const left = await counts.take(report);
      const held = Promise.withResolvers<void>();
      if (ledger.isHeld) waiting.push(held);
      else held.resolve();
      await held.promise;
      return left;
    },
    release: () => {
      ledger.isHeld = false;
      for (const { resolve } of waiting.splice(0)) resolve();
    },
    fail: () => {
      for (const { reject } of waiting.splice(0)) reject(new Error('the ledger is down'));
    },
  };
  return { clock, ledger, start: () => createCallerBudgets(perMinute, clock, ledger) };
}

/** Spends one page after the other until one is refused, and returns how many it was given. */
async function spendAll(budgets: CallerBudgets, pages: number, caller = CALLER): Promise<number> {
  for (let spent = 0; spent < pages; spent += 1) {
    if (attempt(budgets, 1, caller) !== undefined) return spent;
    await setImmediate();
  }
  return pages;
}

/** The message of the refusal; undefined if there was none. */
function attempt(budgets: CallerBudgets, pages: number, caller = CALLER): string | undefined {
  try {
    budgets.spend(caller, pages);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function totalOf(reports: readonly PageReport[]): number {
  return reports.flatMap(({ spent }) => spent).reduce((sum, { pages }) => sum + pages, 0);
}
