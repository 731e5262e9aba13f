import { describe, expect, test } from 'vitest';
import {
  IndexBuilder,
  PageIndexes,
  positionsIn,
  type PageIndex,
} from '../../src/paging/page-index.ts';
import { ReadPage } from '../../src/paging/page.ts';

describe('an index', () => {
  const index = build([
    [null, 'a b c d'],
    ['d', 'e f g h'],
    ['h', 'i'],
  ]);

  test('knows where a record is', () => {
    expect(positionsIn(index, ['g', 'i', 'a', 'z'])).toEqual(
      new Map([
        ['a', { page: 0, offset: 0 }],
        ['g', { page: 1, offset: 2 }],
        ['i', { page: 2, offset: 0 }],
      ]),
    );
  });
});

test.each<[string, [string | null, string][], [string | null, number][]]>([
  [
    'a page ends where the next one begins',
    [
      [null, 'a b c'],
      ['b', 'c d e'],
    ],
    [
      [null, 2],
      ['b', 3],
    ],
  ],
  [
    'of two pages with one start, the later counts',
    [
      [null, 'a b'],
      ['x', 'a b c'],
    ],
    [['x', 3]],
  ],
  [
    'an empty page is left out',
    [
      [null, 'a b c'],
      ['c', ''],
      ['z', 'd e f'],
    ],
    [
      [null, 3],
      ['z', 3],
    ],
  ],
  [
    'small pages are merged',
    [
      [null, 'a'],
      ['a', 'b'],
      ['b', 'c d e f'],
      ['f', 'g h'],
    ],
    [
      [null, 2],
      ['b', 4],
      ['f', 2],
    ],
  ],
])('in an index, %s', (_, pages, expected) => {
  expect(build(pages).pages.map(({ after, count }) => [after, count])).toEqual(expected);
});

test.each([
  ['without an id', ['a', null]],
  ['with the id of another', ['a', 'a']],
])('a list that has a record %s in a page has no index', (_, ids) => {
  const builder = new IndexBuilder();
  builder.add(pageOf(null, ids));
  expect(builder.finish(50)).toBeUndefined();
});

describe('all indexes together', () => {
  test('stay within INDEX_MAX_IDS: the least recently used is dropped', () => {
    const indexes = new PageIndexes(1_000);
    for (const list of ['a', 'b', 'c']) indexes.begin(list)(build([[null, letters(200)]]));
    indexes.get('a');
    for (const list of ['d', 'e']) indexes.begin(list)(build([[null, letters(200)]]));
    const known = ['a', 'b', 'c', 'd', 'e'].filter((list) => indexes.get(list));
    expect(known).toEqual(['a', 'd', 'e']);
  });

  test('keep the pages, and not the ids, of a list that is too long', () => {
    const indexes = new PageIndexes(1_000);
    const long = build(Array.from({ length: 30 }, (_, at) => [`c${at}`, letters(40, `p${at}`)]));
    indexes.begin('long')(long);
    expect(indexes.get('long')).toMatchObject({ records: 1_200 });
    expect(indexes.get('long')!.pages[0]).toEqual({ ...long.pages[0], hashes: undefined });
    indexes.begin('longer')(
      build(Array.from({ length: 300 }, (_, at) => [`c${at}`, letters(40, `p${at}`)])),
    );
    expect(indexes.get('longer')).toBeUndefined();
  });

  test('are none with INDEX_MAX_IDS=0', () => {
    const indexes = new PageIndexes(0);
    indexes.begin('list')(build([[null, 'a b']]));
    expect(indexes.get('list')).toBeUndefined();
  });

  test('are dropped with another token set, also those of walks that began before', () => {
    const indexes = new PageIndexes(1_000);
    indexes.useTokenSet('first');
    indexes.begin('a')(build([[null, 'a b']]));
    const keep = indexes.begin('b');
    indexes.useTokenSet('first');
    expect(indexes.get('a')).toBeDefined();
    indexes.useTokenSet('second');
    keep(build([[null, 'a b']]));
    expect([indexes.get('a'), indexes.get('b')]).toEqual([undefined, undefined]);
  });
});

/** @param pages the cursor of each page, and the ids of its records; the page limit is 5 */
function build(pages: readonly (readonly [string | null, string])[]): PageIndex {
  const builder = new IndexBuilder();
  for (const [after, ids] of pages) builder.add(pageOf(after, ids ? ids.split(' ') : []));
  return builder.finish(5)!;
}

function pageOf(after: string | null, ids: (string | null)[]): ReadPage {
  const endCursor = ids.at(-1) ?? after;
  return new ReadPage(after, { records: ids, ids, hasNextPage: true, endCursor, size: 5 });
}

function letters(count: number, prefix = 'r'): string {
  return Array.from({ length: count }, (_, index) => prefix + '-' + index).join(' ');
}
