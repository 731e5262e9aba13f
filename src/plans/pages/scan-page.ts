import type { UpstreamError } from '../../answers/answer-errors.ts';
import { scanInAnyForm } from '../../answers/scan-any-form.ts';
import { scanner } from '../../answers/scan.ts';
import type { FieldShape, ObjectShape, Shape } from '../../answers/shape.ts';
import { cut, Tape } from '../../answers/tape.ts';
import type { IdentityBytes } from '../../paging/cursor.ts';
import { identityHash, identityHasher, IdentitySet } from '../../paging/identities.ts';
import { identitiesFrom } from '../../paging/page.ts';
import { ScannedPage, type PageBytes } from '../output.ts';
import { NO_PAGES } from '../requests/request-text.ts';
import type { PageAnswer } from './read-page.ts';

/** Makes a function that takes a page as bytes; it returns undefined for a page that has to be read in general. */
export function pageScanner(
  name: string,
  keys: readonly string[],
  shapes: readonly Shape[],
  sizes: readonly string[],
): (bytes: Buffer) => PageAnswer | undefined {
  const lists = shapes.map((of): Shape => ({ kind: 'list', of, nullable: false, type: '' }));
  const noted = [
    shown('hasNextPage', { kind: 'boolean', nullable: false, type: '' }),
    shown('endCursor', { kind: 'string', nullable: true, type: '' }),
    ...sizes.map((key) => shown(key, { kind: 'int', nullable: true, type: '' })),
  ];
  const page = object([
    ...lists.map((list, i) => shown(keys[i]!, list)),
    shown('pageInfo', object(noted)),
  ]);
  const answer = object([shown('data', object([shown(name, page)]))]);
  const scan = scanner(answer, {
    lists: new Set(lists),
    noted,
  });
  const tape = new Tape();
  const hashing = {
    hashers: new Map<string, ReturnType<typeof identityHasher>>(),
    scratch: new IdentitySet(),
  };
  return scanInAnyForm((bytes) => {
    tape.reset();
    if (scan(bytes, 0, tape) !== bytes.length) return undefined;
    if (tape.counts.some((count) => count !== tape.counts[0])) return undefined;
    return {
      page: scannedPage(bytes, tape, hashing),
      isNull: false,
      errors: NO_ERRORS,
      nullingPages: NO_PAGES,
    };
  }, answer);
}

function shown(key: string, shape: Shape): FieldShape {
  return { key, shape, isSilent: false };
}

function object(fields: readonly FieldShape[]): ObjectShape {
  return { kind: 'object', nullable: false, type: '', fields };
}

type Hashers = Map<string, ReturnType<typeof identityHasher>>;

/** @param scratch see `identitiesFrom` */
function scannedPage(
  bytes: Buffer,
  tape: Tape,
  { hashers, scratch }: { readonly hashers: Hashers; readonly scratch: IdentitySet },
): ScannedPage {
  const { noted, counts } = tape;
  const count = counts[0]!;
  const places = tape.copyPlaces();
  const contents = contentsOf(bytes, tape, places);
  const hashes = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const at = 2 * (tape.recordCount + i);
    const hash = hasherOf(tape.typeOf(i), hashers);
    hashes[i] = hashAt(bytes, places[at]!, places[at + 1]!, hash) ?? hashOf(contents.identityAt(i));
  }
  const size = noted.length > 4 ? Number(bytes.toString('latin1', noted[4], noted[5])) : 0;
  const facts = {
    hasNextPage: bytes[noted[0]!] === 116,
    endCursor: bytes[noted[2]!] === 110 ? null : textAt(bytes, noted[2]! + 1, noted[3]! - 1),
    limit: size > 0 ? size : undefined,
    identities: identitiesFrom(hashes, scratch),
  };
  return new ScannedPage(facts, contents);
}

function hasherOf(type: string, hashers: Hashers): ReturnType<typeof identityHasher> {
  const known = hashers.get(type) ?? identityHasher(type);
  hashers.set(type, known);
  return known;
}

