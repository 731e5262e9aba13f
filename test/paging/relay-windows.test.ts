import fc from 'fast-check';
import { expect, test } from 'vitest';
import { randomRuns } from '../support/random/random-runs.ts';
import { KINDS } from './model-service.ts';
import { SIZINGS, worldOf, type World } from './world.ts';

// Relay's GraphQL Cursor Connections Specification, https://relay.dev/graphql/connections.htm, sections 4.4 and 5.1.

const RUNS = randomRuns(300);
const LIMIT = 12;

/** How the cursor of a record was obtained. */
const WAYS = ['end of a page', 'within a page', 'far read', 'last', 'last before'] as const;
const ends = fc.option(fc.record({ at: fc.nat(80), by: fc.constantFrom(...WAYS) }));
const calls = fc.record({
  direction: fc.constantFrom('first', 'last', null),
  count: fc.oneof(fc.constantFrom(0, 1, 2, 11, 12, 13), fc.nat(80)),
  after: ends,
  before: ends,
});

const service = fc.record({
  length: fc.oneof(fc.constantFrom(0, 1, 2, 11, 12, 13, 24), fc.nat(60)),
  sizing: fc.constantFrom(...SIZINGS),
  kind: fc.constantFrom(...KINDS),
  isWalked: fc.boolean(),
});

test('any window is that of the algorithm of the specification, whatever the cursors of the service and the length of its pages', async () => {
  await fc.assert(
    fc.asyncProperty(service, fc.array(calls, { minLength: 1, maxLength: 3 }), async (of, each) => {
      const world = worldOf(of.length, { ...of, limit: LIMIT });
      if (of.isWalked) await world.drain();
      for (const { direction, count, after, before } of each) {
        const within = (end: typeof after) =>
          end && of.length > 0 ? { ...end, at: end.at % of.length } : null;
        const [a, b] = [within(after), within(before)];
        const counts = {
          first: direction === 'first' ? count : null,
          last: direction === 'last' ? count : null,
        };
        const { cursors, ...window } = await world.read({
          ...counts,
          after: a && (await cursorOf(world, a)),
          before: b && (await cursorOf(world, b)),
        });
        const all = world.service.shown;
        expect(window).toEqual(
          specified(all, { ...counts, after: a && all[a.at]!, before: b && all[b.at]! }),
        );
        expect(new Set(cursors).size).toBe(cursors.length);
      }
    }),
    { numRuns: RUNS },
  );
});

async function cursorOf(
  world: World,
  { at, by }: { at: number; by: (typeof WAYS)[number] },
): Promise<string> {
  const { length } = world.service.shown;
  switch (by) {
    case 'end of a page':
      return (await world.read({ first: at + 1 })).cursors.at(-1)!;
    case 'within a page':
      return (await world.read({ first: at + 4 })).cursors[at]!;
    case 'far read':
      return (await world.read({ first: 500 })).cursors[at]!;
    case 'last':
      return (await world.read({ last: length - at })).cursors[0]!;
    case 'last before': {
      if (at + 1 === length) return (await world.read({ last: 1 })).cursors.at(-1)!;
      const before = await cursorOf(world, { at: at + 1, by: 'within a page' });
      return (await world.read({ last: 3, before })).cursors.at(-1)!;
    }
  }
}

interface Specified {
  readonly after: number | null;
  readonly before: number | null;
  readonly first: number | null;
  readonly last: number | null;
}

/** EdgesToReturn, HasPreviousPage and HasNextPage. Without counts, `first` is a page, and `before` still ends it. */
function specified(all: readonly number[], args: Specified) {
  const { after, before, last } = args;
  const isPage = args.first === null && last === null;
  const first = isPage ? LIMIT : args.first;
  let applied = after === null ? all : all.slice(all.indexOf(after) + 1);
  const end = before === null ? -1 : applied.indexOf(before);
  if (end >= 0) applied = applied.slice(0, end);
  let records = applied;
  if (first !== null) records = records.slice(0, first);
  if (last !== null) records = records.slice(Math.max(0, records.length - last));
  return {
    records,
    hasPreviousPage: last === null ? after !== null : applied.length > last,
    hasNextPage:
      (first !== null && applied.length > first) ||
      ((args.first === null || isPage) && before !== null),
  };
}
