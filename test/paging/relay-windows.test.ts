import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
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

describe('arguments', () => {
  test.each([
    ['a negative `first`', { first: -1 }, /`first` must not be negative/],
    ['a negative `last`', { last: -1 }, /`last` must not be negative/],
    ['a `first` above the maximum', { first: 501 }, /`first` is at most 500/],
    ['a `last` above the maximum', { last: 501 }, /`last` is at most 500/],
    ['`first` and `last` at once', { first: 2, last: 1 }, /cannot be given together/],
    ['`first` and `last` at once, as 0', { first: 0, last: 0 }, /cannot be given together/],
  ])('%s is refused without a request', async (_name, args, message) => {
    const world = worldOf(3, { kind: 'key' });
    const error: unknown = await world.read(args).catch((thrown: unknown) => thrown);
    expect(codeOf(error)).toBe('BAD_USER_INPUT');
    expect((error as Error).message).toMatch(message);
    expect(world.counted.requests).toBe(0);
  });

  test('null and an empty cursor count as absent, as in the code of Relay', async () => {
    const world = worldOf(30, { kind: 'key' });
    const forward = await world.read({ first: 3 });
    expect(await world.read({ first: 3, last: null, after: '', before: null })).toEqual(forward);
    const backward = await world.read({ last: 3 });
    expect(await world.read({ last: 3, first: null, after: null, before: '' })).toEqual(backward);
  });

  test.each(['nonsense', ' ', 'a'.repeat(300_000), 'AAAA\u0000AAAA'])(
    'a cursor that is not one of this list is refused without a request',
    async (cursor) => {
      const world = worldOf(3, { kind: 'key' });
      for (const args of [
        { first: 1, after: cursor },
        { last: 1, before: cursor },
        { first: 1, before: cursor },
      ]) {
        await expect(world.read(args)).rejects.toSatisfy(
          (error) => codeOf(error) === 'CURSOR_INVALID',
        );
      }
      expect(world.counted.requests).toBe(0);
    },
  );
});
