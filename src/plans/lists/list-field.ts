import { hash, randomUUID } from 'node:crypto';
import { getArgumentValues } from '@graphql-tools/utils';
import {
  getNamedType,
  Kind,
  print,
  visit,
  type ASTNode,
  type FieldNode,
  type GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type SelectionNode,
} from 'graphql';
import type { AnswerError, Path, UpstreamError } from '../../answers/answer-errors.ts';
import {
  collectFields,
  isStreamed,
  refusedStream,
  type CollectedField,
  type DeferUse,
  type SelectionScope,
} from '../../answers/collect-fields.ts';
import type { Placeholder } from '../../answers/read.ts';
import type { ShapeScope } from '../../answers/shape.ts';
import { codedError } from '../../errors.ts';
import {
  checkedCount,
  checkedCounts,
  readBackward,
  readForward,
  type Edge,
  type Slice,
  type SliceEnd,
} from '../../paging/connection.ts';
import {
  CursorEncoder,
  decodeCursor,
  type PageBounds,
  type PlacedRecord,
  type Position,
} from '../../paging/cursor.ts';
import { drainPages, interrupted, type DrainedPage } from '../../paging/drain.ts';
import { positionOf } from '../../paging/walk.ts';
import { atOnce } from '../../pausable.ts';
import { argumentsOf } from '../../schema/derived-fields.ts';
import {
  LARGEST_PAGE,
  type Adapter,
  type DerivedField,
  type NestedAdapter,
} from '../../schema/derived.ts';
import { streamAt, type StreamArguments } from '../../schema/incremental-directives.ts';
import { selectionsOf } from '../../selections.ts';
import type { Call, CallVariables, Requester } from '../call.ts';
import {
  holdPage,
  holdPages,
  Later,
  writePageRecords,
  writeRecord,
  writeRecords,
  type FieldValue,
  type ListRecord,
  type Output,
  type StreamedList,
} from '../output.ts';
import {
  errorsOfList,
  namingFailed,
  NullList,
  pageFetcher,
  pageRequests,
  pageSizesOf,
  type PageAnswer,
  type PageRequests,
  type PageSource,
  type PageTelemetry,
} from '../pages/page.ts';
import { wayToParent, withoutId } from '../pages/way-to-parent.ts';
import type { AcceptedSizes } from '../requests/accepted-sizes.ts';
import type { RequestWriter, WrittenOperation } from '../requests/request-text.ts';
import type { DrainArguments, DrainedList, Drains } from './drains.ts';

/** Shared by all derived fields of a variant. */
export interface FieldParts {
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
  readonly writer: RequestWriter;
  readonly drains: Drains;
  readonly telemetry: PageTelemetry;
  readonly sizes: AcceptedSizes;
  readonly connectionMax: number;
}

/** A derived field of a list, as a caller selects it. */
interface SelectedList {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
}

/** One `all…` or `…Connection` field of an operation: made once, opened in every call. */
export interface ListField {
  readonly adapter: Adapter;
  readonly key: string;
  /** The error of a `@stream` whose condition is null, for an `all…` field. */
  readonly refusal: GraphQLError | undefined;
  /** Undefined for an `all…` field. */
  readonly connection: ConnectionShape | undefined;
  readonly argumentsOf: (variables: CallVariables) => ListArguments;
  /** Requests pages with what is selected of the records. */
  readonly shown: PageRequests;
  /** Requests pages with nothing of the records but their identities. */
  readonly bare: () => PageRequests;
  readonly parts: FieldParts;
}

export function listField(
  parts: FieldParts,
  derived: DerivedField<'all' | 'connection'>,
  { key, nodes }: SelectedList,
): ListField {
  const { kind, adapter } = derived;
  const { writer, scope, operation } = parts;
  const node = nodes[0]!;
  const selections = selectionsOf(nodes);
  const connection =
    kind === 'connection' ? connectionShape(scope, adapter.connection!, selections) : undefined;
  const recordSelections = connection
    ? connection.recordSelections.map((selection) => selection.selections)
    : [selections];
  const way =
    'reach' in adapter
      ? wayToParent(adapter.parent, (adapter as NestedAdapter).reach, scope, parts.telemetry)
      : undefined;
  const requests = (of: typeof recordSelections, counts: boolean) =>
    pageRequests({
      writer,
      scope,
      operation,
      adapter,
      args: node.arguments ?? [],
      recordSelections: of,
      counts,
      way,
      telemetry: parts.telemetry,
    });
  let bare: PageRequests | undefined;
  return {
    adapter,
    key,
    refusal: kind === 'all' ? refusedStream(scope, nodes) : undefined,
    connection,
    argumentsOf: listArguments(
      definitionOf(scope, adapter, node),
      node,
      argumentsOf(derived),
      operation,
    ),
    shown: requests(recordSelections.length > 0 ? recordSelections : [[]], kind === 'all'),
    bare: () => (bare ??= requests([[]], true)),
    parts,
  };
}

/** One list as one call reads it: a list at the root, or the nested list of one parent. */
interface OpenedList {
  readonly field: ListField;
  readonly call: Call;
  readonly args: ListArguments['values'];
  readonly keys: ListKeys;
  readonly isNested: boolean;
  /** @param what `bare`: nothing of the records but their identities */
  source(what: 'shown' | 'bare'): PageSource;
  /** @param selection as in DrainedList */
  drained(source: PageSource, selection: string | undefined): DrainedList;
}

/**
 * Reads a list, and returns its value.
 *
 * @param streams in an answer in parts
 * @param placeholder of a nested list; undefined at the root
 */
export function readList(
  field: ListField,
  call: Call,
  path: Path,
  streams?: FieldStreams,
  placeholder?: Placeholder,
): Promise<FieldValue> {
  const open = () => openList(field, call, placeholder);
  return field.connection ? readConnection(open, path, streams) : readAll(open, path, streams);
}

