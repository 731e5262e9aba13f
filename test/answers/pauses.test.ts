/** Readers of large answers that would be easy to write without a pause. */
import { expect, test } from 'vitest';
import { nullingPagesOf } from '../../src/answers/nulling-pages.ts';
import { parseJson, withoutSpace, type Json } from '../../src/json.ts';
import { STEP, type Pausable } from '../../src/pausable.ts';

const NAMES = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => `The name of number ${i}`));

test('white space is removed from a large answer with pauses', () => {
  const bytes = Buffer.from(`{ "names": ${NAMES} }`);
  const { value, pauses } = counted(withoutSpace(bytes));
  expect(String(value)).toBe(`{"names":${NAMES}}`);
  expect(pauses).toBeGreaterThan(bytes.length / STEP - 1);
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
