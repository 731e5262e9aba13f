import {
  matches,
  scanBoolean,
  scanDigits,
  scanNull,
  scanNumber,
  scanScalar,
  scanString,
} from '../json.ts';
import { STEP, type Pausable } from '../pausable.ts';
import { globalIdJson } from './global-id.ts';
import {
  TYPE_KEY,
  type FieldShape,
  type LeafShape,
  type ObjectShape,
  type Shape,
} from './shape.ts';

interface Marks {
  /** Lists whose elements are records. */
  readonly lists?: ReadonlySet<Shape>;
  /** Fields whose start and end are noted. */
  readonly noted?: readonly FieldShape[];
  /** How many values identify a record together. Default: 1. */
  readonly idValues?: number;
}

/**
 * Makes a function that checks the bytes of an answer against a shape without creating objects.
 *
 * It accepts only what passes on unchanged except for the cuts: compact JSON with the keys in the order in which they
 * were selected. `readValue` (read.ts) reads every other value, and scans the values inside it.
 */
export function scanner(shape: Shape, marks: Marks = {}): Scan {
  const scan = scannerOf(shape, marks);
  if (!shape.nullable || scan === NEVER) return scan;
  return (bytes, at, tape) => (bytes[at] === 110 ? scanNull(bytes, at) : scan(bytes, at, tape));
}

/** Scans a value that is refused, or filled in later, in all or in part. */
export const NEVER: Scan = () => -1;

function scannerOf(shape: Shape, marks: Marks): Scan {
  switch (shape.kind) {
    case 'list': {
      const of = scanner(shape.of, marks);
      if (shape.refusal || of === NEVER) return NEVER;
      return listScanner(of, marks.lists?.has(shape) ? Math.max(1, marks.idValues ?? 1) : 0);
    }
    case 'object':
      return objectScanner(shape, marks);
    case 'abstract': {
      const scanners = new Map<string, Scan>();
      return (bytes, at, tape) => {
        if (!matches(bytes, at, TYPE_HEAD)) return -1;
        const start = at + TYPE_HEAD.length;
        const end = scanString(bytes, start);
        if (end < 0) return -1;
        const name = (bytes as Buffer).toString('latin1', start + 1, end - 1);
        let scan = scanners.get(name);
        if (!scan) {
          const known = shape.of(name);
          if (!known) return -1;
          scan = objectScanner(known, marks, true);
          scanners.set(name, scan);
        }
        return scan(bytes, at, tape);
      };
    }
    default:
      return leafScanner(shape);
  }
}

/** @param idValues of each element, if the elements are records; otherwise 0 */
function listScanner(of: Scan, idValues: number): Scan {
  if (idValues > 0) return recordsScanner(of, idValues);
  return (bytes, at, tape) => {
    const { places } = tape;
    let end = at + 1;
    if (places.length > 0) end = places.pop()!;
    else {
      if (bytes[at] !== 91) return -1;
      if (bytes[end] === 93) return end + 1;
    }
    for (;;) {
      const start = end;
      end = of(bytes, start, tape);
      if (end < 0) {
        if (end === PAUSED) places.push(start);
        return end;
      }
      const byte = bytes[end];
      end += 1;
      if (byte === 93) return end;
      if (byte !== 44) return -1;
      if (end > tape.pauseAt) {
        places.push(end);
        return PAUSED;
      }
    }
  };
}

