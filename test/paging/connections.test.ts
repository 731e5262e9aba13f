import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codedError, codeOf } from '../../src/errors.ts';
import { readConnection, type ConnectionArguments } from '../../src/paging/connection.ts';
import { decodeCursor } from '../../src/paging/cursor.ts';
import { PageFailedError } from '../../src/paging/page.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { comings, KINDS, moves, SIZINGS, type Change, type Traits } from '../service/list-model.ts';
import { World } from './world.ts';

const LIMIT = 12;
/** Twenty pages of fewer records may not reach to the start of the lists here. */
const SMALL = 8;

/*
 * Any history of a list, compared with Relay's GraphQL Cursor Connections Specification,
 * https://relay.dev/graphql/connections.htm, sections 4.4 and 5.1. After changes of the list, a cursor may lead to
 * records that it passed already; it never skips one.
 */

const fewRecords = fc.integer({ min: 1, max: 3 });
const anyCount = fc.oneof({ weight: 3, arbitrary: fewRecords }, fc.integer({ min: 1, max: 30 }));
const sizings = fc.constantFrom(...SIZINGS);
const read = fc.record({
  do: fc.constant('read' as const),
  direction: fc.constantFrom('first' as const, 'last' as const, null),
  count: fc.oneof(fc.constantFrom(0, 1, 2, 11, 12, 13), fc.nat(80)),
  /** Which of the cursors that the client ever got. */
  after: fc.option(fc.nat(999)),
  before: fc.option(fc.nat(999)),
});
const newSize = fc.record({
  do: fc.constant('size' as const),
  sizing: sizings,
  limit: fc.integer({ min: 1, max: 30 }),
});
const step = fc.oneof(
  { weight: 7, arbitrary: read },
  { weight: 2, arbitrary: comings(fewRecords) },
  { weight: 1, arbitrary: comings(anyCount) },
  { weight: 1, arbitrary: moves },
  { weight: 1, arbitrary: newSize },
  { weight: 1, arbitrary: fc.constant({ do: 'walk' as const }) },
);
const histories = fc.record({
  kind: fc.constantFrom(...KINDS),
  sizing: sizings,
  haveIds: fc.constantFrom(true, true, true, false),
  length: fc.oneof(fc.constantFrom(0, 1, 2, 11, 12, 13, 24), fc.nat(90)),
  /** Records of the pages that the client reads first. */
  readBy: fc.oneof(fc.constantFrom(3, LIMIT), fc.integer({ min: 1, max: 90 })),
  isWalked: fc.boolean(),
  steps: fc.array(step, { minLength: 1, maxLength: 9 }),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type Read = Extract<Step, { readonly do: 'read' }>;
type NewSize = Extract<Step, { readonly do: 'size' }>;

/** The page of a cursor has exactly the records in front of it that are requested, and the page before has more. */
const PAGE_OF_THE_WINDOW = {
  kind: 'position' as const,
  sizing: 'exact' as const,
  haveIds: true,
  length: 53,
  readBy: 1,
  isWalked: false,
  steps: [
    { do: 'read' as const, direction: 'first' as const, count: 21, after: null, before: null },
    { do: 'read' as const, direction: 'first' as const, count: 14, after: null, before: null },
    { do: 'insert' as const, at: 0, count: 1 },
    { do: 'remove' as const, at: 0, count: 3 },
    { do: 'read' as const, direction: 'last' as const, count: 1, after: null, before: 772 },
  ],
};

test('in any history of a list, a connection is the window of the specification, or begins too early, and skips no record', async () => {
  const always = fc.assert(
    fc.asyncProperty(histories, async ({ length, readBy, isWalked, haveIds, steps, ...traits }) => {
      const client = new Client(length, { ...traits, ...(!haveIds && { idOf: () => null }) });
      const { world } = client;
      if (isWalked) await world.drain();
      await client.readAll(readBy);
      for (const each of steps) {
        if (each.do === 'walk') await world.drain();
        else if (each.do === 'read') await expectWindow(client, each);
        else client.change(each);
      }
    }),
    { numRuns: randomRuns(4_000), examples: [[PAGE_OF_THE_WINDOW]] },
  );
  await expect(always).resolves.toBeUndefined();
});

test('while a list changes during the requests, a connection is a window or a coded error', async () => {
  const during = fc.array(fc.oneof(comings(anyCount), moves), { maxLength: 8 });
  const always = fc.assert(
    fc.asyncProperty(histories, during, fc.nat(89), async ({ length, ...of }, changes, at) => {
      const world = new World(length + 1, { ...of, limit: LIMIT });
      if (of.isWalked) await world.drain();
      const cursor = (await world.read({ first: length + 1 })).cursors[at % (length + 1)]!;
      world.changeDuring(changes);
      for (const args of [
        { first: of.readBy, after: cursor },
        { last: of.readBy, before: cursor },
        { last: 5, after: cursor },
      ]) {
        const result = await world.read(args).catch((error: unknown) => error);
        if (!(result instanceof Error))
          expect(result).toMatchObject({ records: expect.any(Array) });
        else if (result.message !== 'The record of this cursor is gone.')
          expect(['CURSOR_INVALID', 'DRAIN_STALLED']).toContain(codeOf(result));
      }
    }),
    { numRuns: randomRuns(400) },
  );
  await expect(always).resolves.toBeUndefined();
});

test('a list that changes between its pages is paged through without circles, and no record that stands still is lost', async () => {
  const changes = fc.array(comings(anyCount), { maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(histories, changes, async ({ length, kind, ...of }, left) => {
      fc.pre(kind !== 'position' || left.length === 0);
      const world = new World(length, { ...of, kind, limit: LIMIT });
      if (of.isWalked) await world.drain();
      const before = world.service.shown;
      const each = left.values();
      const paged = world.pageThrough(of.readBy, () => {
        const { value } = each.next();
        if (value) world.service.apply(value);
      });
      const records = await paged.catch((error: unknown) => {
        expect(codeOf(error)).toBe('CURSOR_INVALID');
        expect(kind === 'record' || of.sizing === 'single').toBe(true);
      });
      if (!records) return;
      const now = world.service.shown;
      expect(before.filter((record) => now.includes(record) && !records.includes(record))).toEqual(
        [],
      );
      if (left.length === 0) expect(records).toEqual(before);
    }),
    { numRuns: randomRuns(600) },
  );
});

test('records with null or repeated ids, and pages in which some are hidden, are paged through exactly once', async () => {
  const cases = fc.record({
    kind: fc.constantFrom(...KINDS),
    sizing: sizings,
    first: fc.integer({ min: 1, max: 90 }),
    ids: fc.array(fc.option(fc.nat(20)), { minLength: 80, maxLength: 80 }),
    hides: fc.boolean(),
    limit: fc.integer({ min: 1, max: 30 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ ids, first, hides, ...options }) => {
      const world = new World(ids.length, {
        ...options,
        idOf: (serial) => (ids[serial] === null ? null : `r${ids[serial]}`),
        isHidden: (serial) => hides && serial % 4 === 1,
      });
      const records = await world.pageThrough(first);
      // Repeated ids in pages of one connection look like records that moved.
      const isExact = first === 1 || ids.every((id) => id === null);
      if (isExact) expect(records).toEqual(world.service.shown);
      else expect(records).toEqual([...new Set(records)].toSorted((a, b) => a - b));
    }),
    { numRuns: randomRuns(200) },
  );
});

test('a record of `before` that fails with the fields of the connection is an error, unless its own page holds the window', async () => {
  for (const kind of KINDS) {
    const { list } = new World(30, { kind, limit: 6 });
    const { edges } = await readConnection(list, { first: 30 });
    const failing = (serial: number): typeof list => ({
      ...list,
      fetchPage: async (...of) => {
        const page = await list.fetchPage(...of);
        const ids = page.ids.map((id, at) => (page.records[at] === serial ? null : id));
        return { ...page, ids };
      },
    });
    const before = (serial: number) =>
      readConnection(failing(serial), { last: 2, before: edges[serial]!.cursor() });
    await expect(before(13)).rejects.toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
    expect((await before(16)).edges.map(({ record }) => record)).toEqual([14, 15]);
  }
});

/** The cursor of a record, of a page of 10 records behind the first `skipped` ones. */
async function cursorOf(world: World, serial: number, skipped: number): Promise<string> {
  let after: string | null = null;
  for (let left = skipped; left > 0; left -= Math.min(left, 50))
    after = (await world.read({ first: Math.min(left, 50), after })).cursors.at(-1)!;
  return (await world.read({ first: 10, after })).cursors[serial - skipped]!;
}

describe.each(KINDS)('the requests of connections, with %s cursors', (kind) => {
  test('are one for each page, whether the list was walked or not', async () => {
    for (const isWalked of [false, true]) {
      const world = new World(230, { kind });
      if (isWalked) await world.drain();
      expect(await world.costOf(() => world.pageThrough(50))).toBe(5);
      expect(await world.costOf(() => world.pageThrough(30))).toBe(8);
      const after = (await world.read({ first: 200 })).cursors.at(-1);
      expect(await world.costOf(() => world.read({ first: 60, after }))).toBe(1);
    }
  });

  test.each([
    [{ first: 1 }, 'after', 2_000],
    [{ last: 1 }, 'before', 2_009],
  ])(
    'are few for %j and a removed record far from the start, and repeat records of its page',
    async (count, end, record) => {
      const world = new World(4_000, { kind });
      const cursor = await cursorOf(world, 2_005, 2_000);
      world.remove(2_005);
      const requests = await world.costOf(async () => {
        const result = await world.read({ ...count, [end]: cursor }).catch(codeOf);
        // Whether records in front of it were removed as well is unknown for an offset.
        if (kind === 'position') expect(result).toBe('CURSOR_INVALID');
        else expect(result).toMatchObject({ records: [record] });
      });
      // To read up to `before`, the whole list is walked.
      expect(requests).toBeLessThanOrEqual(end === 'after' ? 23 : 200);
    },
  );
});

test('many records that were removed in front of a page do not hide its records', async () => {
  const removed = Array.from({ length: 20 }, (_, serial) => serial);
  const walked = new World(300, { kind: 'position' });
  await walked.drain();
  const last = (await walked.read({ first: 50 })).cursors[49]!;
  walked.remove(...removed);
  expect((await walked.read({ first: 2, after: last })).records).toEqual([50, 51]);
  const world = new World(137, { kind: 'position' });
  const cursor = await cursorOf(world, 55, 50);
  world.remove(...removed);
  expect((await world.read({ first: 2, after: cursor })).records).toEqual([56, 57]);
  expect((await world.read({ last: 2, before: cursor })).records).toEqual([53, 54]);
  // Its record is gone too, and the page at its offset is behind the records that follow it.
  world.remove(55);
  expect((await world.read({ first: 2, after: cursor })).records).toEqual([20, 21]);
});

test('a cursor that the service refuses is not needed if the record is found without it; otherwise its error says what to do', async () => {
  const world = new World(137, { kind: 'record' });
  const cursor = await cursorOf(world, 55, 50);
  world.remove(49);
  expect((await world.read({ first: 2, after: cursor })).records).toEqual([56, 57]);
  expect((await world.read({ last: 2, before: cursor })).records).toEqual([53, 54]);
  world.remove(55);
  for (const args of [
    { first: 2, after: cursor },
    { last: 2, before: cursor },
  ]) {
    await expect(world.read(args)).rejects.toMatchObject({
      message: expect.stringMatching(/start anew/),
      extensions: { code: 'CURSOR_INVALID' },
    });
  }
});

test('a failure that is not due to the cursor is passed on, without looking for the record', async () => {
  const world = new World(100);
  const cursor = await cursorOf(world, 9, 0);
  const failure = codedError('UPSTREAM_TIMEOUT', 'It took too long.');
  let requests = 0;
  const fetchPage = () => {
    requests += 1;
    return Promise.reject(new PageFailedError('failed', { cause: failure }));
  };
  const reading = readConnection({ ...world.list, fetchPage }, { first: 5, after: cursor });
  await expect(reading).rejects.toBe(failure);
  expect(requests).toBe(1);
});

test('a walk of the whole list takes a slot, and a window that the index knows costs only its pages', async () => {
  const world = new World(500, { limit: 50 });
  let slots = 0;
  const list: typeof world.list = {
    ...world.list,
    inTurn: (begin) => {
      slots += 1;
      return begin();
    },
  };
  await readConnection(list, { first: 200 });
  expect(slots).toBe(0);
  await readConnection(list, { last: 60 });
  expect(slots).toBe(1);
  for (const [last, most] of [
    [60, 3],
    [149, 4],
  ] as const) {
    let before: string | undefined;
    for (let window = 0; window < 3; window += 1) {
      const requests = await world.costOf(async () => {
        const { edges } = await readConnection(list, { last, before });
        before = edges[0]!.cursor();
      });
      expect(requests).toBeLessThanOrEqual(most);
    }
  }
  expect(slots).toBe(1);
});

test('records that were removed from pages which the index knows are replaced by those in front of them', async () => {
  const world = new World(500);
  await world.drain();
  const before = (await world.read({ last: 200 })).cursors[0]!;
  world.service.apply({ do: 'remove', at: 240, count: 55 });
  const { records } = await world.read({ last: 60, before });
  expect(records).toEqual(world.service.shown.slice(300 - 55 - 60, 300 - 55));
});

test('a record without an id has only its page in front of it', async () => {
  const world = new World(100, { idOf: () => null });
  const cursor = await cursorOf(world, 59, 50);
  expect((await world.read({ last: 5, before: cursor })).records).toEqual([54, 55, 56, 57, 58]);
  await expect(world.read({ last: 20, before: cursor })).rejects.toMatchObject({
    message: expect.stringMatching(/has no id/),
    extensions: { code: 'BAD_USER_INPUT' },
  });
});

/** A cursor that a client has. */
interface Taken {
  readonly cursor: string;
  readonly record: number;
  /** The list as it was then. */
  readonly list: readonly number[];
  /** The number of changes before it. */
  readonly changes: number;
}

/** A client that keeps all cursors that it ever got. */
class Client {
  readonly world: World;
  readonly taken: Taken[] = [];
  readonly changes: (Change | NewSize)[] = [];

  constructor(length: number, traits: Partial<Traits>) {
    this.world = new World(length, { ...traits, limit: LIMIT });
  }

  change(change: Change | NewSize): void {
    this.changes.push(change);
    if (change.do === 'size') Object.assign(this.world.service, change);
    else this.world.service.apply(change);
  }

  /** @returns undefined if it is refused */
  async read(args: ConnectionArguments) {
    const list = this.world.service.shown;
    const page = await this.world.read(args).catch((error: unknown) => {
      const hasNoId = args.before && codeOf(error) === 'BAD_USER_INPUT';
      const isAllowed = codeOf(error) === 'CURSOR_INVALID' || (hasNoId && !this.hasIds);
      if (!isAllowed) throw error;
    });
    if (!page) return undefined;
    const { cursors, ...window } = page;
    if (new Set(cursors).size < cursors.length) throw new Error('Two edges have one cursor.');
    const changes = this.changes.length;
    for (const [at, cursor] of cursors.entries())
      this.taken.push({ cursor, record: window.records[at]!, list, changes });
    return window;
  }

  async readAll(first: number): Promise<void> {
    while (this.taken.length < this.world.service.shown.length)
      await this.read({ first, after: this.taken.at(-1)?.cursor });
  }

  get hasIds(): boolean {
    return this.world.service.idOf(0) !== null;
  }

  isUnchanged(taken: Taken | undefined): boolean {
    return !taken || this.since(taken).every((change) => change.do === 'size');
  }

  since({ changes }: Taken) {
    return this.changes.slice(changes);
  }

  /** Whether a cursor still leads exactly behind its record: also if fewer than a page were added or removed. */
  leadsExactly(taken: Taken): boolean {
    const { service } = this.world;
    if (this.isUnchanged(taken)) return true;
    const changed = this.since(taken).map((change) =>
      change.do === 'insert' || change.do === 'remove' ? change.count : Infinity,
    );
    const areFew = changed.reduce((sum, count) => sum + count, 0) < LIMIT;
    const isFound = areFew && service.sizing === 'exact' && !this.isOffset(taken);
    return isFound && service.shown.includes(taken.record);
  }

  isOffset({ cursor }: Taken): boolean {
    const { offset, size } = decodeCursor('letters', cursor)!;
    return this.world.service.traits.kind === 'position' && offset === size - 1;
  }

  hasMoved(taken: Taken): boolean {
    return this.since(taken).some((change) => change.do === 'move');
  }
}

/** Reads a connection, and compares it with the specification. */
async function expectWindow(client: Client, { direction, count, ...ends }: Read): Promise<void> {
  const { service, list } = client.world;
  const [after, before] = [ends.after, ends.before].map((choice) =>
    choice === null ? undefined : client.taken[choice % client.taken.length],
  );
  const first = direction === 'first' ? count : null;
  const last = direction === 'last' ? count : null;
  const window = await client.read({ first, last, after: after?.cursor, before: before?.cursor });
  const all = service.shown;
  const hasChanged = !client.isUnchanged(after) || !client.isUnchanged(before);
  // Without ids nothing is found again.
  if (!client.hasIds && (hasChanged || (before && !window))) return;
  if (!window) {
    expect(hasChanged).toBe(true);
    // Twenty pages reach to the start of the list, unless they are small.
    const isFar = service.limit < SMALL || service.sizing === 'single';
    expect(service.traits.kind !== 'key' || isFar).toBe(true);
    // A record that is still there is found.
    if (!after) expect(all).not.toContain(before!.record);
    return;
  }
  const { records, hasNextPage, hasPreviousPage } = window;
  const start = startOf(client, after, records, last);
  // Where it begins is not seen in an empty connection.
  if (start === undefined && (last === null || records.length === 0)) return;
  // Neither is where it ends, in front of a record that is gone.
  if (last === 0 && before && !all.includes(before.record)) return;
  const end = endOf(client, before, start, records, last);
  const between = all.slice(start ?? 0, end);
  if (last === null) {
    const size = first ?? list.size.limit;
    expect(records).toEqual(between.slice(0, size));
    expect(hasPreviousPage).toBe(after !== undefined);
    expect(hasNextPage).toBe(between.length > size || (first === null && before !== undefined));
  } else {
    expect(records).toEqual(between.slice(Math.max(0, between.length - last)));
    if (start !== undefined) expect(hasPreviousPage).toBe(between.length > last);
    if (!before) expect(hasNextPage).toBe(false);
    // Behind it, a cursor that names an offset may have passed the border.
    else if (!after) expect(hasNextPage).toBe(all.includes(before.record) || end < all.length);
    else if (!hasChanged) expect(hasNextPage).toBe(true);
  }
}

/**
 * Where a connection behind a record begins, or has to begin. It may begin earlier after changes.
 *
 * @returns undefined if that is unknown
 */
function startOf(
  client: Client,
  after: Taken | undefined,
  records: readonly number[],
  last: number | null,
) {
  const all = client.world.service.shown;
  if (!after) return 0;
  const own = all.indexOf(after.record) + 1;
  if (client.leadsExactly(after)) return own;
  if (records.length === 0 || records.length === last) return undefined;
  const start = all.indexOf(records[0]!);
  // The service's own cursor of the last record of a page skips what an offset skips.
  if (client.isOffset(after) || client.hasMoved(after)) return start;
  const next = after.list
    .slice(after.list.indexOf(after.record) + 1)
    .find((record) => all.includes(record));
  expect(start).toBeLessThanOrEqual(own || (next === undefined ? all.length : all.indexOf(next)));
  return start;
}

/** Where a connection in front of a record ends: if the record is gone, behind all that preceded it. */
function endOf(
  client: Client,
  before: Taken | undefined,
  start: number | undefined,
  records: readonly number[],
  last: number | null,
): number {
  const all = client.world.service.shown;
  const own = before ? all.indexOf(before.record) : -1;
  const shown = records.length > 0 ? all.indexOf(records.at(-1)!) + 1 : (start ?? 0);
  // In front of `after` it ends nothing.
  if (own >= 0 && start === undefined) return shown === own ? own : all.length;
  if (own >= (start ?? 0)) return own;
  if (!before || own >= 0 || last === null) return all.length;
  const previous = before.list
    .slice(0, before.list.indexOf(before.record))
    .findLast((record) => all.includes(record));
  if (!client.hasMoved(before))
    expect(shown).toBeGreaterThan(previous === undefined ? -1 : all.indexOf(previous));
  return shown;
}
