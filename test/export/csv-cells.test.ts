import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recordFormat } from '../../src/export/record-format.ts';
import { parseJson, type Json } from '../../src/export/json.ts';
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
      const cell = cellOf(JSON.stringify(text));
      expect(seesFormula(cell)).toBe(false);
      expect([text, `'${text}`]).toContain(cell);
    }),
    {
      numRuns: randomRuns(3_000),
      examples: BEFORE.flatMap((before) => SIGNS.map((sign) => [[before, sign, '1']])),
    },
  );
});

test.each(['=1', '\n=1', ' =1', '\ufeff=1', '\0=1', '\t', '\rx', '\nx', '－1', '-'])(
  'the text %j gets an apostrophe',
  (text) => expect(cellOf(JSON.stringify(text))).toBe(`'${text}`),
);

test.each(['Ann', ' Ann', '1-2', "'=1", 'a=b', ''])('the text %j stays as it is', (text) =>
  expect(cellOf(JSON.stringify(text))).toBe(text),
);

test('an empty text is in quotes, and null is not', () => {
  const rows = recordFormat('csv', ['a', 'b', 'c']).write([parse('{"a":"","b":null,"c":""}')]);
  expect(rows).toBe('"",,""\n');
});

test.each(['-5', '-1.5', '12345678901234567890123', '-12345678901234567890123'])(
  'the number %s keeps its digits, and gets no apostrophe',
  (number) => expect(cellOf(number)).toBe(number),
);

test('a cell cannot begin a row: whatever breaks lines is in quotes', () => {
  for (const breaks of ['\r', '\n', '\r\n', '\v', '\f', '\u0085', '\u2028', '\u2029']) {
    const format = recordFormat('csv', ['a']);
    const text = `x${breaks}=1+1`;
    expect(format.write([parse(JSON.stringify({ a: text }))])).toBe(`"${text}"\n`);
  }
});

function parse(json: string): Json {
  return parseJson(json) as Json;
}

/** The only cell of a row, read as CSV. */
function cellOf(json: string): string {
  const row = recordFormat('csv', ['a']).write([parse(`{"a":${json}}`)]);
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