function recordsScanner(of: Scan, idValues: number): Scan {
  return (bytes, at, tape) => {
    const { places } = tape;
    let end = at + 1;
    let count = 0;
    let idsBefore = tape.idCount;
    if (places.length > 0) {
      idsBefore = places.pop()!;
      count = places.pop()!;
      end = places.pop()!;
    } else {
      if (bytes[at] !== 91) return -1;
      if (bytes[end] === 93) {
        tape.counts.push(0);
        return end + 1;
      }
    }
    for (;;) {
      const start = end;
      end = of(bytes, start, tape);
      if (end < 0) {
        if (end === PAUSED) places.push(start, count, idsBefore);
        return end;
      }
      tape.addRecord(start, end);
      if (tape.idCount - idsBefore !== idValues) tape.withoutId(idsBefore, idValues);
      idsBefore = tape.idCount;
      count += 1;
      const byte = bytes[end];
      end += 1;
      if (byte === 93) break;
      if (byte !== 44) return -1;
      if (end > tape.pauseAt) {
        places.push(end, count, idsBefore);
        return PAUSED;
      }
    }
    tape.counts.push(count);
    return end;
  };
}

/** @param hasType whether `_rsType` comes before the fields */
function objectScanner({ fields, refusal }: ObjectShape, marks: Marks, hasType = false): Scan {
  if (refusal) return NEVER;
  const visible = fields.findIndex(({ isSilent }) => !isSilent);
  // The fields of a batch have one shape.
  const made = new Map<Shape, Scan>();
  const scanOf = (shape: Shape) => {
    const scan = made.get(shape) ?? scanner(shape, marks);
    made.set(shape, scan);
    return scan;
  };
  const steps = fields.map((field, i) =>
    fieldScanner(field, {
      isFirst: i === 0 && !hasType,
      isLeading: visible < 0 || i < visible,
      note: marks.noted?.indexOf(field) ?? -1,
      scanOf,
    }),
  );
  if (hasType) steps.unshift(scanType);
  if (steps.length === 0 || steps.includes(NEVER)) return NEVER;
  return (bytes, at, tape) => {
    const { places } = tape;
    let end = at;
    let i = 0;
    if (places.length > 0) {
      i = places.pop()!;
      end = places.pop()!;
    }
    for (; i < steps.length; i += 1) {
      const start = end;
      end = steps[i]!(bytes, start, tape);
      if (end < 0) {
        if (end === PAUSED) places.push(start, i);
        return end;
      }
    }
    return bytes[end] === 125 ? end + 1 : -1;
  };
}

const TYPE_HEAD = Buffer.from(`{"${TYPE_KEY}":`);

function scanType(bytes: Uint8Array, at: number, tape: Tape): number {
  const end = scanString(bytes, at + TYPE_HEAD.length);
  return end < 0 ? -1 : cutLeading(bytes, at, end, tape);
}

/** Cuts out a field that no visible field precedes, with the comma behind it, if there is one. */
function cutLeading(bytes: Uint8Array, at: number, end: number, tape: Tape): number {
  tape.cuts.push(at + 1, bytes[end] === 44 ? end + 1 : end);
  tape.inserts.push('');
  return end;
}

function fieldScanner(
  { key, sentKey = key, isSilent, idOf, deferred, shape }: FieldShape,
  {
    isFirst,
    isLeading,
    note,
    scanOf,
  }: {
    isFirst: boolean;
    isLeading: boolean;
    note: number;
    scanOf: (shape: Shape) => Scan;
  },
): Scan {
  const open = `${isFirst ? '{' : ','}${JSON.stringify(sentKey)}:`;
  const head = Buffer.from(open);
  const length = head.length;
  if (shape.kind === 'placeholder' || shape.kind === 'refused' || deferred) return NEVER;
  if (shape.kind === 'typename') {
    const all = Buffer.from(open + JSON.stringify(shape.upstream));
    const isRenamed = shape.upstream !== shape.served;
    const served = JSON.stringify(shape.served);
    return (bytes, at, { cuts, inserts, noted }) => {
      if (!matches(bytes, at, all)) return -1;
      const end = at + all.length;
      if (note >= 0) {
        noted[2 * note] = at + length;
        noted[2 * note + 1] = end;
      }
      if (isRenamed) {
        cuts.push(at + length, end);
        inserts.push(served);
      }
      return end;
    };
  }
  const value = scanOf(shape);
  if (value === NEVER) return NEVER;
  const scan = sentKey === key ? value : withKey(key, length, value);
  if (idOf === undefined && !isSilent && note < 0) {
    return (bytes, at, tape) => (matches(bytes, at, head) ? scan(bytes, at + length, tape) : -1);
  }
  return (bytes, at, tape) => {
    if (!matches(bytes, at, head)) return -1;
    const { places } = tape;
    const start = at + length;
    const cutsBefore = places.length > 0 ? places.pop()! : tape.cuts.length;
    const end = scan(bytes, start, tape);
    if (end < 0) {
      if (end === PAUSED) places.push(cutsBefore);
      return end;
    }
    if (idOf !== undefined && bytes[start] !== 110) tape.addId(start, end, idOf);
    if (note >= 0) {
      tape.noted[2 * note] = start;
      tape.noted[2 * note + 1] = end;
    }
    if (!isSilent) return end;
    tape.cuts.length = cutsBefore;
    tape.inserts.length = cutsBefore / 2;
    if (isLeading) return cutLeading(bytes, at, end, tape);
    tape.cuts.push(at, end);
    tape.inserts.push('');
    return end;
  };
}

