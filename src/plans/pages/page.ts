import {
  getNamedType,
  getNullableType,
  GraphQLError,
  GraphQLInt,
  isNullableType,
  isRequiredArgument,
  type ArgumentNode,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLInputType,
  type GraphQLObjectType,
  type SelectionNode,
  type VariableDefinitionNode,
} from 'graphql';
import {
  gatewayError,
  type AnswerError,
  type Path,
  type UpstreamError,
} from '../../answers/answer-errors.ts';
import {
  descend,
  envelopeScanner,
  member,
  NO_PAGES,
  OF,
  readEnvelope,
  type RequestOutcome,
  type ServiceValue,
} from '../../answers/envelope.ts';
import { readValue, type Reading } from '../../answers/read.ts';
import { cut, isKeptInPlace, scanner, type Tape } from '../../answers/scan.ts';
import {
  keyBytesOf,
  objectShape,
  shapeOf,
  type FieldShape,
  type KeyBytes,
  type ObjectShape,
  type Shape,
  type ShapeScope,
} from '../../answers/shape.ts';
import type { Cause } from '../../cause.ts';
import { codedError } from '../../errors.ts';
import type { Json } from '../../json.ts';
import { MAX_SERVICE_CURSOR, type IdentityBytes } from '../../paging/cursor.ts';
import { identityHash, identityHasher, IdentitySet } from '../../paging/identities.ts';
import type { PageSizes } from '../../paging/list-walk.ts';
import {
  identitiesFrom,
  identitiesOf,
  sizeOf,
  type FetchPage,
  type Identified,
  type Page,
  type PageIdentities,
} from '../../paging/page.ts';
import type { Pausable } from '../../pausable.ts';
import { LARGEST_PAGE, type Adapter } from '../../schema/derived.ts';
import type { CallVariables, Requester, UpstreamRequest } from '../call.ts';
import {
  isPlaceholder,
  ScannedPage,
  type ListRecord,
  type PageBytes,
  type RecordPage,
} from '../output.ts';
import type { Accepted, AcceptedSizes, SizedList } from '../requests/accepted-sizes.ts';
import {
  argumentNode,
  fieldNode,
  orTypename,
  variableDefinitionNode,
  writeRequest,
  type PagesToInline,
  type RequestWriter,
  type WrittenOperation,
} from '../requests/request-text.ts';
import { resultReading, type ResultReading, type ResultTelemetry } from '../requests/results.ts';
import { identifyingFor, identityFrom, type RecordIdentity } from './record-identity.ts';
import type { WayToParent } from './way-to-parent.ts';

/*
 * The pages of one list: `pageRequests` writes their requests once for an operation, `pageScanner` and `readPage` read
 * what the service answers, and `pageFetcher` makes a function of both that walks and connections read pages with.
 */

export interface PageTelemetry extends ResultTelemetry {
  /** @param cause identifies the caller's request */
  pageRead(cause: Cause | undefined): void;
}

/** One list as a call reads it. */
export interface PageSource {
  readonly adapter: Adapter;
  readonly requests: PageRequests;
  readonly variables: CallVariables;
  readonly telemetry: PageTelemetry;
  readonly sizes: AcceptedSizes;
  /** As JSON, for a nested list that is reached by its parent's id. */
  readonly parentId?: string | undefined;
  /** The first page, if the request for the parent had it inlined. */
  readonly inlinedPage?: PageAnswer | undefined;
  /** Returned for every further page if the pages cannot be requested. */
  readonly unreachable?: PageAnswer | undefined;
}

/** The errors that the service returned instead of a page. */
export class PageFailure extends GraphQLError {
  override name = 'PageFailure';
  readonly errors: readonly UpstreamError[];
  constructor(errors: readonly UpstreamError[]) {
    const { message, code, result } = errors[0]!;
    super(message, {
      extensions: { code, ...(result !== undefined && { result: JSON.parse(result) as unknown }) },
    });
    this.errors = errors;
  }
}

