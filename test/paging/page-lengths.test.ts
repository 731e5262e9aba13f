import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { randomRuns } from '../support/random/random-runs.ts';
import { KINDS, type Traits } from './model-service.ts';
import { SIZINGS, worldOf } from './world.ts';

const isHidden = (serial: number) => serial % 4 === 1;
const SERVICES: readonly [string, Partial<Traits>][] = [
  ['exactly as many records as requested', { sizing: 'exact' }],
  ['at least ten records', { sizing: 'least' }],
  ['full tens of records', { sizing: 'rounded' }],
  ['pages that are filled up after some records were hidden', { sizing: 'filled', isHidden }],
  ['pages in which some records are hidden', { isHidden }],
  ['two thirds of the records', { sizing: 'fewer' }],
  ['one record, whatever is requested', { sizing: 'single' }],
  ['now more records, now fewer', { sizing: 'varied' }],
];

describe.each(SERVICES)('a service that returns %s', (_name, traits) => {
  test.each(KINDS)('is paged through exactly once, in order, with cursors by %s', async (kind) => {
    for (const first of [1, 3, 10, 60, 200]) {
      const { service, pageThrough } = worldOf(233, { kind, ...traits });
      expect(await pageThrough(first)).toEqual(service.shown);
    }
  });
});

test('a cursor resumes exactly although the pages have other lengths by now', async () => {
  const sizings = fc.constantFrom(...SIZINGS);
  const cases = fc.record({
    kind: fc.constantFrom(...KINDS),
    before: sizings,
    now: sizings,
    limits: fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 30 })),
    at: fc.nat(69),
    readBy: fc.integer({ min: 1, max: 80 }),
    count: fc.integer({ min: 1, max: 80 }),
    hasIds: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ kind, before, now, limits, at, readBy, count, hasIds }) => {
      const idOf = hasIds ? {} : { idOf: () => null };
      const world = worldOf(70, { kind, sizing: before, limit: limits[0], ...idOf });
      const all = world.service.shown;
      let after: string | null = null;
      let front = 0;
      while (front + readBy <= at) {
        after = (await world.read({ first: readBy, after })).cursors.at(-1)!;
        front += readBy;
      }
      const cursor = (await world.read({ first: readBy, after })).cursors[at - front]!;
      world.service.sizing = now;
      [, world.service.limit] = limits;
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
    kind: fc.constantFrom(...KINDS),
    sizing: fc.constantFrom(...SIZINGS),
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
      if (isExact) expect(records).toEqual(world.service.shown);
      else expect(records).toEqual([...new Set(records)].toSorted((a, b) => a - b));
    }),
    { numRuns: randomRuns(200) },
  );
});
