import {
  matches,
  scanBoolean,
  scanDigits,
  scanNull,
  scanNumber,
  scanScalar,
  scanString,
} from '../json.ts';
import { STEP } from '../pausable.ts';
import { globalIdJson } from './global-id.ts';
import {
  TYPE_KEY,
  type FieldShape,
  type LeafShape,
  type ObjectShape,
  type Shape,
} from './shape.ts';
import { PAUSED, type Scan, type Tape } from './tape.ts';

export interface Marks {
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
 * were selected. `readValue` (read.ts) looks into every other value, and scans what is inside of it.
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
  if (shape.kind === 'placeholder' || deferred) return NEVER;
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

/** A custom scalar is passed on whatever it is, except null. */
function scanAny(bytes: Uint8Array, at: number): number {
  return bytes[at] === 110 ? -1 : scanAnyWithin(MAX_SCANNED_LEVELS, at + STEP, bytes, at);
}

/** Values that are deeper, or end behind a STEP, are taken as they are in a document that was checked with pauses. */
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
