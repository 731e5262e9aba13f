import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import { decodeCursor } from '../../src/paging/cursor.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { KINDS } from './model-service.ts';
import { comings, moves, SIZINGS, worldOf } from './world.ts';

const RUNS = randomRuns(400);
const LIMIT = 12;

const fewRecords = fc.integer({ min: 1, max: 3 });
const anyCount = fc.oneof({ weight: 3, arbitrary: fewRecords }, fc.integer({ min: 1, max: 30 }));
const manyComings = fc.array(comings(anyCount), { minLength: 1, maxLength: 4 });
/** Fewer records than a page has. */
const fewComings = fc.array(comings(fewRecords), { minLength: 1, maxLength: 3 });

const cases = fc.record({
  kind: fc.constantFrom(...KINDS),
  sizing: fc.constantFrom(...SIZINGS),
  length: fc.integer({ min: 1, max: 90 }),
  at: fc.nat(89),
  readBy: fc.oneof(fc.constantFrom(3, LIMIT), fc.integer({ min: 1, max: 40 })),
  count: fc.oneof(fc.constantFrom(1, 3, LIMIT), fc.integer({ min: 1, max: 60 })),
  isWalked: fc.boolean(),
  changes: manyComings,
});
type Case = typeof cases extends fc.Arbitrary<infer Value> ? Value : never;

/** Takes the cursor of a record, and then changes the list. */
async function take(of: Case) {
  const world = worldOf(of.length, { ...of, limit: LIMIT });
  const { service, read } = world;
  if (of.isWalked) await world.drain();
  const at = of.at % of.length;
  const then = service.shown;
  let after: string | null = null;
  for (let front = 0; ; front += of.readBy) {
    const page: Awaited<ReturnType<typeof read>> = await read({ first: of.readBy, after });
    if (at < front + of.readBy) {
      const record = then[at]!;
      const cursor = page.cursors[at - front]!;
      for (const change of of.changes) service.apply(change);
      return { world, cursor, record, front: then.slice(0, at), behind: then.slice(at + 1) };
    }
    after = page.cursors.at(-1)!;
  }
}

/** Whether a cursor was made of the last record of a page, so that the service's own cursor is used. */
function isEndOfPage(cursor: string): boolean {
  const { offset, size } = decodeCursor('letters', cursor)!;
  return offset === size - 1;
}

const refused = async <T>(reading: Promise<T>): Promise<T | undefined> => {
  try {
    return await reading;
  } catch (error) {
    expect(codeOf(error)).toBe('CURSOR_INVALID');
    return undefined;
  }
};

