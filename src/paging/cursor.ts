import { crc32 } from 'node:zlib';
import { codedError } from '../errors.ts';

/**
 * The position of a record, detailed enough to resume exactly behind it even in the middle of a page: in the page that
 * was requested with `after`, at `offset` of `size` records. The page ended with the cursor `end`.
 */
export interface Position {
  readonly after: string | null;
  readonly end: string | null;
  readonly size: number;
  /** From 0. */
  readonly offset: number;
  readonly identity: string | null;
}

/** The part of a position that all records of a page share. */
export interface PageBounds {
  /** The cursor with which the page was requested. */
  readonly after: string | null;
  readonly endCursor: string | null;
  /** Records of the page as delivered. */
  readonly size: number;
}

/** The part of a record that its cursor needs. */
export interface PlacedRecord {
  readonly index: number;
  readonly identity: string | null;
  /** The same identity as bytes, if no string was made of it yet. */
  readonly identityBytes?: IdentityBytes | undefined;
}

/** `Type:`, followed by an id as it is written in a JSON string. */
export interface IdentityBytes {
  readonly prefix: string;
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/**
 * The longest service cursor that is accepted, in characters. A walk keeps many of them, and each gateway cursor
 * contains two.
 */
export const MAX_SERVICE_CURSOR = 65_536;

const VERSION = 2;
/** The longest gateway cursor, in characters: room for two service cursors in base64, and the rest. */
const MAX_LENGTH = 4 * MAX_SERVICE_CURSOR;
const MAX_PAGE_SIZE = 1_000_000;

/**
 * Encodes positions as cursors for clients: base64url of a version byte, JSON and a CRC-32. The checksum detects
 * damage; it is not a signature, since a forged cursor allows nothing that the upstream's `after` argument does not
 * allow.
 *
 * The cursors of one page share their beginning. It is padded with spaces to whole groups of three bytes, so that it is
 * encoded once per page, and only the end is encoded for each cursor.
 */
export class CursorEncoder {
  readonly #list: string;
  /** The page to which the encoded beginning belongs. */
  #page: PageBounds | undefined;
  #head: Buffer = Buffer.alloc(0);
  #headSum = 0;
  /** The end that differs between the cursors of a page, and the checksum. */
  #tail: Uint8Array = new Uint8Array(64);
  #tailLength = 0;

  /** @param list identifies the list with its filters: other lists refuse the cursor */
  constructor(list: string) {
    this.#list = list;
  }

  encode({ after, end: endCursor, size, offset: index, identity }: Position): string {
    const bytes = Buffer.allocUnsafe(this.prepare({ after, endCursor, size }, { index, identity }));
    return bytes.toString('latin1', 0, this.write(bytes, 0));
  }

