import {
  getNamedType,
  getNullableType,
  GraphQLInt,
  isNullableType,
  isRequiredArgument,
  Kind,
  OperationTypeNode,
  type ArgumentNode,
  type FieldNode,
  type GraphQLObjectType,
  type SelectionNode,
  type VariableDefinitionNode,
} from 'graphql';
import { astFromType } from '@graphql-tools/utils';
import type { UpstreamError } from '../answers/errors.ts';
import { descend, readAnswer, readValue, type Found, type Reading } from '../answers/read.ts';
import { createTape, cut, resetTape, scanner, type Tape } from '../answers/scan.ts';
import { keyBytesOf, shapeOf, type FieldShape, type KeyBytes, type ObjectShape, type Shape, type ShapeScope } from '../answers/shape.ts';
import type { Json } from '../json.ts';
import { identityHash, identityHasher } from '../paging/identity-set.ts';
import type { Page } from '../paging/page.ts';
import type { Adapter } from '../schema/derivation/adapter.ts';
import type { CallVariables, UpstreamRequest } from './call.ts';
import { ScannedRecord, type ListRecord, type RecordPage } from './list-record.ts';
import type { WantedPages } from './inlined-pages.ts';
import { identifyingFor, type RecordIdentity } from './record-identity.ts';
import { NOBODY, parentsTakenAlong } from './sparing-parents.ts';
import { field, notEmpty, writeRequest, type RequestWriter, type WrittenOperation } from './upstream-request.ts';
import type { WayToParent } from './way-to-parent.ts';

/** The pages of one list with what an operation selects of its records: written once, asked for again and again. */
export interface PageText {
  /** Of one record: the bytes of its keys, and of these what aliases add. */
  readonly keyBytes: KeyBytes;
  /** The same for all who ask for the same fields of the same records. */
  name(variables: CallVariables): string;
  request(variables: CallVariables, page: PageArguments, wanted?: WantedPages): UpstreamRequest<PageAnswer>;
  /** Reads a page that came along with its parent. @param keys the names of its lists of records, one for each place */
  readInlined(page: Json | undefined, errors: readonly UpstreamError[], keys: readonly string[]): PageAnswer;
}

export interface PageArguments {
  readonly first: number | undefined;
  readonly after: string | null;
  /** The parent's id as JSON, for a list below another object than the root. */
  readonly parentId?: string | undefined;
}

/** What came in answer to the request for a page. */
export interface PageAnswer {
  /** Undefined when what came is no page. */
  readonly page: Page<ListRecord> | undefined;
  /** The whole list is null, for no stated reason, as its type may allow. */
  readonly isNull: boolean;
  /** What stands at no record; of a page they are its `beside`. */
  readonly errors: readonly UpstreamError[];
  readonly takenAlong: ReadonlySet<string>;
}

export interface PageTextParts {
  readonly writer: RequestWriter;
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
  readonly adapter: Adapter;
  /** The arguments that the caller gave for it; those that are not the upstream's are left out. */
  readonly args: readonly ArgumentNode[];
  /** What to select of each record, once for each place of the operation that shows records. */
  readonly places: readonly (readonly SelectionNode[])[];
  /** How the list is reached, where it is not a field of the root. */
  readonly way?: WayToParent | undefined;
}

const PARENT_ID = '_rsParentId';
const FIRST = '_rs_first';
const AFTER = '_rs_after';

