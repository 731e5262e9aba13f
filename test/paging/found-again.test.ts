import { describe, expect, test } from 'vitest';
import type { CursorBehaviour } from '../../sandbox/cursors.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';

interface Connection {
  edges: { cursor: string; node: { id: string } }[];
  pageInfo: { endCursor: string };
}

describe('a record that is not at the position of its cursor is found', () => {
  test('a record is found if its page now begins elsewhere', async () => {
    await using world = await startWorld(12, 'record');
    const cursor = await world.cursorOf(5, { skip: 4, size: 4 });
    world.persons.move(3, 9);
    expect(await world.ids(`first: 3, after: "${cursor}"`)).toEqual(world.were(6, 7, 8));
  });

  test('a record is found if others, and the end of its page, moved before it', async () => {
    await using world = await startWorld(10, 'record');
    const cursor = await world.cursorOf(3, { size: 5 });
    world.persons.insert(0, 1);
    world.persons.move(5, 0);
    expect(await world.ids(`last: 3, before: "${cursor}"`)).toEqual(world.were(0, 1, 2));
  });

  test('a record is found if records before it were removed, and it is before the page of its cursor', async () => {
    await using world = await startWorld(137, 'position');
    const third = await world.cursorOf(3, { skip: 3, size: 3 });
    const far = await world.cursorOf(55, { skip: 50, size: 10 });
    world.persons.remove(0, 1);
    expect(await world.ids(`last: 3, before: "${third}"`)).toEqual(world.were(1, 2));
    world.persons.remove(0, 19);
    // The record of the cursor is gone by now.
    expect(await world.ids(`first: 1, after: "${third}"`)).toEqual(world.were(20));
    expect(await world.ids(`first: 2, after: "${far}"`)).toEqual(world.were(56, 57));
  });

  test.each(['keyset', 'record', 'position'] as const)(
    'a record is searched over %s cursors at most twenty pages away',
    async (cursors) => {
      await using world = await startWorld(4_000, cursors);
      const cursor = await world.cursorOf(2_005, { skip: 2_000, size: 10 });
      world.persons.remove(2_005);
      const before = world.requests();
      const { data, errors } = await world.ask(`first: 1, after: "${cursor}"`);
      expect(world.requests() - before).toBeLessThanOrEqual(2 * 20 + 3);
      if (cursors !== 'position') {
        expect(data.personsConnection!.edges[0]!.node.id).toBe(world.were(2_000)[0]);
        return;
      }
      // Whether records in front of it were removed too is unknown.
      expect(errors).toMatchObject([{ extensions: { code: 'CURSOR_INVALID' } }]);
    },
  );
});

describe('a cursor of the service that is refused', () => {
  test('a refused cursor is not needed if the record is found without it', async () => {
    await using world = await startWorld(137, 'record');
    const cursor = await world.cursorOf(55, { skip: 50, size: 10 });
    world.persons.remove(49);
    expect(await world.ids(`first: 2, after: "${cursor}"`)).toEqual(world.were(56, 57));
    expect(await world.ids(`last: 2, before: "${cursor}"`)).toEqual(world.were(53, 54));
  });

  test('a refused cursor whose record is gone causes an error that says so, and why', async () => {
    await using world = await startWorld(137, 'record');
    const cursor = await world.cursorOf(55, { skip: 50, size: 10 });
    world.persons.remove(55);
    world.persons.remove(49);
    const { data, errors } = await world.ask(`first: 2, after: "${cursor}"`);
    expect(data.personsConnection).toBeNull();
    expect(errors).toMatchObject([
      {
        message: expect.stringMatching(/start anew.*no longer exists/),
        path: ['personsConnection'],
        extensions: { code: 'CURSOR_INVALID' },
      },
    ]);
  });
});

test('paging by endCursor costs one request a page, whether the list was drained before or not', async () => {
  for (const cursors of ['keyset', 'record', 'position'] as const) {
    await using world = await startWorld(137, cursors);
    for (const isDrained of [false, true]) {
      if (isDrained) await world.gateway.ask('{ allPersons { id } }');
      let after = '';
      for (let page = 0; page < 5; page += 1) {
        const before = world.requests();
        const { data } = await world.ask(`first: 30${after}`);
        expect(world.requests() - before).toBe(1);
        after = `, after: "${data.personsConnection!.pageInfo.endCursor}"`;
      }
    }
  }
});

async function startWorld(count: number, cursors: CursorBehaviour) {
  const gateway = await startGatewayOverSandbox({ persons: count, cursors });
  const { persons, stats } = gateway.sandbox;
  const were = persons.all().map(({ id }) => id);
  const ask = (args: string) => connection(gateway, args);
  const edges = async (args: string) => {
    const { data, errors } = await ask(args);
    expect(errors).toBeUndefined();
    return data.personsConnection!.edges;
  };
  return {
    gateway,
    persons,
    ask,
    requests: () => stats.requests.graphql,
    /** The ids of the records that stood at these offsets at first. */
    were: (...offsets: number[]) => offsets.map((offset) => were[offset]),
    ids: async (args: string) => (await edges(args)).map(({ node }) => node.id),
    /** The cursor of a record, of a page of `size` records behind `skip` records. */
    cursorOf: async (offset: number, { skip = 0, size }: { skip?: number; size: number }) => {
      let after = '';
      for (let left = skip; left > 0; left -= Math.min(left, 500)) {
        const front = await edges(`first: ${Math.min(left, 500)}${after}`);
        after = `, after: "${front.at(-1)!.cursor}"`;
      }
      return (await edges(`first: ${size}${after}`))[offset - skip]!.cursor;
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

function connection(gateway: TestGateway, args: string) {
  return gateway.ask<{ personsConnection: Connection | null }>(
    `{ personsConnection(${args}) { edges { cursor node { id } } pageInfo { endCursor } } }`,
  );
}