/** The service returned null for the whole list, as its type allows: then the derived field is null too. */
export class NullList extends Error {
  override name = 'NullList';
}

/** The answer to the request for a page. */
export interface PageAnswer extends RequestOutcome {
  /** Undefined if the answer holds no page. */
  readonly page: Page<ListRecord> | undefined;
  /** Whether the list is null without an error, as its type may allow. */
  readonly isNull: boolean;
  /** The unplaced errors, whose path leads to no record. */
  readonly errors: readonly UpstreamError[];
}

/** Makes a function that fetches the pages of a list. Other operations may share the pages. */
export function pageFetcher(
  {
    adapter,
    requests,
    variables,
    telemetry,
    sizes,
    parentId,
    inlinedPage,
    unreachable,
  }: PageSource,
  requester: Requester,
): FetchPage<ListRecord> {
  const pageSize = pageSizeOf(adapter);
  const { sized } = requests;
  let inlined = inlinedPage;
  return async ({ first, after }, signal) => {
    // After an abort the request is not awaited, so its failure would be an unhandled rejection.
    signal.throwIfAborted();
    let answer = after === null ? inlined : undefined;
    if (answer) {
      inlined = undefined;
      const { page: begin = Infinity } = adapter;
      if (begin < (first ?? Infinity)) {
        return partOf({ answer, records: begin, isPart: true }, after);
      }
    } else if (unreachable) answer = unreachable;
    else {
      const sending = sizes.request<PageAnswer>(sized, first ?? pageSize, {
        // Leaving out a variable leaves out its argument, so the upstream's default applies.
        write: ({ records, isPart }, pages) =>
          requests.request(variables, { first: records, after, parentId, isPart }, pages),
        // Other pages wait for the outcome of a trial.
        send: (request) =>
          requester.request(request, request.trialMs === undefined ? signal : undefined),
      });
      const accepted = await unlessAborted(sending, signal);
      telemetry.pageRead(requester.cause);
      if (accepted.isPart) return partOf(accepted, after);
      ({ answer } = accepted);
    }
    return pageIn(answer, after);
  };

  /** Returns a page that has fewer records than a whole page on purpose, unless the service's limit is even smaller. */
  function partOf(
    { answer, records = 0 }: Accepted<PageAnswer>,
    after: string | null,
  ): Page<ListRecord> {
    const page = pageIn(answer, after);
    // Unless the service says how large its pages are, a page that lacks a few records proves nothing.
    const isCut = page.hasNextPage && 2 * sizeOf(page) < records;
    const limit = page.limit ?? (isCut ? sizeOf(page) : records);
    if (limit < records) {
      sizes.exceedsLimit(sized);
      return page;
    }
    return page instanceof ScannedPage
      ? page.asPart()
      : { ...page, limit: undefined, isPart: true };
  }
}

/** Waits for a promise that others may wait for too. @throws the reason of the signal, as soon as it is aborted */
function unlessAborted<T>(awaited: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason as Error);
    signal.addEventListener('abort', leave);
    const settle = (deliver: (outcome: T) => void) => (outcome: T) => {
      signal.removeEventListener('abort', leave);
      deliver(outcome);
    };
    awaited.then(settle(resolve), settle(reject));
  });
}

function pageIn({ page, errors, isNull }: PageAnswer, after: string | null): Page<ListRecord> {
  if (page) return page;
  if (errors.length > 0) throw new PageFailure(errors);
  throw isNull && after === null ? new NullList() : noPage();
}

/**
 * Adds the identities of records that are null because one of their fields failed: their cursors need them. Their pages
 * are requested once more, without these fields. If that fails too, the page is returned as it was read.
 */
