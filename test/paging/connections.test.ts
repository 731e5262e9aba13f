import { expect, test } from 'vitest';
import { KINDS } from '../service/list-model.ts';
import { World } from './world.ts';

test('a record of `before` that fails with the fields of the connection is an error, unless its own page holds the window', async () => {
  for (const kind of KINDS) {
    const world = new World(30, { kind, limit: 6 });
    const { list } = world;
    const { cursors } = await world.read({ first: 30 });
    const failing = (serial: number): typeof list => ({
      ...list,
      fetchPage: async (...of) => {
        const page = await list.fetchPage(...of);
        const ids = page.ids.map((id, at) => (page.records[at] === serial ? null : id));
        return { ...page, ids };
      },
    });
    const before = (serial: number) =>
      world.read({ last: 2, before: cursors[serial] }, failing(serial));
    await expect(before(13)).rejects.toMatchObject({ extensions: { code: 'CURSOR_INVALID' } });
    expect((await before(16)).records).toEqual([14, 15]);
  }
});

/** The cursor of a record, of a page of 10 records behind the first `skipped` ones. */
async function cursorOf(world: World, serial: number, skipped: number): Promise<string> {
  let after: string | null = null;
  for (let left = skipped; left > 0; left -= Math.min(left, 50))
    after = (await world.read({ first: Math.min(left, 50), after })).cursors.at(-1)!;
  return (await world.read({ first: 10, after })).cursors[serial - skipped]!;
}

test.each(KINDS)(
  'behind a removed record few requests are sent, and records of its page repeat, in both directions: %s cursors',
  async (kind) => {
    const world = new World(4_000, { kind });
    const after = await cursorOf(world, 2_005, 2_000);
    world.remove(2_005);
    const requests = await world.costOf(async () => {
      expect(await world.read({ first: 1, after })).toMatchObject({ records: [2_000] });
    });
    expect(requests).toBeLessThanOrEqual(3);
    // The page has one more record where cursors are offsets.
    const records = [kind === 'position' ? 2_010 : 2_009];
    expect(await world.read({ last: 1, before: after })).toMatchObject({ records });
  },
);

test('a record that was pushed out of its page is found behind it', async () => {
  const world = new World(137);
  const after = await cursorOf(world, 5, 0);
  world.service.apply({ do: 'insert', at: 0, count: 20 });
  expect((await world.read({ first: 1, after })).records).toEqual([6]);
});

test('a record behind a cursor that the service refuses is not looked for in the whole list', async () => {
  const world = new World(4_000, { kind: 'record' });
  const after = await cursorOf(world, 2_005, 2_000);
  world.remove(1_999, 2_005);
  const reading = () => expect(world.read({ first: 1, after })).rejects.toThrow(/start anew/);
  expect(await world.costOf(reading)).toBeLessThanOrEqual(23);
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
  const after = await cursorOf(world, 9, 0);
  world.fails = true;
  const reading = () => expect(world.read({ first: 5, after })).rejects.toThrow('is down');
  expect(await world.costOf(reading)).toBe(1);
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
  await world.read({ first: 200 }, list);
  expect(slots).toBe(0);
  await world.read({ last: 60 }, list);
  expect(slots).toBe(1);
  for (const [last, most] of [
    [60, 3],
    [149, 4],
  ] as const) {
    let before: string | undefined;
    for (let window = 0; window < 3; window += 1) {
      const requests = await world.costOf(async () => {
        [before] = (await world.read({ last, before }, list)).cursors;
      });
      expect(requests).toBeLessThanOrEqual(most);
    }
  }
  expect(slots).toBe(1);
});
