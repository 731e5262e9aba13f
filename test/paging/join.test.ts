import { expect, test } from 'vitest';
import { identityHash } from '../../src/paging/identities.ts';
import { continues } from '../../src/paging/join.ts';
import type { ReadPage } from '../../src/paging/page.ts';
import { readPageOf } from './world.ts';

// Random walks (random-reading.ts) meet too rarely what a wrong proof would lose.
test.each([
  ['two shared records', 'a b c d', 'c d e f', null, true],
  [
    'one shared record, and the record behind which the next page begins',
    'a b c d',
    'd e',
    'c',
    true,
  ],
  ['one shared record, and nothing else', 'a b c d', 'd e f', null, false],
  ['one shared record, and a record of another page', 'a b c d', 'd e f', 'x', false],
  ['no shared record', 'a b c d', 'e f', 'd', false],
  ['shared records in another order', 'a b c d', 'c x d', null, false],
  ['nothing but records of the page before', 'a b c d', 'c d', null, false],
  ['no records', 'a b c d', '', null, false],
  ['shared records of which one is repeated', 'a b c d', 'c d e e', null, false],
] as const)('a page with %s is proved to follow or not', (_, page, next, behind, isProved) => {
  const hash = behind === null ? undefined : identityHash(behind);
  expect(continues(read(next), read(page), hash)).toBe(isProved);
});

function read(ids: string): ReadPage {
  return readPageOf(null, ids.split(' ').filter(Boolean));
}
