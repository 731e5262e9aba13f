import { isNullableType } from 'graphql';
import { ownError, type UpstreamError } from '../../answers/answer-errors.ts';
import { envelopeScanner, member, OF, type Found } from '../../answers/envelope.ts';
import { NO_PAGES } from '../../answers/nulling-pages.ts';
import { readValue, type Reading } from '../../answers/read.ts';
import { scanner } from '../../answers/scan.ts';
import { objectShape, type Shape } from '../../answers/shape.ts';
import { cut, isKeptAsCame, type Tape } from '../../answers/tape.ts';
import type { TooBig } from '../../errors.ts';
import type { Json } from '../../json.ts';
import { MAX_SERVICE_CURSOR, type IdentityBytes } from '../../paging/cursor.ts';
import { identityHash, identityHasher, IdentitySet } from '../../paging/identities.ts';
import { identitiesFrom, identitiesOf, type Page, type PageIdentities } from '../../paging/page.ts';
import type { Pausable } from '../../pausable.ts';
import type { Adapter } from '../../schema/derived.ts';
import {
  isPlaceholder,
  ScannedPage,
  type ListRecord,
  type PageBytes,
  type RecordPage,
} from '../output.ts';
import type { ResultReading } from '../requests/results.ts';
import { identityFrom, type RecordIdentity } from './record-identity.ts';
import type { WayToParent } from './way-to-parent.ts';

/** The answer to the request for a page. */
export interface PageAnswer {
  /** Undefined if the answer holds no page. */
  readonly page: Page<ListRecord> | undefined;
  /** Whether the list is null without an error, as its type may allow. */
  readonly isNull: boolean;
  /** The unplaced errors, whose path leads to no record. */
  readonly errors: readonly UpstreamError[];
  /** The keys of the inlined pages whose failure also nulled their parent. */
  readonly nullingPages: ReadonlySet<string>;
  /** Why the page was refused as a whole, if that was for its size. */
  readonly tooBig?: TooBig | undefined;
}

/** The key of the page's count: see `PagedField.count`. */
export const COUNT_KEY = '_rsCount';

/** How a page is selected, and so what its answer consists of. */
export interface PageForm {
  readonly adapter: Adapter;
  readonly identity: RecordIdentity;
  /** The shapes of the records in each of its lists, and the keys of these lists. */
  readonly shapes: readonly Shape[];
  readonly keys: readonly string[];
  /** Fields of `pageInfo` with the page's size. */
  readonly sizes: readonly string[];
  readonly hasCount: boolean;
  /** The page may be a result. */
  readonly result: ResultReading;
  /** How a nested list is reached; undefined for a list at the root. */
  readonly way: WayToParent | undefined;
}

