import { scanString } from './scan-leaf.ts';
import { TYPE_KEY, type FieldShape, type ObjectShape, type Shape } from './shape.ts';

/**
 * Makes a function that scans an answer as it came and, if that fails, in the form that scanners take: without white
 * space, with its keys in the order of the selections. So a service that indents its JSON, or orders its keys in
 * another way, need not be read value by value.
 *
 * The conversion checks nothing that the scan checks. It only moves bytes and never changes them.
 *
 * @param scan returns undefined for an answer that does not match
 * @param shape of the answer; missing keys are left to the scan
 */
export function scanInAnyForm<T>(
  scan: (bytes: Buffer) => T | undefined,
  shape: ObjectShape,
): (bytes: Buffer) => T | undefined {
  // Most of such answers have to be read in general anyway.
  if (isFilledInLater(shape)) return scan;
  const write = objectWriter(shape.fields);
  return (bytes) => {
    const found = scan(bytes);
    if (found !== undefined) return found;
    const compact = withoutSpace(bytes);
    const foundInOrder = compact === bytes ? undefined : scan(compact);
    if (foundInOrder !== undefined) return foundInOrder;
    const sorted = { bytes: Buffer.allocUnsafeSlow(compact.length), at: 0 };
    if (write(compact, 0, sorted) !== compact.length) return undefined;
    // A repeated key makes `write` fail, so equal lengths mean that every byte was written.
    return sorted.at === compact.length && !sorted.bytes.equals(compact)
      ? scan(sorted.bytes)
      : undefined;
  };
}

/** Whether another request, or a later part of the answer, has to complete the answer. */
function isFilledInLater(shape: FieldShape['shape']): boolean {
  switch (shape.kind) {
    case 'placeholder':
      return true;
    case 'list':
      return isFilledInLater(shape.of);
    case 'object':
      return shape.fields.some(
        ({ shape: field, deferred }) => deferred !== undefined || isFilledInLater(field),
      );
    default:
      return false;
  }
}

/** Removes white space, except between two values: `1 2` must not become a number. */
function withoutSpace(bytes: Buffer): Buffer {
  let size = 0;
  let out: Buffer | undefined;
  let from = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]!;
    if (byte === 34) {
      const end = scanString(bytes, at);
      if (end < 0) return bytes;
      at = end - 1;
      continue;
    }
    if (!isSpace(byte)) continue;
    let end = at + 1;
    while (isSpace(bytes[end]!)) end += 1;
    if (isMark(bytes[at - 1]) || isMark(bytes[end])) {
      out ??= Buffer.allocUnsafeSlow(bytes.length);
      size += bytes.copy(out, size, from, at);
      from = end;
    }
    at = end - 1;
  }
  if (!out) return bytes;
  size += bytes.copy(out, size, from);
  // A copy, because records may be kept for long, and indented JSON is twice as large.
  const compact = Buffer.allocUnsafeSlow(size);
  out.copy(compact, 0, 0, size);
  return compact;
}

function isSpace(byte: number): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}

/** Whether it is one of `[ ] { } : ,` or an end of the text. */
function isMark(byte: number | undefined): boolean {
  return (
    byte === 44 ||
    byte === 58 ||
    byte === 123 ||
    byte === 125 ||
    byte === 91 ||
    byte === 93 ||
    byte === undefined
  );
}

interface Sorted {
  readonly bytes: Buffer;
  at: number;
}

/** Writes the value that begins at `at`. @returns its end; -1 if it does not match the shape */
type Write = (bytes: Buffer, at: number, sorted: Sorted) => number;

function writerOf(shape: FieldShape['shape']): Write {
  switch (shape.kind) {
    case 'object':
      return objectWriter(shape.fields);
    case 'list':
      return listWriter(shape.of);
    case 'abstract': {
      const writers = new Map<string, Write>();
      return (bytes, at, sorted) => {
        if (bytes[at] !== 123) return copyValue(bytes, at, sorted);
        const name = typeIn(bytes, at);
        const known = name === undefined ? undefined : (writers.get(name) ?? shape.of(name));
        if (!known || name === undefined) return -1;
        const write =
          typeof known === 'function' ? known : objectWriter([TYPE_FIELD, ...known.fields]);
        writers.set(name, write);
        return write(bytes, at, sorted);
      };
    }
    case 'placeholder':
      return () => -1;
    default:
      return copyValue;
  }
}

