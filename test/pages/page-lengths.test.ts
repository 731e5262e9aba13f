import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { randomRuns } from '../support/random/random-runs.ts';
import { CURSORS, LENGTHS, type Lengths } from './changing-list.ts';
import { worldOf } from './world.ts';

const LENGTH_NAMES = Object.keys(LENGTHS) as Lengths[];

describe.each(LENGTH_NAMES)('a service that returns %s', (lengths) => {
  test.each(CURSORS)(
    'is paged through exactly once, in order, over %s cursors',
    async (cursors) => {
      for (const first of [1, 3, 10, 60, 200]) {
        const { list, pageThrough } = worldOf(233, { cursors, lengths });
        expect(await pageThrough(first)).toEqual(list.all);
      }
    },
  );

  test.each(CURSORS)(
    'gives records 4 to 6 behind the first three, over %s cursors',
    async (cursors) => {
      const { read } = worldOf(30, { cursors, lengths });
      const [, , third] = (await read({ first: 3 })).cursors;
      expect((await read({ first: 3, after: third! })).records).toEqual([3, 4, 5]);
    },
  );
});

test('a cursor resumes exactly although the pages have other lengths by now', async () => {
  const lengths = fc.constantFrom(...LENGTH_NAMES);
  const cases = fc.record({
    cursors: fc.constantFrom(...CURSORS),
    before: lengths,
    now: lengths,
    limits: fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 30 })),
    at: fc.nat(69),
    readBy: fc.integer({ min: 1, max: 80 }),
    count: fc.integer({ min: 1, max: 80 }),
    hasIds: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ cursors, before, now, limits, at, readBy, count, hasIds }) => {
      const idOf = hasIds ? {} : { idOf: () => null };
      const world = worldOf(70, { cursors, lengths: before, limit: limits[0], ...idOf });
      const all = world.list.all;
      let after: string | null = null;
      let front = 0;
      while (front + readBy <= at) {
        after = (await world.read({ first: readBy, after })).cursors.at(-1)!;
        front += readBy;
      }
      const cursor = (await world.read({ first: readBy, after })).cursors[at - front]!;
      world.list.lengths = now;
      [, world.list.limit] = limits;
      const { records } = await world.read({ first: count, after: cursor });
      expect(records).toEqual(all.slice(at + 1, at + 1 + count));
      if (!hasIds) return;
      expect((await world.read({ last: count, before: cursor })).records).toEqual(
        all.slice(Math.max(0, at - count), at),
      );
    }),
    { numRuns: randomRuns(400) },
  );
});

test('records with null or repeated ids are paged through exactly once', async () => {
  const cases = fc.record({
    cursors: fc.constantFrom(...CURSORS),
    lengths: fc.constantFrom(...LENGTH_NAMES),
    first: fc.integer({ min: 1, max: 90 }),
    ids: fc.array(fc.option(fc.nat(20)), { minLength: 80, maxLength: 80 }),
    limit: fc.integer({ min: 1, max: 30 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ ids, first, ...options }) => {
      const idOf = (serial: number) => (ids[serial] === null ? null : `r${ids[serial]}`);
      const world = worldOf(ids.length, { ...options, idOf });
      const records = await world.pageThrough(first);
      // Repeated ids in pages of one connection look like records that moved.
      const isExact = first === 1 || ids.every((id) => id === null);
      if (isExact) expect(records).toEqual(world.list.all);
      else expect(records).toEqual([...new Set(records)].toSorted((a, b) => a - b));
    }),
    { numRuns: randomRuns(200) },
  );
});