/** Makes a function that takes a page as bytes; it returns undefined for a page that has to be read in general. */
export function pageScanner({
  adapter: { name },
  identity: { values: idValues },
  shapes,
  keys,
  sizes,
  hasCount,
  result,
  way,
}: PageForm): (bytes: Buffer) => Pausable<ReachedPage | undefined> {
  const lists = shapes.map((of): Shape => ({ kind: 'list', of, nullable: false, type: '' }));
  const noted = [
    member('hasNextPage', { kind: 'boolean', nullable: false, type: '' }),
    member('endCursor', { kind: 'string', nullable: true, type: '' }),
    ...sizes.map((key) => member(key, { kind: 'int', nullable: true, type: '' })),
  ];
  const total = member(COUNT_KEY, { kind: 'int', nullable: true, type: '' });
  const page = result.shape(
    objectShape(OF, [
      ...lists.map((list, i) => member(keys[i]!, list)),
      member('pageInfo', objectShape(OF, noted)),
      ...(hasCount ? [total] : []),
    ]),
  );
  const list = member(name, page);
  const { root, id } = way?.shape(list) ?? { root: list, id: undefined };
  const hashing: Hashing = { hashers: new Map(), scratch: new IdentitySet() };
  const contentsOf = idValues > 1 ? composed(idValues) : identified;
  return envelopeScanner({
    scan: scanner(objectShape(OF, [root]), {
      lists: new Set(lists),
      noted: [...noted, total, ...(id ? [id] : [])],
      idValues,
    }),
    take: function* take(bytes, tape) {
      const { noted: at, counts } = tape;
      if (counts.some((count) => count !== counts[0])) return undefined;
      const [cursor, cursorEnd] = [at[2]!, at[3]!];
      // Possibly too long: with escapes, it has more bytes than characters.
      if (cursorEnd - cursor > MAX_SERVICE_CURSOR + QUOTES) return undefined;
      const textOf = (note: number) => bytes.toString('latin1', at[2 * note], at[2 * note + 1]);
      const size = sizes.length > 0 ? Number(textOf(2)) : 0;
      const count = hasCount ? textOf(noted.length) : 'null';
      const facts = {
        count: counts[0]!,
        hasNextPage: bytes[at[0]!] === 116,
        endCursor: bytes[cursor] === 110 ? null : textAt(bytes, cursor + 1, cursorEnd - 1),
        limit: size > 0 ? size : undefined,
        total: count === 'null' ? undefined : countFrom(count),
      };
      return {
        parentId: id && textOf(noted.length + 1),
        page: new ScannedPage(facts, yield* contentsOf(bytes, tape, hashing)),
        isNull: false,
        errors: NO_ERRORS,
        nullingPages: NO_PAGES,
      };
    },
  });
}

interface ReachedPage extends PageAnswer {
  /** As it was written; undefined if it is not requested. */
  readonly parentId: string | undefined;
}

const QUOTES = 2;

/**
 * Copies the records if something has to be cut out of them, or if the extensions are larger than they are; otherwise
 * refers to the bytes as they came.
 */
function* identified(bytes: Buffer, tape: Tape, hashing: Hashing): Pausable<PageBytes> {
  const count = tape.counts[0]!;
  const ids: PlacedIds = { bytes, count, at: tape.copyIds(), typeOf: typesOf(tape, count) };
  const at = tape.copyRecords();
  const records = [at[0] ?? 0, at.at(-1) ?? 0] as const;
  if (isKeptAsCame(records, tape)) return contentsAsCame(ids, at, hashing);
  const texts = Array.from({ length: count }, (_, i) => identityText(identityBytesIn(ids, i)));
  const copy = yield* cut(bytes, records, tape, at);
  return contentsOfCopy(copy, texts, hashed(ids, hashing));
}

/** The same for records that several values identify together. These are always cut out, so nothing refers to them. */
function composed(values: number) {
  return function* contents(bytes: Buffer, tape: Tape, { scratch }: Hashing): Pausable<PageBytes> {
    const [ids, at] = [tape.copyIds(), tape.copyRecords()];
    const texts: (string | null)[] = [];
    const parts: (string | undefined)[] = [];
    for (let record = 0; record < tape.counts[0]!; record += 1) {
      for (let value = 0; value < values; value += 1) {
        const place = 2 * (record * values + value);
        parts[value] = idAt(bytes, ids[place]!, ids[place + 1]!);
      }
      texts.push(identityFrom(tape.typeOf(record * values), parts));
    }
    const copy = yield* cut(bytes, [at[0] ?? 0, at.at(-1) ?? 0], tape, at);
    return contentsOfCopy(copy, texts, identitiesFrom(texts.map(hashOf), scratch));
  };
}

function contentsAsCame(ids: PlacedIds, at: readonly number[], hashing: Hashing): PageBytes {
  return {
    bytes: ids.bytes,
    at,
    identityAt: (index) => identityText(identityBytesIn(ids, index)),
    identityBytesAt: (index) => identityBytesIn(ids, index),
    // Later, so that the next page is requested first.
    identities: () => hashed(ids, hashing),
  };
}

/** In a function of its own: functions made beside each other share what they refer to, here the bytes as they came. */
function contentsOfCopy(
  copy: Pick<PageBytes, 'bytes' | 'at'>,
  texts: readonly (string | null)[],
  identities: PageIdentities,
): PageBytes {
  return {
    ...copy,
    identityAt: (index) => texts[index] ?? null,
    identityBytesAt: () => undefined,
    identities: () => identities,
  };
}