/** @param placeholder of a nested list; undefined at the root @throws BAD_USER_INPUT */
function openList(field: ListField, call: Call, placeholder?: Placeholder): OpenedList {
  const { adapter, parts } = field;
  const { variables } = call;
  const args = field.argumentsOf(variables);
  const parent = placeholder && parentOf(field, placeholder);
  const keys = args.keysOf(parent?.name ?? adapter.name, parent?.walkName);
  const sourceOf: OpenedList['source'] = (what) => ({
    adapter,
    variables,
    telemetry: parts.telemetry,
    sizes: parts.sizes,
    requests: what === 'shown' ? field.shown : field.bare(),
    ...parent?.source,
    ...(what === 'shown' && parent && { inlinedPage: parent.inlinedPage }),
  });
  return {
    field,
    call,
    args: args.values,
    keys,
    isNested: placeholder !== undefined,
    source: sourceOf,
    drained: (source, selection) => ({
      key: keys.walk,
      field: `${adapter.parent}.${adapter.name}`,
      fetcher: (requester) => pageFetcher(source, requester),
      identities: (requester) => pageFetcher(sourceOf('bare'), requester),
      selection,
      sizeNow: () => parts.sizes.of(source.requests.sized),
      // The size of a page that is inlined is that of its request.
      pageSizes: source.inlinedPage ? undefined : pageSizesOf(adapter),
      isNested: placeholder !== undefined,
      hasInlinedPage: source.inlinedPage !== undefined,
    }),
  };
}

function definitionOf(
  { schema }: ShapeScope,
  { parent }: Adapter,
  node: FieldNode,
): GraphQLField<unknown, unknown> {
  return (schema.getType(parent) as GraphQLObjectType).getFields()[node.name.value]!;
}

interface Parent {
  readonly name: string;
  /** Unique for a parent without an id, so that its list is never mistaken for another parent's. */
  readonly walkName: string;
  readonly source: Pick<PageSource, 'parentId' | 'unreachable'>;
  readonly inlinedPage: PageAnswer | undefined;
}

function parentOf(
  { adapter, shown, connection }: ListField,
  { id, page, errors }: Placeholder,
): Parent {
  const { parent, reach } = adapter as NestedAdapter;
  const isPlain = id?.kind === 'string' || id?.kind === 'number';
  const text = isPlain ? (id.string ?? id.raw) : undefined;
  const list = `${parent}.${adapter.name}`;
  const name = text === undefined ? list : `${list}(${JSON.stringify(text)})`;
  const isOnly = reach.kind === 'path' && !reach.hasId;
  const selections = connection?.recordSelections ?? [];
  const keys = selections.length > 0 ? selections.map(({ itemsKey }) => itemsKey) : ['items'];
  return {
    name,
    walkName: text === undefined && !isOnly ? `${list}#${randomUUID()}` : name,
    source: {
      parentId: isPlain ? id.raw : undefined,
      unreachable:
        reach.kind === 'id' && !isPlain ? unreachable(withoutId(parent).errors) : undefined,
    },
    // Undefined for a list that starts after a cursor, and where the failure of the page would null its parent.
    inlinedPage: page && atOnce(shown.readInlined(page, errors, keys)),
  };
}

function unreachable(errors: readonly UpstreamError[]): PageAnswer {
  return { page: undefined, isNull: false, errors, nullingPages: new Set() };
}

/*
 * A whole list is all its parts
 *
 * A list is read in parts, a page each. An answer in one piece has all of them; with `@stream`, the answer has the
 * first elements, and the other parts are sent as they are read.
 */

/** How the lists of a root field are sent, in an answer in parts. */
export interface FieldStreams {
  /** By the keys of lists: of `edges` and `nodes`, or of the field itself. Other lists are sent whole. */
  readonly lists: ReadonlyMap<string, StreamArguments>;
  /** Called with what ends the reading of the field, for a stream that ends before it. */
  readonly onOpen: (end: () => Promise<unknown>) => void;
}

/**
 * Returns how the lists of a field are streamed.
 *
 * @throws BAD_USER_INPUT if a list is selected at several places and streamed in different ways
 */
export function streamedLists(
  { key, connection }: ListField,
  nodes: readonly FieldNode[],
  { values }: CallVariables,
): FieldStreams['lists'] {
  const lists = new Map<string, StreamArguments>();
  const add = (path: readonly string[], selected: readonly FieldNode[]) => {
    const stream = agreed(path, selected, values);
    if (stream) lists.set(path.at(-1)!, stream);
  };
  if (!connection) add([key], nodes);
  for (const field of connection?.fields ?? []) {
    if (field.kind === 'edges' || field.kind === 'nodes') add([key, field.key], field.nodes);
  }
  return lists;
}

/** Returns how all these nodes stream the list. @throws BAD_USER_INPUT */
function agreed(
  path: Path,
  nodes: readonly FieldNode[],
  variables: CallVariables['values'],
): StreamArguments | undefined {
  const [stream, ...others] = nodes.map((node) => streamAt(node, variables));
  const isSame = (other: StreamArguments | undefined) =>
    other?.initialCount === stream?.initialCount && other?.label === stream?.label;
  if (others.every(isSame)) return stream;
  throw codedError(
    'BAD_USER_INPUT',
    `The operation selects ${path.join('.')} at several places: stream it at each of them, with the same initialCount and no label, or give it another alias.`,
  );
}

interface Elements<E> {
  readonly length: number;
  slice(start: number, end?: number): E;
}

interface ListPart<E> {
  readonly records: E;
  readonly unplacedErrors: readonly unknown[];
}

interface PartSource<E, P> {
  /** Begins to read the list. */
  readonly open: () => AsyncGenerator<P, void, undefined>;
  /** The path of unplaced errors. */
  readonly errorsAt: Path;
  /** Awaited before a part is written into an answer that keeps it. */
  readonly hold?: (part: P) => Promise<void> | undefined;
  /** @returns false when an element is null that must not be */
  readonly write: (
    elements: E,
    output: Output,
    at: { readonly path: Path; readonly offset: number },
  ) => boolean;
  /** Returns the extensions, as JSON, of the part that has the last elements of this one. */
  readonly extensions?: (part: P) => string;
}

