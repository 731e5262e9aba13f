import {
  matches,
  scanBoolean,
  scanDigits,
  scanNumber,
  scanScalar,
  scanString,
} from '../json-grammar.ts';
import { globalIdJson } from './global-id.ts';
import type { LeafShape } from './shape.ts';
import type { Scan, Tape } from './tape.ts';

/** Makes a function that scans a leaf that is not null. */
export function leafScanner(shape: LeafShape): Scan {
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
  return bytes[at] === 110 ? -1 : scanAnyWithin(MAX_SCANNED_LEVELS, bytes, at);
}

/** Deeper values are taken as they are in a document that was checked, which may have 500 levels. */
const MAX_SCANNED_LEVELS = 50;

function scanAnyWithin(levels: number, bytes: Uint8Array, at: number): number {
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
    end = scanAnyWithin(levels - 1, bytes, end);
    if (end < 0) return -1;
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
