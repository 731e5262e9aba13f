// Imports the engine's insides, and goes when the engine is replaced.
import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readValue } from '../../src/answers/read.ts';
import { cut, PAUSED, scanner, Tape } from '../../src/answers/scan.ts';
import {
  objectShape,
  TYPE_KEY,
  type FieldShape,
  type LeafShape,
  type Shape,
} from '../../src/answers/shape.ts';
import { Json, parseJson, withoutSpace } from '../../src/json.ts';
import { atOnce, type Pausable } from '../../src/pausable.ts';
import { mutated } from '../support/random/mutated-bytes.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import {
  randomAnswer,
  randomObject,
  randomShape,
  type Choose,
} from '../support/random/random-shape.ts';

const RUNS = randomRuns(3_000);

test('an answer is the same as bytes, with pauses or without, and when each object is taken apart', () => {
  const taken = { as: { written: 0, mutated: 0 }, all: 0 };
  let paused = 0;
  fc.assert(
    fc.property(fc.gen(), (g) => {
      const choose: Choose = (below) => g(fc.nat, below - 1);
      const shape: Shape = { ...randomObject(choose, 3), nullable: choose(4) === 0 };
      const written = Buffer.from(randomAnswer(shape, choose));
      const times = choose(4);
      const bytes = mutated(written, choose, times);
      // Other bytes are never scanned.
      if (!isUtf8(bytes)) return;
      taken.all += 1;
      const answer = parseJson(bytes.toString());
      const scanned = scan(shape, bytes);
      if (!(answer instanceof Json)) {
        expect(scanned).toBeUndefined();
        return;
      }
      const apart = read(shape, Buffer.from(takenApart(shape, answer)));
      expect(read(shape, bytes), bytes.toString()).toEqual(apart);
      if (scanned === undefined) return;
      taken.as[times === 0 ? 'written' : 'mutated'] += 1;
      expect(scanned, bytes.toString()).toEqual(apart);
      let pauses = 0;
      const often = () => {
        pauses += 1;
        return choose(20);
      };
      expect(scan(shape, bytes, often)).toEqual(scanned);
      if (pauses > 1) paused += 1;
    }),
    { numRuns: RUNS },
  );
  // Each outcome occurred often enough to prove something.
  expect(taken.as.written).toBeGreaterThan(RUNS / 10);
  expect(taken.as.mutated).toBeGreaterThan(RUNS / 20);
  expect(taken.all - taken.as.written - taken.as.mutated).toBeGreaterThan(RUNS / 10);
  expect(paused).toBeGreaterThan(RUNS / 10);
});

test('a leaf is taken exactly if its type allows what JSON.parse makes of it', () => {
  const taken = { yes: 0, no: 0 };
  fc.assert(
    fc.property(fc.gen(), (g) => {
      const choose: Choose = (below) => g(fc.nat, below - 1);
      const shape = { ...(randomShape(choose, 0) as LeafShape), nullable: false };
      const other = choose(2) === 0 ? shape : (randomShape(choose, 0) as LeafShape);
      const list = `[${randomAnswer({ ...other, nullable: false }, choose)}]`;
      const bytes = mutated(Buffer.from(list), choose, choose(3)).subarray(1, -1);
      const text = bytes.toString();
      if (!isUtf8(bytes) || text.trim() !== text || text[0] === BYTE_ORDER_MARK) return;
      const expected = leafText(shape, text);
      taken[expected === undefined ? 'no' : 'yes'] += 1;
      const answer = read(shape, bytes);
      expect(typeof answer === 'object' ? answer.text : undefined, text).toBe(expected);
    }),
    { numRuns: RUNS },
  );
  expect(Math.min(taken.yes, taken.no)).toBeGreaterThan(RUNS / 10);
});

test('an answer with white space is taken as bytes too', () => {
  const taken = { asWritten: 0, mutated: 0, all: 0 };
  fc.assert(
    fc.property(fc.gen(), (g) => {
      const choose: Choose = (below) => g(fc.nat, below - 1);
      const shape = { ...randomObject(choose, 3), nullable: false };
      const answer = parseJson(randomAnswer(shape, choose)) as Json;
      const times = choose(3);
      const bytes = mutated(Buffer.from(indented(answer, choose)), choose, times);
      if (!isUtf8(bytes)) return;
      taken.all += 1;
      const scanned = scan(shape, atOnce(withoutSpace(bytes)));
      if (scanned === undefined) return;
      taken[times === 0 ? 'asWritten' : 'mutated'] += 1;
      const general = read(shape, bytes) as { text: string; errors: unknown[] };
      expect(compact(scanned), bytes.toString()).toEqual(compact(general));
    }),
    { numRuns: RUNS },
  );
  expect(taken.asWritten).toBeGreaterThan(RUNS / 10);
  expect(taken.mutated).toBeGreaterThan(RUNS / 20);
  expect(taken.all - taken.asWritten - taken.mutated).toBeGreaterThan(RUNS / 10);
});

