import type { UpstreamError } from '../../answers/answer-errors.ts';
import { scanInAnyForm } from '../../answers/scan-any-form.ts';
import { scanner } from '../../answers/scan.ts';
import type { FieldShape, ObjectShape, Shape } from '../../answers/shape.ts';
import { createTape, cut, resetTape, type Tape } from '../../answers/tape.ts';
import { identityHash, identityHasher } from '../../paging/identities.ts';
import { identitiesFrom, type Page } from '../../paging/page.ts';
import { ScannedRecord, type ListRecord } from '../output.ts';
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
  const tape = createTape();
  const hashers = new Map<string, ReturnType<typeof identityHasher>>();
  return scanInAnyForm((bytes) => {
    resetTape(tape);
    if (scan(bytes, 0, tape) !== bytes.length) return undefined;
    if (tape.counts.some((count) => count !== tape.counts[0])) return undefined;
    return {
      page: scannedPage(bytes, tape, hashers),
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

function scannedPage(bytes: Buffer, tape: Tape, hashers: Hashers): Page<ListRecord> {
  const { noted, counts, ids, types } = tape;
  const count = counts[0]!;
  const page = scannedRecords(bytes, tape);
  const items: ListRecord[] = [];
  const hashes = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    items.push(new ScannedRecord(page, i));
    const [start, end, type] = [ids[2 * i]!, ids[2 * i + 1]!, types[i]!];
    hashes[i] = hashAt(bytes, start, end, hasherOf(type, hashers)) ?? hashOf(page.identityAt(i));
  }
  const size = noted.length > 4 ? Number(bytes.toString('latin1', noted[4], noted[5])) : 0;
  return {
    items,
    hasNextPage: bytes[noted[0]!] === 116,
    endCursor: bytes[noted[2]!] === 110 ? null : textAt(bytes, noted[2]! + 1, noted[3]! - 1),
    limit: size > 0 ? size : undefined,
    unplacedErrors: NO_ERRORS,
    identities: identitiesFrom(hashes),
  };
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
function scannedRecords(bytes: Buffer, tape: Tape): ScannedRecord['page'] {
  const { records, cuts, inserts, counts, types } = tape;
  const count = counts[0]!;
  const size = bytes.length;
  if (cuts.length === 0) {
    // Plain arrays: a typed one costs a call of malloc, which is more than the scan of ten records.
    const ids = [...tape.ids];
    const [first] = types;
    const same = types.every((type) => type === first) ? first! : [...types];
    const identityOf = (index: number) =>
      identityAt(bytes, ids, typeof same === 'string' ? same : same[index]!, index);
    return {
      kind: 'bytes',
      bytes,
      at: [...records],
      count,
      size,
      identityAt: identityOf,
    };
  }
  // The bytes as they came are not kept, so the identities are read now.
  const identities = types.map((type, index) => identityAt(bytes, tape.ids, type, index));
  const start = records[0] ?? 0;
  const end = records.at(-1) ?? 0;
  const at: number[] = [];
  let shift = -start;
  let next = 0;
  for (let i = 0; i < records.length; i += 1) {
    while (next < cuts.length && cuts[next]! < records[i]!) {
      shift += inserts[next / 2]!.length - (cuts[next + 1]! - cuts[next]!);
      next += 2;
    }
    at.push(records[i]! + shift);
  }
  const own = cut(bytes, start, end, tape);
  return {
    kind: 'bytes',
    bytes: own,
    at,
    count,
    size: own.length,
    identityAt: (index) => identities[index] ?? null,
  };
}

function identityAt(
  bytes: Buffer,
  ids: ArrayLike<number>,
  type: string,
  index: number,
): string | null {
  const [start, end] = [ids[2 * index]!, ids[2 * index + 1]!];
  if (bytes[start] === 34 && end > start) return `${type}:${textAt(bytes, start + 1, end - 1)}`;
  return isNumberAt(bytes, start, end) ? `${type}:${bytes.toString('latin1', start, end)}` : null;
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