/** Where the ids of a page are, as they were written; 0 and 0 for a record without one. */
interface PlacedIds {
  readonly bytes: Buffer;
  readonly count: number;
  /** Start and end of each. */
  readonly at: readonly number[];
  /** The type of a record. */
  readonly typeOf: (index: number) => string;
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

interface Hashing {
  readonly hashers: Map<string, ReturnType<typeof identityHasher>>;
  /** See `identitiesFrom`. */
  readonly scratch: IdentitySet;
}

function hashed(ids: PlacedIds, { hashers, scratch }: Hashing): PageIdentities {
  const { bytes, count, at, typeOf } = ids;
  const hashes = Array<number>(count);
  // Most lists have records of one type.
  let type = count > 0 ? typeOf(0) : '';
  let hash = hasherOf(type, hashers);
  for (let i = 0; i < count; i += 1) {
    if (typeOf(i) !== type) hash = hasherOf((type = typeOf(i)), hashers);
    hashes[i] =
      hashAt(bytes, at[2 * i]!, at[2 * i + 1]!, hash) ??
      hashOf(identityText(identityBytesIn(ids, i)));
  }
  return identitiesFrom(hashes, scratch);
}

function hasherOf(type: string, hashers: Hashing['hashers']): ReturnType<typeof identityHasher> {
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
  const quote = quoteAt(bytes, start, end);
  return quote < 0 ? undefined : hash(bytes, start + quote, end - quote);
}

/** The text of a string or a number; undefined for any other value. */
function idAt(bytes: Buffer, start: number, end: number): string | undefined {
  const quote = quoteAt(bytes, start, end);
  return quote < 0 ? undefined : textAt(bytes, start + quote, end - quote);
}

/** Bytes of the quote around the text of an id: 1 for a string, 0 for a number, -1 for a value that is not an id. */
function quoteAt(bytes: Buffer, start: number, end: number): number {
  if (end <= start) return -1;
  const byte = bytes[start]!;
  if (byte === 34) return 1;
  return byte === 45 || (byte >= 48 && byte <= 57) ? 0 : -1;
}

function hashOf(identity: string | null): number {
  return identity === null ? NaN : identityHash(identity);
}

/** Undefined for a record without an id. */
function identityBytesIn(
  { bytes, at, typeOf }: PlacedIds,
  index: number,
): IdentityBytes | undefined {
  const [start, end] = [at[2 * index]!, at[2 * index + 1]!];
  const quote = quoteAt(bytes, start, end);
  if (quote < 0) return undefined;
  return { prefix: `${typeOf(index)}:`, bytes, start: start + quote, end: end - quote };
}

function identityText(identity: IdentityBytes | undefined): string | null {
  if (!identity) return null;
  const { prefix, bytes, start, end } = identity;
  return prefix + textAt(bytes as Buffer, start, end);
}

/** Decodes the characters between two quotes. */
function textAt(bytes: Buffer, start: number, end: number): string {
  for (let i = start; i < end; i += 1) {
    if (bytes[i]! > 126 || bytes[i] === 92)
      return JSON.parse(`"${bytes.toString('utf8', start, end)}"`) as string;
  }
  return bytes.toString('latin1', start, end);
}

/** Reads a page in general, whatever its form, and gives each record its own errors. */
export function* readPage(
  { adapter, identity, shapes, result, keys }: PageForm,
  answered: Found,
): Pausable<Omit<PageAnswer, 'nullingPages' | 'tooBig'>> {
  const read = result.read(answered);
  // All types of a result but the page are errors.
  if (read.kind !== 'wanted') {
    const failed = read.kind === 'failure' ? read.errors : answered.errors;
    return { page: undefined, isNull: false, errors: failed };
  }
  const { value, errors: all } = read.found;
  // Only the gateway asked for the count.
  const errors = all.filter(({ path }) => path?.[0] !== COUNT_KEY || value?.isNull !== false);
  const nullable = isNullableType(adapter.field.type) && value?.isNull === true;
  // A list that is null without an error, as its type allows, has no records.
  const ifNull = isNullableType(adapter.itemsType) && errors.length === 0 ? NO_RECORDS : undefined;
  const lists = keys.map((key) => {
    const items = value?.kind === 'object' ? value.get(key) : undefined;
    if (items?.kind === 'list') return Array.from(items.elements());
    return items?.isNull ? ifNull : undefined;
  });
  const pageInfo = value?.get('pageInfo');
  const hasNextPage = pageInfo?.get('hasNextPage');
  const [first] = lists;
  if (!first || lists.some((list) => !list) || hasNextPage?.kind !== 'boolean') {
    return { page: undefined, isNull: nullable && errors.length === 0, errors };
  }
  const endCursor = cursorFrom(pageInfo?.get('endCursor'));
  if (endCursor !== null && endCursor.length > MAX_SERVICE_CURSOR) {
    return { page: undefined, isNull: false, errors: [LONG_CURSOR] };
  }
  const { byRecord, unplaced } = sortErrors(errors, keys, first.length);
  const readings: Reading[][] = [];
  let memory = endCursor?.length ?? 0;
  for (const [selection, list] of lists.entries()) {
    const ofSelection: Reading[] = [];
    readings.push(ofSelection);
    for (let index = 0; index < first.length; index += 1) {
      const ofRecord = byRecord.get(`${selection}.${index}`) ?? NO_ERRORS;
      const reading = yield* readValue(shapes[selection]!, list![index], ofRecord);
      memory += bytesOf(reading);
      ofSelection.push(reading);
    }
  }
  const records: RecordPage = { kind: 'readings', readings, memory };
  const limit = Number(pageInfo?.get('first')?.raw);
  const total = value?.get(COUNT_KEY);
  const page: Page<ListRecord> = {
    items: first.map((record, index) => ({ identity: identity.of(record), page: records, index })),
    hasNextPage: hasNextPage.raw === 'true',
    endCursor,
    memory,
    limit: limit > 0 ? limit : undefined,
    total: total?.kind === 'number' ? countFrom(total.raw) : undefined,
    unplacedErrors: unplaced,
  };
  return {
    page: { ...page, identities: identitiesOf(page) },
    isNull: false,
    errors: unplaced,
  };
}

/** Undefined unless it is a number of records. */
function countFrom(text: string): number | undefined {
  const count = Number(text);
  return Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

function bytesOf({ parts = [] }: Reading): number {
  return parts.reduce((sum, part) => sum + (isPlaceholder(part) ? 0 : part.length), 0);
}

const LONG_CURSOR = ownError(
  'UPSTREAM_BAD_RESPONSE',
  `The recruiting service returned a page with a cursor of more than ${MAX_SERVICE_CURSOR} characters, which the gateway does not ` +
    'keep. Report this to the support of the service; the plain list of the service can still be read page by page.',
);

const NO_RECORDS: readonly Json[] = [];
const NO_ERRORS: readonly UpstreamError[] = [];

function cursorFrom(cursor: Json | undefined): string | null {
  // A part of the answer's text would keep all of it for as long as the cursor is remembered.
  const digits = cursor?.kind === 'number' ? Buffer.from(cursor.raw).toString('latin1') : undefined;
  return digits ?? cursor?.string ?? null;
}

/** Errors whose path leads to no record of the page belong to the list. */
function sortErrors(errors: readonly UpstreamError[], keys: readonly string[], count: number) {
  const byRecord = new Map<string, UpstreamError[]>();
  const unplaced: UpstreamError[] = [];
  for (const error of errors) {
    const [key, index, ...path] = error.path ?? [];
    const selection = keys.indexOf(String(key));
    if (selection < 0 || typeof index !== 'number' || index >= count) {
      unplaced.push(error);
      continue;
    }
    const name = `${selection}.${index}`;
    const ofRecord = byRecord.get(name) ?? [];
    ofRecord.push({ ...error, path });
    byRecord.set(name, ofRecord);
  }
  return { byRecord, unplaced };
}
