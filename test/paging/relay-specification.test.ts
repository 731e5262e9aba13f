import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CursorBehaviour } from '../../sandbox/cursors.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { randomRuns } from '../support/random/random-runs.ts';

// Relay's GraphQL Cursor Connections Specification, https://relay.dev/graphql/connections.htm, sentence by
// sentence. The numbers are those of its sections.

const PERSONS = 137;
const PAGE = 50;
const RUNS = randomRuns(10);
const QUERY = `query ($first: Int, $after: String, $last: Int, $before: String) {
  personsConnection(first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { id } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;

interface Arguments {
  first?: number | null;
  after?: string | null;
  last?: number | null;
  before?: string | null;
}

interface Connection {
  edges: { cursor: string; node: { id: string } }[];
  pageInfo: {
    hasNextPage: boolean;
    hasPreviousPage: boolean;
    startCursor: string | null;
    endCursor: string | null;
  };
}

interface IntrospectedType {
  name: string | null;
  kind: string;
  ofType?: IntrospectedType;
}

interface Described extends IntrospectedType {
  fields: { name: string; type: IntrospectedType; args: Argument[] }[] | null;
}

interface Argument {
  name: string;
  type: IntrospectedType;
  defaultValue: string | null;
}

const STRING = { name: 'String', kind: 'SCALAR', ofType: null };
const INT = { name: 'Int', kind: 'SCALAR', ofType: null };
const nonNull = (ofType: object) => ({ name: null, kind: 'NON_NULL', ofType });

type Started = Awaited<ReturnType<typeof startGatewayOverSandbox>>;

describe('the specification, over a list that stands still', () => {
  let gateway: Started;
  let ids: string[];
  let cursors: string[];
  beforeAll(async () => {
    gateway = await startGatewayOverSandbox({ persons: PERSONS });
    ids = gateway.sandbox.persons.all().map(({ id }) => id);
    cursors = (await read(gateway, { first: PERSONS })).edges.map(({ cursor }) => cursor);
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const idsOf = async (args: Arguments) =>
    (await read(gateway, args)).edges.map(({ node }) => node.id);

  test('1 Reserved Types: every type whose name ends in Connection is an object', async () => {
    const all = await allTypes(gateway);
    const connections = all.filter(({ name }) => name!.endsWith('Connection'));
    expect(connections.map(({ name }) => name)).toEqual(['PersonConnection']);
    for (const { kind } of connections) expect(kind).toBe('OBJECT');
  });

  test('1 Reserved Types: PageInfo is an object, and no type of the service', async () => {
    const types = await allTypes(gateway);
    expect(types.find(({ name }) => name === 'PageInfo')).toMatchObject({ kind: 'OBJECT' });
    const served = await fieldsOf(gateway, 'PersonPage');
    expect(served['pageInfo']).toEqual(nonNull({ name: 'UpstreamPageInfo', kind: 'OBJECT' }));
  });

  test('2.1.1 Edges: a list that wraps the edge type, an object', async () => {
    const connection = (await allTypes(gateway)).find(({ name }) => name === 'PersonConnection');
    const edges = connection!.fields!.find(({ name }) => name === 'edges')!;
    const list = withoutNonNull(edges.type);
    expect(list.kind).toBe('LIST');
    const edge = withoutNonNull(list.ofType!);
    expect(edge).toMatchObject({ name: 'PersonEdge', kind: 'OBJECT' });
  });

  test('2.1.2 PageInfo: a non-null PageInfo', async () => {
    const { pageInfo } = await fieldsOf(gateway, 'PersonConnection');
    expect(pageInfo).toEqual(nonNull({ name: 'PageInfo', kind: 'OBJECT' }));
  });

  test('3.1.1 Node: the record, an object and no list', async () => {
    const { node } = await fieldsOf(gateway, 'PersonEdge');
    expect(node).toEqual(nonNull({ name: 'Person', kind: 'OBJECT' }));
  });

  test('3.1.2 Cursor: a type that serializes as a String, and the cursors are strings, all different', async () => {
    const { cursor } = await fieldsOf(gateway, 'PersonEdge');
    expect(cursor).toEqual(nonNull({ name: 'String', kind: 'SCALAR' }));
    for (const each of cursors) expect(each).toBeTypeOf('string');
    expect(new Set(cursors).size).toBe(PERSONS);
  });

  test('3.1.2 Cursor: is passed back to the server unchanged, literally or as a variable', async () => {
    const { data, errors } = await gateway.ask<Record<string, { edges: unknown[] }>>(
      `query ($after: String!) {
        literal: personsConnection(first: 2, after: "${cursors[4]}") { edges { node { id } } }
        variable: personsConnection(first: 2, after: $after) { edges { node { id } } }
      }`,
      { after: cursors[4] },
    );
    expect(errors).toBeUndefined();
    const expected = { edges: [{ node: { id: ids[5] } }, { node: { id: ids[6] } }] };
    expect(data).toEqual({ literal: expected, variable: expected });
  });

  test('4 Arguments: every field that returns a connection has those of both directions, in their types', async () => {
    const fields = (await allTypes(gateway)).flatMap((type) => type.fields ?? []);
    const connections = fields.filter(({ type }) =>
      withoutNonNull(type).name?.endsWith('Connection'),
    );
    expect(connections.map(({ name }) => name)).toEqual(['personsConnection']);
    for (const { args } of connections) {
      const types = Object.fromEntries(args.map(({ name, type }) => [name, type]));
      // Optional, since a client gives the arguments of one direction.
      expect(types).toEqual({ first: INT, after: STRING, last: INT, before: STRING });
      expect(args.map(({ defaultValue }) => defaultValue)).toEqual([null, null, null, null]);
    }
  });

  test('4.1 Forward: edges behind the cursor, at most `first`', async () => {
    expect(await idsOf({ first: 3, after: cursors[9]! })).toEqual(ids.slice(10, 13));
    expect(await idsOf({ first: 60, after: cursors[100]! })).toEqual(ids.slice(101));
  });

  test('4.1 Forward: the last cursor of a page leads to the next one, to the end of the list', async () => {
    const returned: string[] = [];
    for (let after: string | null = null; ;) {
      const { edges, pageInfo }: Connection = await read(gateway, { first: 30, after });
      returned.push(...edges.map(({ node }) => node.id));
      after = edges.at(-1)!.cursor;
      if (!pageInfo.hasNextPage) break;
    }
    expect(returned).toEqual(ids);
  });

  test('4.2 Backward: edges in front of the cursor, at most `last`', async () => {
    expect(await idsOf({ last: 3, before: cursors[9]! })).toEqual(ids.slice(6, 9));
    expect(await idsOf({ last: 60, before: cursors[20]! })).toEqual(ids.slice(0, 20));
  });

  test('4.2 Backward: the first cursor of a page leads to the one before, to the start of the list', async () => {
    let returned: string[] = [];
    for (let before: string | null = null; ;) {
      const { edges, pageInfo }: Connection = await read(gateway, { last: 30, before });
      returned = [...edges.map(({ node }) => node.id), ...returned];
      before = edges[0]!.cursor;
      if (!pageInfo.hasPreviousPage) break;
    }
    expect(returned).toEqual(ids);
  });

  test('4.3 Edge order: the same with last/before as with first/after, never reversed', async () => {
    const forward = await idsOf({ first: 8, after: cursors[59]! });
    const backward = await idsOf({ last: 8, before: cursors[68]! });
    expect(forward).toEqual(ids.slice(60, 68));
    expect(backward).toEqual(forward);
    expect(await idsOf({ last: PERSONS })).toEqual(await idsOf({ first: PERSONS }));
  });

  test('4.3 Edge order: with `before`, the edge closest to the cursor comes last', async () => {
    expect((await idsOf({ last: 5, before: cursors[70]! })).at(-1)).toBe(ids[69]);
    expect((await idsOf({ first: 500, before: cursors[70]! })).at(-1)).toBe(ids[69]);
  });

  test('4.3 Edge order: with `after`, the edge closest to the cursor comes first', async () => {
    expect((await idsOf({ first: 5, after: cursors[70]! }))[0]).toBe(ids[71]);
    expect((await idsOf({ last: 500, after: cursors[70]! }))[0]).toBe(ids[71]);
  });

  describe('4.4 ApplyCursorsToEdges', () => {
    test('1 without cursors, all edges', async () => {
      expect(await idsOf({ first: 500 })).toEqual(ids);
      expect(await idsOf({ last: 500 })).toEqual(ids);
    });

    test('2 `after` removes its edge and all in front of it, the first and the last edge included', async () => {
      for (const at of [0, 49, 50, 135, 136]) {
        expect(await idsOf({ first: 500, after: cursors[at]! })).toEqual(ids.slice(at + 1));
        expect(await idsOf({ last: 500, after: cursors[at]! })).toEqual(ids.slice(at + 1));
      }
    });

    test('3 `before` removes its edge and all behind it, the first and the last edge included', async () => {
      for (const at of [0, 1, 49, 50, 136]) {
        expect(await idsOf({ first: 500, before: cursors[at]! })).toEqual(ids.slice(0, at));
        expect(await idsOf({ last: 500, before: cursors[at]! })).toEqual(ids.slice(0, at));
      }
    });

    test('4 both: what lies between them', async () => {
      for (const [from, to] of [
        [3, 20],
        [40, 61],
        [7, 8],
      ] as const) {
        const between = { after: cursors[from]!, before: cursors[to]! };
        expect(await idsOf({ first: 500, ...between })).toEqual(ids.slice(from + 1, to));
        expect(await idsOf({ last: 500, ...between })).toEqual(ids.slice(from + 1, to));
      }
    });

    test('5 `after` is applied first: a `before` that it removed does not exist any more', async () => {
      for (const [from, to] of [
        [90, 90],
        [90, 10],
      ] as const) {
        const crossed = { after: cursors[from]!, before: cursors[to]! };
        expect(await idsOf({ first: 500, ...crossed })).toEqual(ids.slice(from + 1));
        expect(await idsOf({ last: 500, ...crossed })).toEqual(ids.slice(from + 1));
      }
    });

    // The algorithm ignores a cursor that no edge has. Here that would give the wrong page.
    test('6 a cursor that was never one of this list is refused (stated deviation)', async () => {
      for (const args of [
        { first: 1, after: 'nonsense' },
        { last: 1, before: 'nonsense' },
        { first: 1, before: ' ' },
      ]) {
        expect(await codeOf(gateway, args)).toBe('CURSOR_INVALID');
      }
    });
  });

  describe('4.4 EdgesToReturn', () => {
    test('1 `first` below 0 is an error', async () => {
      for (const first of [-1, -(2 ** 31)]) {
        expect(await codeOf(gateway, { first })).toBe('BAD_USER_INPUT');
        expect(await codeOf(gateway, { first, after: cursors[3]! })).toBe('BAD_USER_INPUT');
      }
    });

    test('2 `first` removes from the end, and nothing if there are no more than that', async () => {
      const between = { after: cursors[9]!, before: cursors[20]! };
      expect(await idsOf({ first: 4, ...between })).toEqual(ids.slice(10, 14));
      expect(await idsOf({ first: 10, ...between })).toEqual(ids.slice(10, 20));
      expect(await idsOf({ first: 11, ...between })).toEqual(ids.slice(10, 20));
    });

    test('3 `last` below 0 is an error', async () => {
      for (const last of [-1, -(2 ** 31)]) {
        expect(await codeOf(gateway, { last })).toBe('BAD_USER_INPUT');
        expect(await codeOf(gateway, { last, before: cursors[3]! })).toBe('BAD_USER_INPUT');
      }
    });

    test('4 `last` removes from the start, and nothing if there are no more than that', async () => {
      const between = { after: cursors[9]!, before: cursors[20]! };
      expect(await idsOf({ last: 4, ...between })).toEqual(ids.slice(16, 20));
      expect(await idsOf({ last: 10, ...between })).toEqual(ids.slice(10, 20));
      expect(await idsOf({ last: 11, ...between })).toEqual(ids.slice(10, 20));
    });

    test('5 0 is not negative: no edges', async () => {
      expect(await idsOf({ first: 0 })).toEqual([]);
      expect(await idsOf({ last: 0 })).toEqual([]);
      expect(await idsOf({ first: 0, after: cursors[3]!, before: cursors[9]! })).toEqual([]);
      expect(await idsOf({ last: 0, after: cursors[3]!, before: cursors[9]! })).toEqual([]);
    });

    // "Including a value for both first and last is strongly discouraged."
    test('6 `first` and `last` at once are refused, also as 0 (stated deviation)', async () => {
      for (const [first, last] of [
        [2, 1],
        [0, 0],
        [5, 0],
      ] as const) {
        expect(await codeOf(gateway, { first, last })).toBe('BAD_USER_INPUT');
      }
    });

    test('7 null means not given: Relay sends the variables of the other direction as null', async () => {
      const backward = { first: null, after: null, last: 2, before: cursors[9]! };
      const forward = { first: 2, after: cursors[9]!, last: null, before: null };
      expect(await idsOf(backward)).toEqual(ids.slice(7, 9));
      expect(await idsOf(forward)).toEqual(ids.slice(10, 12));
    });

    test('8 neither of them: a page of the service, cut by the cursors', async () => {
      expect(await idsOf({})).toEqual(ids.slice(0, PAGE));
      expect(await idsOf({ first: null, last: null, after: null, before: null })).toEqual(
        ids.slice(0, PAGE),
      );
      expect(await idsOf({ after: cursors[9]! })).toEqual(ids.slice(10, 10 + PAGE));
      expect(await idsOf({ before: cursors[9]! })).toEqual(ids.slice(0, 9));
      expect(await idsOf({ before: cursors[99]! })).toEqual(ids.slice(0, PAGE));
    });
  });

  test('5.1 PageInfo: two non-null Booleans, and two Strings that are null where there is nothing', async () => {
    expect(await fieldsOf(gateway, 'PageInfo')).toEqual({
      hasNextPage: nonNull({ name: 'Boolean', kind: 'SCALAR' }),
      hasPreviousPage: nonNull({ name: 'Boolean', kind: 'SCALAR' }),
      startCursor: STRING,
      endCursor: STRING,
    });
  });

  // Cursors are given as the offsets of their edges.
  test.each<[string, Args, boolean]>([
    ['`last` is set, and there are more in front', { last: 136 }, true],
    ['`last` is set, and there are exactly so many', { last: 137 }, false],
    ['`last` is set, and there are fewer', { last: 138 }, false],
    ['`last` is 0, and there are edges', { last: 0 }, true],
    ['`last` with `before`, and there are more in front', { last: 8, before: 9 }, true],
    ['`last` with `before`, and there are exactly so many', { last: 9, before: 9 }, false],
    ['`last` is 0 in front of the first edge', { last: 0, before: 0 }, false],
    ['`last` with `after`, and more between', { last: 36, after: 99 }, true],
    ['`last` with `after`: what it removed does not count', { last: 37, after: 99 }, false],
    ['`last` between two cursors, and more there', { last: 9, after: 9, before: 20 }, true],
    ['`last` between two cursors, and no more there', { last: 10, after: 9, before: 20 }, false],
    ['`after` is set: its own edge comes before', { first: 5, after: 0 }, true],
    ['`after` is set to the last edge', { first: 5, after: 136 }, true],
    ['`after` is set, `first` is 0', { first: 0, after: 5 }, true],
    ['`after` alone', { after: 5 }, true],
    ['`after` and `before` alone', { after: 5, before: 9 }, true],
    ['neither `last` nor `after`', { first: 5 }, false],
    ['`before` alone', { before: 90 }, false],
    ['nothing is given', {}, false],
  ])('5.1 HasPreviousPage: %s', async (_name, args, expected) => {
    const { pageInfo } = await read(gateway, withCursors(args, cursors));
    expect(pageInfo.hasPreviousPage).toBe(expected);
  });

  test.each<[string, Args, boolean]>([
    ['`first` is set, and there are more behind', { first: 136 }, true],
    ['`first` is set, and there are exactly so many', { first: 137 }, false],
    ['`first` is set, and there are fewer', { first: 138 }, false],
    ['`first` is set, and there is just another page', { first: 100 }, true],
    ['`first` is 0, and there are edges', { first: 0 }, true],
    ['`first` with `after`, and there are more behind', { first: 36, after: 99 }, true],
    ['`first` with `after`, and there are exactly so many', { first: 37, after: 99 }, false],
    ['`first` is 0 behind the last edge', { first: 0, after: 136 }, false],
    ['`first` with `before`, and more between', { first: 98, before: 99 }, true],
    ['`first` with `before`: what it removed does not count', { first: 99, before: 99 }, false],
    ['`first` is 0 in front of the first edge', { first: 0, before: 0 }, false],
    ['`first` is 0 with `before`, and there are edges', { first: 0, before: 1 }, true],
    ['`first` between two cursors, and more there', { first: 9, after: 9, before: 20 }, true],
    ['`first` between two cursors, and no more there', { first: 10, after: 9, before: 20 }, false],
    ['`before` is set: its own edge follows', { last: 5, before: 136 }, true],
    ['`before` is set to the first edge', { last: 5, before: 0 }, true],
    ['`before` is set, `last` is 0', { last: 0, before: 5 }, true],
    ['`before` alone', { before: 5 }, true],
    ['`after` and `before` alone', { after: 5, before: 9 }, true],
    ['neither `first` nor `before`', { last: 5 }, false],
    ['`last` with `after`', { last: 5, after: 9 }, false],
    ['nothing is given, and there is another page', {}, true],
    ['`after` alone, and there is no other page', { after: 99 }, false],
  ])('5.1 HasNextPage: %s', async (_name, args, expected) => {
    const { pageInfo } = await read(gateway, withCursors(args, cursors));
    expect(pageInfo.hasNextPage).toBe(expected);
  });

  test('5.1 startCursor and endCursor are those of the first and the last edge', async () => {
    for (const args of [
      { first: 1 },
      { first: 60 },
      { last: 1 },
      { last: 60 },
      { after: cursors[8]!, before: cursors[30]! },
      {},
    ]) {
      const { edges, pageInfo } = await read(gateway, args);
      expect(pageInfo.startCursor).toBe(edges[0]!.cursor);
      expect(pageInfo.endCursor).toBe(edges.at(-1)!.cursor);
    }
  });

  test('5.1 startCursor and endCursor are null when there are no edges', async () => {
    for (const args of [
      { first: 0 },
      { last: 0 },
      { first: 5, after: cursors[136]! },
      { last: 5, before: cursors[0]! },
      { first: 5, after: cursors[3]!, before: cursors[4]! },
    ]) {
      const { edges, pageInfo } = await read(gateway, args);
      expect(edges).toEqual([]);
      expect(pageInfo).toMatchObject({ startCursor: null, endCursor: null });
    }
  });

  test('5.1 the flags and cursors are right also where no edge is selected', async () => {
    const { data, errors } = await gateway.ask(
      `query ($before: String) {
        personsConnection(last: 4, before: $before) {
          pageInfo { hasPreviousPage hasNextPage startCursor endCursor }
        }
      }`,
      { before: cursors[80] },
    );
    expect(errors).toBeUndefined();
    const { pageInfo } = await read(gateway, { last: 4, before: cursors[80]! });
    expect(data).toEqual({ personsConnection: { pageInfo } });
  });
});

test('5.1 of an empty list: no edges, no cursors, and nothing on either side', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 0 });
  for (const args of [{}, { first: 0 }, { first: 5 }, { last: 0 }, { last: 5 }]) {
    expect(await read(gateway, args)).toEqual({
      edges: [],
      pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null },
    });
  }
});

describe.each(['keyset', 'record', 'position'] as const)(
  "any call is answered as by the specification's algorithm, over %s cursors",
  (behaviour) => {
    test('of a gateway that never read the list', async () => {
      await fc.assert(
        fc.asyncProperty(lengths, calls, async (length, call) => {
          await using known = await startGatewayOverSandbox(over(behaviour, length));
          await using gateway = await startGatewayOverSandbox(over(behaviour, length));
          const offsets = offsetsOf(call, length);
          const { actual, expected } = await answered(
            gateway,
            offsets,
            await argumentsOf(known, offsets, length),
          );
          expect(actual).toEqual(expected);
        }),
        { numRuns: RUNS },
      );
    });

    test('of a gateway that drained the list before', async () => {
      const several = fc.array(calls, { minLength: 1, maxLength: 3 });
      await fc.assert(
        fc.asyncProperty(lengths, several, async (length, each) => {
          await using gateway = await startGatewayOverSandbox(over(behaviour, length));
          // A gateway that has read its tokens keeps the index of a drain.
          await read(gateway, { first: 1 });
          await gateway.ask('{ allPersons { id } }');
          for (const call of each) {
            const offsets = offsetsOf(call, length);
            const args = await argumentsOf(gateway, offsets, length);
            const { actual, expected } = await answered(gateway, offsets, args);
            expect(actual).toEqual(expected);
          }
        }),
        { numRuns: RUNS },
      );
    });
  },
);

const over = (cursors: CursorBehaviour, persons: number) => ({ cursors, persons });

const lengths = fc.oneof(
  fc.constantFrom(0, 1, 2, 49, 50, 51, 99, 100, 101, PERSONS),
  fc.nat(PERSONS),
);
const counts = fc.oneof(fc.constantFrom(0, 1, 2, 49, 50, 51), fc.nat(PERSONS + 5));

/** The kind of reading that issued a cursor. */
const WAYS = ['end of a page', 'within a page', 'far read', 'last', 'last before'] as const;

const ends = fc.option(fc.record({ at: fc.nat(PERSONS), by: fc.constantFrom(...WAYS) }));
const calls = fc.record({
  direction: fc.constantFrom('first', 'last', null),
  count: counts,
  after: ends,
  before: ends,
  /** Whether an argument that is not given is sent as null, or omitted. */
  sendsNull: fc.boolean(),
});

type Call = typeof calls extends fc.Arbitrary<infer Value> ? Value : never;

function offsetsOf(call: Call, length: number): Call {
  const within = (end: Call['after']) =>
    end && length > 0 ? { ...end, at: end.at % length } : null;
  return { ...call, after: within(call.after), before: within(call.before) };
}

async function argumentsOf(
  gateway: TestGateway,
  { direction, count, after, before, sendsNull }: Call,
  length: number,
): Promise<Arguments> {
  const all = {
    first: direction === 'first' ? count : null,
    last: direction === 'last' ? count : null,
    after: after && (await cursorOf(gateway, after, length)),
    before: before && (await cursorOf(gateway, before, length)),
  };
  if (sendsNull) return all;
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
}

async function cursorOf(
  gateway: TestGateway,
  { at, by }: NonNullable<Call['after']>,
  length: number,
): Promise<string> {
  switch (by) {
    case 'end of a page':
      return (await read(gateway, { first: at + 1 })).pageInfo.endCursor!;
    case 'within a page':
      return (await read(gateway, { first: at + 4 })).edges[at]!.cursor;
    case 'far read':
      return (await read(gateway, { first: 500 })).edges[at]!.cursor;
    case 'last':
      return (await read(gateway, { last: length - at })).pageInfo.startCursor!;
    case 'last before': {
      if (at + 1 === length) return (await read(gateway, { last: 1 })).pageInfo.endCursor!;
      const before = await cursorOf(gateway, { at: at + 1, by: 'within a page' }, length);
      return (await read(gateway, { last: 3, before })).pageInfo.endCursor!;
    }
  }
}

async function answered(
  gateway: Started,
  { direction, count, after, before }: Call,
  args: Arguments,
) {
  const ids = gateway.sandbox.persons.all().map(({ id }) => id);
  const expected = specified(ids, {
    after: after && ids[after.at]!,
    before: before && ids[before.at]!,
    first: direction === 'first' ? count : null,
    last: direction === 'last' ? count : null,
  });
  const { edges, pageInfo } = await read(gateway, args);
  return {
    actual: { ids: edges.map(({ node }) => node.id), ...pageInfo },
    expected: {
      ...expected,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}

interface Specified<Edge> {
  after: Edge | null;
  before: Edge | null;
  first: number | null;
  last: number | null;
}

/** EdgesToReturn, HasPreviousPage and HasNextPage of sections 4.4 and 5.1. */
function specified<Edge>(allEdges: readonly Edge[], args: Specified<Edge>) {
  const { after, before, last } = args;
  const applied = applyCursorsToEdges(allEdges, args);
  // An addition of this gateway: without both, `first` is one page, and `before` still means that more follows.
  const isPage = args.first === null && last === null;
  const first = isPage ? PAGE : args.first;
  let edges = applied;
  if (first !== null && edges.length > first) edges = edges.slice(0, first);
  if (last !== null && edges.length > last) edges = edges.slice(edges.length - last);
  return {
    ids: edges,
    hasPreviousPage: last !== null ? applied.length > last : after !== null,
    hasNextPage:
      (first !== null && applied.length > first) ||
      ((args.first === null || isPage) && before !== null),
  };
}

function applyCursorsToEdges<Edge>(allEdges: readonly Edge[], args: Specified<Edge>) {
  let edges = allEdges;
  if (args.after !== null) edges = edges.slice(edges.indexOf(args.after) + 1);
  const before = args.before === null ? -1 : edges.indexOf(args.before);
  return before < 0 ? edges : edges.slice(0, before);
}

interface Args {
  first?: number;
  after?: number;
  last?: number;
  before?: number;
}

/** Replaces the offsets of edges by their cursors. */
function withCursors({ after, before, ...counted }: Args, cursors: readonly string[]): Arguments {
  return {
    ...counted,
    ...(after !== undefined && { after: cursors[after]! }),
    ...(before !== undefined && { before: cursors[before]! }),
  };
}

async function read(gateway: TestGateway, args: Arguments): Promise<Connection> {
  const { data, errors } = await gateway.ask<{ personsConnection: Connection }>(QUERY, { ...args });
  expect(errors).toBeUndefined();
  return data.personsConnection;
}

async function codeOf(gateway: TestGateway, args: Arguments): Promise<unknown> {
  const { data, errors } = await gateway.ask<{ personsConnection: null }>(QUERY, { ...args });
  expect(data.personsConnection).toBeNull();
  expect(errors).toHaveLength(1);
  expect(errors![0]!.path).toEqual(['personsConnection']);
  return errors![0]!.extensions?.['code'];
}

const TYPE = 'name kind ofType { name kind ofType { name kind ofType { name kind } } }';

async function allTypes(gateway: TestGateway): Promise<Described[]> {
  const { data, errors } = await gateway.ask<{ __schema: { types: Described[] } }>(`{
    __schema { types { name kind fields { name type { ${TYPE} }
      args { name defaultValue type { ${TYPE} } } } } }
  }`);
  expect(errors).toBeUndefined();
  return data.__schema.types;
}

/** With the query that the specification gives in its sections on introspection. */
async function fieldsOf(
  gateway: TestGateway,
  name: string,
): Promise<Record<string, IntrospectedType>> {
  const { data, errors } = await gateway.ask<{ __type: Described }>(
    `query ($name: String!) {
      __type(name: $name) { fields { name type { name kind ofType { name kind } } } }
    }`,
    { name },
  );
  expect(errors).toBeUndefined();
  return Object.fromEntries(data.__type.fields!.map((field) => [field.name, field.type]));
}

function withoutNonNull(type: IntrospectedType): IntrospectedType {
  return type.kind === 'NON_NULL' ? type.ofType! : type;
}
