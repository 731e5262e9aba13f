import { globalIdJson } from './global-id.ts';
import type { LeafShape } from './shape.ts';
import type { Scan, Tape } from './tape.ts';

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
      return enumScanner([...values!]);
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

export function scanNull(bytes: Uint8Array, at: number): number {
  return bytes[at + 1] === 117 && bytes[at + 2] === 108 && bytes[at + 3] === 108 ? at + 4 : -1;
}

export function scanString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 34) return -1;
  for (let end = at + 1; ; end += 1) {
    const byte = bytes[end]!;
    if (byte === 34) return end + 1;
    if (byte === 92) {
      const length = escapeLength(bytes, end);
      if (length < 0) return -1;
      end += length - 1;
    } else if (!(byte >= 32)) return -1; // A control character, or undefined behind the end.
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

/** An id may be a number, which is served as the string of its digits (specification, 3.5.5). */
function scanId(bytes: Uint8Array, at: number, { cuts, inserts }: Tape): number {
  if (bytes[at] === 34) return scanString(bytes, at);
  const end = scanDigits(bytes, at);
  if (end < 0 || isNumberByte(bytes[end]!)) return -1;
  cuts.push(at, at, end, end);
  inserts.push('"', '"');
  return end;
}

/** A JSON integer without fraction, exponent and leading zeros. */
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

/** A custom scalar is passed on whatever it is, except null. */
function scanAny(bytes: Uint8Array, at: number): number {
  return bytes[at] === 110 ? -1 : scanAnyWithin(MAX_SCANNED_LEVELS, bytes, at);
}

/** Deeper values are left to the general reading, which reads up to 500 levels. */
const MAX_SCANNED_LEVELS = 50;

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

function enumScanner(values: readonly string[]): (bytes: Uint8Array, at: number) => number {
  const known = values.map((value) => Buffer.from(`"${value}"`));
  return (bytes, at) => {
    for (const value of known) if (matches(bytes, at, value)) return at + value.length;
    return -1;
  };
}

export function matches(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i += 1) if (bytes[at + i] !== text[i]) return false;
  return true;
}

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
