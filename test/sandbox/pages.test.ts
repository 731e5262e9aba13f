import { describe, expect, test } from 'vitest';
import type { CursorBehaviour } from '../../sandbox/cursors.ts';
import { reader, start } from './client.ts';
import type { Page } from './client.ts';

const behaviours: CursorBehaviour[] = ['keyset', 'record', 'position'];

describe('the size of a page', () => {
  test.each([
    [1, 1],
    [2, 2],
    [49, 49],
    [50, 50],
    [51, 50],
    [1000, 50],
    [undefined, 50],
    [null, 50],
  ])('`first: %s` returns %i records, and pageInfo.first says so', async (first, size) => {
    const { page } = await reader(await start());
    const { items, pageInfo } = await page({ first });

    expect(items).toHaveLength(size);
    expect(pageInfo.first).toBe(size);
    expect(pageInfo.hasNextPage).toBe(true);
  });

  test.each([0, -1, -2_147_483_648])(
    '`first: %i` is an error that says what is allowed',
    async (first) => {
      const { ask } = await reader(await start());

      expect(await ask({ first })).toMatchObject({
        data: null,
        errors: [{ message: `first must be from 1 to 50, and it is ${first}.`, path: ['persons'] }],
      });
    },
  );
});

describe.each(behaviours)('a walk with %s cursors', (cursors) => {
  test.each([1, 7, 50])(
    'a walk in pages of %i returns every person once, in order',
    async (first) => {
      const sandbox = await start({ cursors, persons: 103 });
      const { page } = await reader(sandbox);
      const pages: Page[] = [await page({ first })];
      while (pages.at(-1)?.pageInfo.hasNextPage) {
        pages.push(await page({ first, after: pages.at(-1)?.pageInfo.endCursor }));
      }

      expect(pages.flatMap(({ items }) => items)).toEqual(sandbox.persons.all());
      expect(pages).toHaveLength(Math.ceil(103 / first));
    },
  );

  test('a walk ends with hasNextPage false on a last page that is exactly full', async () => {
    const { page } = await reader(await start({ cursors, persons: 100 }));
    const first = await page();
    const two = await page({ after: first.pageInfo.endCursor });

    expect(two.items).toHaveLength(50);
    expect(two.pageInfo).toEqual({ first: 50, hasNextPage: false, endCursor: expect.any(String) });
  });

  test('the page after the last person is empty and has no cursor', async () => {
    const { page } = await reader(await start({ cursors, persons: 2 }));
    const { pageInfo } = await page();

    expect(await page({ after: pageInfo.endCursor })).toEqual({
      items: [],
      pageInfo: { first: 50, hasNextPage: false, endCursor: null },
    });
  });

  test('a walk continues with a person who was added after the last one', async () => {
    const sandbox = await start({ cursors, persons: 3 });
    const { page } = await reader(sandbox);
    const { pageInfo } = await page();
    sandbox.persons.insert(3);

    expect((await page({ after: pageInfo.endCursor })).items).toEqual(
      sandbox.persons.all().slice(3),
    );
  });
});

