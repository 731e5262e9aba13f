import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import { LookUps, WALK_AGAIN_MS, type LookUpList } from '../../src/paging/look-up.ts';
import { CallerBudgets, PageBudget } from '../../src/paging/page-budget.ts';
import { PageFailedError } from '../../src/paging/page.ts';
import { WalkSlots } from '../../src/paging/walk-slots.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { comings, KINDS, moves, SIZINGS, type Change, type Traits } from '../service/list-model.ts';
import { World } from './world.ts';

const LIMIT = 12;
const { signal: stays } = new AbortController();

interface Other {
  readonly list?: LookUpList<number>;
  readonly budget?: PageBudget;
  readonly signal?: AbortSignal;
}

function lookUpsIn(length: number, traits: Partial<Traits> = {}, maxRecords = 1_000) {
  const world = new World(length, traits);
  const { clock } = world;
  const lookUps = new LookUps({ clock, maxRecords, slots: new WalkSlots(1, clock) });
  const paged: LookUpList<number> = {
    ...world.list,
    idsFor: ({ spend }) => ({
      ...world.list,
      fetchPage: async (...request) => {
        spend();
        return world.fetchPage(...request);
      },
    }),
  };
  const find = async (serials: readonly number[], { signal = stays, ...other }: Other = {}) => {
    const budget = other.budget ?? new PageBudget(new CallerBudgets(0, clock), 'caller', true);
    const found = await lookUps.find(other.list ?? paged, serials.map(String), {
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
  return { world, clock, lookUps, paged, find };
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

test('a lookup finds every record that stands still and no other, whoever leaves, also while the list changes', async () => {
  const during = fc.oneof(fc.constant([]), changes);
  const always = fc.assert(
    fc.asyncProperty(histories, during, async ({ length, isWalked, rounds, ...options }, later) => {
      const { world, find, clock } = lookUpsIn(length, { ...options, limit: LIMIT });
      const { service } = world;
      if (isWalked) await world.drain();
      for (const { changes: before, callers, leaving } of rounds) {
        for (const change of before) service.apply(change);
        const since = service.changes;
        world.changeDuring(later);
        const { signal, abort } = leavingCaller();
        const left = callers.slice(leaving).map((serials) => find(serials, { signal }));
        const found = callers.map((serials) => find(serials));
        abort();
        await Promise.allSettled(left);
        const answers = await Promise.all(found);
        const still = service.stillSince(since);
        for (const [at, results] of answers.entries()) {
          const serials = callers[at]!;
          const standing = serials.map((serial) => (still.includes(serial) ? serial : undefined));
          if (later.length === 0) expect(results).toEqual(standing);
          for (const [index, result] of results.entries()) {
            if (typeof result === 'number') expect(result).toBe(serials[index]);
            // A walk over other cursors may itself miss a record that stands still.
            if (options.kind === 'key' && standing[index] !== undefined)
              expect(result).not.toBeUndefined();
          }
        }
        clock.jump(WALK_AGAIN_MS);
      }
    }),
    { numRuns: randomRuns(500) },
  );
  await expect(always).resolves.toBeUndefined();
});

function leavingCaller() {
  const leaving = new AbortController();
  return { signal: leaving.signal, abort: () => leaving.abort() };
}

test('a record that fails with the fields of the lookup is returned with its failure, not called missing or moved', async () => {
  for (const length of [5, 80]) {
    const { world, paged, find } = lookUpsIn(length, { limit: LIMIT });
    const fetchPage: typeof paged.fetchPage = async (...request) => {
      const page = await world.fetchPage(...request);
      return { ...page, ids: page.ids.map((id) => (id === '3' ? null : id)) };
    };
    for (const isWalked of [false, true]) {
      if (isWalked) await world.drain();
      const list = { ...paged, fetchPage };
      expect(await find([2, 3, 999], { list })).toEqual([2, 3, undefined]);
    }
  }
});

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

describe('the requests of lookups', () => {
  test.each<[string, Partial<Traits>, Change[], number[], number]>([
    ['50 ids', {}, [], range(100, 150), 2],
    ['one id', {}, [], [100], 1],
    [
      'a new record at the start and one at the end',
      {},
      [
        { do: 'insert', at: 0, count: 1 },
        { do: 'insert', at: 501, count: 1 },
      ],
      [500, 501],
      2,
    ],
    [
      'a record that was pushed by others',
      { kind: 'position' },
      [{ do: 'insert', at: 0, count: 20 }],
      [140],
      3,
    ],
    [
      'a record in front of which others were removed',
      { kind: 'position' },
      [{ do: 'remove', at: 0, count: 20 }],
      [100],
      3,
    ],
  ])('for %s are those of their pages', async (_, traits, before, serials, most) => {
    const { world, find } = lookUpsIn(500, traits);
    await world.drain();
    for (const change of before) world.service.apply(change);
    const requests = await world.costOf(async () => expect(await find(serials)).toEqual(serials));
    expect(requests).toBeLessThanOrEqual(most);
  });

  test('end at the record in a list that is not known, and the next lookup goes on from there', async () => {
    const { find, world } = lookUpsIn(500, { kind: 'record' });
    expect(await world.costOf(() => find([60]))).toBe(3);
    expect(await world.costOf(() => find([160]))).toBe(4);
    expect(await world.costOf(() => find([60, 160]))).toBe(2);
  });

  test('for unknown ids are one walk in 30 seconds, until a mutation is sent', async () => {
    const { find, world, clock, lookUps } = lookUpsIn(500);
    const walk = await world.costOf(() => Promise.all(range(900, 930).map((id) => find([id]))));
    expect(walk).toBeLessThanOrEqual(12);
    clock.jump(WALK_AGAIN_MS - 1);
    // The first and the last page.
    expect(await world.costOf(() => find([950]))).toBe(2);
    world.service.apply({ do: 'insert', at: 250, count: 1 });
    expect(await find([500])).toEqual([undefined]);
    lookUps.forget();
    expect(await find([500])).toEqual([500]);
    clock.jump(WALK_AGAIN_MS);
    expect(await world.costOf(() => find([960]))).toBeGreaterThan(10);
  });

  test('for unknown ids join a walk that takes longer than that', async () => {
    const { find, world, clock } = lookUpsIn(500);
    const lookUps = [find([900])];
    world.onRead = () => {
      if (world.requests !== 5) return;
      clock.jump(WALK_AGAIN_MS);
      lookUps.push(find([901]));
    };
    expect(await lookUps[0]).toEqual([undefined]);
    expect(await lookUps[1]).toEqual([undefined]);
    expect(world.requests).toBeLessThan(16);
  });

  test('for records that were removed behind a walk are one more walk, not one each', async () => {
    const { find, world } = lookUpsIn(500);
    await find([480]);
    const removed = range(0, 40).map((at) => at * 10 + 3);
    world.remove(...removed);
    const lookUp = async () => expect(await find(removed)).toEqual(removed.map(() => undefined));
    expect(await world.costOf(lookUp)).toBeLessThan(50);
  });

  test('are no walk in a list of one page', async () => {
    const { find, world } = lookUpsIn(30);
    await world.drain();
    expect(await world.costOf(() => find([1, 99]))).toBe(1);
  });

  test('end once every caller has left', async () => {
    const { find, world } = lookUpsIn(500);
    const { signal, abort } = leavingCaller();
    const lookUp = find([999], { signal });
    world.onRead = () => {
      if (world.requests === 3) abort();
    };
    await expect(lookUp).rejects.toThrow('aborted');
    expect(world.requests).toBe(3);
  });
});

test('all lookups that wait for a page spend for it, and one that cannot afford it disturbs no other', async () => {
  const { find, clock, world } = lookUpsIn(500);
  const budgetOf = (caller: string, pages: number) =>
    new PageBudget(new CallerBudgets(pages, clock), caller, true);
  const poor = find([300], { budget: budgetOf('poor', 2) });
  const rich = find([300], { budget: budgetOf('rich', 20) });
  expect((await poor).map(codeOf)).toEqual(['RATE_LIMITED']);
  expect(await rich).toEqual([300]);
  expect(await world.costOf(() => find([300]))).toBe(1);
});

describe('a failure', () => {
  test('of a page fails the records that are expected there, and no others', async () => {
    const { find, world, paged } = lookUpsIn(200);
    await world.drain();
    const failure = new Error('A record is broken.');
    const fetchPage: typeof paged.fetchPage = async (...request) => {
      const page = await paged.fetchPage(...request);
      if (page.records.includes(60)) throw new PageFailedError('failed', { cause: failure });
      return page;
    };
    expect(await find([20, 60, 150], { list: { ...paged, fetchPage } })).toEqual([
      20,
      failure,
      150,
    ]);
  });

  test('of a walk fails the lookups that wait for it, and the next lookup walks again', async () => {
    const { find, world } = lookUpsIn(200);
    world.fails = true;
    const failed = await Promise.all([find([20]), find([60])]);
    expect(failed).toEqual([[expect.any(PageFailedError)], [expect.any(PageFailedError)]]);
    world.fails = false;
    expect(await find([60])).toEqual([60]);
  });

  test('of a walk that reads too many records says that it was ended', async () => {
    const { find, world } = lookUpsIn(500, {}, 100);
    expect((await find([300])).map(codeOf)).toEqual(['DRAIN_LIMIT_EXCEEDED']);
    expect(await find([60])).toEqual([60]);
    expect(await world.costOf(() => find([300]))).toBe(0);
  });
});