export function namingFailed(
  fetchPage: FetchPage<ListRecord>,
  fetchIdentities: FetchPage<Identified>,
): FetchPage<ListRecord> {
  return async (request, signal) => {
    const page = await fetchPage(request, signal);
    if (page instanceof ScannedPage || !page.items.some(hasFailed)) return page;
    const named = await fetchIdentities(request, signal).catch(() => undefined);
    signal.throwIfAborted();
    // The list may have changed.
    const isSame = page.items.every(
      ({ identity }, at) => identity === null || identity === named?.items[at]?.identity,
    );
    if (!named || !isSame) return page;
    const items = page.items.map((record, at) =>
      hasFailed(record) ? { ...record, identity: named.items[at]?.identity ?? null } : record,
    );
    const { identities: _, ...facts } = page;
    return { ...facts, items };
  };
}

function hasFailed({ identity, page, index }: ListRecord): boolean {
  if (identity !== null || page.kind === 'bytes') return false;
  return page.readings.some((readings) => readings[index]!.errors.length > 0);
}

/** Returns the errors of a list that could not be read; an empty list where the service returned null for it. */
export function errorsOfList(error: unknown, path: Path): AnswerError[] {
  if (error instanceof NullList) return [];
  if (error instanceof PageFailure) return error.errors.map((each) => ({ ...each, path }));
  const cause = error instanceof Error ? error.cause : undefined;
  const others = cause instanceof PageFailure ? cause.errors.slice(1) : [];
  return [{ thrown: error, path }, ...others.map((each) => ({ ...each, path }))];
}

function noPage(): GraphQLError {
  return codedError(
    'UPSTREAM_BAD_RESPONSE',
    'The recruiting service returned a page without items or pageInfo. Try again later.',
  );
}

/** Makes the requests for the pages of one list, with what an operation selects of its records. Written once. */
export interface PageRequests {
  /** The bytes that the keys of one record take, and how many of them are due to aliases. */
  readonly keyBytes: KeyBytes;
  /** Equal for operations that select the same fields of the same records. */
  name(variables: CallVariables): string;
  /** How large its pages may be: see accepted-sizes.ts. */
  readonly sized: SizedList;
  request(
    variables: CallVariables,
    page: PageArguments,
    pages?: PagesToInline,
  ): UpstreamRequest<PageAnswer>;
  /** Reads a first page that was inlined. @param keys of its lists of records, one for each selection */
  readInlined(
    page: Json | undefined,
    errors: readonly UpstreamError[],
    keys: readonly string[],
  ): Pausable<PageAnswer>;
}

interface PageArguments {
  readonly first: number | undefined;
  readonly after: string | null;
  /** Whether fewer records are requested than are needed: the page costs its share of a whole one. Default: false. */
  readonly isPart?: boolean;
  /** The parent's id as JSON, for a nested list. */
  readonly parentId?: string | undefined;
}

interface PageRequestParts {
  readonly writer: RequestWriter;
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
  readonly adapter: Adapter;
  /** As the caller wrote them. Only those that the upstream knows are sent. */
  readonly args: readonly ArgumentNode[];
  /** The selections of each record: several where a connection selects both `nodes` and `edges { node }`. */
  readonly recordSelections: readonly (readonly SelectionNode[])[];
  /** Whether the count of the pages is requested, where they have one. */
  readonly counts: boolean;
  /** How a nested list is reached. */
  readonly way?: WayToParent | undefined;
  readonly telemetry: PageTelemetry;
}

const PARENT_ID = '_rsParentId';
const FIRST = '_rs_first';
const AFTER = '_rs_after';

