// Imports the engine's insides, and goes when the engine is replaced.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { losesWriting } from '../src/json.ts';
import { randomRuns } from './support/random/random-runs.ts';

const digits = (most: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${most}}$`));
const whole = fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9][0-9]{0,22}$/));
const numbers = fc
  .tuple(
    fc.constantFrom('', '', '-'),
    whole,
    fc.oneof(
      fc.constant(''),
      digits(18).map((decimals) => `.${decimals}`),
      fc
        .tuple(fc.integer({ min: 0, max: 8 }), digits(3))
        .map(([n, decimals]) => `.${'0'.repeat(n)}${decimals}`),
    ),
    fc.oneof({ weight: 4, arbitrary: fc.constant('') }, fc.stringMatching(/^[eE][-+]?[0-9]{1,3}$/)),
  )
  .map((parts) => parts.join(''));
/** What looks like a number that loses something, and is none because it is in a string. */
const strings = fc
  .oneof(
    fc.uuid(),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString().slice(0, 10)),
    numbers,
    numbers.map((number) => `{ a(b: ${number}, c: [${number}]) "${number}": ${number}}`),
    numbers.map((number) => `\\":${number},\\\\`),
    fc.string(),
    fc.constant('1'),
  )
  .map((text) => JSON.stringify(text));
const keys = fc.oneof(
  { weight: 6, arbitrary: strings },
  fc.constantFrom(
    '"0"',
    '"12"',
    '"01"',
    '"4294967294"',
    '"4294967295"',
    '"\\u0031"',
    '"1\\u0032"',
    '"-1"',
  ),
);
const space = fc.constantFrom('', '', ' ', '\n\t');
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { depthSize: 'small' },
    numbers,
    strings,
    fc.constantFrom('true', 'null'),
    fc
      .tuple(fc.array(tie('json'), { maxLength: 4 }), space)
      .map(([all, gap]) => `[${gap}${all.join(`${gap},${gap}`)}${gap}]`),
    fc
      .tuple(
        fc.uniqueArray(fc.tuple(keys, tie('json')), {
          maxLength: 4,
          selector: ([key]) => JSON.parse(key) as string,
        }),
        space,
      )
      .map(([all, gap]) => {
        const members = all.map(([key, value]) => `${key}${gap}:${gap}${value as string}`);
        return `{${gap}${members.join(`${gap},${gap}`)}${gap}}`;
      }),
  ),
}));

test('a text loses something in JSON.parse exactly if a number would be written in another way, or a key is an index', () => {
  const counts = { lost: 0, kept: 0 };
  fc.assert(
    fc.property(json, (text) => {
      const expected = isLost(text);
      counts[expected ? 'lost' : 'kept'] += 1;
      expect(losesWriting(text)).toBe(expected);
    }),
    { numRuns: randomRuns(5_000) },
  );
  expect(Math.min(counts.lost, counts.kept)).toBeGreaterThan(100);
});

test.each([
  ['{"id":"8a57f600-1179-4434-a6be-16e91e375648"}', false],
  ['{"from":"2026-01-05T10:30:00.000Z","to":"2026-12-10"}', false],
  ['{"query":"{ a(b: 12345678901234567890, c: 1e5) }"}', false],
  ['{"a":9007199254740991,"b":0.1,"c":-0.5,"d":1e-7}', false],
  ['{"a":9007199254740993}', true],
  ['{"a":[1, 1e5]}', true],
  ['{"a":1.0}', true],
  ['{"a":-0}', true],
  ['{"b":0,"1":0}', true],
  ['12345678901234567890', true],
])('%s: %s', (text, expected) => {
  expect([isLost(text), losesWriting(text)]).toEqual([expected, expected]);
});

/** Whether `JSON.parse` itself says so: it gives a reviver the text of each number. */
function isLost(text: string): boolean {
  let lost = false;
  const look = (_key: string, value: unknown, { source }: { source?: string }) => {
    if (typeof value === 'number' && source !== String(value)) lost = true;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      lost ||= Object.keys(value).some((key) => isArrayIndex(key));
    }
    return value;
  };
  JSON.parse(text, look as Parameters<typeof JSON.parse>[1]);
  return lost;
}

/** Whether a list can have an element there. */
function isArrayIndex(key: string): boolean {
  const list: unknown[] = [];
  Object.assign(list, { [key]: 0 });
  return list.length > 0;
}