const TYPE_FIELD: FieldShape = {
  key: TYPE_KEY,
  shape: { kind: 'string', nullable: false, type: '' },
  isSilent: true,
};

/** Finds the type name of an object, whatever the order of its keys. */
function typeIn(bytes: Buffer, open: number): string | undefined {
  for (let at = open + 1; ; at += 1) {
    const colon = scanString(bytes, at);
    if (colon < 0) return undefined;
    const end = endOf(bytes, colon + 1);
    if (bytes.toString('latin1', at + 1, colon - 1) === TYPE_KEY) {
      return bytes.toString('latin1', colon + 2, end - 1);
    }
    if (bytes[end] !== 44) return undefined;
    at = end;
  }
}

function listWriter(of: Shape): Write {
  const write = writerOf(of);
  return (bytes, at, sorted) => {
    if (bytes[at] !== 91 || bytes[at + 1] === 93) return copyValue(bytes, at, sorted);
    let end = at;
    do {
      copy(bytes, end, end + 1, sorted);
      end = write(bytes, end + 1, sorted);
      if (end < 0) return -1;
    } while (bytes[end] === 44);
    return bytes[end] === 93 ? copy(bytes, end, end + 1, sorted) : -1;
  };
}

function objectWriter(fields: readonly FieldShape[]): Write {
  // Made when the first answer in another form arrives: most services send none.
  let writers: readonly Write[] | undefined;
  const places = new Map(fields.map(({ key, sentKey = key }, place) => [sentKey, place]));
  const isWhole = fields.every(({ shape, deferred }) => shape.kind !== 'placeholder' && !deferred);
  return (bytes, open, sorted) => {
    if (bytes[open] !== 123) return copyValue(bytes, open, sorted);
    if (!isWhole) return -1;
    writers ??= fields.map(({ shape }) => writerOf(shape));
    // The start of each key that is out of order. Keys in order are written at once.
    const later: number[] = [];
    let isFirst = true;
    let next = 0;
    let at = open;
    const writeField = (place: number, key: number) => {
      const colon = scanString(bytes, key);
      sorted.bytes[sorted.at] = isFirst ? 123 : 44;
      sorted.at += 1;
      isFirst = false;
      copy(bytes, key, colon + 1, sorted);
      return writers![place]!(bytes, colon + 1, sorted);
    };
    do {
      const key = at + 1;
      const colon = scanString(bytes, key);
      if (colon < 0 || bytes[colon] !== 58) return -1;
      const place = places.get(bytes.toString('latin1', key + 1, colon - 1));
      if (place === undefined || later[place] !== undefined || place < next) return -1;
      if (place === next && later.length === 0) {
        at = writeField(place, key);
        next += 1;
      } else {
        later[place] = key;
        at = endOf(bytes, colon + 1);
      }
      if (at < 0) return -1;
    } while (bytes[at] === 44);
    if (bytes[at] !== 125) return -1;
    for (; next < later.length; next += 1) {
      const key = later[next];
      if (key !== undefined && writeField(next, key) < 0) return -1;
    }
    return copy(bytes, at, at + 1, sorted);
  };
}

function copyValue(bytes: Buffer, at: number, sorted: Sorted): number {
  const end = endOf(bytes, at);
  return end < 0 ? -1 : copy(bytes, at, end, sorted);
}

function copy(bytes: Buffer, start: number, end: number, sorted: Sorted): number {
  if (sorted.at + end - start > sorted.bytes.length) return -1;
  sorted.at += bytes.copy(sorted.bytes, sorted.at, start, end);
  return end;
}

/** Returns the end of any value; -1 if the text ends before. */
function endOf(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at]!;
    if (byte === 34) {
      at = scanString(bytes, at) - 1;
      if (at < 0) return -1;
    } else if (byte === 123 || byte === 91) depth += 1;
    else if (byte === 125 || byte === 93) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (byte === 44 && depth === 0) return at;
  }
  return -1;
}