/** Replaces the key before a value. @param length of the bytes before the value: a separator, the key and a colon */
function withKey(key: string, length: number, scan: Scan): Scan {
  const served = JSON.stringify(key);
  return (bytes, at, tape) => {
    // It may go on with a value whose key it has replaced before.
    if (tape.places.length === 0) {
      tape.cuts.push(at - length + 1, at - 1);
      tape.inserts.push(served);
    }
    return scan(bytes, at, tape);
  };
}

/** Makes a function that scans a leaf that is not null. */
function leafScanner(shape: LeafShape): Scan {
  return shape.globalIdOf === undefined ? plainScanner(shape) : globalIdScanner(shape);
}

function plainScanner({ kind, values }: LeafShape): Scan {
  switch (kind) {
    case 'string':
      return scanString;
    case 'id':
      return scanId;
    case 'int':
      return scanInt;
    case 'float':
      return scanNumber;
    case 'boolean':
      return scanBoolean;
    case 'any':
      return scanAny;
    case 'enum':
      return enumScanner(values!);
  }
}

function globalIdScanner(shape: LeafShape): Scan {
  const scan = plainScanner(shape);
  return (bytes, at, tape) => {
    const { cuts, inserts } = tape;
    const before = cuts.length;
    const end = scan(bytes, at, tape);
    if (end < 0) return -1;
    cuts.length = before;
    inserts.length = before / 2;
    cuts.push(at, end);
    inserts.push(globalIdJson(shape, (bytes as Buffer).toString('utf8', at, end)));
    return end;
  };
}

/** An id may be a whole number, which is served as the string of its digits (specification, 3.5.5). */
function scanId(bytes: Uint8Array, at: number, { cuts, inserts }: Tape): number {
  if (bytes[at] === 34) return scanString(bytes, at);
  let end = scanDigits(bytes, at);
  if (end >= 0 && isNumberByte(bytes[end]!)) {
    end = scanNumber(bytes, at);
    if (!Number.isInteger(numberIn(bytes, at, end))) return -1;
  }
  if (end < 0) return -1;
  cuts.push(at, at, end, end);
  inserts.push('"', '"');
  return end;
}

function scanInt(bytes: Uint8Array, at: number): number {
  let end = scanDigits(bytes, at);
  if (end >= 0 && end - at <= 9 && !isNumberByte(bytes[end]!)) return end;
  end = scanNumber(bytes, at);
  const value = numberIn(bytes, at, end);
  return (value | 0) === value ? end : -1;
}

function numberIn(bytes: Uint8Array, at: number, end: number): number {
  return end < 0 ? NaN : Number((bytes as Buffer).toString('latin1', at, end));
}

function isNumberByte(byte: number): boolean {
  return byte === 46 || byte === 101 || byte === 69;
}

