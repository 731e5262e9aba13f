import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CursorBehaviour } from '../../sandbox/cursors.ts';
import type { PersonList } from '../../sandbox/person-list.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const RUNS = randomRuns(12);
const QUERY = `query ($first: Int, $after: String, $last: Int, $before: String) {
  personsConnection(first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { id } }
    pageInfo { hasNextPage hasPreviousPage }
  }
}`;

interface Arguments {
  first?: number;
  after?: string;
  last?: number;
  before?: string;
}

interface Connection {
  edges: { cursor: string; node: { id: string } }[];
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean };
}

/** One edge, and the list as it was when its cursor was issued. */
interface Held {
  readonly cursor: string;
  readonly id: string;
  readonly at: number;
  readonly front: readonly string[];
  readonly behind: readonly string[];
  /** The records of the page with which the cursor came, from its start. */
  readonly page: readonly string[];
  readonly offset: number;
  readonly size: number;
}

const SIDES = ['start', 'before', 'at', 'after', 'end'] as const;

/** Positions are relative to the record of the cursor. */
interface Change {
  does: 'insert' | 'remove';
  where: (typeof SIDES)[number];
  away: number;
  count: number;
}

const changesAt = (sides: readonly Change['where'][]): fc.Arbitrary<Change[]> =>
  fc.array(
    fc.record({
      does: fc.constantFrom('insert', 'remove'),
      where: fc.constantFrom(...sides),
      away: fc.nat(12),
      count: fc.oneof(
        { weight: 4, arbitrary: fc.integer({ min: 1, max: 8 }) },
        fc.constantFrom(49, 50, 60),
      ),
    }),
    { minLength: 1, maxLength: 4 },
  );

const casesOf = (sides: readonly Change['where'][]) =>
  fc.record({
    length: fc.oneof(fc.constantFrom(1, 50, 51, 100, 137), fc.integer({ min: 1, max: 137 })),
    at: fc.nat(136),
    /** The kind of reading that issued the cursor. */
    by: fc.constantFrom('end of a page', 'within a page', 'far read', 'last', 'last before'),
    count: fc.oneof(fc.constantFrom(1, 5, 50), fc.integer({ min: 1, max: 200 })),
    isDrained: fc.boolean(),
    changes: changesAt(sides),
    /** After how many of the changes its record is removed, if it has to be. */
    goesAt: fc.nat(4),
    moves: fc.array(fc.tuple(fc.nat(400), fc.nat(400)), { maxLength: 3 }),
  });

type Case = ReturnType<typeof casesOf> extends fc.Arbitrary<infer Value> ? Value : never;

describe('with keyset cursors', () => {
  test('`after` and `before` resume exactly after and before an existing record', async () => {
    await forCases({ cursors: 'keyset', loses: 'others' }, async (world) => {
      expect(await fourWays(world)).toEqual(exact(world));
    });
  });

  test('the cursor of a removed record, in a list never read to its end, skips no record, and repeats only its page or starts again', async () => {
    await forCases({ cursors: 'keyset', loses: 'its record', isNew: true }, async (world) => {
      expect(faultsIn(world, await fourWays(world))).toEqual([]);
    });
  });
});

// A cursor of the gateway contains two of the service: that of the start and that of the end of its page. The service
// refuses a record cursor whose record is gone. Then the record is located elsewhere.
describe('with record cursors', () => {
  test('`after` and `before` resume exactly after and before an existing record, wherever it moved', async () => {
    await forCases({ cursors: 'record', loses: 'others', moves: true }, async (world) => {
      expect(await fourWays(world)).toEqual(exact(world));
    });
  });

  test('the cursor of a removed record, in a list never read to its end, skips nothing or is refused', async () => {
    await forCases({ cursors: 'record', loses: 'its record', isNew: true }, async (world) => {
      expect(faultsIn(world, await fourWays(world))).toEqual([]);
    });
  });
});

// With these cursors, the service itself skips as many records as were removed in front of one, and repeats as many
// as were inserted there.
describe('with position cursors', () => {
  test('changes after the record of a cursor do not matter: `after` and `before` resume exactly', async () => {
    const settings = { cursors: 'position', loses: 'others', sides: ['after', 'end'] } as const;
    await forCases(settings, async (world) => {
      expect(await fourWays(world)).toEqual(exact(world));
    });
  });

  test('the cursor of an existing record resumes exactly; at the end of a page it resumes as the service does, unless the list was read to its end', async () => {
    await forCases({ cursors: 'position', loses: 'others', moves: true }, async (world) => {
      const { ids, count, held } = world;
      const [expected, answers] = [exact(world), await fourWays(world)];
      expect(answers.before).toEqual(expected.before);
      expect(answers.firstBefore).toEqual(expected.firstBefore);
      const isLast = held.offset === held.size - 1;
      const services = isLast ? [held.at + 1] : [];
      for (const [way, allowed] of [
        ['after', services.map((start) => behind(ids, start, count))],
        ['lastAfter', services.map((start) => endBehind(ids, start, count))],
      ] as const) {
        expect([expected[way], ...allowed]).toContainEqual(answers[way]);
      }
    });
  });

  test('the cursor of a removed record, in a list never read to its end, skips only what the service skips after the end of a page', async () => {
    const settings = { cursors: 'position', loses: 'its record', isNew: true } as const;
    await forCases(settings, async (world) => {
      const { ids, count, held } = world;
      const answers = await fourWays(world);
      const isLast = held.offset === held.size - 1;
      if (isLast) expect(answers.after).toEqual(behind(ids, held.at + 1, count));
      const faults = faultsIn(world, answers);
      expect(faults.filter((fault) => !isLast || fault.startsWith('before'))).toEqual([]);
    });
  });

  test('`after` skips no record of a list to which records were only added', async () => {
    const settings = { cursors: 'position', loses: 'nothing' } as const;
    await forCases(settings, async (world) => {
      const { after } = await fourWays(world);
      const { ids, count, held } = world;
      if (after === REFUSED) throw new Error('A position is never refused.');
      const start = after.ids.length > 0 ? ids.indexOf(after.ids[0]!) : ids.length;
      expect(after).toEqual(behind(ids, start, count));
      expect(start).toBeLessThanOrEqual(ids.indexOf(held.id) + 1);
    });
  });
});

