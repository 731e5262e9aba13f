import { expect, test } from 'vitest';
import { identityHash } from '../../src/paging/identities.ts';
import { joinPages } from '../../src/paging/join.ts';
import type { ReadPage } from '../../src/paging/page.ts';
import { readPageOf } from './world.ts';

// Random walks (random-reading.ts) meet too rarely what a wrong proof would lose.
test.each([
  ['two shared records', 'a b c d', 'c d e f', null, 'joined'],
  [
    'one shared record, and the record behind which the next page begins',
    'a b c d',
    'd e',
    'c',
    'joined',
  ],
  ['one shared record, and nothing else', 'a b c d', 'd e f', null, 'apart'],
  ['one shared record, and a record of another page', 'a b c d', 'd e f', 'x', 'apart'],
  ['no shared record', 'a b c d', 'e f', 'd', 'apart'],
  ['shared records in another order', 'a b c d', 'c x d', null, 'apart'],
  ['nothing but records of the page before', 'a b c d', 'c d', null, 'inside'],
  ['no records', 'a b c d', '', null, 'inside'],
  ['shared records of which one is repeated', 'a b c d', 'c d e e', null, 'apart'],
] as const)('a page with %s is proved to follow or not', (_, page, next, behind, join) => {
  const hash = behind === null ? null : identityHash(behind);
  expect(joinPages(read(page), read(next), hash)).toBe(join);
});

function read(ids: string): ReadPage {
  return readPageOf(null, ids.split(' ').filter(Boolean));
}