/** Undefined if the id has to be decoded first. */
function hashAt(
  bytes: Buffer,
  start: number,
  end: number,
  hash: ReturnType<typeof identityHasher>,
): number | undefined {
  if (bytes[start] === 34 && end > start) return hash(bytes, start + 1, end - 1);
  return isNumberAt(bytes, start, end) ? hash(bytes, start, end) : undefined;
}

function hashOf(identity: string | null): number {
  return identity === null ? NaN : identityHash(identity);
}

/** Copies the records if something has to be cut out of them; otherwise refers to the bytes as they came. */
function contentsOf(bytes: Buffer, tape: Tape, places: Int32Array): PageBytes {
  const { cuts, inserts, recordCount } = tape;
  const count = tape.counts[0]!;
  const bytesOf = (index: number, type: string) => {
    const at = 2 * (recordCount + index);
    return identityBytesIn(bytes, places[at]!, places[at + 1]!, type);
  };
  if (cuts.length === 0) {
    const typeOf = typesOf(tape, count);
    const identityBytesAt = (index: number) => bytesOf(index, typeOf(index));
    return {
      bytes,
      at: places,
      identityBytesAt,
      identityAt: (index) => identityFrom(identityBytesAt(index)),
    };
  }
  // The bytes as they came are not kept, so the identities are read now.
  const identities = Array.from({ length: count }, (_, i) =>
    identityFrom(bytesOf(i, tape.typeOf(i))),
  );
  const start = places[0] ?? 0;
  const end = places[2 * recordCount - 1] ?? 0;
  const at = new Int32Array(2 * recordCount);
  let shift = -start;
  let next = 0;
  for (let i = 0; i < at.length; i += 1) {
    while (next < cuts.length && cuts[next]! < places[i]!) {
      shift += inserts[next / 2]!.length - (cuts[next + 1]! - cuts[next]!);
      next += 2;
    }
    at[i] = places[i]! + shift;
  }
  const own = cut(bytes, start, end, tape);
  return {
    bytes: own,
    at,
    identityAt: (index) => identities[index] ?? null,
    identityBytesAt: () => undefined,
  };
}

/** Most lists have records of one type. */
function typesOf(tape: Tape, count: number): (index: number) => string {
  const first = count > 0 ? tape.typeOf(0) : '';
  for (let i = 1; i < count; i += 1) {
    if (tape.typeOf(i) === first) continue;
    const types = Array.from({ length: count }, (_, index) => tape.typeOf(index));
    return (index) => types[index]!;
  }
  return () => first;
}

/** Undefined for a record without an id. */
function identityBytesIn(
  bytes: Buffer,
  start: number,
  end: number,
  type: string,
): IdentityBytes | undefined {
  if (bytes[start] === 34 && end > start) {
    return { prefix: `${type}:`, bytes, start: start + 1, end: end - 1 };
  }
  return isNumberAt(bytes, start, end) ? { prefix: `${type}:`, bytes, start, end } : undefined;
}

function identityFrom(identity: IdentityBytes | undefined): string | null {
  if (!identity) return null;
  const { prefix, bytes, start, end } = identity;
  return prefix + textAt(bytes as Buffer, start, end);
}

function isNumberAt(bytes: Buffer, start: number, end: number): boolean {
  const byte = bytes[start]!;
  return end > start && (byte === 45 || (byte >= 48 && byte <= 57));
}

/** Decodes the characters between two quotes. */
function textAt(bytes: Buffer, start: number, end: number): string {
  for (let i = start; i < end; i += 1) {
    if (bytes[i]! > 126 || bytes[i] === 92)
      return JSON.parse(`"${bytes.toString('utf8', start, end)}"`) as string;
  }
  return bytes.toString('latin1', start, end);
}

const NO_ERRORS: readonly UpstreamError[] = [];