interface World {
  readonly gateway: TestGateway;
  readonly held: Held;
  /** The list as it is now. */
  readonly ids: readonly string[];
  readonly count: number;
}

interface Settings {
  readonly cursors: CursorBehaviour;
  /** What may be removed; `its record` always is. */
  readonly loses: 'nothing' | 'others' | 'its record' | 'any';
  readonly sides?: readonly Change['where'][];
  /** Records are moved as well, also the record of the cursor. */
  readonly moves?: boolean;
  /** The gateway never read the list to its end. */
  readonly isNew?: boolean;
}

async function forCases(settings: Settings, property: (world: World) => Promise<void>) {
  const { cursors, loses, sides = SIDES, isNew = false } = settings;
  await fc.assert(
    fc.asyncProperty(casesOf(sides), async (setting) => {
      await using gateway = await startGatewayOverSandbox({ persons: setting.length, cursors });
      const { persons } = gateway.sandbox;
      const ids = () => persons.all().map(({ id }) => id);
      if (setting.isDrained && !isNew) {
        // A gateway that has read its tokens keeps the index of a drain.
        await read(gateway, { first: 1 });
        await gateway.ask('{ allPersons { id } }');
      }
      const isForward = setting.by !== 'last' && setting.by !== 'last before';
      const by = isNew && !isForward ? 'far read' : setting.by;
      const held = await take(gateway, ids(), { ...setting, by });
      const changes: Change[] = [...setting.changes];
      if (loses === 'its record') {
        changes.splice(setting.goesAt, 0, { does: 'remove', where: 'at', away: 0, count: 1 });
      }
      for (const change of changes) {
        if (change.does === 'insert') insert(change, persons, held.id);
        else if (loses !== 'nothing') {
          const spares = { itself: loses === 'others', front: !sides.includes('before') };
          remove(change, persons, held.id, spares);
        }
      }
      for (const [from, to] of settings.moves ? setting.moves : []) {
        persons.move(from % persons.length, to % persons.length);
      }
      await property({ gateway, held, ids: ids(), count: setting.count });
    }),
    { numRuns: RUNS },
  );
}

const WAYS = ['after', 'before', 'lastAfter', 'firstBefore'] as const;
const REFUSED = 'start anew';

