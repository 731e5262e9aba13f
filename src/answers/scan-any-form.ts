import { STEP, type Pausable } from '../pausable.ts';
import { matches, scanString } from './scan-leaf.ts';
import { objectShape, TYPE_KEY, type FieldShape, type ObjectShape, type Shape } from './shape.ts';
import { PAUSED, Tape, type Scan } from './tape.ts';
import { withoutSpace } from './without-space.ts';

/** How the bytes of an answer become a value. */
export interface AnswerScan<T> {
  /** Scans the whole answer. */
  readonly scan: Scan;
  /** Makes the value of an answer that was scanned. Returns undefined if it has to be read in general all the same. */
  readonly take: (bytes: Buffer, tape: Tape) => Pausable<T | undefined>;
  /** Of the answer; missing keys are left to the scan. */
  readonly shape: ObjectShape;
}

/**
 * Makes a function that scans an answer as it came and, if that fails, in the form that scanners take: without white
 * space, with its keys in the order of the selections. So a service that indents its JSON, or orders its keys in
 * another way, need not be read value by value. The function returns undefined for an answer that does not match.
 *
 * The conversion checks nothing that the scan checks. It only moves bytes and never changes them.
 */
export function scanInAnyForm<T>({
  scan,
  take,
  shape,
}: AnswerScan<T>): (bytes: Buffer) => Pausable<T | undefined> {
  // Most of such answers have to be read in general anyway.
  const write = isFilledInLater(shape) ? undefined : objectWriter(shape);
  // For answers that are scanned without a pause, so that no other answer can use it meanwhile.
  const shared = new Tape();
  return function* scanned(bytes) {
    const tape = bytes.length > STEP ? new Tape() : shared;
    const found = yield* scanAs(bytes, tape);
    if (found !== undefined || !write) return found;
    const compact = yield* withoutSpace(bytes);
    const foundInOrder = compact === bytes ? undefined : yield* scanAs(compact, tape);
    if (foundInOrder !== undefined) return foundInOrder;
    if (yield* hasErrors(compact)) return undefined;
    const sorted = { bytes: Buffer.allocUnsafeSlow(compact.length), at: 0, pauseAt: STEP };
    if ((yield* write(compact, 0, sorted)) !== compact.length) return undefined;
    // A repeated key makes `write` fail, so equal lengths mean that every byte was written.
    return sorted.at === compact.length && !sorted.bytes.equals(compact)
      ? yield* scanAs(sorted.bytes, tape)
      : undefined;
  };

  function* scanAs(bytes: Buffer, tape: Tape): Pausable<T | undefined> {
    tape.reset();
    let end = scan(bytes, 0, tape);
    while (end === PAUSED) {
      yield;
      tape.pauseAt += STEP;
      end = scan(bytes, 0, tape);
    }
    return end === bytes.length ? yield* take(bytes, tape) : undefined;
  }
}

/** Whether an answer has errors, so that it has to be read in general, whatever its form. @param compact without space */
function* hasErrors(compact: Buffer): Pausable<boolean> {
  if (matches(compact, 0, ERRORS_FIRST)) return true;
  if (!matches(compact, 0, DATA_FIRST)) return false;
  const end = yield* endOf(compact, { at: DATA_FIRST.length, depth: 0 });
  return end >= 0 && matches(compact, end, ERRORS_NEXT);
}

const ERRORS_FIRST = Buffer.from('{"errors":');
const DATA_FIRST = Buffer.from('{"data":');
const ERRORS_NEXT = Buffer.from(',"errors":');

/** Whether another request, or a later part of the answer, has to complete the answer, or a part of it is refused. */
function isFilledInLater(shape: FieldShape['shape']): boolean {
  switch (shape.kind) {
    case 'placeholder':
      return true;
    case 'list':
      return shape.refusal !== undefined || isFilledInLater(shape.of);
    case 'object':
      if (shape.refusal) return true;
      return shape.fields.some(
        ({ shape: field, deferred }) => deferred !== undefined || isFilledInLater(field),
      );
    default:
      return false;
  }
}

interface Sorted {
  readonly bytes: Buffer;
  at: number;
  pauseAt: number;
}

/** Writes the value that begins at `at`. @returns its end; -1 if it does not match the shape */
type Write = (bytes: Buffer, at: number, sorted: Sorted) => Pausable<number>;

/** Undefined for a value that is copied as it is. */
function writerOf(shape: FieldShape['shape']): Write | undefined {
  switch (shape.kind) {
    case 'object':
      return objectWriter(shape);
    case 'list':
      return listWriter(shape.of);
    case 'abstract': {
      const writers = new Map<string, Write>();
      return function* writeAbstract(bytes, at, sorted) {
        if (bytes[at] !== 123) return copyValue(bytes, at, sorted);
        const name = yield* typeIn(bytes, at);
        const known = name === undefined ? undefined : (writers.get(name) ?? shape.of(name));
        if (!known || name === undefined) return -1;
        const write =
          typeof known === 'function'
            ? known
            : objectWriter(objectShape(known, [TYPE_FIELD, ...known.fields]));
        writers.set(name, write);
        return yield* write(bytes, at, sorted);
      };
    }
    default:
      return undefined;
  }
}

const TYPE_FIELD: FieldShape = {
  key: TYPE_KEY,
  shape: { kind: 'string', nullable: false, type: '' },
  isSilent: true,
};

