import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recordFormat } from '../../src/export/format.ts';
import { randomRuns } from '../support/random/random-runs.ts';

/** What a spreadsheet or an import may remove, and what it takes for one of its own signs. */
const BEFORE = Array.from(
  ' \t\r\n\v\f\0\u0001\u001b\u0085\u00a0\u00ad\u034f\u1680\u200b\u200e\u2028\u2060\u2800\u3000\u3164\ufe0f\ufeff',
);
const SIGNS = Array.from('=+-@＝＋－＠﹦﹢﹣﹫−');
const BREAKS = Array.from('\r\n\v\f\u0085\u2028\u2029');
const piece = fc.oneof(
  fc.constantFrom(...BEFORE, ...SIGNS, ...BREAKS, ...Array.from('",;\'|a1(')),
  fc.string({ unit: 'binary', maxLength: 2 }),
);

test('whatever the text of a cell, it begins no row, a spreadsheet does not see a formula, and the text is all there', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const text = pieces.join('');
      const row = rowOf([text]);
      // What breaks lines is in quotes.
      expect(row).toMatch(/^(?:"[^]*"|[^\n\v\f\r\u0085\u2028\u2029]*)\n$/);
      const cell = cellOf(row);
      expect(seesFormula(cell)).toBe(false);
      expect([text, `'${text}`]).toContain(cell);
    }),
    {
      numRuns: randomRuns(3_000),
      examples: [
        ...BEFORE.flatMap((before) => SIGNS.map((sign) => [[before, sign, '1']])),
        ...BREAKS.map((breaks) => [['x', breaks, '=1']]),
      ] as [string[]][],
    },
  );
});

test('an empty text is in quotes, null is not, and numbers and other text stay as they are', () => {
  const values = ['', null, -5, 'Ann', ' Ann', '1-2', "'=1", 'a=b'];
  expect(rowOf(values)).toBe(`"",,-5,Ann, Ann,1-2,'=1,a=b\n`);
});

function rowOf(values: readonly unknown[]): string {
  const record = Object.fromEntries(values.map((value, at) => [`key${at}`, value]));
  return recordFormat('csv', Object.keys(record)).write([record]);
}

/** The only cell of a row, read as CSV. */
function cellOf(row: string): string {
  const cell = row.slice(0, -1);
  return cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
}

/** Whether it begins with a sign of a formula, once everything that shows nothing was removed. */
function seesFormula(cell: string): boolean {
  const shown = Array.from(cell).find(
    (character) => !/[\s\p{C}\p{Z}\p{DI}\u2800]/u.test(character),
  );
  return shown !== undefined && '=+-@'.includes(shown.normalize('NFKC').replace('−', '-'));
}
