import { describe, expect, test } from 'vitest';
import { codedError, codeOf } from '../../src/errors.ts';
import { PageFailedError } from '../../src/paging/page.ts';
import { readConnection } from '../../src/paging/connection.ts';
import { KINDS } from './model-service.ts';
import { worldOf, type World } from './world.ts';

/** The cursor of a record, of a page of `size` records behind the first `skipped` ones. */
async function cursorOf(world: World, serial: number, skipped: number, size: number) {
  let after: string | null = null;
  for (let left = skipped; left > 0; left -= Math.min(left, 50))
    after = (await world.read({ first: Math.min(left, 50), after })).cursors.at(-1)!;
  return (await world.read({ first: size, after })).cursors[serial - skipped]!;
}

const errorOf = (reading: Promise<unknown>) => reading.catch((error: unknown) => error);

describe.each(KINDS)('with cursors by %s', (kind) => {
  test('paging by endCursor costs one request a page, whether the list was walked or not', async () => {
    for (const isWalked of [false, true]) {
      const world = worldOf(230, { kind });
      if (isWalked) await world.drain();
      expect(await world.requests(() => world.pageThrough(50))).toBe(5);
      expect(await world.requests(() => world.pageThrough(30))).toBe(8);
    }
  });

  test('the cursor of a removed record far from the start costs some twenty requests at most', async () => {
    const world = worldOf(4_000, { kind });
    const cursor = await cursorOf(world, 2_005, 2_000, 10);
    world.remove(2_005);
    const requests = await world.requests(async () => {
      const result = await errorOf(world.read({ first: 1, after: cursor }));
      // Whether records in front of it were removed as well is unknown for an offset.
      if (kind === 'position') expect(codeOf(result)).toBe('CURSOR_INVALID');
      else expect(result).toMatchObject({ records: [2_000] });
    });
    expect(requests).toBeLessThanOrEqual(23);
  });
});

test('a record that moved is found if its page now begins elsewhere', async () => {
  const world = worldOf(12, { kind: 'record' });
  const cursor = await cursorOf(world, 5, 4, 4);
  world.service.apply({ do: 'move', from: 3, to: 9 });
  expect((await world.read({ first: 3, after: cursor })).records).toEqual([6, 7, 8]);
});

describe('where cursors are offsets', () => {
  test('the last record of a page is found again if the list was walked before', async () => {
    const world = worldOf(300, { kind: 'position' });
    await world.drain();
    const { cursors } = await world.read({ first: 50 });
    for (let removed = 0; removed < 20; removed += 1) world.remove(removed);
    expect((await world.read({ first: 2, after: cursors[49]! })).records).toEqual([50, 51]);
  });

  test('a record in front of its former page is found from the start of the list', async () => {
    const world = worldOf(137, { kind: 'position' });
    const cursor = await cursorOf(world, 55, 50, 10);
    for (let removed = 0; removed < 20; removed += 1) world.remove(removed);
    expect((await world.read({ first: 2, after: cursor })).records).toEqual([56, 57]);
    expect((await world.read({ last: 2, before: cursor })).records).toEqual([53, 54]);
  });
});

describe('a cursor that the service refuses', () => {
  test('is not needed if the record is found without it', async () => {
    const world = worldOf(137, { kind: 'record' });
    const cursor = await cursorOf(world, 55, 50, 10);
    world.remove(49);
    expect((await world.read({ first: 2, after: cursor })).records).toEqual([56, 57]);
    expect((await world.read({ last: 2, before: cursor })).records).toEqual([53, 54]);
  });

  test('and whose record is gone causes an error that says what to do', async () => {
    const world = worldOf(137, { kind: 'record' });
    const cursor = await cursorOf(world, 55, 50, 10);
    world.remove(55);
    world.remove(49);
    for (const args of [
      { first: 2, after: cursor },
      { last: 2, before: cursor },
    ]) {
      const error = await errorOf(world.read(args));
      expect(codeOf(error)).toBe('CURSOR_INVALID');
      expect((error as Error).message).toMatch(/start anew/);
    }
  });
});

test('a failure that is not due to the cursor is passed on, without looking for the record', async () => {
  const world = worldOf(100, { kind: 'key' });
  const cursor = await cursorOf(world, 9, 0, 10);
  const failure = codedError('UPSTREAM_TIMEOUT', 'It took too long.');
  let requests = 0;
  const fetchPage = () => {
    requests += 1;
    return Promise.reject(new PageFailedError('failed', { cause: failure }));
  };
  const reading = readConnection({ ...world.paged, fetchPage }, { first: 5, after: cursor });
  await expect(reading).rejects.toBe(failure);
  expect(requests).toBe(1);
});

test('a walk of the whole list takes a slot, and a window that the index knows does not', async () => {
  const world = worldOf(500, { kind: 'key' });
  let slots = 0;
  const list = {
    ...world.paged,
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
  const world = worldOf(100, { kind: 'key', idOf: () => null });
  const cursor = await cursorOf(world, 59, 50, 20);
  expect((await world.read({ last: 5, before: cursor })).records).toEqual([54, 55, 56, 57, 58]);
  const error = await errorOf(world.read({ last: 20, before: cursor }));
  expect(codeOf(error)).toBe('BAD_USER_INPUT');
  expect((error as Error).message).toMatch(/has no id/);
});
