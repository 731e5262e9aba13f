import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32 } from 'node:zlib';
import { codeOf } from '../../src/errors.ts';
import { cursorsOf, decodeCursor, type Position } from '../../src/paging/cursor.ts';
import type { ReadPage } from '../../src/paging/page.ts';

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }));
const positions = fc
  .record({
    after: fc.option(text),
    end: fc.option(text),
    size: fc.integer({ min: 1, max: 1_000_000 }),
    offset: fc.nat(1_000_000),
    id: fc.option(text),
  })
  .map((each) => ({ ...each, offset: each.offset % each.size }));

const isInvalid = (error: unknown) => codeOf(error) === 'CURSOR_INVALID';

test('a cursor keeps the whole position, whatever characters ids and cursors of the service have', () => {
  fc.assert(
    fc.property(positions, (position) => {
      const cursor = cursorAt(position);
      expect(cursor).toMatch(/^[\w-]+$/);
      expect(decodeCursor('list', cursor)).toEqual(position);
    }),
  );
});

test('a cursor of another list, or of the same list with other filters, is refused', () => {
  const cursor = cursorAt({ after: null, end: null, size: 1, offset: 0, id: 'id' }, 'list(a)');
  expect(() => decodeCursor('list(b)', cursor)).toThrow(/belongs to another list/);
});

test('a cursor with any byte changed is refused', () => {
  const cursor = cursorAt({ after: 'a', end: 'b', size: 3, offset: 1, id: 'Person:17' });
  const bytes = Buffer.from(cursor, 'base64url');
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, by) => {
      const damaged = Buffer.from(bytes);
      damaged[at] = damaged[at]! ^ by;
      expect(() => decodeCursor('list', damaged.toString('base64url'))).toThrow(
        expect.toSatisfy(isInvalid),
      );
    }),
  );
});

test.each([
  ['an older version', 2, ['letters', null, null, 1, 0, null]],
  ['too few fields', 3, ['letters', null, null, 1, 0]],
  ['an offset outside of its page', 3, ['letters', null, null, 1, 1, null]],
  ['a negative offset', 3, ['letters', null, null, 1, -1, null]],
  ['a size that is no integer', 3, ['letters', null, null, 1.5, 0, null]],
  ['a page of more than a million records', 3, ['letters', null, null, 1e7, 0, null]],
  ['a cursor that is no string', 3, ['letters', 1, null, 1, 0, null]],
  ['an id that is no string', 3, ['letters', null, null, 1, 0, {}]],
  ['no array', 3, { list: 'letters' }],
])('a forged cursor is refused that has %s', (_name, version, fields) => {
  expect(() => decodeCursor('letters', forged(fields, version))).toThrow(
    expect.toSatisfy(isInvalid),
  );
});

test('a cursor has room for two cursors of the service of 64 KB, and one above 256 KB is refused', () => {
  const [after, end] = ['a'.repeat(65_536), 'b'.repeat(65_536)];
  const position = { after, end, size: 1, offset: 0, id: 'i'.repeat(300) };
  expect(decodeCursor('list', cursorAt(position))).toEqual(position);
  const refused = cursorAt({ ...position, end: 'b'.repeat(131_072) });
  expect(() => decodeCursor('list', refused)).toThrow(expect.toSatisfy(isInvalid));
});

function cursorAt({ after, end, size, offset, id }: Position, list = 'list'): string {
  const page = { after, endCursor: end, ids: { length: size, [offset]: id } };
  return cursorsOf(list)({ page: page as unknown as ReadPage, offset });
}

/** A cursor with a right checksum, as anybody can make one. */
function forged(fields: unknown, version: number): string {
  const bytes = Buffer.from(`\0${JSON.stringify(fields)}\0\0\0\0`);
  bytes[0] = version;
  bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
  return bytes.toString('base64url');
}
