// Imports the engine's insides, and goes when the engine is replaced.
/** Readers of large answers that would be easy to write without a pause. */
import { expect, test } from 'vitest';
import {
  member,
  nullingPagesOf,
  readEnvelope,
  slotScanner,
  slotsIn,
} from '../../src/answers/envelope.ts';
import { readValue } from '../../src/answers/read.ts';
import { jsonIn, parseJson, withoutSpace, type Json } from '../../src/json.ts';
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

test.each([
  ['a large value of a custom scalar is', `{"data":{"extra":${NAMES}}}`],
  ['large extensions are', `{"data":{"extra":1},"extensions":{"names":${NAMES}}}`],
])('%s read with pauses', (_, answer) => {
  const bytes = Buffer.from(answer);
  const extra = member('extra', { kind: 'any', nullable: false, type: 'JSON' });
  const read = function* () {
    const scanned = yield* slotScanner([extra])(bytes);
    if (scanned) return [scanned.whole.subarray(scanned.at[0], scanned.at[1])];
    const envelope = yield* readEnvelope((yield* jsonIn(bytes)) as Json, 200);
    const { value, errors } = slotsIn(envelope, ['extra']).slots[0]!;
    return (yield* readValue(extra.shape as never, value, errors)).parts!;
  };
  const { value, pauses } = counted(read());
  expect(value.map(String).join('') === (answer.includes('extensions') ? '1' : NAMES)).toBe(true);
  expect(pauses).toBeGreaterThan(NAMES.length / STEP - 1);
});

function counted<T>(work: Pausable<T>): { value: T; pauses: number } {
  for (let pauses = 0; ; pauses += 1) {
    const { done, value } = work.next();
    if (done) return { value, pauses };
  }
}
