import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { codedError } from '../../errors.ts';

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

const VERSION = 1;
const MAX_LENGTH = 65_536;
const MAX_PAGE_SIZE = 1_000_000;

/**
 * A cursor for the outside: base64url of a version byte, a CRC-32 and JSON. The checksum finds damage, it
 * is no signature: a forged cursor grants nothing that the upstream's own `after` argument does not.
 *
 * @param list names the list with its filters; the cursor is refused by any other
 */
export function encodeCursor(list: string, position: Position): string {
  return cursorEncoder(list)(position);
}

/** The same for many positions of one list: what those of one page share is written once. */
export function cursorEncoder(list: string): (position: Position) => string {
  const print = JSON.stringify(fingerprint(list));
  let of: Position | undefined;
  let bytes: Buffer = Buffer.allocUnsafe(512);
  bytes.writeUInt8(VERSION, 0);
  let headEnd = HEAD;
  let headSum = 0;
  return (position) => {
    const { after, end, size, place, identity } = position;
    if (!of || of.after !== after || of.end !== end || of.size !== size) {
      const head = `[${print},${JSON.stringify(after)},${JSON.stringify(end)},${size},`;
      bytes = withRoom(bytes, HEAD + 3 * head.length);
      headEnd = HEAD + bytes.write(head, HEAD);
      headSum = crc32(bytes.subarray(HEAD, headEnd));
      of = position;
    }
    const tail = `${place},${JSON.stringify(identity)}]`;
    bytes = withRoom(bytes, headEnd + 3 * tail.length);
    const last = headEnd + bytes.write(tail, headEnd);
    bytes.writeUInt32BE(crc32(bytes.subarray(headEnd, last), headSum), 1);
    return bytes.toString('base64url', 0, last);
  };
}

/** Of the version and the checksum. */
const HEAD = 5;

/** The same bytes, with room for so many; a character takes three at most. */
function withRoom(bytes: Buffer, wanted: number): Buffer {
  if (bytes.length >= wanted) return bytes;
  const larger = Buffer.allocUnsafe(2 * wanted);
  bytes.copy(larger);
  return larger;
}

/** @throws CURSOR_INVALID */
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
  if (listOfCursor !== fingerprint(list)) {
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
  const payload = bytes.subarray(5);
  if (bytes.length < 6 || bytes.readUInt8(0) !== VERSION) return undefined;
  if (bytes.readUInt32BE(1) !== crc32(payload)) return undefined;
  try {
    const fields: unknown = JSON.parse(payload.toString('utf8'));
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

function fingerprint(list: string): string {
  return createHash('sha256').update(list).digest('base64url').slice(0, 8);
}