/** A list that is read in parts. Without a stream, its first elements are all of them. */
class ListInParts<E extends Elements<E>, P extends ListPart<E>> implements StreamedList {
  readonly path: Path;
  readonly label: string | undefined;
  readonly #initialCount: number | undefined;
  readonly #source: PartSource<E, P>;
  #parts: AsyncGenerator<P, void, undefined> | undefined;
  /** The elements after the first ones, in the same part as the last of those. */
  #rest: { readonly part: P; readonly elements: E } | undefined;
  #failure: { readonly error: unknown } | undefined;
  #sent = 0;

  constructor(path: Path, stream: StreamArguments | undefined, source: PartSource<E, P>) {
    this.path = path;
    this.label = stream?.label;
    this.#initialCount = stream?.initialCount;
    this.#source = source;
  }

  get sent(): number {
    return this.#sent;
  }

  /** Writes the first elements. @returns false when one of them is null that must not be */
  async begin(output: Output): Promise<boolean> {
    const { hold } = this.#source;
    const count = this.#initialCount ?? Infinity;
    try {
      while (this.#sent < count) {
        const { done, value: part } = await this.#read();
        if (done) break;
        const waiting = hold?.(part);
        if (waiting) await waiting;
        const { records, unplacedErrors } = part;
        const first = records.slice(0, count - this.#sent);
        if (this.#sent > 0 && first.length > 0) output.parts.push(',');
        this.#report(unplacedErrors, output);
        if (!this.#write(first, output)) {
          await this.end();
          return false;
        }
        if (first.length < records.length) {
          this.#rest = { part, elements: records.slice(first.length) };
        }
      }
    } catch (error) {
      if (this.#initialCount === undefined || this.#sent === 0) {
        await this.end();
        throw error;
      }
      // The elements that were read are sent first.
      this.#failure = { error };
    }
    return true;
  }

  async next() {
    const output: Output = { parts: [], errors: [], later: new Later() };
    const ended = { ...output, parts: undefined, count: 0 };
    let part: P;
    let elements: E;
    if (this.#rest) {
      ({ part, elements } = this.#rest);
      this.#rest = undefined;
    } else {
      try {
        if (this.#failure) throw this.#failure.error;
        const { done, value } = await this.#read();
        if (done) return undefined;
        part = value;
        elements = part.records;
      } catch (error) {
        // The service returned null for the list, but its beginning was sent already.
        if (error instanceof NullList) return undefined;
        output.errors.push(...errorsOfList(error, this.path));
        await this.end();
        return ended;
      }
      this.#report(part.unplacedErrors, output);
    }
    if (!this.#write(elements, output)) {
      await this.end();
      return ended;
    }
    const count = elements.length;
    return {
      ...output,
      count,
      extensions: count > 0 ? this.#source.extensions?.(part) : undefined,
    };
  }

  /** Ends the reading. */
  async end(): Promise<void> {
    await this.#parts?.return();
  }

  #read() {
    this.#parts ??= this.#source.open();
    return this.#parts.next();
  }

  #report(unplacedErrors: readonly unknown[], { errors }: Output): void {
    const { errorsAt: path } = this.#source;
    for (const error of unplacedErrors as readonly UpstreamError[]) errors.push({ ...error, path });
  }

  #write(elements: E, output: Output): boolean {
    const isWritten = this.#source.write(elements, output, { path: this.path, offset: this.#sent });
    if (isWritten) this.#sent += elements.length;
    return isWritten;
  }
}

/** Reads an `all…` field: drains the list into one array. @param streams in an answer in parts */
async function readAll(
  open: () => OpenedList,
  path: Path,
  streams?: FieldStreams,
): Promise<FieldValue> {
  const output: Output = { parts: ['['], errors: [], later: streams && new Later() };
  try {
    const opened = open();
    const { field, call } = opened;
    const stream = streams?.lists.get(field.key);
    const list = new ListInParts(path, stream, {
      open: () => drainedPages(opened, stream ? 'parts' : 'whole'),
      errorsAt: path,
      hold: ({ records }) => holdPage(call, records.page),
      write: writePageRecords,
      ...(stream && { extensions: continuation(opened) }),
    });
    if (stream) streams!.onOpen(() => list.end());
    if (!(await list.begin(output))) return { parts: undefined, errors: output.errors };
    if (stream) output.later!.lists.push(list);
  } catch (error) {
    return { parts: undefined, errors: [...output.errors, ...errorsOfList(error, path)] };
  }
  output.parts.push(']');
  return output;
}

/**
 * Drains the list of an `all…` field as its arguments say.
 *
 * @param delivered `whole`: the caller keeps all records until the end
 * @throws BAD_USER_INPUT, CURSOR_INVALID and the errors of drains
 */
function drainedPages(
  list: OpenedList,
  delivered: 'parts' | 'whole',
): AsyncGenerator<DrainedPage<ListRecord>, void, undefined> {
  const { field, call, args, keys, isNested } = list;
  const names = field.adapter.all!;
  const { [names.limit]: most, [names.after]: after } = args;
  const limit = typeof most === 'number' ? checkedCount(names.limit, most) : undefined;
  const position = decodeCursor(keys.cursors, after);
  if (field.refusal) throw field.refusal;
  const keepsAll = delivered === 'whole';
  if (keepsAll) expectBytes(list, limit);
  const selection = isNested ? undefined : field.shown.name(call.variables);
  const walked = list.drained(list.source('shown'), selection);
  const pages = field.parts.drains.walk(walked, { position, limit, call, keepsAll });
  const { signal, drainBudget: budget } = call;
  const toCursor = (at: Position) => new CursorEncoder(keys.cursors).encode(at);
  return drainPages(pages, { limit, position, budget, signal, toCursor, delivered });
}

/** Refuses answers that are too large before anything is read: every record repeats the keys, however long they are. */
function expectBytes({ field, call, keys, isNested }: OpenedList, limit: number | undefined): void {
  const { all, ofAliases } = field.shown.keyBytes;
  const length = field.parts.drains.lengthOf(keys.walk);
  // Nested lists share one limit of records, and were announced together when the operation began.
  if (isNested && length === undefined) return;
  const most = Math.min(limit ?? Infinity, call.drainBudget.max);
  // The length of a list that was never walked is unknown. Then only the bytes that the caller's aliases add count.
  call.held.expect(length === undefined ? most * ofAliases : Math.min(most, length) * all);
}

/** Lets a caller continue a stream whose connection broke before the last payload, which would have had an error. */
function continuation({ keys, field }: OpenedList) {
  const { drains } = field.parts;
  const cursors = new CursorEncoder(keys.cursors);
  const listLength = drains.lengthOf(keys.walk);
  return ({ page, records }: DrainedPage<ListRecord>): string =>
    JSON.stringify({
      resumeAfter: cursors.encode(positionOf(page, records.list.at(-1)!)),
      listLength,
      counted: drains.counts.isBelieved(keys.walk) ? page.total : undefined,
    });
}

/** What a connection field selects, in the order of the answer. */
interface ConnectionShape extends Refusable {
  readonly fields: readonly ConnectionField[];
  /** One for each `nodes` and each `edges { node }`. */
  readonly recordSelections: readonly RecordSelection[];
  /** Whether only `totalCount` is selected, which does not need a page of the connection. */
  readonly isTotalOnly: boolean;
  /** How many times the cursor of each edge is written. */
  readonly cursorsPerEdge: number;
  /** Whether the answer may have a cursor: an edge's, one of `pageInfo`, or that of a stream that ends early. */
  readonly hasCursors: boolean;
}

/** Set where a condition is null: the value is null then, with this error. */
interface Refusable {
  readonly refusal: GraphQLError | undefined;
}

type ConnectionField = { readonly key: string; readonly deferred: DeferUse | undefined } & (
  | ({
      readonly kind: 'edges';
      /** As `refusal`, for each edge. */
      readonly refusedEdge: GraphQLError | undefined;
      readonly fields: readonly EdgeField[];
      readonly nodes: readonly FieldNode[];
    } & Refusable)
  | ({
      readonly kind: 'nodes';
      /** Its index in `recordSelections`. */
      readonly selection: number;
      readonly nodes: readonly FieldNode[];
    } & Refusable)
  | ({ readonly kind: 'pageInfo'; readonly fields: readonly PageInfoField[] } & Refusable)
  | { readonly kind: 'totalCount' }
  | { readonly kind: 'typename'; readonly name: string }
);

type EdgeField = {
  readonly key: string;
  /** What is written before its value: the brace of the edge or a comma, the key and a colon. */
  readonly head: Buffer;
} & (
  | { readonly kind: 'cursor' }
  | { readonly kind: 'node'; readonly selection: number }
  /** The value is a part of the head. */
  | { readonly kind: 'typename' }
);

type PageInfoField = { readonly key: string } & (
  | { readonly kind: 'hasNextPage' | 'hasPreviousPage' | 'startCursor' | 'endCursor' }
  | { readonly kind: 'typename'; readonly name: string }
);

interface RecordSelection {
  /** The key of the list of its records, in an inlined page. */
  readonly itemsKey: string;
  readonly selections: readonly SelectionNode[];
}

/** @param types the names of the connection and of its edges */
export function connectionShape(
  scope: SelectionScope,
  types: { readonly type: string; readonly edge: string },
  selections: readonly SelectionNode[],
): ConnectionShape {
  const recordSelections: RecordSelection[] = [];
  const typeOf = (name: string) => scope.schema.getType(name) as GraphQLObjectType;
  const selectionAt = (itemsKey: string, nodes: readonly FieldNode[]) =>
    recordSelections.push({ itemsKey, selections: selectionsOf(nodes) }) - 1;
  const { all, refusal } = collected(scope, typeOf(types.type), selections);
  const fields = all.map(({ key, nodes, deferred, name }): ConnectionField => {
    const at = { key, deferred };
    switch (name) {
      case 'edges': {
        const edge = collected(scope, typeOf(types.edge), selectionsOf(nodes));
        const edgeFields = edge.all.map((member, index): EdgeField => {
          const head = `${index > 0 ? ',' : '{'}${JSON.stringify(member.key)}:`;
          const start = { key: member.key, head: Buffer.from(head) };
          if (member.name === 'cursor') return { ...start, kind: 'cursor' };
          if (member.name === 'node') {
            const itemsKey = `_rsItems${key.length}_${key}_${member.key}`;
            return { ...start, kind: 'node', selection: selectionAt(itemsKey, member.nodes) };
          }
          const whole = Buffer.from(head + JSON.stringify(types.edge));
          return { ...start, head: whole, kind: 'typename' };
        });
        return {
          ...at,
          kind: 'edges',
          fields: edgeFields,
          refusedEdge: edge.refusal,
          refusal: refusedStream(scope, nodes),
          nodes,
        };
      }
      case 'nodes': {
        const selection = selectionAt(`_rsItems_${key}`, nodes);
        return { ...at, kind: 'nodes', selection, refusal: refusedStream(scope, nodes), nodes };
      }
      case 'pageInfo': {
        const { pageInfo: definition } = typeOf(types.type).getFields();
        const pageInfo = getNamedType(definition!.type).name;
        const flags = collected(scope, typeOf(pageInfo), selectionsOf(nodes));
        const flagFields = flags.all.map((flag) =>
          flag.name === '__typename'
            ? { key: flag.key, kind: 'typename' as const, name: pageInfo }
            : { key: flag.key, kind: flag.name as 'endCursor' },
        );
        return { ...at, kind: 'pageInfo', fields: flagFields, refusal: flags.refusal };
      }
      case 'totalCount':
        return { ...at, kind: 'totalCount' };
      default:
        return { ...at, kind: 'typename', name: types.type };
    }
  });
  const values = fields.filter(({ kind }) => kind !== 'typename');
  const cursorsPerEdge = fields
    .flatMap((field) => (field.kind === 'edges' ? field.fields : []))
    .filter(({ kind }) => kind === 'cursor').length;
  return {
    fields,
    recordSelections,
    refusal,
    isTotalOnly: values.length > 0 && values.every(({ kind }) => kind === 'totalCount'),
    cursorsPerEdge,
    hasCursors: cursorsPerEdge > 0 || fields.some((field) => hasCursor(scope, field)),
  };
}

function hasCursor(scope: SelectionScope, field: ConnectionField): boolean {
  if (field.kind === 'pageInfo') return field.fields.some(({ kind }) => kind.endsWith('Cursor'));
  return (field.kind === 'edges' || field.kind === 'nodes') && isStreamed(scope, field.nodes);
}

function collected(
  scope: SelectionScope,
  type: GraphQLObjectType,
  selections: readonly SelectionNode[],
): Refusable & { readonly all: readonly (CollectedField & { readonly name: string })[] } {
  const { fields, refusal } = collectFields(scope, type, selections);
  const all = Array.from(fields.values(), (field) => ({
    ...field,
    name: field.nodes[0]!.name.value,
  }));
  return { all, refusal };
}

type Edges = readonly Edge<ListRecord>[];

/** Reads a `…Connection` field. @param streams in an answer in parts */
async function readConnection(
  open: () => OpenedList,
  path: Path,
  streams?: FieldStreams,
): Promise<FieldValue> {
  const output: Output = { parts: [], errors: [], later: streams && new Later() };
  try {
    const connection = new Connection(open(), path);
    const { fields, isTotalOnly } = connection.shape;
    if (streams) streams.onOpen(() => connection.close());
    if (streams && streams.lists.size > 0) await connection.begin();
    else if (!isTotalOnly) await connection.finish();
    const now = streams ? fields.filter(({ deferred }) => !deferred) : fields;
    output.parts.push('{');
    if (!(await writeFields(connection, now, output, streams)))
      return { parts: undefined, errors: output.errors };
    output.parts.push('}');
    if (streams) {
      for (const [use, deferred] of Map.groupBy(fields, (field) => field.deferred)) {
        if (!use) continue;
        const { label } = use;
        const read = () => readDeferred(connection, deferred, streams);
        output.later!.fields.push({ path, label, read });
      }
    }
    return output;
  } catch (error) {
    return { parts: undefined, errors: [...output.errors, ...errorsOfList(error, path)] };
  }
}

/** Reads what `@defer` puts off of a connection. @returns the members of the object */
async function readDeferred(
  connection: Connection,
  fields: readonly ConnectionField[],
  streams: FieldStreams,
): Promise<FieldValue> {
  const output: Output = { parts: [], errors: [], later: new Later() };
  try {
    const isWritten = await writeFields(connection, fields, output, streams);
    return isWritten ? output : { parts: undefined, errors: output.errors };
  } catch (error) {
    const { path } = connection;
    return { parts: undefined, errors: [...output.errors, ...errorsOfList(error, path)] };
  }
}

/**
 * Writes these fields of a connection, as members of an object.
 *
 * @returns false when a record is null that must not be
 */
async function writeFields(
  connection: Connection,
  fields: readonly ConnectionField[],
  output: Output,
  streams: FieldStreams | undefined,
): Promise<boolean> {
  const { parts, errors } = output;
  const { path, cursors } = connection;
  errors.push(...connection.takeErrors());
  for (const [index, field] of fields.entries()) {
    const { key } = field;
    parts.push(`${index > 0 ? ',' : ''}${JSON.stringify(key)}:`);
    if ('refusal' in field && field.refusal) {
      errors.push({ thrown: field.refusal, path: [...path, key] });
      return false;
    }
    switch (field.kind) {
      case 'edges':
      case 'nodes': {
        const at = { path: [...path, key], offset: 0 };
        const stream = streams?.lists.get(key);
        parts.push('[');
        if (stream) {
          const list = new ListInParts(at.path, stream, {
            open: () => connection.parts(),
            errorsAt: path,
            write: (edges: Edges, into, place) => writeEdges(cursors, field, edges, into, place),
          });
          if (!(await list.begin(output))) return false;
          output.later!.lists.push(list);
        } else {
          await connection.finish();
          errors.push(...connection.takeErrors());
          if (!writeEdges(cursors, field, connection.edges(), output, at)) return false;
        }
        parts.push(']');
        break;
      }
      case 'pageInfo':
        parts.push(await writtenPageInfo(connection, field));
        errors.push(...connection.takeErrors());
        break;
      case 'totalCount':
        try {
          parts.push(String(await connection.total()));
        } catch (error) {
          if (error instanceof NullList) throw error;
          errors.push(...errorsOfList(error, [...path, key]));
          parts.push('null');
        }
        break;
      case 'typename':
        parts.push(JSON.stringify(field.name));
    }
  }
  return true;
}

/** @param at the path of the list, and how many of its elements were written before */
function writeEdges(
  cursors: CursorEncoder,
  field: Extract<ConnectionField, { kind: 'edges' | 'nodes' }>,
  edges: Edges,
  output: Output,
  at: { readonly path: Path; readonly offset: number },
): boolean {
  if (field.kind === 'nodes') {
    const records = edges.map(({ record }) => record);
    return writeRecords(records, field.selection, output, at);
  }
  if (field.refusedEdge && edges.length > 0) {
    output.errors.push({ thrown: field.refusedEdge, path: [...at.path, at.offset] });
    return false;
  }
  let written = new EdgeBytes(edges.length * BYTES_OF_EDGE);
  for (let i = 0; i < edges.length; i += 1) {
    const { record, page: bounds } = edges[i]!;
    if (i > 0) written.byte(COMMA);
    // The head of the first field has it, but @skip and @include can leave an edge without fields.
    if (field.fields.length === 0) written.byte(OPENING_BRACE);
    for (const member of field.fields) {
      const { page, index } = record;
      written.bytes(member.head, 0, member.head.length);
      if (member.kind === 'typename') continue;
      if (member.kind === 'cursor') written.cursor(cursors, bounds, record);
      else if (page.kind === 'bytes') {
        const { selection } = member;
        written.bytes(page.bytes, page.startOf(selection, index), page.endOf(selection, index));
      } else {
        output.parts.push(written.taken());
        written = new EdgeBytes(BYTES_OF_EDGE);
        const path = [...at.path, at.offset + i, member.key];
        if (!writeRecord(record, member.selection, output, path)) return false;
      }
    }
    written.byte(CLOSING_BRACE);
  }
  if (edges.length > 0) output.parts.push(written.taken());
  return true;
}

/** The expected size of an edge with a cursor; larger edges make the buffer grow. */
const BYTES_OF_EDGE = 256;
const [COMMA, QUOTE, OPENING_BRACE, CLOSING_BRACE] = [44, 34, 123, 125];
/** Bytes. Copying fewer in a loop is faster than calling `Buffer.copy`. */
const SHORT = 24;

/** Writes edges into one buffer: a separate piece for each value would cost more than the value. */
class EdgeBytes {
  #into: Buffer;
  #end = 0;

