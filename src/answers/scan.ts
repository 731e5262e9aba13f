import { TYPE_KEY, type FieldShape, type ObjectShape, type Shape } from './shape.ts';

/**
 * Checks the bytes of an answer against a shape without making objects of them.
 *
 * It accepts only what the general reading (read.ts) would give unchanged but for the cuts: compact JSON with the
 * keys in the order in which they were asked for. Everything else it leaves to that.
 *
 * @returns where the value ends; -1 when it is anything else
 */
export type Scan = (bytes: Uint8Array, at: number, tape: Tape) => number;

/** What a scan notes on its way. One tape is used again and again: nothing of it is kept. */
export interface Tape {
  /** Start and end of each part that is left out or replaced, in the order of the bytes. */
  readonly cuts: number[];
  /** What stands in place of each of them. */
  readonly inserts: string[];
  /** Start and end of each record of the marked lists, one after the other. */
  readonly records: number[];
  /** Start and end of the id of each record, as it was written; 0 and 0 for a record without one. */
  readonly ids: number[];
  /** The type of each record; empty for one without an id. */
  readonly types: string[];
  /** How many records each marked list has. */
  readonly counts: number[];
  /** Start and end of each noted field, by its place among the notes. */
  readonly noted: number[];
}

export function createTape(): Tape {
  return { cuts: [], inserts: [], records: [], ids: [], types: [], counts: [], noted: [] };
}

export function resetTape({ cuts, inserts, records, ids, types, counts, noted }: Tape): void {
  cuts.length = 0;
  inserts.length = 0;
  records.length = 0;
  ids.length = 0;
  types.length = 0;
  counts.length = 0;
  noted.length = 0;
}

export interface Marks {
  /** The elements of these lists are records. */
  readonly lists?: ReadonlySet<Shape>;
  /** Fields whose places are noted. */
  readonly noted?: readonly FieldShape[];
}

/** A copy of a part of the bytes, with what is cut out of it. */
export function cut(
  bytes: Buffer,
  start: number,
  end: number,
  { cuts, inserts }: Pick<Tape, 'cuts' | 'inserts'>,
): Buffer {
  let first = 0;
  while (first < cuts.length && cuts[first]! < start) first += 2;
  // Behind the last digit of an id a quote is put in, and nothing is cut.
  let last = first;
  while (last < cuts.length && (cuts[last]! < end || cuts[last + 1] === end)) last += 2;
  let length = end - start;
  for (let i = first; i < last; i += 2) {
    length += inserts[i / 2]!.length - (cuts[i + 1]! - cuts[i]!);
  }
  // Of its own: a part of a shared pool would keep all of that alive.
  const out = Buffer.allocUnsafeSlow(length);
  let from = start;
  let at = 0;
  for (let i = first; i < last; i += 2) {
    at += bytes.copy(out, at, from, cuts[i]);
    const insert = inserts[i / 2]!;
    if (insert !== '') at += out.write(insert, at, 'latin1');
    from = cuts[i + 1]!;
  }
  bytes.copy(out, at, from, end);
  return out;
}

export function scanner(shape: Shape, marks: Marks = {}): Scan {
  const scan = scannerOf(shape, marks);
  if (!shape.nullable) return scan;
  return (bytes, at, tape) => (bytes[at] === 110 ? scanNull(bytes, at) : scan(bytes, at, tape));
}

function scannerOf(shape: Shape, marks: Marks): Scan {
  switch (shape.kind) {
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
      return enumScanner([...shape.values!]);
    case 'list':
      return listScanner(scanner(shape.of, marks), marks.lists?.has(shape) === true);
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
  }
}

function scanNull(bytes: Uint8Array, at: number): number {
  return bytes[at + 1] === 117 && bytes[at + 2] === 108 && bytes[at + 3] === 108 ? at + 4 : -1;
}

function scanString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 34) return -1;
  for (let end = at + 1; ; end += 1) {
    const byte = bytes[end]!;
    if (byte === 34) return end + 1;
    if (byte === 92) {
      const length = escapeLength(bytes, end);
      if (length < 0) return -1;
      end += length - 1;
    } else if (!(byte >= 32)) return -1; // A control character; or undefined, behind the end.
  }
}

