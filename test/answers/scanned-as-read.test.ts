import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readValue } from '../../src/answers/read.ts';
import { scanner } from '../../src/answers/scan.ts';
import type { Shape } from '../../src/answers/shape.ts';
import { createTape, cut } from '../../src/answers/tape.ts';
import { parseJson } from '../../src/json.ts';
import { mutated } from '../support/mutated-bytes.ts';
import { randomAnswer, randomObject, type Choose } from '../support/random-shape.ts';

const { RANDOM_RUNS, RANDOM_SEED } = process.env;
const RUNS = Number(RANDOM_RUNS ?? 3_000);
/** The same in each run of the suite, and another one whenever RANDOM_RUNS is set. A failure reports it. */
const SEED = Number(RANDOM_SEED ?? (RANDOM_RUNS === undefined ? 71 : Date.now() % 1_000_000));

test('whatever is taken as bytes is what is read value by value, however the service writes it', () => {
  const taken = { as: { written: 0, mutated: 0 }, all: 0 };
  fc.assert(
    fc.property(fc.gen(), (g) => {
      const choose: Choose = (below) => g(fc.nat, below - 1);
      const shape: Shape = { ...randomObject(choose, 3), nullable: choose(4) === 0 };
      const written = Buffer.from(randomAnswer(shape, choose));
      const times = choose(4);
      const bytes = mutated(written, choose, times);
      // Others are never scanned.
      if (!isUtf8(bytes)) return;
      taken.all += 1;
      const scanned = scan(shape, bytes);
      if (scanned === undefined) return;
      taken.as[times === 0 ? 'written' : 'mutated'] += 1;
      expect(scanned, bytes.toString()).toEqual(read(shape, bytes));
    }),
    { numRuns: RUNS, seed: SEED },
  );
  // It is not about nothing.
  expect(taken.as.written).toBeGreaterThan(RUNS / 10);
  expect(taken.as.mutated).toBeGreaterThan(RUNS / 20);
  expect(taken.all - taken.as.written - taken.as.mutated).toBeGreaterThan(RUNS / 10);
});

test.each(['string', 'id', 'int', 'float', 'boolean', 'any'] as const)(
  'null is no %s where none may be',
  (kind) => {
    const shape: Shape = { kind, nullable: false, type: 'T!' };
    expect(scan(shape, Buffer.from('null'))).toBeUndefined();
  },
);

function scan(shape: Shape, bytes: Buffer): { text: string; errors: unknown[] } | undefined {
  const tape = createTape();
  const end = scanner(shape)(bytes, 0, tape);
  return end === bytes.length
    ? { text: cut(bytes, 0, end, tape).toString(), errors: [] }
    : undefined;
}

function read(shape: Shape, bytes: Buffer) {
  const json = parseJson(new TextDecoder().decode(bytes));
  if (json === undefined || json === 'too deep') return json;
  const { parts, errors } = readValue(shape, json, []);
  return { text: parts?.map(String).join(''), errors };
}