  /** Prepares the cursor of a record for `write`. @returns its length */
  prepare(page: PageBounds, record: PlacedRecord): number {
    this.#begin(page);
    // Read only once: the getter of a scanned record creates it.
    const { identityBytes } = record;
    const length = identityBytes ? lengthOf(identityBytes) : (record.identity?.length ?? 1);
    const most = MAX_DIGITS + MAX_ESCAPED * length + BRACKETS + CHECKSUM;
    if (this.#tail.length < most) this.#tail = new Uint8Array(2 * most);
    const tail = this.#tail;
    const start = writeNumber(record.index, tail);
    tail[start - 1] = COMMA;
    let end = identityBytes ? writePlainBytes(identityBytes, tail, start) : -1;
    if (end < 0) end = writeIdentity(record.identity, tail, start);
    tail[end] = CLOSING_BRACKET;
    end += 1;
    const sum = checksum(tail, end, this.#headSum);
    tail[end] = sum >>> 24;
    tail[end + 1] = sum >>> 16;
    tail[end + 2] = sum >>> 8;
    tail[end + 3] = sum;
    this.#tailLength = end + CHECKSUM;
    return this.#head.length + Math.ceil((this.#tailLength * 4) / 3);
  }

  /** Returns the approximate length of a cursor of this page, in characters. */
  lengthIn({ after, endCursor }: PageBounds): number {
    return Math.ceil((4 * ((after?.length ?? 0) + (endCursor?.length ?? 0))) / 3) + USUAL_REST;
  }

  /** Writes the prepared cursor as ASCII. @returns the offset behind it */
  write(into: Uint8Array, at: number): number {
    into.set(this.#head, at);
    return writeBase64(this.#tail, this.#tailLength, into, at + this.#head.length);
  }

  #begin(page: PageBounds): void {
    const known = this.#page;
    if (known === page) return;
    const { after, endCursor: end, size } = page;
    if (known?.after === after && known.endCursor === end && known.size === size) return;
    const json = `[${JSON.stringify(this.#list)},${JSON.stringify(after)},${JSON.stringify(end)},${size},`;
    const length = 1 + Buffer.byteLength(json);
    const bytes = Buffer.alloc(length + ((3 - (length % 3)) % 3), ' ');
    bytes[0] = VERSION;
    bytes.write(json, 1);
    this.#head = Buffer.from(bytes.toString('base64url'), 'latin1');
    this.#headSum = crc32(bytes);
    this.#page = page;
  }
}

/** Characters of a cursor besides its service cursors. */
const USUAL_REST = 100;
const CHECKSUM = 4;
/** Digits of the offset, and the comma behind it. */
const MAX_DIGITS = 8;
/** Two quotes and the closing bracket. */
const BRACKETS = 3;
/** Bytes of one UTF-16 unit in JSON, as in \u0000. */
const MAX_ESCAPED = 6;

function writeIdentity(identity: string | null, into: Uint8Array, start: number): number {
  const end = identity === null ? -1 : writePlain(identity, into, start);
  if (end >= 0) return end;
  const bytes = Buffer.from(JSON.stringify(identity));
  into.set(bytes, start);
  return start + bytes.length;
}

function lengthOf({ prefix, start, end }: IdentityBytes): number {
  return prefix.length + end - start;
}

/** Writes the digits of a number and a comma. @returns the offset behind them */
function writeNumber(value: number, into: Uint8Array): number {
  let digits = 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) digits += 1;
  let rest = value;
  for (let at = digits - 1; at >= 0; at -= 1) {
    into[at] = ZERO + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  return digits + 1;
}

const ZERO = 48;
const COMMA = 44;
const QUOTE = 34;
const BACKSLASH = 92;
const CLOSING_BRACKET = 93;

/**
 * Writes a string that JSON writes without escapes, with its quotes.
 *
 * @returns the offset behind it; -1 if it has escapes
 */
function writePlain(text: string, into: Uint8Array, at: number): number {
  into[at] = QUOTE;
  let end = at + 1;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 32 || unit > 126 || unit === QUOTE || unit === BACKSLASH) return -1;
    into[end++] = unit;
  }
  into[end] = QUOTE;
  return end + 1;
}

/** Writes an identity in bytes like `writePlain`. */
function writePlainBytes(
  { prefix, bytes, start, end: stop }: IdentityBytes,
  into: Uint8Array,
  at: number,
): number {
  // The prefix's closing quote is overwritten.
  let end = writePlain(prefix, into, at) - 1;
  if (end < 0) return -1;
  for (let index = start; index < stop; index += 1) {
    const byte = bytes[index]!;
    if (byte < 32 || byte > 126 || byte === QUOTE || byte === BACKSLASH) return -1;
    into[end++] = byte;
  }
  into[end] = QUOTE;
  return end + 1;
}

/** Continues a CRC-32. Calling zlib would cost more for this few bytes. */
function checksum(bytes: Uint8Array, end: number, before: number): number {
  let sum = ~before;
  for (let at = 0; at < end; at += 1) sum = CRC_TABLE[(sum ^ bytes[at]!) & 0xff]! ^ (sum >>> 8);
  return ~sum >>> 0;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  return sum;
});

/** Writes base64url without padding. @returns the offset behind it */
function writeBase64(bytes: Uint8Array, length: number, into: Uint8Array, at: number): number {
  let end = at;
  const whole = length - (length % 3);
  for (let from = 0; from < whole; from += 3) {
    const group = (bytes[from]! << 16) | (bytes[from + 1]! << 8) | bytes[from + 2]!;
    into[end] = ALPHABET[group >>> 18]!;
    into[end + 1] = ALPHABET[(group >>> 12) & 63]!;
    into[end + 2] = ALPHABET[(group >>> 6) & 63]!;
    into[end + 3] = ALPHABET[group & 63]!;
    end += 4;
  }
  if (whole === length) return end;
  const hasTwo = whole + 2 === length;
  const rest = (bytes[whole]! << 16) | (hasTwo ? bytes[whole + 1]! << 8 : 0);
  into[end++] = ALPHABET[rest >>> 18]!;
  into[end++] = ALPHABET[(rest >>> 12) & 63]!;
  if (hasTwo) into[end++] = ALPHABET[(rest >>> 6) & 63]!;
  return end;
}

const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');

/**
 * Returns null for null and for an empty cursor, which Relay's own code treats as null.
 *
 * @param list identifies the list with its filters
 * @throws CURSOR_INVALID
 */
export function decodeCursor(list: string, cursor: unknown): Position | null {
  if (typeof cursor !== 'string' || cursor === '') return null;
  const fields = readFields(cursor);
  if (!fields) {
    throw codedError(
      'CURSOR_INVALID',
      'This is not a cursor of this gateway, or it is damaged. Pass the cursor of an edge, an endCursor or a resumeAfter unchanged ' +
        '(cursors of the plain list are of another kind), or omit it to start anew.',
    );
  }
  const [listOfCursor, after, end, size, offset, identity] = fields;
  if (listOfCursor !== list) {
    throw codedError(
      'CURSOR_INVALID',
      'This cursor belongs to another list, or to this list with other filters. Use a cursor of the same field with the same filters.',
    );
  }
  return { after, end, size, offset, identity };
}

/** Whether the text is an intact gateway cursor, of any list. */
export function isGatewayCursor(text: string): boolean {
  return readFields(text) !== undefined;
}

type Fields = [
  list: string,
  after: string | null,
  end: string | null,
  size: number,
  offset: number,
  identity: string | null,
];

function readFields(cursor: string): Fields | undefined {
  if (cursor.length > MAX_LENGTH || !/^[\w-]+$/.test(cursor)) return undefined;
  const bytes = Buffer.from(cursor, 'base64url');
  const end = bytes.length - CHECKSUM;
  if (end < 2 || bytes[0] !== VERSION) return undefined;
  if (bytes.readUInt32BE(end) !== crc32(bytes.subarray(0, end))) return undefined;
  try {
    const fields: unknown = JSON.parse(bytes.toString('utf8', 1, end));
    return isFields(fields) ? fields : undefined;
  } catch {
    return undefined;
  }
}

function isFields(fields: unknown): fields is Fields {
  if (!Array.isArray(fields) || fields.length !== 6) return false;
  const [list, after, end, size, offset, identity] = fields as unknown[];
  return (
    typeof list === 'string' &&
    [after, end, identity].every((field) => field === null || typeof field === 'string') &&
    isCount(size) &&
    isCount(offset) &&
    offset < size
  );
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_PAGE_SIZE;
}
