import { describe, expect, test } from 'vitest';
import type { CursorBehaviour } from '../../sandbox/cursors.ts';
import { reader, start } from './client.ts';
import type { Page } from './client.ts';

const behaviours: CursorBehaviour[] = ['keyset', 'record', 'position'];

test.each([
  [1, 1],
  [50, 50],
  [51, 50],
  [null, 50],
])('`first: %s` returns %i records, and pageInfo.first says so', async (first, size) => {
  const { page } = await reader(await start());
  const { items, pageInfo } = await page({ first });
  expect(items).toHaveLength(size);
  expect(pageInfo).toMatchObject({ first: size, hasNextPage: true });
});

test.each([0, -1])('`first: %i` is an error that says what is allowed', async (first) => {
  const { ask } = await reader(await start());
  expect(await ask({ first })).toMatchObject({
    data: null,
    errors: [{ message: `first must be from 1 to 50, and it is ${first}.`, path: ['persons'] }],
  });
});

describe.each(behaviours)('a walk with %s cursors', (cursors) => {
  test.each([
    [7, 103],
    [50, 100],
  ])(
    'a walk in pages of %i over %i persons returns every person once, in order',
    async (first, persons) => {
      const sandbox = await start({ cursors, persons });
      const { page } = await reader(sandbox);
      const pages: Page[] = [await page({ first })];
      while (pages.at(-1)?.pageInfo.hasNextPage) {
        pages.push(await page({ first, after: pages.at(-1)?.pageInfo.endCursor }));
      }

      expect(pages.flatMap(({ items }) => items)).toEqual(sandbox.persons.all());
      expect(pages).toHaveLength(Math.ceil(persons / first));
    },
  );
});

describe('when the list changes between two pages', () => {
  test('a keyset cursor continues after its key when its record is gone', async () => {
    const { sandbox, rest } = await afterFirstTen('keyset');
    const expected = sandbox.persons.all().slice(10, 20);
    sandbox.persons.remove(5, 5);

    expect((await rest()).items).toEqual(expected);
  });

  test('a record cursor is refused once its record is gone', async () => {
    const { sandbox, ask } = await afterFirstTen('record');
    sandbox.persons.remove(9);

    expect(await ask()).toMatchObject({
      data: null,
      errors: [
        {
          message: 'The record that the cursor given as after names no longer exists.',
          path: ['persons'],
        },
      ],
    });
  });

  test('a position cursor skips a record for each that was removed before it', async () => {
    const { sandbox, rest } = await afterFirstTen('position');
    const before = sandbox.persons.all();
    sandbox.persons.remove(0, 3);

    expect((await rest()).items).toEqual(before.slice(13, 23));
  });
});

async function afterFirstTen(cursors: CursorBehaviour) {
  const sandbox = await start({ cursors });
  const { ask, page } = await reader(sandbox);
  const { endCursor } = (await page({ first: 10 })).pageInfo;
  const variables = { first: 10, after: endCursor };
  return { sandbox, ask: () => ask(variables), rest: () => page(variables) };
}