function escapeLength(bytes: Uint8Array, at: number): number {
  const byte = bytes[at + 1]!;
  if (byte !== 117) {
    // " / \ b f n r t
    const isKnown = byte === 34 || byte === 47 || byte === 92 || byte === 98 || byte === 102;
    return isKnown || byte === 110 || byte === 114 || byte === 116 ? 2 : -1;
  }
  for (let i = 2; i < 6; i += 1) if (!isHexDigit(bytes[at + i]!)) return -1;
  return 6;
}

function isHexDigit(byte: number): boolean {
  return (byte >= 48 && byte <= 57) || (byte >= 97 && byte <= 102) || (byte >= 65 && byte <= 70);
}

/** A number is an id too, and is served as the string of its digits (specification, 3.5.5). */
function scanId(bytes: Uint8Array, at: number, { cuts, inserts }: Tape): number {
  if (bytes[at] === 34) return scanString(bytes, at);
  const end = scanDigits(bytes, at);
  if (end < 0 || isNumberByte(bytes[end]!)) return -1;
  cuts.push(at, at, end, end);
  inserts.push('"', '"');
  return end;
}

/** An integer of JSON: without a fraction, an exponent or a leading zero. */
function scanDigits(bytes: Uint8Array, at: number): number {
  const start = bytes[at] === 45 ? at + 1 : at;
  let end = start;
  while (bytes[end]! >= 48 && bytes[end]! <= 57) end += 1;
  return end === start || (bytes[start] === 48 && end > start + 1) ? -1 : end;
}

function scanInt(bytes: Uint8Array, at: number): number {
  const end = scanDigits(bytes, at);
  if (end < 0 || isNumberByte(bytes[end]!)) return -1;
  if (end - at <= 9) return end;
  const value = Number((bytes as Buffer).toString('latin1', at, end));
  return (value | 0) === value ? end : -1;
}

function scanNumber(bytes: Uint8Array, at: number): number {
  let end = scanDigits(bytes, at);
  if (end >= 0 && bytes[end] === 46) end = scanMore(bytes, end + 1);
  if (end >= 0 && (bytes[end] === 101 || bytes[end] === 69)) {
    const hasSign = bytes[end + 1] === 43 || bytes[end + 1] === 45;
    end = scanMore(bytes, end + (hasSign ? 2 : 1));
  }
  return end;
}

function scanMore(bytes: Uint8Array, at: number): number {
  let end = at;
  while (bytes[end]! >= 48 && bytes[end]! <= 57) end += 1;
  return end === at ? -1 : end;
}

function isNumberByte(byte: number): boolean {
  return byte === 46 || byte === 101 || byte === 69;
}

function scanBoolean(bytes: Uint8Array, at: number): number {
  if (matches(bytes, at, TRUE)) return at + 4;
  return matches(bytes, at, FALSE) ? at + 5 : -1;
}

/** A custom scalar is passed on as it is, whatever it is. */
function scanAny(bytes: Uint8Array, at: number): number {
  return scanAnyWithin(MAX_LEVELS, bytes, at);
}

/** Far from the 500 levels that are read in all; deeper ones are left to the general reading. */
const MAX_LEVELS = 50;

function scanAnyWithin(levels: number, bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!;
  if (byte === 34) return scanString(bytes, at);
  if (byte === 110) return scanNull(bytes, at);
  if (byte === 116 || byte === 102) return scanBoolean(bytes, at);
  if (byte !== 91 && byte !== 123) return scanNumber(bytes, at);
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
    end = scanAnyWithin(levels - 1, bytes, end);
    if (end < 0) return -1;
    if (bytes[end] === close) return end + 1;
    if (bytes[end] !== 44) return -1;
    end += 1;
  }
}

function enumScanner(values: readonly string[]): Scan {
  const known = values.map((value) => Buffer.from(`"${value}"`));
  return (bytes, at) => {
    for (const value of known) if (matches(bytes, at, value)) return at + value.length;
    return -1;
  };
}

function matches(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i += 1) if (bytes[at + i] !== text[i]) return false;
  return true;
}