export function pageText(parts: PageTextParts): PageText {
  const { writer, operation, adapter, places, way } = parts;
  const identity = identifyingFor(writer.schema, adapter.nodeType, places[0] ?? []);
  const keys = places.map((_, place) => (place === 0 ? 'items' : `_rsItems${place}`));
  const lists = places.map((selections, place) =>
    field('items', {
      alias: keys[place],
      selections: notEmpty([...(place === 0 ? identity.selections : []), ...selections]),
    }),
  );
  const sizes = sizeFields(adapter);
  const info = field('pageInfo', {
    selections: ['hasNextPage', 'endCursor', ...sizes].map((name) => field(name)),
  });
  const filters = new Set(adapter.filters.map(({ name }) => name));
  const list: FieldNode = {
    ...field(adapter.name, { selections: [...lists, info] }),
    arguments: [
      argument('first', FIRST),
      argument('after', AFTER),
      ...parts.args.filter(({ name }) => filters.has(name.value)),
    ],
  };
  const variableDefinitions = [
    ...operation.variableDefinitions,
    ...definitions(adapter),
    ...(way?.definitions(PARENT_ID) ?? []),
  ];
  const write = (wanted: WantedPages) =>
    writeRequest(writer, { ...asQuery(operation), variableDefinitions }, [way ? way.wrap(list, PARENT_ID) : list], wanted);
  const whole = write('all');
  const shapes = places.map((selections, place) => recordShape(parts, place === 0 ? identity : undefined, selections));
  const scan = way ? undefined : pageScanner(adapter.name, keys, shapes, sizes);
  const reading: PageReading = { adapter, identity, shapes };

  return {
    keyBytes: keyBytesOf(shapes),
    name: whole.name,
    request: (variables, { first, after, parentId }, wanted = 'all') => {
      const written = wanted === 'all' ? whole : write(wanted);
      const values = { ...(first !== undefined && { [FIRST]: first }), ...(after !== null && { [AFTER]: after }) };
      const own = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]));
      return {
        kind: 'query',
        field: written.field,
        key: written.key(variables),
        body: written.body(variables, parentId === undefined ? own : { ...own, [PARENT_ID]: parentId }),
        pages: written.pages(variables, values),
        scan: (bytes) => scan?.(bytes),
        read: (answer) => {
          const { data: value, errors } = readAnswer(answer);
          const found = way
            ? way.descend({ value, errors }, { key: adapter.name, parentId })
            : descend({ value, errors }, [adapter.name]);
          return { ...readPage(reading, found, keys), takenAlong: parentsTakenAlong(value, errors) };
        },
      };
    },
    readInlined: (page, errors, inlined) => ({
      ...readPage(reading, { value: page, errors }, inlined),
      takenAlong: NOBODY,
    }),
  };
}

/** Lists below a mutation are read by queries, where the directives of a mutation may not stand. */
function asQuery(operation: WrittenOperation): WrittenOperation {
  if (operation.operation === OperationTypeNode.QUERY) return operation;
  return { ...operation, operation: OperationTypeNode.QUERY, directives: [] };
}

/** For a list that does not let `first` be left out (interface, section 8). */
const LARGEST_DOCUMENTED_PAGE = 50;

/** What to ask for where no size is wanted; undefined: nothing, so that the upstream gives its largest page. */
export function pageSizeOf({ field: list }: Adapter): number | undefined {
  return list.args.some((arg) => arg.name === 'first' && isRequiredArgument(arg))
    ? LARGEST_DOCUMENTED_PAGE
    : undefined;
}

/** The field of its pageInfo that tells the size which was really used, where there is one. */
function sizeFields({ field: list }: Adapter): readonly string[] {
  const page = getNamedType(list.type) as GraphQLObjectType;
  const pageInfo = getNamedType(page.getFields()['pageInfo']!.type) as GraphQLObjectType;
  const first = pageInfo.getFields()['first'];
  return first && getNullableType(first.type) === GraphQLInt ? ['first'] : [];
}

function argument(name: string, variable: string): ArgumentNode {
  return {
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: name },
    value: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: variable } },
  };
}

function definitions({ field: list }: Adapter): VariableDefinitionNode[] {
  return list.args
    .filter(({ name }) => name === 'first' || name === 'after')
    .map((arg) => ({
      kind: Kind.VARIABLE_DEFINITION,
      variable: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: `_rs_${arg.name}` } },
      // Where there is a default, leaving the variable out has to be allowed.
      type: astFromType(isRequiredArgument(arg) ? arg.type : getNullableType(arg.type)),
    }));
}

function recordShape(
  { scope, adapter }: PageTextParts,
  identity: ReturnType<typeof identifyingFor> | undefined,
  selections: readonly SelectionNode[],
): Shape {
  const shape = shapeOf(scope, adapter.recordType, selections);
  if (!identity) return shape;
  if (shape.kind === 'object') return identified(shape, adapter.nodeType as GraphQLObjectType, identity);
  if (shape.kind !== 'abstract') return shape;
  return {
    ...shape,
    of: (name) => {
      const one = shape.of(name);
      return one && identified(one, scope.schema.getType(one.type) as GraphQLObjectType, identity);
    },
  };
}

function identified(
  shape: ObjectShape,
  type: GraphQLObjectType,
  { ownKey, silentFields }: ReturnType<typeof identifyingFor>,
): ObjectShape {
  const own = (one: FieldShape) => (one.key === ownKey ? { ...one, idOf: type.name } : one);
  return { ...shape, fields: [...silentFields(type), ...shape.fields.map(own)] };
}