test.each(['[1 2]', '["a" "b"]', '[tr ue]', '{"a" "b"}', '[1 ,, 2]', '[- 1]'])(
  'values that white space separates are not joined: %s',
  (value) => {
    const shape = objectShape({ nullable: false, type: 'T!' }, [
      { key: 'a', shape: { kind: 'any', nullable: true, type: 'T' }, isSilent: false },
    ]);
    const take = (text: string) => scan(shape, atOnce(withoutSpace(Buffer.from(text))));
    expect(take(`{ "a": [1, 2] }`)).toBeDefined();
    expect(take(`{ "a": ${value} }`)).toBeUndefined();
  },
);

test.each(['string', 'id', 'int', 'float', 'boolean', 'any'] as const)(
  'null is not accepted as %s where a value is required',
  (kind) => {
    const shape: Shape = { kind, nullable: false, type: 'T!' };
    expect(scan(shape, Buffer.from('null'))).toBeUndefined();
  },
);

/** @param pauses returns in how many bytes to pause next; default: never */
function scan(
  shape: Shape,
  bytes: Buffer,
  pauses: () => number = () => Infinity,
): { text: string; errors: unknown[] } | undefined {
  const tape = new Tape();
  const scanOn = scanner(shape);
  let end = PAUSED;
  for (tape.pauseAt = pauses(); end === PAUSED; tape.pauseAt += pauses()) {
    end = scanOn(bytes, 0, tape);
  }
  return end === bytes.length ? atOnce(textOf(bytes, tape)) : undefined;
}

function* textOf(bytes: Buffer, tape: Tape): Pausable<{ text: string; errors: unknown[] }> {
  const { bytes: text } = yield* cut(bytes, [0, bytes.length], tape, []);
  return { text: text.toString(), errors: [] };
}

function read(shape: Shape, bytes: Buffer) {
  const json = parseJson(new TextDecoder().decode(bytes));
  if (json === undefined || json === 'too deep') return json;
  const { parts, errors } = atOnce(readValue(shape, json, []));
  return { text: parts?.map(String).join(''), errors };
}

/** Writes an answer so that no object of a shape has the expected form. */
function takenApart(shape: FieldShape['shape'], value: Json): string {
  if (shape.kind === 'list' && value.kind === 'list') {
    return `[${Array.from(value.elements(), (element) => takenApart(shape.of, element)).join(',')}]`;
  }
  if (shape.kind === 'abstract' && value.kind === 'object') {
    const known = shape.of(value.get(TYPE_KEY)?.string ?? '');
    return known ? takenApart(known, value) : value.raw;
  }
  if (shape.kind !== 'object' || value.kind !== 'object') return value.raw;
  const shapes = new Map(shape.fields.map((field) => [field.sentKey ?? field.key, field.shape]));
  const members = Array.from(value.members(), ([key, member]) => {
    const field = shapes.get(key);
    return `${JSON.stringify(key)}:${field ? takenApart(field, member) : member.raw}`;
  });
  return `{${['"_rsUnknown":[]', ...members.toReversed()].join(',')}}`;
}

/** What is served of a leaf; undefined if its type does not allow it. */
function leafText({ kind, values, globalIdOf }: LeafShape, text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  expect(globalIdOf).toBeUndefined();
  const isWhole = Number.isInteger(value) || /^-?\d+$/.test(text);
  const allowed = {
    string: typeof value === 'string',
    id: typeof value === 'string' || isWhole,
    int: typeof value === 'number' && (value | 0) === value,
    float: typeof value === 'number',
    boolean: typeof value === 'boolean',
    enum: values?.has(value as string) === true,
    any: value !== null,
  };
  if (!allowed[kind]) return undefined;
  return kind === 'id' && typeof value === 'number' ? `"${text}"` : text;
}

const BYTE_ORDER_MARK = '\ufeff';

/** As some servers write it: indented here and there. */
function indented(value: Json, choose: Choose): string {
  const space = () => ['', '', ' ', '\n  ', '\r\n\t'][choose(5)]!;
  const spaced = (open: string, members: readonly string[], close: string) =>
    `${space()}${open}${members.map((member) => `${space()}${member}`).join(`${space()},`)}${space()}${close}${space()}`;
  if (value.kind === 'list') {
    return spaced(
      '[',
      Array.from(value.elements(), (element) => indented(element, choose)),
      ']',
    );
  }
  if (value.kind !== 'object') return value.raw;
  const members = Array.from(
    value.members(),
    ([key, member]) => `${JSON.stringify(key)}${space()}:${space()}${indented(member, choose)}`,
  );
  return spaced('{', members, '}');
}

/** What is passed on as it came, a custom scalar, may have lost its white space. */
function compact({ text, errors }: { text: string; errors: unknown[] }) {
  const print = (value: Json): string => {
    if (value.kind === 'list') return `[${Array.from(value.elements(), print).join(',')}]`;
    if (value.kind !== 'object') return value.raw;
    return `{${Array.from(value.members(), ([key, member]) => `${JSON.stringify(key)}:${print(member)}`).join(',')}}`;
  };
  return { text: print(parseJson(text) as Json), errors };
}