export function pageRequests(parts: PageRequestParts): PageRequests {
  const { writer, scope, operation, adapter, recordSelections, way } = parts;
  const identity = identifyingFor(
    writer.schema,
    adapter,
    recordSelections[0] ?? [],
    scope.globalIds,
  );
  const keys = recordSelections.map((_, i) => (i === 0 ? 'items' : `_rsItems${i}`));
  const lists = recordSelections.map((selections, i) =>
    fieldNode('items', {
      alias: keys[i],
      selections: orTypename([...(i === 0 ? identity.selections : []), ...selections]),
    }),
  );
  const sizes = sizeFields(adapter);
  const info = fieldNode('pageInfo', {
    selections: ['hasNextPage', 'endCursor', ...sizes].map((name) => fieldNode(name)),
  });
  const counts = parts.counts ? countFields(adapter) : [];
  const result = resultReading(adapter.result, scope, parts.telemetry);
  const filters = new Set(adapter.filters.map(({ name }) => name));
  const args = [
    argumentNode(adapter.first.name, FIRST),
    argumentNode(adapter.after.name, AFTER),
    ...parts.args.filter(({ name }) => filters.has(name.value)),
  ];
  const list = fieldNode(adapter.name, {
    selections: result.select([...lists, info, ...counts]),
    args,
  });
  const root = [way ? way.wrap(list, PARENT_ID) : list];
  const variableDefinitions = [
    ...operation.variableDefinitions,
    ...definitions(adapter),
    ...(way?.definitions(PARENT_ID) ?? []),
  ];
  const write = (pages: PagesToInline) =>
    writeRequest(writer, { ...operation, variableDefinitions }, root, pages, scope);
  const whole = write('all');
  const shapes = recordSelections.map((selections, i) =>
    recordShape(parts, i === 0 ? identity : undefined, selections),
  );
  const form: PageForm = {
    adapter,
    identity,
    shapes,
    keys,
    sizes,
    hasCount: counts.length > 0,
    result,
    way,
  };
  const scan = pageScanner(form);

  return {
    keyBytes: keyBytesOf(shapes),
    name: whole.name,
    sized: {
      list: `${adapter.parent}.${adapter.name}`,
      selection: whole.selection,
      begin: adapter.page,
      hasInlinedPages: whole.hasInlinedPages,
    },
    request: (variables, { first, after, parentId, isPart = false }, pages = 'all') => {
      const written = pages === 'all' ? whole : write(pages);
      const values: Record<string, unknown> = {};
      const added: Record<string, string> = {};
      if (first !== undefined) added[FIRST] = String((values[FIRST] = first));
      if (after !== null) added[AFTER] = JSON.stringify((values[AFTER] = after));
      if (parentId !== undefined) added[PARENT_ID] = parentId;
      return {
        kind: 'query',
        key: written.key(variables),
        body: written.body(variables, added),
        pages: isPart
          ? (written.pages(variables, { [FIRST]: LARGEST_PAGE }) * (first ?? 1)) / LARGEST_PAGE
          : written.pages(variables, values),
        scan: way
          ? function* scanned(bytes) {
              const page = yield* scan(bytes);
              return page && way.isReached(page.parentId, parentId) ? page : undefined;
            }
          : scan,
        read: function* read(answer, status) {
          const { data: value, errors, nullingPages, tooBig } = yield* readEnvelope(answer, status);
          const ofList = way
            ? way.descend({ value, errors }, { key: adapter.name, parentId })
            : descend({ value, errors }, [adapter.name]);
          return { ...(yield* readPage(form, ofList)), nullingPages, tooBig };
        },
      };
    },
    readInlined: function* readInlined(page, errors, inlined) {
      return {
        ...(yield* readPage({ ...form, keys: inlined }, { value: page, errors })),
        nullingPages: NO_PAGES,
      };
    },
  };
}

/** The `first` to send for the largest page; undefined to leave it out, so that the upstream's own limit applies. */
export function pageSizeOf({ first }: Adapter): number | undefined {
  return isRequiredArgument(first) ? LARGEST_PAGE : undefined;
}

/** The sizes to request pages in, where the service requires one. */
export function pageSizesOf(adapter: Adapter): PageSizes | undefined {
  const usual = pageSizeOf(adapter);
  return usual === undefined ? undefined : { usual, largest: LARGEST_TRIED };
}

/** The largest page limit that is known of services of this kind. */
const LARGEST_TRIED = 200;

