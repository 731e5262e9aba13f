/** Readers of large answers that would be easy to write without a pause. */
import { expect, test } from 'vitest';
import { scanSpaced } from '../../src/answers/envelope.ts';
import { nullingPagesOf } from '../../src/answers/nulling-pages.ts';
import { scanner } from '../../src/answers/scan.ts';
import { objectShape } from '../../src/answers/shape.ts';
import { parseJson, type Json } from '../../src/json.ts';
import { inOneStep, STEP, type Pausable } from '../../src/pausable.ts';

const NAMES = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => `The name of number ${i}`));

test('white space is removed from a large answer with pauses', () => {
  const of = { nullable: false, type: 'T' };
  const shape = objectShape(of, [
    {
      key: 'names',
      shape: { ...of, kind: 'list', of: { ...of, kind: 'string' } },
      isSilent: false,
    },
  ]);
  const take = scanSpaced({ scan: scanner(shape), take: (bytes) => inOneStep(String(bytes)) });
  const bytes = Buffer.from(`{ "names": ${NAMES} }`);
  const { value, pauses } = counted(take(bytes));
  expect(value).toBe(`{"names":${NAMES}}`);
  // White space is looked for, and the value is scanned.
  expect(pauses).toBeGreaterThan(1.5 * (bytes.length / STEP));
});

test('an element of a large list is looked for with pauses', () => {
  const data = parseJson(`{"names":${NAMES}}`) as Json;
  const path = ['names', 19_999, 'x', '_rsPage1_a'];
  const error = { message: '', path, members: '', code: undefined, order: 0 };
  const { value, pauses } = counted(nullingPagesOf(data, [error]));
  expect(value).toEqual(new Set(['_rsPage1_a']));
  expect(pauses).toBeGreaterThan(NAMES.length / STEP / 2);
});

function counted<T>(work: Pausable<T>): { value: T; pauses: number } {
  for (let pauses = 0; ; pauses += 1) {
    const { done, value } = work.next();
    if (done) return { value, pauses };
  }
}
