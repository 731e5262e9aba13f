/** Readers of large answers that would be easy to write without a pause. */
import { expect, test } from 'vitest';
import { scanInAnyForm } from '../../src/answers/scan-any-form.ts';
import { scanner } from '../../src/answers/scan.ts';
import { objectShape } from '../../src/answers/shape.ts';
import { parseJson, type Json } from '../../src/json.ts';
import { inOneStep, STEP, type Pausable } from '../../src/pausable.ts';
import { nullingPagesOf } from '../../src/plans/requests/nulling-pages.ts';

const NAMES = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => `The name of number ${i}`));

test('a large value whose key comes too early is passed over with pauses', () => {
  const of = { nullable: false, type: 'T' };
  const shape = objectShape(of, [
    { key: 'first', shape: { ...of, kind: 'int' }, isSilent: false },
    {
      key: 'names',
      shape: { ...of, kind: 'list', of: { ...of, kind: 'string' } },
      isSilent: false,
    },
  ]);
  const take = scanInAnyForm({
    scan: scanner(shape),
    take: (bytes) => inOneStep(String(bytes)),
    shape,
  });
  const bytes = Buffer.from(`{"names":${NAMES},"first":1}`);
  const { value, pauses } = counted(take(bytes));
  expect(value).toBe(`{"first":1,"names":${NAMES}}`);
  // White space is looked for, the value is passed over, copied and scanned.
  expect(pauses).toBeGreaterThan(3.5 * (bytes.length / STEP));
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