describe('when the list changes between two pages', () => {
  test('a keyset cursor continues after its key when its record is gone', async () => {
    const { sandbox, rest } = await afterFirstTen('keyset');
    const expected = sandbox.persons.all().slice(10, 20);
    sandbox.persons.remove(5, 5);

    expect((await rest()).items).toEqual(expected);
  });

  test('a keyset cursor continues after its key when new records are around it', async () => {
    const { sandbox, rest } = await afterFirstTen('keyset');
    const before = sandbox.persons.all();
    sandbox.persons.insert(0, 3);
    sandbox.persons.insert(13);
    const [added] = sandbox.persons.all().slice(13, 14);

    expect((await rest()).items).toEqual([added, ...before.slice(10, 19)]);
  });

  test('a keyset cursor continues where its record was if the record has moved away', async () => {
    const { sandbox, rest } = await afterFirstTen('keyset');
    const expected = sandbox.persons.all().slice(10, 20);
    sandbox.persons.move(9, 90);

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

  test('a record cursor is refused even if other records are now in the place of its record', async () => {
    const { sandbox, ask } = await afterFirstTen('record');
    sandbox.persons.remove(9);
    sandbox.persons.insert(9, 40);

    expect(await ask()).toHaveProperty('errors');
  });

  test('a record cursor is not affected by other records that are removed or added', async () => {
    const { sandbox, rest } = await afterFirstTen('record');
    const expected = sandbox.persons.all().slice(10, 20);
    sandbox.persons.remove(0, 9);
    sandbox.persons.insert(0, 30);

    expect((await rest()).items).toEqual(expected);
  });

  test('a record cursor follows its record to another place', async () => {
    const { sandbox, rest } = await afterFirstTen('record');
    sandbox.persons.move(9, 60);

    expect((await rest()).items).toEqual(sandbox.persons.all().slice(61, 71));
  });

  test('a record cursor works for a record that was added later', async () => {
    const sandbox = await start({ cursors: 'record' });
    sandbox.persons.insert(9, 1);
    const { ask, page } = await reader(sandbox);
    const { pageInfo } = await page({ first: 10 });
    const after = pageInfo.endCursor;

    expect((await page({ after })).items).toEqual(sandbox.persons.all().slice(10, 60));
    sandbox.persons.remove(9);
    expect(await ask({ after })).toHaveProperty('errors');
  });

  test('a position cursor skips a record for each that was removed before it', async () => {
    const { sandbox, rest } = await afterFirstTen('position');
    const before = sandbox.persons.all();
    sandbox.persons.remove(0, 3);

    expect((await rest()).items).toEqual(before.slice(13, 23));
  });

  test('a position cursor repeats a record for each that was inserted before it', async () => {
    const { sandbox, rest } = await afterFirstTen('position');
    const before = sandbox.persons.all();
    sandbox.persons.insert(0, 2);

    expect((await rest()).items).toEqual(before.slice(8, 18));
  });

  test('a position cursor after the end returns an empty page', async () => {
    const { sandbox, rest } = await afterFirstTen('position');
    sandbox.persons.remove(0, 130);

    expect(await rest()).toEqual({
      items: [],
      pageInfo: { first: 10, hasNextPage: false, endCursor: null },
    });
  });
});

test('a list of a million persons starts fast, and a page costs the same anywhere in it', async () => {
  const begin = performance.now();
  const sandbox = await start({ persons: 1_000_000 });
  expect(performance.now() - begin).toBeLessThan(2000);
  const { page } = await reader(sandbox);
  const reads = countReads(sandbox.persons);

  let after: string | null = null;
  for (let number = 0; number < 3; number += 1) {
    const { items, pageInfo }: Page = await page({ after });
    expect(items).toEqual(sandbox.persons.slice(number * 50, number * 50 + 50));
    after = pageInfo.endCursor;
  }
  sandbox.persons.remove(150, 999_790);
  const { items } = await page({ after });
  expect(items).toEqual(sandbox.persons.slice(150, 200));
  // A binary search among a million reads 20 of them.
  expect(reads()).toBeLessThan(4 * 25);
});

async function afterFirstTen(cursors: CursorBehaviour) {
  const sandbox = await start({ cursors });
  const { ask, page } = await reader(sandbox);
  const { endCursor } = (await page({ first: 10 })).pageInfo;
  const variables = { first: 10, after: endCursor };
  return { sandbox, ask: () => ask(variables), rest: () => page(variables) };
}

/** How often the key at a position was read. */
function countReads(list: { keyAt(position: number): string }): () => number {
  const keyAt = list.keyAt.bind(list);
  let reads = 0;
  list.keyAt = (position) => {
    reads += 1;
    return keyAt(position);
  };
  return () => reads;
}