/** A custom scalar is passed on unchecked, except null. */
function scanAny(bytes: Uint8Array, at: number): number {
  return bytes[at] === 110 ? -1 : scanAnyWithin(MAX_SCANNED_LEVELS, at + STEP, bytes, at);
}

/**
 * Deeper values, and values that end behind a STEP, are not scanned: `readValue` copies them from a document that was
 * checked with pauses.
 */
const MAX_SCANNED_LEVELS = 50;

function scanAnyWithin(levels: number, until: number, bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!;
  if (byte !== 91 && byte !== 123) return scanScalar(bytes, at);
  if (levels === 0) return -1;
  const close = byte + 2;
  let end = at + 1;
  if (bytes[end] === close) return end + 1;
  for (;;) {
    if (byte === 123) {
      end = scanString(bytes, end);
      if (end < 0 || bytes[end] !== 58) return -1;
      end += 1;
    }
    end = scanAnyWithin(levels - 1, until, bytes, end);
    if (end < 0 || end > until) return -1;
    if (bytes[end] === close) return end + 1;
    if (bytes[end] !== 44) return -1;
    end += 1;
  }
}

function enumScanner(values: ReadonlySet<string>): Scan {
  const known = Array.from(values, (value) => Buffer.from(`"${value}"`));
  return (bytes, at) => {
    for (const value of known) if (matches(bytes, at, value)) return at + value.length;
    const end = scanString(bytes, at);
    // With escapes.
    return end >= 0 && values.has(JSON.parse((bytes as Buffer).toString('utf8', at, end)) as string)
      ? end
      : -1;
  };
}

/**
 * Checks the value that begins at a byte, and writes notes to the tape.
 *
 * A list pauses behind `Tape.pauseAt`: it and everything around it return PAUSED. Called again with the same arguments,
 * they go on where they were, which the tape knows.
 *
 * @returns the end of the value; -1 if the bytes do not match; PAUSED
 */
export type Scan = (bytes: Uint8Array, at: number, tape: Tape) => number;

export const PAUSED = -2;

/**
 * The notes of a scan. One tape is used for all scans of a scanner, so its contents must be copied to be kept. Its
 * arrays keep their size: emptied, they would have to grow again in each scan.
 */
export class Tape {
  /** Start and end of each part that is cut out or replaced, in the order of the bytes. */
  readonly cuts: number[] = [];
  /** What replaces each of them. */
  readonly inserts: string[] = [];
  /** Start and end of each noted field, by its index in `Marks.noted`. Older notes stay until they are overwritten. */
  readonly noted: number[] = [];
  /** The number of records of each marked list. */
  readonly counts: number[] = [];
  /** Where `data` begin in an answer, and where `extensions` begin and end; -1: not found so far. */
  dataAt = -1;
  extensionsAt = -1;
  extensionsEnd = -1;
  /** The byte behind which a list pauses. */
  pauseAt = STEP;
  /** Where the lists and objects around a pause go on, the outermost one last; empty while nothing is paused. */
  readonly places: number[] = [];
  #records = NO_NUMBERS;
  #recordCount = 0;
  #ids = NO_NUMBERS;
  #types: string[] = [];
  #idCount = 0;

  /** Records of all marked lists together. */
  get recordCount(): number {
    return this.#recordCount;
  }

  get idCount(): number {
    return this.#idCount;
  }