describe('after changes, the cursor of a record', () => {
  test('leads to its place or in front of it: no record is skipped, or the cursor is refused', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async (of) => {
        const { world, cursor, behind, record } = await take(of);
        // The last cursor of the service's own pages skips what an offset skips.
        const isOffset = of.kind === 'position' && isEndOfPage(cursor);
        const page = await refused(world.read({ first: of.count, after: cursor }));
        if (!page) {
          // Twenty pages reach to the start of the list, unless they have one record each.
          expect(of.kind !== 'key' || of.sizing === 'single').toBe(true);
          return;
        }
        const all = world.service.shown;
        const start = page.records.length > 0 ? all.indexOf(page.records[0]!) : all.length;
        expect(page.records).toEqual(all.slice(start, start + of.count));
        expect(page.hasNextPage).toBe(start + of.count < all.length);
        if (isOffset) return;
        const next = behind.find((each) => all.includes(each));
        const own = all.indexOf(record) + 1;
        expect(start).toBeLessThanOrEqual(
          own || (next === undefined ? all.length : all.indexOf(next)),
        );
      }),
      { numRuns: RUNS },
    );
  });

  test('resumes exactly behind it if fewer than a page were added or removed', async () => {
    await fc.assert(
      fc.asyncProperty(cases, fewComings, async (of, fewChanges) => {
        const { world, cursor, record } = await take({
          ...of,
          sizing: 'exact',
          changes: fewChanges,
        });
        const all = world.service.shown;
        const at = all.indexOf(record);
        fc.pre(at >= 0);
        // The last cursor of the service's own pages skips what an offset skips.
        fc.pre(of.kind !== 'position' || !isEndOfPage(cursor));
        const page = await refused(world.read({ first: of.count, after: cursor }));
        if (!page) {
          expect(of.kind).toBe('record');
          return;
        }
        expect(page.records).toEqual(all.slice(at + 1, at + 1 + of.count));
      }),
      { numRuns: RUNS },
    );
  });

  test('leads backward exactly in front of it, wherever it is now', async () => {
    const anyChanges = fc.array(fc.oneof(comings(anyCount), moves), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(cases, anyChanges, async (of, each) => {
        const { world, cursor, record } = await take({ ...of, changes: each });
        const all = world.service.shown;
        const at = all.indexOf(record);
        fc.pre(at >= 0);
        const page = await world.read({ last: of.count, before: cursor });
        expect(page).toMatchObject({
          records: all.slice(Math.max(0, at - of.count), at),
          hasNextPage: true,
          hasPreviousPage: at > of.count,
        });
      }),
      { numRuns: RUNS },
    );
  });

  test('leads backward to the end of its page if its record is gone: no record is skipped, or it is refused', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async (of) => {
        const { world, cursor, record, front } = await take(of);
        const all = world.service.shown;
        if (all.includes(record)) world.remove(record);
        const page = await refused(world.read({ last: of.count, before: cursor }));
        if (!page) return;
        const now = world.service.shown;
        const end = page.records.length > 0 ? now.indexOf(page.records.at(-1)!) + 1 : 0;
        expect(page.records).toEqual(now.slice(Math.max(0, end - of.count), end));
        const previous = front.findLast((each) => now.includes(each));
        expect(end).toBeGreaterThan(previous === undefined ? -1 : now.indexOf(previous));
        expect(page.hasNextPage).toBe(end < now.length);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('a list that changes between the requests of a client', () => {
  const histories = fc.record({
    kind: fc.constantFrom('key' as const, 'record' as const),
    sizing: fc.constantFrom(...SIZINGS),
    length: fc.integer({ min: 0, max: 90 }),
    first: fc.oneof(fc.constantFrom(1, 3, LIMIT), fc.integer({ min: 1, max: 40 })),
    isWalked: fc.boolean(),
    changes: fc.array(comings(anyCount), { minLength: 1, maxLength: 10 }),
  });

  test('is paged through without circles, and without losing a record that stands still', async () => {
    await fc.assert(
      fc.asyncProperty(histories, async ({ first, isWalked, ...of }) => {
        const world = worldOf(of.length, { ...of, limit: LIMIT });
        if (isWalked) await world.drain();
        const left = [...of.changes];
        const before = world.service.shown;
        const records = await refused(
          world.pageThrough(first, () => {
            const change = left.shift();
            if (change) world.service.apply(change);
          }),
        );
        if (!records) {
          // Twenty pages reach to the start of the list, unless they have one record each.
          expect(of.kind === 'record' || of.sizing === 'single').toBe(true);
          return;
        }
        const now = new Set(world.service.shown);
        const stood = before.filter((record) => now.has(record));
        expect(stood.filter((record) => !records.includes(record))).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  test('gives what is between `after` and `before` at the time of each request', async () => {
    const windows = fc.record({
      kind: fc.constantFrom(...KINDS),
      sizing: fc.constantFrom(...SIZINGS),
      length: fc.integer({ min: 2, max: 90 }),
      ends: fc.tuple(fc.nat(89), fc.nat(89)),
      count: fc.integer({ min: 0, max: 60 }),
      isWalked: fc.boolean(),
      changes: fewComings,
    });
    // The page behind the page of `after` is read before it shows that offsets lead to other records now.
    const slid = {
      kind: 'position' as const,
      sizing: 'rounded' as const,
      length: 50,
      ends: [20, 21] as [number, number],
      count: 1,
      isWalked: false,
      changes: [{ do: 'remove' as const, at: 0, count: 2 }],
    };
    await fc.assert(
      fc.asyncProperty(windows, async ({ ends, count, isWalked, changes: each, ...of }) => {
        const world = worldOf(of.length, { ...of, limit: LIMIT });
        if (isWalked) await world.drain();
        const [from, to] = ends.map((at) => at % of.length).toSorted((a, b) => a - b) as [
          number,
          number,
        ];
        fc.pre(from < to);
        const { cursors, records } = await world.read({ first: of.length });
        const [after, before] = [cursors[from]!, cursors[to]!];
        for (const change of each) {
          world.service.apply(change);
          const all = world.service.shown;
          const [start, end] = [all.indexOf(records[from]!), all.indexOf(records[to]!)];
          const between = all.slice(start + 1, end);
          // Where one of them is gone, or both stand crossed, other properties say what comes.
          if (start < 0 || end <= start) return;
          // The service's own cursor leads an offset away.
          if (of.kind === 'position' && isEndOfPage(after)) return;
          const forward = await refused(world.read({ first: count, after, before }));
          const backward = await refused(world.read({ last: count, after, before }));
          if (!forward || !backward) {
            expect(of.kind).toBe('record');
            return;
          }
          expect(forward.records).toEqual(between.slice(0, count));
          expect(forward.hasNextPage).toBe(between.length > count);
          expect(backward.records).toEqual(between.slice(Math.max(0, between.length - count)));
        }
      }),
      { numRuns: RUNS, examples: [[slid]] },
    );
  });

  test('gives a window or a coded error while it changes during the requests', async () => {
    await fc.assert(
      fc.asyncProperty(
        cases,
        fc.array(fc.oneof(comings(anyCount), moves), { maxLength: 8 }),
        async (of, during) => {
          const { world, cursor } = await take(of);
          const left = [...during];
          world.counted.onRead = () => {
            const change = left.shift();
            if (change) world.service.apply(change);
          };
          for (const args of [
            { first: of.count, after: cursor },
            { last: of.count, before: cursor },
            { last: of.count, after: cursor },
          ]) {
            const result = await world.read(args).catch((error: unknown) => error);
            if (result instanceof Error) {
              const isOfService = result.message === 'The record of this cursor is gone.';
              if (!isOfService)
                expect(['CURSOR_INVALID', 'DRAIN_STALLED']).toContain(codeOf(result));
            } else expect(result).toMatchObject({ records: expect.any(Array) });
          }
        },
      ),
      { numRuns: RUNS },
    );
  });
});