function listScanner(of: Scan, isMarked: boolean): Scan {
  if (isMarked) return recordsScanner(of);
  return (bytes, at, tape) => {
    if (bytes[at] !== 91) return -1;
    let end = at + 1;
    if (bytes[end] === 93) return end + 1;
    for (;;) {
      end = of(bytes, end, tape);
      if (end < 0) return -1;
      const byte = bytes[end];
      end += 1;
      if (byte === 93) return end;
      if (byte !== 44) return -1;
    }
  };
}

function recordsScanner(of: Scan): Scan {
  return (bytes, at, tape) => {
    const { records, ids, types, counts } = tape;
    if (bytes[at] !== 91) return -1;
    let end = at + 1;
    let count = 0;
    if (bytes[end] === 93) {
      counts.push(0);
      return end + 1;
    }
    for (;;) {
      const start = end;
      const idsBefore = ids.length;
      end = of(bytes, end, tape);
      if (end < 0) return -1;
      records.push(start, end);
      if (ids.length === idsBefore) {
        ids.push(0, 0);
        types.push('');
      }
      count += 1;
      const byte = bytes[end];
      end += 1;
      if (byte === 93) break;
      if (byte !== 44) return -1;
    }
    counts.push(count);
    return end;
  };
}

/** @param hasType whether the type stands in front of the fields */
function objectScanner({ fields }: ObjectShape, marks: Marks, hasType = false): Scan {
  const visible = fields.findIndex(({ isSilent }) => !isSilent);
  const steps = fields.map((field, i) =>
    fieldScanner(field, {
      isFirst: i === 0 && !hasType,
      isLeading: visible < 0 || i < visible,
      note: marks.noted?.indexOf(field) ?? -1,
      marks,
    }),
  );
  if (hasType) steps.unshift(scanType);
  const [first, ...others] = steps;
  if (!first) return () => -1;
  return (bytes, at, tape) => {
    let end = first(bytes, at, tape);
    for (let i = 0; i < others.length && end >= 0; i += 1) end = others[i]!(bytes, end, tape);
    return end >= 0 && bytes[end] === 125 ? end + 1 : -1;
  };
}

const TYPE_HEAD = Buffer.from(`{"${TYPE_KEY}":`);
const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');

function scanType(bytes: Uint8Array, at: number, tape: Tape): number {
  const end = scanString(bytes, at + TYPE_HEAD.length);
  return end < 0 ? -1 : leaveOutLeading(bytes, at, end, tape);
}

/** Leaves out a field that nothing visible stands before, and the comma behind it, if there is one. */
function leaveOutLeading(bytes: Uint8Array, at: number, end: number, tape: Tape): number {
  tape.cuts.push(at + 1, bytes[end] === 44 ? end + 1 : end);
  tape.inserts.push('');
  return end;
}

function fieldScanner(
  { key, isSilent, idOf, deferred, shape }: FieldShape,
  { isFirst, isLeading, note, marks }: { isFirst: boolean; isLeading: boolean; note: number; marks: Marks },
): Scan {
  const open = `${isFirst ? '{' : ','}${JSON.stringify(key)}:`;
  const head = Buffer.from(open);
  const length = head.length;
  if (shape.kind === 'hole' || deferred) return () => -1;
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
  const scan = scanner(shape, marks);
  if (idOf === undefined && !isSilent && note < 0) {
    return (bytes, at, tape) => (matches(bytes, at, head) ? scan(bytes, at + length, tape) : -1);
  }
  return (bytes, at, tape) => {
    if (!matches(bytes, at, head)) return -1;
    const start = at + length;
    const cutsBefore = tape.cuts.length;
    const end = scan(bytes, start, tape);
    if (end < 0) return -1;
    if (idOf !== undefined && bytes[start] !== 110) {
      tape.ids.push(start, end);
      tape.types.push(idOf);
    }
    if (note >= 0) {
      tape.noted[2 * note] = start;
      tape.noted[2 * note + 1] = end;
    }
    if (!isSilent) return end;
    tape.cuts.length = cutsBefore;
    tape.inserts.length = cutsBefore / 2;
    if (isLeading) return leaveOutLeading(bytes, at, end, tape);
    tape.cuts.push(at, end);
    tape.inserts.push('');
    return end;
  };
}