  constructor(expected: number) {
    this.#into = Buffer.allocUnsafe(expected);
  }

  byte(byte: number): void {
    this.#makeRoom(1);
    this.#into[this.#end++] = byte;
  }

  bytes(from: Buffer, start: number, end: number): void {
    this.#makeRoom(end - start);
    if (end - start > SHORT) {
      this.#end += from.copy(this.#into, this.#end, start, end);
      return;
    }
    for (let at = start; at < end; at += 1) this.#into[this.#end++] = from[at]!;
  }

  cursor(cursors: CursorEncoder, page: PageBounds, record: PlacedRecord): void {
    this.#makeRoom(cursors.prepare(page, record) + 2);
    this.#into[this.#end] = QUOTE;
    this.#end = cursors.write(this.#into, this.#end + 1);
    this.#into[this.#end++] = QUOTE;
  }

  taken(): Buffer {
    return this.#into.subarray(0, this.#end);
  }

  #makeRoom(bytes: number): void {
    if (this.#into.length - this.#end >= bytes) return;
    const larger = Buffer.allocUnsafe(2 * (this.#end + bytes));
    this.#into.copy(larger, 0, 0, this.#end);
    this.#into = larger;
  }
}

async function writtenPageInfo(
  connection: Connection,
  { fields }: Extract<ConnectionField, { kind: 'pageInfo' }>,
): Promise<string> {
  const end = await connection.finish();
  const { cursors } = connection;
  const edges = connection.edges();
  const cursorAt = (edge: Edge<ListRecord> | undefined) =>
    edge ? `"${cursors.encode(positionOf(edge.page, edge.record))}"` : 'null';
  const members = fields.map((field) => {
    const key = JSON.stringify(field.key);
    switch (field.kind) {
      case 'hasNextPage':
      case 'hasPreviousPage':
        return `${key}:${String(end[field.kind])}`;
      case 'startCursor':
        return `${key}:${cursorAt(edges[0])}`;
      case 'endCursor':
        return `${key}:${cursorAt(edges.at(-1))}`;
      case 'typename':
        return `${key}:${JSON.stringify(field.name)}`;
    }
  });
  return `{${members.join(',')}}`;
}

/** One connection with its arguments: read once for all that is selected of it, a page at a time. */
class Connection {
  readonly path: Path;
  readonly shape: ConnectionShape;
  readonly cursors: CursorEncoder;
  readonly #list: OpenedList;
  /** Whether it is read from the end, with `last`. */
  readonly #isBackward: boolean;
  readonly #slice: Slice<ListRecord>;
  readonly #read: Edges[] = [];
  #errors: AnswerError[] = [];
  #end: SliceEnd | undefined;
  /** Kept when it fails, so that all later reads fail in the same way. */
  #reading: Promise<void> | undefined;
  #counting: Promise<number> | undefined;

  /** @throws BAD_USER_INPUT, CURSOR_INVALID */
  constructor(list: OpenedList, path: Path) {
    const { field, call, args, keys } = list;
    const { adapter, parts } = field;
    const { after: afterName, last: lastName, before: beforeName } = adapter.connection!;
    const max = parts.connectionMax;
    const { first, last } = checkedCounts(args['first'], args[lastName], { max, lastName });
    const after = decodeCursor(keys.cursors, args[afterName]);
    const before = decodeCursor(keys.cursors, args[beforeName]);
    this.path = path;
    this.shape = field.connection!;
    if (this.shape.refusal) throw this.shape.refusal;
    this.cursors = new CursorEncoder(keys.cursors);
    this.#list = list;
    this.#isBackward = last !== undefined;
    const { signal } = call;
    const shown = list.source('shown');
    const fetchIdentities = pageFetcher(list.source('bare'), call.forOverhead);
    const searched = { fetchIdentities, index: parts.drains.indexOf(keys.walk) };
    // The inlined page may go beyond `before`.
    const source = before ? { ...shown, inlinedPage: undefined } : shown;
    const fetcher = (requester: Requester) => {
      const fetchPage = pageFetcher(source, requester);
      return this.shape.hasCursors ? namingFailed(fetchPage, fetchIdentities) : fetchPage;
    };
    if (last === undefined) {
      const bounds = { first, after, before, signal };
      this.#slice = readForward({ list: searched, fetchPage: fetcher(call) }, bounds);
      return;
    }
    const walkOf = (what: 'shown' | 'bare') => (tail: DrainArguments['tail']) =>
      this.#drain(list.drained(list.source(what), undefined), { position: after, tail });
    this.#slice = readBackward(
      {
        list: searched,
        fetchPage: fetcher(call.forOverhead),
        walk: walkOf('shown'),
        isCostly: parts.sizes.of(shown.requests.sized) !== undefined,
        walkIdentities: walkOf('bare'),
      },
      { last, before, after, signal },
    );
  }

  /** Reads the edges of the first page. */
  async begin(): Promise<void> {
    if (!this.#end && this.#read.length === 0) await this.#readOn();
  }

  /** Reads to the end. */
  async finish(): Promise<SliceEnd> {
    for (;;) {
      if (this.#end) return this.#end;
      await this.#readOn();
    }
  }

  /** Returns the edges read so far. */
  edges(): Edges {
    return this.#read.length === 1 ? this.#read[0]! : this.#read.flat();
  }

  /**
   * Returns the edges page by page.
   *
   * @throws DRAIN_INTERRUPTED after the first page, with `drained` and `resumeAfter`
   */
  async *parts() {
    let drained = 0;
    for (let part = 0; ; part += 1) {
      try {
        if (part >= this.#read.length && !this.#end) await this.#readOn();
      } catch (error) {
        const last = this.#read.findLast((edges) => edges.length > 0)?.at(-1);
        if (!last) throw error;
        const resumeAfter = this.cursors.encode(positionOf(last.page, last.record));
        throw interrupted(error, { drained, resumeAfter, delivered: 'parts' });
      }
      const records = this.#read[part];
      if (!records) return;
      drained += records.length;
      yield { records, unplacedErrors: this.takeErrors() };
    }
  }

  /** Returns the unplaced errors of the pages, each of them once. */
  takeErrors(): readonly AnswerError[] {
    return this.#errors.splice(0);
  }

  /** Counts the records of the whole list, once. */
  total(): Promise<number> {
    return (this.#counting ??= this.#count());
  }

  /** Ends the reading. */
  async close(): Promise<void> {
    await this.#slice.return(NOWHERE);
  }

  #readOn(): Promise<void> {
    return (this.#reading ??= this.#readNext());
  }

  async #readNext(): Promise<void> {
    const { done, value } = await this.#slice.next();
    if (done) {
      this.#end = value;
    } else {
      const { edges, unplacedErrors } = value;
      const { call } = this.#list;
      if (this.#isBackward) this.#spendFor(edges.length);
      const { path } = this;
      for (const error of unplacedErrors as readonly UpstreamError[])
        this.#errors.push({ ...error, path });
      // `#reading` is still set: another reader would otherwise read the next page before this one is kept.
      await holdPages(call, edges);
      const { cursorsPerEdge: count } = this.shape;
      const waiting = count > 0 ? call.hold(edges, count * this.#cursorBytes(edges)) : undefined;
      if (waiting) await waiting;
      this.#read.push(edges);
    }
    this.#reading = undefined;
  }

  /** Reading from the end is charged as a search, so its edges count here. */
  #spendFor(edges: number): void {
    const { field, call } = this.#list;
    const { pages } = field.shown.request(call.variables, { first: undefined, after: null });
    call.pages.spend((edges / LARGEST_PAGE) * pages, { isCharged: true });
  }

  #cursorBytes(edges: Edges): number {
    let bytes = 0;
    let each = 0;
    let last: PageBounds | undefined;
    for (const { page } of edges) {
      if (page !== last) each = this.cursors.lengthIn((last = page));
      bytes += each;
    }
    return bytes;
  }

  #drain(walked: DrainedList, { position, tail }: Pick<DrainArguments, 'position' | 'tail'>) {
    const { call, field } = this.#list;
    const { signal, drainBudget: budget } = call;
    const limit = undefined;
    const keepsAll = false;
    const options = { position, tail, limit, call, keepsAll, isOverhead: true };
    return drainPages(field.parts.drains.walk(walked, options), {
      limit,
      position,
      budget,
      signal,
      toCursor: (at) => this.cursors.encode(at),
      // A part of a count, or of a list that is read from the end, cannot be used.
      delivered: 'result',
    });
  }

  async #count(): Promise<number> {
    const list = this.#list;
    const { keys, field } = list;
    const { drains } = field.parts;
    const { totals } = drains;
    const known = totals.of(keys.walk);
    const hasCount = field.adapter.count !== undefined;
    if (known && hasCount && known.age < REPORTED_MS) return known.total;
    const shown = list.source('shown');
    if (hasCount) {
      // Belongs to the totals of now: a mutation that is sent before the count is known replaces them.
      const keep = totals.begin(keys.walk);
      const reported = await this.#countOfService(shown);
      if (reported !== undefined) {
        keep(reported);
        return reported;
      }
    }
    const whole = this.#wholeList();
    if (whole) return whole.length;
    if (known) {
      if (known.isOld) drains.countAgain(list.drained(list.source('bare'), undefined));
      return known.total;
    }
    // The inlined first page may be the whole list.
    const walked = shown.inlinedPage
      ? list.drained(shown, undefined)
      : list.drained(list.source('bare'), list.isNested ? undefined : 'total');
    let count = 0;
    // A walk of the whole list keeps the total.
    for await (const { records } of this.#drain(walked, { position: null })) {
      count += records.length;
    }
    return count;
  }

  /** Returns the edges, if they were read and are the whole list. */
  #wholeList(): Edges | undefined {
    const { adapter } = this.#list.field;
    const { [adapter.connection!.after]: after, [adapter.connection!.before]: before } =
      this.#list.args;
    const isFromStart = !this.#isBackward && after == null && before == null;
    return isFromStart && this.#end?.hasNextPage === false ? this.edges() : undefined;
  }

  /**
   * Requests the count of the service, unless the first page is known to be the whole list. Returns undefined if the
   * count is not believed to be the length of the list.
   */
  async #countOfService({ inlinedPage }: PageSource): Promise<number | undefined> {
    const { call, keys, field, source } = this.#list;
    const { counts } = field.parts.drains;
    const inlined = inlinedPage?.page;
    if (counts.isRefuted(keys.walk) || inlined?.hasNextPage === false) return undefined;
    const page =
      inlined?.total === undefined
        ? await pageFetcher(source('bare'), call)({ first: 1, after: null }, call.signal)
        : inlined;
    counts.note(keys.walk, page);
    return counts.totalFrom(keys.walk, page);
  }
}

/** A count that the service reports is reused for this time, ms: it costs one small request. */
const REPORTED_MS = 5_000;

const NOWHERE = { hasNextPage: false, hasPreviousPage: false };

/** The arguments of a derived field in one call, and the names of its list, which depend on them. */
interface ListArguments {
  readonly values: Readonly<Record<string, unknown>>;
  /** @param list the upstream's field @param walk names the list in `keys.walk`; default: `list` */
  keysOf(list: string, walk?: string): ListKeys;
}

interface ListKeys {
  /** In cursors. */
  readonly cursors: string;
  /** For what walks share and remember. */
  readonly walk: string;
}

/**
 * Makes a function that reads the arguments. It reads them only once if they have no variables.
 *
 * @param paging the names of those that are not filters of the upstream's list
 * @param operation for other directives on it, the service may return another list
 */
function listArguments(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  paging: readonly string[],
  operation: WrittenOperation,
): (variables: CallVariables) => ListArguments {
  const unfiltered = new Map<string, ListKeys>();
  const directiveMarks = marksOf(operation);
  const read = (variables: CallVariables): ListArguments => {
    const values = getArgumentValues(definition, node, variables.values);
    const filters = Object.entries(values).filter(([name]) => !paging.includes(name));
    const texts = textsOf(operation, variables);
    const marks = [...directiveMarks(variables), ...exactNumbers(node, paging, texts)];
    const markedFilters = marked(Object.fromEntries(filters), marks);
    const known =
      Object.keys(markedFilters).length === 0 ? unfiltered : new Map<string, ListKeys>();
    return {
      values,
      keysOf: (list, walk = list) => {
        const keys = known.get(walk) ?? {
          cursors: cursorKey(list, markedFilters),
          walk: walkKey(walk, markedFilters),
        };
        if (known.size < MAX_KNOWN) known.set(walk, keys);
        return keys;
      },
    };
  };
  const { directives = [] } = operation;
  return onceUnless(mentionVariables([...(node.arguments ?? []), ...directives]), read);
}

/** Makes a function that names a list as `ListKeys.walk` does, with these filters in all calls. */
export function walkKeys(
  list: string,
  filters: Filters,
  operation: WrittenOperation,
): (variables: CallVariables) => string {
  const directiveMarks = marksOf(operation);
  const key = (variables: CallVariables) =>
    walkKey(list, marked(filters, directiveMarks(variables)));
  return onceUnless(mentionVariables(operation.directives ?? []), key);
}

/** A nested list has a name for each parent, so only a few names are kept. */
const MAX_KNOWN = 4;

function onceUnless<T>(
  depends: boolean,
  make: (variables: CallVariables) => T,
): (variables: CallVariables) => T {
  if (depends) return make;
  let once: T | undefined;
  return (variables) => (once ??= make(variables));
}

function mentionVariables(nodes: readonly ASTNode[]): boolean {
  let mentions = false;
  for (const node of nodes) visit(node, { Variable: () => void (mentions = true) });
  return mentions;
}

/** Returns the value of a variable as it was written; undefined for one without a value. */
type VariableTexts = (name: string) => string | undefined;

function textsOf(
  { variableDefinitions }: WrittenOperation,
  variables: CallVariables,
): VariableTexts {
  return (name) => {
    const text = variables.text(name);
    if (text !== undefined) return text;
    const { defaultValue } =
      variableDefinitions.find(({ variable }) => variable.name.value === name) ?? {};
    return defaultValue && print(defaultValue);
  };
}

/** Makes a function that prints the directives of an operation, with the values of their variables. */
function marksOf(operation: WrittenOperation): (variables: CallVariables) => readonly string[] {
  const { directives: nodes = [] } = operation;
  const marks = (variables: CallVariables) => {
    const texts = textsOf(operation, variables);
    return nodes.map((node) => print(withValues(node, texts)));
  };
  return onceUnless(mentionVariables(nodes), marks);
}

function withValues(node: ASTNode, texts: VariableTexts): ASTNode {
  return visit(node, {
    Variable: ({ name }) => {
      const value = texts(name.value);
      // The value of an enum is printed as it is, and so is the text.
      return value === undefined ? undefined : { kind: Kind.ENUM, value };
    },
  });
}

/** Finds numbers that JavaScript cannot represent: two different filters could otherwise get one name. */
function exactNumbers(
  { arguments: args = [] }: FieldNode,
  paging: readonly string[],
  texts: VariableTexts,
): string[] {
  const numbers: string[] = [];
  for (const arg of args) {
    if (paging.includes(arg.name.value)) continue;
    visit(arg, {
      enter: (node) => {
        if (node.kind === Kind.INT || node.kind === Kind.FLOAT) numbers.push(node.value);
        if (node.kind === Kind.VARIABLE) numbers.push(...numbersIn(texts(node.name.value)));
      },
    });
  }
  return numbers.filter(isLost);
}

/** Whether a double may hold another value than the one that is written: 15 digits are always kept. */
function isLost(number: string): boolean {
  const [mantissa = ''] = number.split(/e/i);
  const digits = mantissa.replaceAll(/\D/g, '').replace(/^0+/, '');
  const size = Math.abs(Number(number));
  return (
    digits.length > 15 || (digits !== '' && !(size > Number.MIN_VALUE * 2 ** 52 && size < Infinity))
  );
}

function numbersIn(json = ''): readonly string[] {
  // Without escapes, a string ends at the next quote.
  const tokens = json.replaceAll(/\\./g, '').match(/"[^"]*"|-?\d[\d.eE+-]*/g) ?? [];
  return tokens.filter((text) => !text.startsWith('"'));
}

type Filters = Readonly<Record<string, unknown>>;

/** Adds what distinguishes lists with the same filters. No filter has an empty name. */
function marked(filters: Filters, marks: readonly string[]): Filters {
  return marks.length > 0 ? { ...filters, '': marks } : filters;
}

/**
 * Names a list in its cursors: the upstream's field and its filters, hashed to 8 characters. A null filter counts
 * as absent, since a Relay client sends an unused variable as null.
 */
function cursorKey(field: string, filters: Filters): string {
  const name = `${field}${JSON.stringify(sorted(filters, isNotNull))}`;
  return hash('sha256', name, 'base64url').slice(0, 8);
}

/**
 * Names a list for what walks share and remember. Here null and absent filters make two lists, since the upstream may
 * treat them differently. Hashed, since filters may be of any length.
 */
function walkKey(field: string, filters: Filters): string {
  return hash('sha256', `${field}${JSON.stringify(sorted(filters, isDefined))}`);
}

function sorted(value: unknown, isKept: (value: unknown) => boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => sorted(item, isKept));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Filters)
    .filter(([, inner]) => isKept(inner))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner, isKept)]));
}

function isNotNull(value: unknown): boolean {
  return value !== null && value !== undefined;
}

function isDefined(value: unknown): boolean {
  return value !== undefined;
}
