import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codedError, codeOf } from '../../src/errors.ts';
import { readConnection } from '../../src/paging/connection.ts';
import { PageFailedError } from '../../src/paging/page.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { anyCount, Client, expectWindow, histories, LIMIT, sizings } from './client.ts';
import { comings, KINDS, moves } from './model-service.ts';
import { World } from './world.ts';

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
    { numRuns: randomRuns(4_000) },
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

  test('are some twenty at most for the cursor of a removed record far from the start', async () => {
    const world = new World(4_000, { kind });
    const cursor = await cursorOf(world, 2_005, 2_000);
    world.remove(2_005);
    const requests = await world.costOf(async () => {
      const result = await world.read({ first: 1, after: cursor }).catch(codeOf);
      // Whether records in front of it were removed as well is unknown for an offset.
      if (kind === 'position') expect(result).toBe('CURSOR_INVALID');
      else expect(result).toMatchObject({ records: [2_000] });
    });
    expect(requests).toBeLessThanOrEqual(23);
  });
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

test('a walk of the whole list takes a slot, and a window that the index knows does not', async () => {
  const world = new World(500);
  let slots = 0;
  const list = {
    ...world.list,
    inTurn: <T>(begin: () => T) => {
      slots += 1;
      return begin();
    },
  };
  await readConnection(list, { first: 200 });
  expect(slots).toBe(0);
  await readConnection(list, { last: 60 });
  expect(slots).toBe(1);
  const { edges } = await readConnection(list, { last: 60 });
  await readConnection(list, { last: 60, before: edges[0]!.cursor() });
  expect(slots).toBe(1);
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
