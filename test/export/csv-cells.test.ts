import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recordFormat } from '../../src/export/format.ts';
import { randomRuns } from '../support/random/random-runs.ts';

/** What a spreadsheet or an import may remove, and what it takes for one of its own signs. */
const BEFORE = Array.from(
  ' \t\r\n\v\f\0\u0001\u001b\u0085\u00a0\u00ad\u034f\u1680\u200b\u200e\u2028\u2060\u2800\u3000\u3164\ufe0f\ufeff',
);
const SIGNS = Array.from('=+-@＝＋－＠﹦﹢﹣﹫−');
const piece = fc.oneof(
  fc.constantFrom(...BEFORE, ...SIGNS, ...Array.from('",;\'|a1(')),
  fc.string({ unit: 'binary', maxLength: 2 }),
);

test('whatever the text of a cell, a spreadsheet does not see a formula, and the text is all there', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const text = pieces.join('');
      const cell = cellOf(text);
      expect(seesFormula(cell)).toBe(false);
      expect([text, `'${text}`]).toContain(cell);
    }),
    {
      numRuns: randomRuns(3_000),
      examples: BEFORE.flatMap((before) => SIGNS.map((sign) => [[before, sign, '1']])),
    },
  );
});

test('an empty text is in quotes, null is not, and numbers and other text stay as they are', () => {
  const values = ['', null, -5, 'Ann', ' Ann', '1-2', "'=1", 'a=b'];
  expect(rowOf(values)).toBe(`"",,-5,Ann, Ann,1-2,'=1,a=b\n`);
});

test('a cell cannot begin a row: whatever breaks lines is in quotes', () => {
  for (const breaks of ['\r', '\n', '\r\n', '\v', '\f', '\u0085', '\u2028', '\u2029']) {
    expect(rowOf([`x${breaks}=1+1`])).toBe(`"x${breaks}=1+1"\n`);
  }
});

function rowOf(values: readonly unknown[]): string {
  const record = Object.fromEntries(values.map((value, at) => [`key${at}`, value]));
  return recordFormat('csv', Object.keys(record)).write([record]);
}

/** The only cell of a row, read as CSV. */
function cellOf(text: string): string {
  const cell = rowOf([text]).slice(0, -1);
  return cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
}

/** Whether it begins with a sign of a formula, once everything that shows nothing was removed. */
function seesFormula(cell: string): boolean {
  const shown = Array.from(cell).find(
    (character) => !/[\s\p{C}\p{Z}\p{DI}\u2800]/u.test(character),
  );
  return shown !== undefined && '=+-@'.includes(shown.normalize('NFKC').replace('−', '-'));
}