/** Finds the type name of an object, whatever the order of its keys. */
function* typeIn(bytes: Buffer, open: number): Pausable<string | undefined> {
  for (let at = open + 1; ; at += 1) {
    const colon = scanString(bytes, at);
    if (colon < 0) return undefined;
    const end = yield* endOf(bytes, { at: colon + 1, depth: 0 });
    if (bytes.toString('latin1', at + 1, colon - 1) === TYPE_KEY) {
      return bytes.toString('latin1', colon + 2, end - 1);
    }
    if (bytes[end] !== 44) return undefined;
    at = end;
  }
}

function listWriter(of: Shape): Write {
  const write = writerOf(of);
  return function* writeList(bytes, at, sorted) {
    if (bytes[at] !== 91 || bytes[at + 1] === 93) return copyValue(bytes, at, sorted);
    let end = at;
    do {
      copy(bytes, end, end + 1, sorted);
      const start = end + 1;
      end = write ? yield* write(bytes, start, sorted) : copyValue(bytes, start, sorted);
      if (end < 0) return -1;
      if (sorted.at > sorted.pauseAt) {
        sorted.pauseAt = sorted.at + STEP;
        yield;
      }
    } while (bytes[end] === 44);
    return bytes[end] === 93 ? copy(bytes, end, end + 1, sorted) : -1;
  };
}

function objectWriter({ fields }: ObjectShape): Write {
  // Made when the first answer in another form arrives: most services send none.
  let writers: readonly (Write | undefined)[] | undefined;
  const places = new Map(fields.map(({ key, sentKey = key }, place) => [sentKey, place]));
  const isWhole = fields.every(({ shape, deferred }) => shape.kind !== 'placeholder' && !deferred);
  return function* writeObject(bytes, open, sorted) {
    if (bytes[open] !== 123) return copyValue(bytes, open, sorted);
    if (!isWhole) return -1;
    writers ??= fields.map(({ shape }) => writerOf(shape));
    // The start of each key that is out of order. Keys in order are written at once.
    const later: number[] = [];
    let isFirst = true;
    let next = 0;
    let at = open;
    do {
      const key = at + 1;
      const colon = scanString(bytes, key);
      if (colon < 0 || bytes[colon] !== 58) return -1;
      const place = places.get(bytes.toString('latin1', key + 1, colon - 1));
      if (place === undefined || later[place] !== undefined || place < next) return -1;
      if (place === next && later.length === 0) {
        const write = writers[place];
        copyKey(bytes, [key, colon + 1], sorted, isFirst);
        at = write ? yield* write(bytes, colon + 1, sorted) : copyValue(bytes, colon + 1, sorted);
        isFirst = false;
        next += 1;
      } else {
        later[place] = key;
        const passed = { at: colon + 1, depth: 0 };
        at = endWithin(bytes, passed, at + STEP);
        if (at === PAUSED) at = yield* endOf(bytes, passed);
      }
      if (at < 0) return -1;
    } while (bytes[at] === 44);
    if (bytes[at] !== 125) return -1;
    for (; next < later.length; next += 1) {
      const key = later[next];
      if (key === undefined) continue;
      const value = scanString(bytes, key) + 1;
      const write = writers[next];
      copyKey(bytes, [key, value], sorted, isFirst);
      const end = write ? yield* write(bytes, value, sorted) : copyValue(bytes, value, sorted);
      if (end < 0) return -1;
      isFirst = false;
    }
    return copy(bytes, at, at + 1, sorted);
  };
}

/** Copies a key with its colon, and the separator before it. */
function copyKey(
  bytes: Buffer,
  [key, value]: readonly [number, number],
  sorted: Sorted,
  isFirst: boolean,
): void {
  sorted.bytes[sorted.at] = isFirst ? 123 : 44;
  sorted.at += 1;
  copy(bytes, key, value, sorted);
}

function copyValue(bytes: Buffer, at: number, sorted: Sorted): number {
  const end = endWithin(bytes, { at, depth: 0 }, Infinity);
  return end < 0 ? -1 : copy(bytes, at, end, sorted);
}

function copy(bytes: Buffer, start: number, end: number, sorted: Sorted): number {
  if (sorted.at + end - start > sorted.bytes.length) return -1;
  sorted.at += bytes.copy(sorted.bytes, sorted.at, start, end);
  return end;
}

/** How far a value was passed over. */
interface Passed {
  at: number;
  depth: number;
}

/** Returns the end of any value; -1 if the text ends before. */
function* endOf(bytes: Buffer, passed: Passed): Pausable<number> {
  for (;;) {
    const end = endWithin(bytes, passed, passed.at + STEP);
    if (end !== PAUSED) return end;
    yield;
  }
}

/** Does the same up to a place. @returns PAUSED if the end is farther; `passed` is where it goes on then */
function endWithin(bytes: Buffer, passed: Passed, until: number): number {
  let { depth } = passed;
  for (let { at } = passed; at < bytes.length; at += 1) {
    const byte = bytes[at]!;
    if (byte === 34) {
      at = scanString(bytes, at) - 1;
      if (at < 0) return -1;
    } else if (byte === 123 || byte === 91) depth += 1;
    else if (byte === 125 || byte === 93) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (byte === 44) {
      if (depth === 0) return at;
      if (at > until) {
        passed.at = at;
        passed.depth = depth;
        return PAUSED;
      }
    }
  }
  return -1;
}