interface PageReading {
  readonly adapter: Adapter;
  readonly identity: RecordIdentity;
  readonly shapes: readonly Shape[];
}

/** Reads what came in place of a page, and gives each record its own errors. */
function readPage(
  { adapter, identity, shapes }: PageReading,
  { value, errors }: Found,
  keys: readonly string[],
): Omit<PageAnswer, 'takenAlong'> {
  const nullable = isNullableType(adapter.field.type) && (value === undefined || value.isNull);
  // A list that its type allows to be null, and that is so for no stated reason, holds nothing.
  const ifNull = isNullableType(adapter.itemsType) && errors.length === 0 ? NO_RECORDS : undefined;
  const lists = keys.map((key) => {
    const items = value?.kind === 'object' ? value.get(key) : undefined;
    if (items?.kind === 'list') return items.values;
    return value?.kind === 'object' && (items === undefined || items.isNull) ? ifNull : undefined;
  });
  const pageInfo = value?.get('pageInfo');
  const hasNextPage = pageInfo?.get('hasNextPage');
  const [first] = lists;
  if (!first || lists.some((list) => !list) || hasNextPage?.kind !== 'boolean') {
    return { page: undefined, isNull: nullable && errors.length === 0, errors };
  }
  const { byRecord, beside } = sortErrors(errors, keys, first.length);
  const readings = lists.map((list, of) =>
    first.map((_, place) => readValue(shapes[of]!, list![place], byRecord.get(`${of}.${place}`) ?? NO_ERRORS)),
  );
  const size = readings.reduce((sum, some) => sum + some.reduce((all, reading) => all + sizeOf(reading), 0), 0);
  const page: RecordPage = { kind: 'readings', readings, size };
  const limit = Number(pageInfo?.get('first')?.raw);
  return {
    page: {
      items: first.map((record, place) => ({ identity: identity.of(record), page, place })),
      hasNextPage: hasNextPage.raw === 'true',
      endCursor: cursorFrom(pageInfo?.get('endCursor')),
      limit: limit > 0 ? limit : undefined,
      beside,
    },
    isNull: false,
    errors: beside,
  };
}

function sizeOf({ parts = [] }: Reading): number {
  return parts.reduce((sum, part) => sum + (typeof part === 'string' ? part.length : 0), 0);
}

const NO_RECORDS: readonly Json[] = [];
const NO_ERRORS: readonly UpstreamError[] = [];

function cursorFrom(cursor: Json | undefined): string | null {
  return (cursor?.kind === 'number' ? cursor.raw : cursor?.string) ?? null;
}

/** What stands at no record that is there belongs to the list. */
function sortErrors(errors: readonly UpstreamError[], keys: readonly string[], count: number) {
  const byRecord = new Map<string, UpstreamError[]>();
  const beside: UpstreamError[] = [];
  for (const error of errors) {
    const [key, place, ...path] = error.path ?? [];
    const of = keys.indexOf(String(key));
    if (of < 0 || typeof place !== 'number' || place >= count) {
      beside.push(error);
      continue;
    }
    const there = byRecord.get(`${of}.${place}`) ?? [];
    there.push({ ...error, path });
    byRecord.set(`${of}.${place}`, there);
  }
  return { byRecord, beside };
}

/** Takes a page that is exactly as it was promised. */
function pageScanner(
  name: string,
  keys: readonly string[],
  shapes: readonly Shape[],
  sizes: readonly string[],
): (bytes: Buffer) => PageAnswer | undefined {
  const lists = shapes.map((of): Shape => ({ kind: 'list', of, nullable: false, type: '' }));
  const shown = (key: string, shape: Shape): FieldShape => ({ key, shape, isSilent: false });
  const noted = [
    shown('hasNextPage', { kind: 'boolean', nullable: false, type: '' }),
    shown('endCursor', { kind: 'string', nullable: true, type: '' }),
    ...sizes.map((key) => shown(key, { kind: 'int', nullable: true, type: '' })),
  ];
  const object = (fields: readonly FieldShape[]): ObjectShape => ({ kind: 'object', nullable: false, type: '', fields });
  const page = object([...lists.map((list, i) => shown(keys[i]!, list)), shown('pageInfo', object(noted))]);
  const scan = scanner(object([shown('data', object([shown(name, page)]))]), { lists: new Set(lists), noted });
  const tape = createTape();
  const hashers = new Map<string, ReturnType<typeof identityHasher>>();
  return (bytes) => {
    resetTape(tape);
    if (scan(bytes, 0, tape) !== bytes.length) return undefined;
    if (tape.counts.some((count) => count !== tape.counts[0])) return undefined;
    return { page: scannedPage(bytes, tape, hashers), isNull: false, errors: NO_ERRORS, takenAlong: NOBODY };
  };
}

