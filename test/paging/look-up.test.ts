import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import { LookUps, WALK_AGAIN_MS, type LookUpList } from '../../src/paging/look-up.ts';
import { CallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { PageFailedError } from '../../src/paging/page.ts';
import { WalkSlots } from '../../src/paging/walk-slots.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { KINDS, type Traits } from './model-service.ts';
import { comings, moves, SIZINGS, worldOf } from './world.ts';

const RUNS = randomRuns(250);
const LIMIT = 12;
const { signal: stays } = new AbortController();

interface Other {
  readonly list?: LookUpList<number>;
  readonly budget?: PageBudget;
  readonly signal?: AbortSignal;
}

function lookUpsIn(length: number, traits: Partial<Traits>, maxRecords = 1_000) {
  const world = worldOf(length, traits);
  const clock = new ManualClock();
  const slots = new WalkSlots(1, clock);
  const lookUps = new LookUps({ clock, maxRecords, slots });
  const list: LookUpList<number> = {
    ...world.paged,
    idsFor: ({ spend }) => ({
      ...world.paged,
      fetchPage: async (...request) => {
        spend();
        return world.paged.fetchPage(...request);
      },
    }),
  };
  const find = async (serials: readonly number[], { signal = stays, ...other }: Other = {}) => {
    const budget = other.budget ?? new PageBudget(new CallerBudgets(0, clock), 'caller', true);
    const found = await lookUps.find(other.list ?? list, serials.map(String), {
      caller: 'caller',
      operation: {},
      budget,
      signal,
    });
    return serials.map((serial) => {
      const result = found.get(String(serial));
      if (!result) return undefined;
      return 'record' in result ? result.record : result.error;
    });
  };
  return { ...world, clock, lookUps, paged: list, find };
}

const changes = fc.array(fc.oneof(comings(fc.constantFrom(1, 1, 2, 9, 30)), moves), {
  maxLength: 5,
});

const histories = fc.record({
  kind: fc.constantFrom(...KINDS),
  sizing: fc.constantFrom(...SIZINGS),
  length: fc.nat(80),
  isWalked: fc.boolean(),
  rounds: fc.array(
    fc.record({
      changes,
      // Greater ids do not exist.
      callers: fc.array(fc.array(fc.nat(150), { minLength: 1, maxLength: 12 }), {
        minLength: 1,
        maxLength: 4,
      }),
      leaving: fc.nat(8),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});

describe('a lookup', () => {
  test('finds every record that exists and no other, whoever leaves', async () => {
    await fc.assert(
      fc.asyncProperty(histories, async ({ length, isWalked, rounds, ...options }) => {
        const world = lookUpsIn(length, { ...options, limit: LIMIT });
        if (isWalked) await world.drain();
        for (const { changes: each, callers, leaving } of rounds) {
          for (const change of each) world.service.apply(change);
          const leaves = new AbortController();
          const left = callers
            .slice(leaving)
            .map((serials) => world.find(serials, { signal: leaves.signal }));
          const found = callers.map((serials) => world.find(serials));
          leaves.abort();
          await Promise.allSettled(left);
          const all = world.service.shown;
          expect(await Promise.all(found)).toEqual(
            callers.map((serials) =>
              serials.map((serial) => (all.includes(serial) ? serial : undefined)),
            ),
          );
          world.clock.jump(WALK_AGAIN_MS);
        }
      }),
      { numRuns: RUNS },
    );
  });

  test('takes no record for another, and loses none that stands still, while the list changes', async () => {
    await fc.assert(
      fc.asyncProperty(histories, changes, async ({ rounds, ...of }, during) => {
        const world = lookUpsIn(of.length, { ...of, limit: LIMIT });
        if (of.isWalked) await world.drain();
        const left = [...during];
        const since = world.service.changes;
        world.counted.onRead = () => {
          const change = left.shift();
          if (change) world.service.apply(change);
        };
        for (const { callers } of rounds) {
          for (const serials of callers) {
            const results = await world.find(serials);
            for (const [at, serial] of serials.entries()) {
              const result = results[at];
              if (typeof result === 'number') expect(result).toBe(serial);
              const isStill = world.service.stillSince(since).includes(serial);
              // A walk over other cursors may itself miss a record that stands still.
              if (of.kind !== 'key' || !isStill) continue;
              expect(result).not.toBeUndefined();
            }
          }
        }
      }),
      { numRuns: RUNS },
    );
  });
});

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

describe('the requests of lookups', () => {
  test('50 ids cost one request for each page that holds them', async () => {
    const { find, drain, requests } = lookUpsIn(500, { kind: 'key' });
    await drain();
    expect(await requests(() => find(range(100, 150)))).toBe(2);
    expect(await requests(() => find([100]))).toBe(1);
  });

  test('a record that was pushed by others costs its page and the pages next to it', async () => {
    const { find, drain, requests, service } = lookUpsIn(500, { kind: 'position' });
    await drain();
    service.apply({ do: 'insert', at: 0, count: 20 });
    expect(await requests(async () => expect(await find([140])).toEqual([140]))).toBeLessThan(4);
  });

  test('a new record at the start or the end of a list costs no walk', async () => {
    const { find, drain, requests, service } = lookUpsIn(500, { kind: 'key' });
    await drain();
    service.apply({ do: 'insert', at: 0, count: 1 });
    service.apply({ do: 'insert', at: 501, count: 1 });
    expect(await requests(async () => expect(await find([500, 501])).toEqual([500, 501]))).toBe(2);
  });

  test('a first lookup walks only as far as its record, and the next one goes on from there', async () => {
    const { find, requests } = lookUpsIn(500, { kind: 'record' });
    expect(await requests(() => find([60]))).toBe(3);
    expect(await requests(() => find([160]))).toBe(4);
    expect(await requests(() => find([60, 160]))).toBe(2);
  });

  test('unknown ids share one walk in 30 seconds, and a mutation lifts that', async () => {
    const { find, requests, clock, lookUps, service } = lookUpsIn(500, { kind: 'key' });
    const walk = await requests(() => Promise.all(range(900, 930).map((id) => find([id]))));
    expect(walk).toBeLessThanOrEqual(12);
    clock.jump(WALK_AGAIN_MS - 1);
    // The first and the last page.
    expect(await requests(() => find([950]))).toBe(2);
    service.apply({ do: 'insert', at: 250, count: 1 });
    expect(await find([500])).toEqual([undefined]);
    lookUps.forget();
    expect(await find([500])).toEqual([500]);
    clock.jump(WALK_AGAIN_MS);
    expect(await requests(() => find([960]))).toBeGreaterThan(10);
  });

  test('records that were removed behind a walk cost one more walk, not one each', async () => {
    const { find, requests, service } = lookUpsIn(500, { kind: 'key' });
    await find([480]);
    const removed = range(0, 40).map((at) => at * 10 + 3);
    for (const serial of removed) {
      service.apply({ do: 'remove', at: service.shown.indexOf(serial), count: 1 });
    }
    const lookUp = async () => expect(await find(removed)).toEqual(removed.map(() => undefined));
    expect(await requests(lookUp)).toBeLessThan(50);
  });

  test('a list of one page is not walked for ids that it does not have', async () => {
    const { find, drain, requests } = lookUpsIn(30, { kind: 'key' });
    await drain();
    expect(await requests(() => find([1, 99]))).toBe(1);
  });

  test('no page is requested once every caller has left', async () => {
    const { find, counted } = lookUpsIn(500, { kind: 'key' });
    const leaving = new AbortController();
    const lookUp = find([999], { signal: leaving.signal });
    counted.onRead = () => {
      if (counted.requests === 3) leaving.abort();
    };
    await expect(lookUp).rejects.toThrow('aborted');
    expect(counted.requests).toBe(3);
  });
});

test('all lookups that wait for a page spend for it, and one that cannot afford it disturbs no other', async () => {
  const { find, clock, requests } = lookUpsIn(500, { kind: 'key' });
  const budgetOf = (caller: string, pages: number) =>
    new PageBudget(new CallerBudgets(pages, clock), caller, true);
  const poor = find([300], { budget: budgetOf('poor', 2) });
  const rich = find([300], { budget: budgetOf('rich', 20) });
  expect(await poor).toEqual([expect.objectContaining({ message: expect.any(String) })]);
  expect(codeOf((await poor)[0])).toBe('RATE_LIMITED');
  expect(await rich).toEqual([300]);
  expect(await requests(() => find([300]))).toBe(1);
});

describe('a failure', () => {
  test('of a page fails the records that are expected there, and no others', async () => {
    const { find, drain, paged } = lookUpsIn(200, { kind: 'key' });
    await drain();
    const failure = new Error('A record is broken.');
    const failing: typeof paged = {
      ...paged,
      fetchPage: async (...request) => {
        const page = await paged.fetchPage(...request);
        if (page.records.includes(60)) throw new PageFailedError('failed', { cause: failure });
        return page;
      },
    };
    expect(await find([20, 60, 150], { list: failing })).toEqual([20, failure, 150]);
  });

  test('of a walk fails the lookups that wait for it, and the next lookup walks again', async () => {
    const { find, paged } = lookUpsIn(200, { kind: 'key' });
    const failure = new Error('The service is down.');
    let isDown = true;
    const fetchPage: typeof paged.fetchPage = (...request) => {
      if (isDown) throw new PageFailedError('failed', { cause: failure });
      return paged.fetchPage(...request);
    };
    const list = { ...paged, idsFor: () => ({ ...paged, fetchPage }) };
    expect(await Promise.all([find([20], { list }), find([60], { list })])).toEqual([
      [failure],
      [failure],
    ]);
    isDown = false;
    expect(await find([60], { list })).toEqual([60]);
  });

  test('a walk that reads too many records says that it was ended', async () => {
    const { find, requests } = lookUpsIn(500, { kind: 'key' }, 100);
    const [error] = await find([300]);
    expect(codeOf(error)).toBe('DRAIN_LIMIT_EXCEEDED');
    expect(await find([60])).toEqual([60]);
    expect(await requests(() => find([300]))).toBe(0);
  });
});