/** Selects the count of a page, if it has one. */
export function countFields({ count }: Adapter): readonly FieldNode[] {
  return count === undefined ? [] : [fieldNode(count, { alias: COUNT_KEY })];
}

/** The field of `pageInfo` with the page size that the upstream used, if there is one. */
function sizeFields({ pageType }: Adapter): readonly string[] {
  const pageInfo = getNamedType(pageType.getFields()['pageInfo']!.type) as GraphQLObjectType;
  const first = pageInfo.getFields()['first'];
  return first && getNullableType(first.type) === GraphQLInt ? ['first'] : [];
}

function definitions({ first, after }: Adapter): VariableDefinitionNode[] {
  return [
    variableDefinitionNode(FIRST, variableType(first)),
    variableDefinitionNode(AFTER, variableType(after)),
  ];
}

/** An argument with a default may be left out, and so may its variable. */
function variableType(arg: GraphQLArgument): GraphQLInputType {
  return isRequiredArgument(arg) ? arg.type : getNullableType(arg.type);
}

function recordShape(
  { scope, adapter }: PageRequestParts,
  identity: ReturnType<typeof identifyingFor> | undefined,
  selections: readonly SelectionNode[],
): Shape {
  const shape = shapeOf(scope, adapter.recordType, selections);
  if (!identity) return shape;
  if (shape.kind === 'object')
    return withIdentity(shape, adapter.nodeType as GraphQLObjectType, identity);
  if (shape.kind !== 'abstract') return shape;
  return {
    ...shape,
    of: (name) => {
      const record = shape.of(name);
      const type = record && (scope.schema.getType(record.type) as GraphQLObjectType);
      return record && withIdentity(record, type!, identity);
    },
  };
}

function withIdentity(
  shape: ObjectShape,
  type: GraphQLObjectType,
  { ownKey, silentFields }: ReturnType<typeof identifyingFor>,
): ObjectShape {
  const marked = (field: FieldShape) =>
    field.key === ownKey ? { ...field, idOf: type.name } : field;
  return { ...shape, fields: [...silentFields(type), ...shape.fields.map(marked)] };
}

/** The key of the page's count: see `PagedField.count`. */
const COUNT_KEY = '_rsCount';

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
 * refers to the received bytes.
 */
function* identified(bytes: Buffer, tape: Tape, hashing: Hashing): Pausable<PageBytes> {
  const count = tape.counts[0]!;
  const ids: PlacedIds = { bytes, count, at: tape.copyIds(), typeOf: typesOf(tape, count) };
  const at = tape.copyRecords();
  const records = [at[0] ?? 0, at.at(-1) ?? 0] as const;
  if (isKeptInPlace(records, tape)) return contentsInPlace(ids, at, hashing);
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

function contentsInPlace(ids: PlacedIds, at: readonly number[], hashing: Hashing): PageBytes {
  return {
    bytes: ids.bytes,
    at,
    identityAt: (index) => identityText(identityBytesIn(ids, index)),
    identityBytesAt: (index) => identityBytesIn(ids, index),
    // Later, so that the next page is requested first.
    identities: () => hashed(ids, hashing),
  };
}

/** A separate function, because closures of one scope keep alive all that any of them refers to: the received bytes. */
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

/** Reads a page of any form, and gives each record its errors. */
function* readPage(
  { adapter, identity, shapes, result, keys }: PageForm,
  answered: ServiceValue,
): Pausable<Omit<PageAnswer, 'nullingPages' | 'tooBig'>> {
  const read = result.read(answered);
  // All types of a result but the page are errors.
  if (read.kind !== 'success') {
    const failed = read.kind === 'failure' ? read.errors : answered.errors;
    return { page: undefined, isNull: false, errors: failed };
  }
  const { value, errors: all } = read.answered;
  // The caller did not select the count.
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

const LONG_CURSOR = gatewayError(
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
