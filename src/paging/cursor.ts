import { crc32 } from 'node:zlib';
import { codedError } from '../errors.ts';

/**
 * Where one edge stood: in the page that was asked with `after`, `place` of `size`, and `end` the cursor
 * that the page ended with. Enough to resume exactly behind it, also in the middle of a page.
 */
export interface Position {
  readonly after: string | null;
  readonly end: string | null;
  readonly size: number;
  /** From 0. */
  readonly place: number;
  readonly identity: string | null;
}

const VERSION = 2;
const MAX_LENGTH = 65_536;
const MAX_PAGE_SIZE = 1_000_000;

/**
 * Makes cursors for the outside: base64url of a version byte, JSON and a CRC-32. The checksum finds damage; it is not
 * a signature: a forged cursor grants nothing that the upstream's own `after` argument does not.
 *
 * The cursors of one page begin alike. That beginning is filled up with spaces to whole groups of three bytes, so that
 * its base64 is made once for the page, and only the end of each cursor is encoded by itself.
 */
export class CursorEncoder {
  readonly #list: string;
  #of: Position | undefined;
  #head: Buffer = Buffer.alloc(0);
  #headSum = 0;
  #tail: Uint8Array = new Uint8Array(64);

  /** @param list names the list with its filters: any other list refuses the cursor */
  constructor(list: string) {
    this.#list = list;
  }

  encode(position: Position): string {
    const bytes = Buffer.allocUnsafe(this.maxLength(position));
    return bytes.toString('latin1', 0, this.write(position, bytes, 0));
  }

  /** No cursor of the position is longer, in bytes. */
  maxLength(position: Position): number {
    this.#begin(position);
    const tail = MAX_DIGITS + MAX_ESCAPED * (position.identity?.length ?? 1) + BRACKETS + CHECKSUM;
    if (this.#tail.length < tail) this.#tail = new Uint8Array(2 * tail);
    return this.#head.length + 4 * Math.ceil(tail / 3);
  }

  /** Writes the cursor as ASCII. @returns where it ends @param into with room for `maxLength` bytes */
  write(position: Position, into: Uint8Array, at: number): number {
    this.#begin(position);
    into.set(this.#head, at);
    const tail = this.#tail;
    const end = writeTail(position, tail);
    const sum = checksum(tail, end, this.#headSum);
    tail[end] = sum >>> 24;
    tail[end + 1] = sum >>> 16;
    tail[end + 2] = sum >>> 8;
    tail[end + 3] = sum;
    return writeBase64(tail, end + CHECKSUM, into, at + this.#head.length);
  }

  #begin({ after, end, size }: Position): void {
    const of = this.#of;
    if (of && of.after === after && of.end === end && of.size === size) return;
    const json = `[${JSON.stringify(this.#list)},${JSON.stringify(after)},${JSON.stringify(end)},${size},`;
    const length = 1 + Buffer.byteLength(json);
    const bytes = Buffer.alloc(length + ((3 - (length % 3)) % 3), ' ');
    bytes[0] = VERSION;
    bytes.write(json, 1);
    this.#head = Buffer.from(bytes.toString('base64url'), 'latin1');
    this.#headSum = crc32(bytes);
    this.#of = { after, end, size, place: 0, identity: null };
  }
}

const CHECKSUM = 4;
/** Of the place, and the comma behind it. */
const MAX_DIGITS = 8;
/** Two quotes, and the bracket that closes. */
const BRACKETS = 3;
/** Bytes of one UTF-16 unit in JSON, as in \u0000. */
const MAX_ESCAPED = 6;

/** Writes what tells the cursor from others of its page. @returns where it ends */
function writeTail({ place, identity }: Position, into: Uint8Array): number {
  let end = writeAscii(`${place},`, into, 0);
  if (identity === null || !isPlain(identity)) {
    const bytes = Buffer.from(JSON.stringify(identity));
    into.set(bytes, end);
    end += bytes.length;
  } else {
    into[end] = QUOTE;
    end = writeAscii(identity, into, end + 1);
    into[end++] = QUOTE;
  }
  into[end] = CLOSING_BRACKET;
  return end + 1;
}

const QUOTE = 34;
const BACKSLASH = 92;
const CLOSING_BRACKET = 93;

/** Whether it stands in JSON as it is. */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 32 || unit > 126 || unit === QUOTE || unit === BACKSLASH) return false;
  }
  return true;
}

function writeAscii(text: string, into: Uint8Array, at: number): number {
  for (let index = 0; index < text.length; index += 1) into[at + index] = text.charCodeAt(index);
  return at + text.length;
}

/** Goes on with a CRC-32. For so few bytes a call of zlib costs more than this. */
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
  for (let from = 0; from < length; from += 3) {
    const [second, third] = [from + 1 < length, from + 2 < length];
    const group =
      (bytes[from]! << 16) | (second ? bytes[from + 1]! << 8 : 0) | (third ? bytes[from + 2]! : 0);
    into[end++] = ALPHABET[group >>> 18]!;
    into[end++] = ALPHABET[(group >>> 12) & 63]!;
    if (second) into[end++] = ALPHABET[(group >>> 6) & 63]!;
    if (third) into[end++] = ALPHABET[group & 63]!;
  }
  return end;
}

const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');

/** @param list names the list with its filters @throws CURSOR_INVALID */
export function decodeCursor(list: string, cursor: string): Position {
  const fields = readFields(cursor);
  if (!fields) {
    throw codedError(
      'CURSOR_INVALID',
      'This is not a cursor of this gateway, or it was damaged. Pass on an edge cursor, endCursor or resumeAfter of a connection unchanged ' +
        '(the cursors of the plain list are of another kind), or leave it out to start anew.',
    );
  }
  const [listOfCursor, after, end, size, place, identity] = fields;
  if (listOfCursor !== list) {
    throw codedError(
      'CURSOR_INVALID',
      'This cursor belongs to another list, or to this one with other filters. Use a cursor that came from the same field with the same filters.',
    );
  }
  return { after, end, size, place, identity };
}

type Fields = [
  list: string,
  after: string | null,
  end: string | null,
  size: number,
  place: number,
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
  const [list, after, end, size, place, identity] = fields as unknown[];
  return (
    typeof list === 'string' &&
    [after, end, identity].every((field) => field === null || typeof field === 'string') &&
    isCount(size) &&
    isCount(place) &&
    place < size
  );
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_PAGE_SIZE;
}