type Hashers = Map<string, ReturnType<typeof identityHasher>>;

function scannedPage(bytes: Buffer, tape: Tape, hashers: Hashers): Page<ListRecord> {
  const { noted, counts, ids, types } = tape;
  const count = counts[0]!;
  const page = scannedRecords(bytes, tape);
  const items: ListRecord[] = [];
  const hashes = new Float64Array(count);
  for (let place = 0; place < count; place += 1) {
    items.push(new ScannedRecord(page, place));
    const [start, end, type] = [ids[2 * place]!, ids[2 * place + 1]!, types[place]!];
    hashes[place] = hashAt(bytes, start, end, hasherOf(type, hashers)) ?? hashOf(page.identityAt(place));
  }
  const size = noted.length > 4 ? Number(bytes.toString('latin1', noted[4], noted[5])) : 0;
  return {
    items,
    hasNextPage: bytes[noted[0]!] === 116,
    endCursor: bytes[noted[2]!] === 110 ? null : textAt(bytes, noted[2]! + 1, noted[3]! - 1),
    limit: size > 0 ? size : undefined,
    beside: NO_ERRORS,
    hashes,
  };
}

function hasherOf(type: string, hashers: Hashers): ReturnType<typeof identityHasher> {
  const known = hashers.get(type) ?? identityHasher(type);
  hashers.set(type, known);
  return known;
}

/** Undefined where the id has to be read as text. */
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

/** Without what is cut out of them, if something is. */
function scannedRecords(bytes: Buffer, tape: Tape): ScannedRecord['page'] {
  const { records, cuts, inserts, counts, types } = tape;
  const count = counts[0]!;
  const size = bytes.length;
  if (cuts.length === 0) {
    const ids = Int32Array.from(tape.ids);
    const [first] = types;
    const same = types.every((type) => type === first) ? first! : [...types];
    const identityOf = (place: number) => identityAt(bytes, ids, typeof same === 'string' ? same : same[place]!, place);
    return { kind: 'bytes', bytes, at: Int32Array.from(records), count, size, identityAt: identityOf };
  }
  // Of the bytes as they came nothing is kept.
  const identities = types.map((type, place) => identityAt(bytes, tape.ids, type, place));
  const start = records[0] ?? 0;
  const end = records.at(-1) ?? 0;
  const at = new Int32Array(records.length);
  let shift = -start;
  let next = 0;
  for (let i = 0; i < records.length; i += 1) {
    while (next < cuts.length && cuts[next]! < records[i]!) {
      shift += inserts[next / 2]!.length - (cuts[next + 1]! - cuts[next]!);
      next += 2;
    }
    at[i] = records[i]! + shift;
  }
  const own = cut(bytes, start, end, tape);
  return { kind: 'bytes', bytes: own, at, count, size: own.length, identityAt: (place) => identities[place] ?? null };
}

function identityAt(bytes: Buffer, ids: ArrayLike<number>, type: string, place: number): string | null {
  const [start, end] = [ids[2 * place]!, ids[2 * place + 1]!];
  if (bytes[start] === 34 && end > start) return `${type}:${textAt(bytes, start + 1, end - 1)}`;
  return isNumberAt(bytes, start, end) ? `${type}:${bytes.toString('latin1', start, end)}` : null;
}

function isNumberAt(bytes: Buffer, start: number, end: number): boolean {
  const byte = bytes[start]!;
  return end > start && (byte === 45 || (byte >= 48 && byte <= 57));
}

/** What the characters between two quotes stand for. */
function textAt(bytes: Buffer, start: number, end: number): string {
  for (let i = start; i < end; i += 1) {
    if (bytes[i]! > 126 || bytes[i] === 92) return JSON.parse(`"${bytes.toString('utf8', start, end)}"`) as string;
  }
  return bytes.toString('latin1', start, end);
}