interface Stretch {
  readonly ids: readonly string[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

type FourWays = Record<(typeof WAYS)[number], Stretch | typeof REFUSED>;

async function fourWays({ gateway, held: { cursor }, count }: World): Promise<FourWays> {
  return {
    after: await read(gateway, { first: count, after: cursor }),
    before: await read(gateway, { last: count, before: cursor }),
    lastAfter: await read(gateway, { last: count, after: cursor }),
    firstBefore: await read(gateway, { first: count, before: cursor }),
  };
}

/** The edges are those behind and in front of the record of the cursor. */
function exact({ held: { id }, ids, count }: World): FourWays {
  const offset = ids.indexOf(id);
  const front = ids.slice(0, offset);
  return {
    after: behind(ids, offset + 1, count),
    before: inFront(ids, offset, count),
    lastAfter: endBehind(ids, offset + 1, count),
    firstBefore: {
      ids: front.slice(0, count),
      hasNextPage: front.length > count,
      hasPreviousPage: false,
    },
  };
}

function behind(ids: readonly string[], start: number, count: number): Stretch {
  const rest = ids.slice(start);
  return {
    ids: rest.slice(0, count),
    hasNextPage: rest.length > count,
    hasPreviousPage: true,
  };
}

function endBehind(ids: readonly string[], start: number, count: number): Stretch {
  const rest = ids.slice(start);
  return {
    ids: rest.slice(-count),
    hasNextPage: false,
    hasPreviousPage: rest.length > count,
  };
}

function inFront(ids: readonly string[], end: number, count: number): Stretch {
  const rest = ids.slice(0, end);
  return { ids: rest.slice(-count), hasNextPage: true, hasPreviousPage: rest.length > count };
}

/** What is wrong with the answers to a cursor whose record is gone. */
function faultsIn({ held, ids, count }: World, { after, before }: FourWays): string[] {
  const faults: string[] = [];
  const isOfItsPage = (id: string) => held.page.includes(id);
  if (after !== REFUSED) {
    const start = after.ids.length > 0 ? ids.indexOf(after.ids[0]!) : ids.length;
    const next = held.behind.find((id) => ids.includes(id));
    const again = after.ids.filter((id) => held.front.includes(id));
    if (!isDeepStrictEqual(after, behind(ids, start, count))) faults.push('after: no stretch');
    if (next !== undefined && start > ids.indexOf(next)) faults.push('after: skips records');
    if (start > 0 && !again.every(isOfItsPage))
      faults.push('after: repeats records of other pages');
  }
  if (before !== REFUSED) {
    const end = before.ids.length > 0 ? ids.indexOf(before.ids.at(-1)!) + 1 : 0;
    const previous = held.front.findLast((id) => ids.includes(id));
    const again = before.ids.filter((id) => held.behind.includes(id));
    // The page reaches to the end of the list, and nothing follows.
    const { hasNextPage } = before;
    const stretch = { ...inFront(ids, end, count), hasNextPage };
    if (!isDeepStrictEqual(before, stretch)) faults.push('before: no stretch');
    if (!hasNextPage && end < ids.length) faults.push('before: more would follow');
    if (previous !== undefined && end <= ids.indexOf(previous))
      faults.push('before: skips records');
    const isToItsEnd = end === ids.length;
    if (!isToItsEnd && !again.every(isOfItsPage))
      faults.push('before: repeats records of other pages');
  }
  return faults;
}

async function take(
  gateway: TestGateway,
  before: readonly string[],
  { at: number, by }: Case,
): Promise<Held> {
  const at = number % before.length;
  const edges = async (args: Arguments) => (await ask(gateway, args)).edges;
  const edge = await (async () => {
    switch (by) {
      case 'end of a page':
        return (await edges({ first: at + 1 })).at(-1)!;
      case 'within a page':
        return (await edges({ first: at + 4 }))[at]!;
      case 'far read':
        return (await edges({ first: 500 }))[at]!;
      case 'last':
        return (await edges({ last: before.length - at }))[0]!;
      case 'last before': {
        const next = (await edges({ first: 500 }))[at + 1];
        return (await edges({ last: 3, ...(next && { before: next.cursor }) })).at(-1)!;
      }
    }
  })();
  const { size, offset } = pageOf(edge.cursor);
  expect(edge.node.id).toBe(before[at]);
  return {
    cursor: edge.cursor,
    id: edge.node.id,
    at,
    front: before.slice(0, at),
    behind: before.slice(at + 1),
    page: before.slice(at - offset, at - offset + size),
    offset,
    size,
  };
}

/** The position of an edge, which its cursor carries. */
function pageOf(cursor: string): { size: number; offset: number } {
  const payload = Buffer.from(cursor, 'base64url').subarray(1, -4).toString();
  const [, , , size, offset] = JSON.parse(payload) as [string, string, string, number, number];
  return { size, offset };
}

function insert(change: Change, list: PersonList, id: string): void {
  list.insert(offsetOf(change, list, id), change.count);
}

function remove(
  change: Change,
  list: PersonList,
  id: string,
  spares: { itself: boolean; front: boolean },
): void {
  const offset = offsetOf(change, list, id);
  // Without a cursor, the last ones.
  const from = change.where === 'end' ? Math.max(0, offset - change.count) : offset;
  const to = Math.min(from + change.count, list.length);
  const record = list.all().findIndex((person) => person.id === id);
  for (let at = to - 1; at >= from; at -= 1) {
    const isSpared = (spares.itself && at === record) || (spares.front && at < record);
    if (!isSpared) list.remove(at);
  }
}

function offsetOf({ where, away }: Change, list: PersonList, id: string): number {
  const index = list.all().findIndex((person) => person.id === id);
  const record = index < 0 ? Math.floor(list.length / 2) : index;
  const offset = {
    start: 0,
    before: record - away,
    at: record,
    after: record + 1 + away,
    end: list.length,
  }[where];
  return Math.min(Math.max(offset, 0), list.length);
}

async function ask(gateway: TestGateway, args: Arguments): Promise<Connection> {
  const { data, errors } = await gateway.ask<{ personsConnection: Connection }>(QUERY, { ...args });
  expect(errors).toBeUndefined();
  return data.personsConnection;
}

async function read(gateway: TestGateway, args: Arguments): Promise<Stretch | typeof REFUSED> {
  const { data, errors } = await gateway.ask<{ personsConnection: Connection | null }>(QUERY, {
    ...args,
  });
  if (data.personsConnection === null) {
    expect(errors).toMatchObject([
      { path: ['personsConnection'], extensions: { code: 'CURSOR_INVALID' } },
    ]);
    return REFUSED;
  }
  expect(errors).toBeUndefined();
  const { edges, pageInfo } = data.personsConnection;
  return { ids: edges.map(({ node }) => node.id), ...pageInfo };
}