  /** Copies start and end of each record. */
  copyRecords(): number[] {
    return firstOf(this.#records, 2 * this.#recordCount);
  }

  /**
   * Copies start and end of the id of each record, as it was written, or of each of the values that identify it; 0 and 0
   * for a record without them.
   */
  copyIds(): number[] {
    return firstOf(this.#ids, 2 * this.#idCount);
  }

  /** The type of a record, by the index of its id; empty for one without an id. */
  typeOf(id: number): string {
    return this.#types[id]!;
  }

  addRecord(start: number, end: number): void {
    const at = 2 * this.#recordCount++;
    if (at === this.#records.length) this.#records = doubled(this.#records);
    this.#records[at] = start;
    this.#records[at + 1] = end;
  }

  addId(start: number, end: number, type: string): void {
    const record = this.#idCount++;
    if (2 * record === this.#ids.length) this.#ids = doubled(this.#ids);
    this.#ids[2 * record] = start;
    this.#ids[2 * record + 1] = end;
    this.#types[record] = type;
  }

  /** Replaces the notes of a record that lacks one of these values. @param before the count before the record */
  withoutId(before: number, values: number): void {
    this.#idCount = before;
    for (let value = 0; value < values; value += 1) this.addId(0, 0, '');
  }

  reset(): void {
    this.pauseAt = STEP;
    this.dataAt = this.extensionsAt = this.extensionsEnd = -1;
    this.places.length = 0;
    if (this.cuts.length > 0) this.cuts.length = this.inserts.length = 0;
    if (this.counts.length > 0) this.counts.length = 0;
    this.#recordCount = this.#idCount = 0;
  }
}

const INITIAL_SIZE = 256;
const NO_NUMBERS: Int32Array<ArrayBuffer> = new Int32Array();

/** Not a typed array: creating one takes about 1 us, because its memory is outside the V8 heap. */
function firstOf(numbers: Int32Array, count: number): number[] {
  const first = Array<number>(count);
  for (let i = 0; i < count; i += 1) first[i] = numbers[i]!;
  return first;
}

function doubled(full: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(Math.max(INITIAL_SIZE, 2 * full.length));
  larger.set(full);
  return larger;
}

/**
 * Whether this part can refer to the received bytes instead of a copy: nothing is cut out of it, and the extensions,
 * which stay in memory with it, are not larger than it is.
 */
export function isKeptInPlace([start, end]: readonly [number, number], tape: Tape): boolean {
  const { cuts, extensionsAt, extensionsEnd } = tape;
  for (let i = 0; i < cuts.length; i += 2) {
    if (cuts[i]! > end) break;
    if (cuts[i]! >= start) return false;
  }
  return extensionsEnd - extensionsAt <= end - start;
}

/**
 * Copies a part of the bytes and applies the cuts.
 *
 * @param places starts and ends in the bytes, in turn and in ascending order
 * @returns the copy, and where these places are in it
 */
export function* cut(
  bytes: Buffer,
  [start, end]: readonly [number, number],
  { cuts, inserts }: Pick<Tape, 'cuts' | 'inserts'>,
  places: readonly number[],
): Pausable<{ readonly bytes: Buffer; readonly at: number[] }> {
  let first = 0;
  while (first < cuts.length && cuts[first]! < start) first += 2;
  const at: number[] = [];
  let next = first;
  let shift = -start;
  // The quote behind the last digit of an id is an insert without a cut, at the very end.
  const passCuts = (until: number, isEnd: boolean) => {
    for (; next < cuts.length; next += 2) {
      const isBefore = cuts[next]! < until || (isEnd && cuts[next + 1] === until);
      if (!isBefore) return;
      shift += inserts[next / 2]!.length - (cuts[next + 1]! - cuts[next]!);
    }
  };
  for (let i = 0; i < places.length; i += 1) {
    passCuts(places[i]!, i % 2 === 1);
    at.push(places[i]! + shift);
  }
  passCuts(end, true);
  // Not from the shared pool: a part of it would keep the whole pool alive.
  const out = Buffer.allocUnsafeSlow(end + shift);
  let from = start;
  let written = 0;
  let pauseAt = start + STEP;
  for (let i = first; i < next; i += 2) {
    written += bytes.copy(out, written, from, cuts[i]);
    const insert = inserts[i / 2]!;
    if (insert !== '') written += out.write(insert, written, 'latin1');
    from = cuts[i + 1]!;
    if (from <= pauseAt) continue;
    pauseAt = from + STEP;
    yield;
  }
  bytes.copy(out, written, from, end);
  return { bytes: out, at };
}
