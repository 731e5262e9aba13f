import { crc32 } from 'node:zlib';
import { codedError } from '../errors.ts';

/**
 * Where a record stood, in enough detail to resume exactly behind it, also in the middle of a page: in the page that
 * was requested with `after`, at `offset` of `size` records, before the cursor `end` with which the page ended.
 */
export interface Position {
  readonly after: string | null;
  readonly end: string | null;
  readonly size: number;
  /** From 0. */
  readonly offset: number;
  readonly identity: string | null;
}

/** What the positions of a page's records share. */
export interface PageBounds {
  /** The cursor with which the page was requested. */
  readonly after: string | null;
  readonly endCursor: string | null;
  /** Records of the page as delivered. */
  readonly size: number;
}

/** A record of a page, as far as its cursor needs it. */
export interface PlacedRecord {
  readonly index: number;
  readonly identity: string | null;
  /** The same as `identity`, where no string was made of it yet. */
  readonly identityBytes?: IdentityBytes | undefined;
}

/** `Type:`, and behind it an id as it stands in a JSON string. */
export interface IdentityBytes {
  readonly prefix: string;
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** Characters of a cursor of the service. A walk keeps many of them, and each of ours holds two. */
export const MAX_SERVICE_CURSOR = 65_536;

const VERSION = 2;
/** Characters of one of ours: enough for two of the service in base64, and the rest. */
const MAX_LENGTH = 4 * MAX_SERVICE_CURSOR;
const MAX_PAGE_SIZE = 1_000_000;

/**
 * Encodes positions as cursors for clients: base64url of a version byte, JSON and a CRC-32. The checksum detects
 * damage; it is not a signature, since a forged cursor grants nothing that the upstream's `after` argument does not.
 *
 * The cursors of one page share their beginning. It is padded with spaces to whole groups of three bytes, so that it
 * is encoded once for the page, and of each cursor only the end.
 */
export class CursorEncoder {
  readonly #list: string;
  /** The page that the beginning belongs to. */
  #of: PageBounds | undefined;
  #head: Buffer = Buffer.alloc(0);
  #headSum = 0;
  /** What differs between the cursors of the page, and the checksum. */
  #tail: Uint8Array = new Uint8Array(64);
  #tailLength = 0;

  /** @param list names the list with its filters: the cursor is refused for any other */
  constructor(list: string) {
    this.#list = list;
  }

  encode({ after, end: endCursor, size, offset: index, identity }: Position): string {
    const bytes = Buffer.allocUnsafe(this.prepare({ after, endCursor, size }, { index, identity }));
    return bytes.toString('latin1', 0, this.write(bytes, 0));
  }

  /** Prepares the cursor of a record, for `write`. @returns its length */
  prepare(page: PageBounds, record: PlacedRecord): number {
    this.#begin(page);
    // Read once: a record of a scanned page creates it.
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

  /** About as many characters as a cursor of this page has. */
  lengthIn({ after, endCursor }: PageBounds): number {
    return Math.ceil((4 * ((after?.length ?? 0) + (endCursor?.length ?? 0))) / 3) + USUAL_REST;
  }

  /** Writes the prepared cursor as ASCII. @returns where it ends */
  write(into: Uint8Array, at: number): number {
    into.set(this.#head, at);
    return writeBase64(this.#tail, this.#tailLength, into, at + this.#head.length);
  }

  #begin(page: PageBounds): void {
    const of = this.#of;
    if (of === page) return;
    const { after, endCursor: end, size } = page;
    if (of && of.after === after && of.endCursor === end && of.size === size) return;
    const json = `[${JSON.stringify(this.#list)},${JSON.stringify(after)},${JSON.stringify(end)},${size},`;
    const length = 1 + Buffer.byteLength(json);
    const bytes = Buffer.alloc(length + ((3 - (length % 3)) % 3), ' ');
    bytes[0] = VERSION;
    bytes.write(json, 1);
    this.#head = Buffer.from(bytes.toString('base64url'), 'latin1');
    this.#headSum = crc32(bytes);
    this.#of = page;
  }
}

/** Of a cursor without those of the service. */
const USUAL_REST = 100;
const CHECKSUM = 4;
/** Of the offset, and the comma behind it. */
const MAX_DIGITS = 8;
/** Two quotes, and the closing bracket. */
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

/** Writes the digits of a number. @returns where the next value begins: behind a comma */
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

/** Writes a string that JSON writes without escapes, with its quotes. @returns where it ends; -1 if it has escapes */
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

/** The same of an identity in bytes. */
function writePlainBytes(
  { prefix, bytes, start, end: stop }: IdentityBytes,
  into: Uint8Array,
  at: number,
): number {
  // The quote behind the prefix is overwritten.
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

/** Continues a CRC-32. For so few bytes, a call of zlib costs more. */
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

/** Without padding. @returns where it ends */
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
 * Returns null for a cursor that is not given: null, or empty, which Relay's own code treats in the same way.
 *
 * @param list names the list with its filters
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

/** Whether the text is an intact cursor of any list. */
export function isOwnCursor(text: string): boolean {
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
