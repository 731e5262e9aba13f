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
import type { UpstreamError } from '../../answers/answer-errors.ts';
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
import { atOnce } from '../../pausable.ts';
import { argumentsOf } from '../../schema/derived-fields.ts';
import type { Adapter, DerivedField, NestedAdapter } from '../../schema/derived.ts';
import { selectionsOf } from '../../selections.ts';
import type { Call, CallVariables } from '../call.ts';
import {
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
import type { DrainedList, Drains } from './drains.ts';

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
export interface OpenedList {
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

/** @param placeholder of a nested list; undefined at the root @throws BAD_USER_INPUT */
export function openList(field: ListField, call: Call, placeholder?: Placeholder): OpenedList {
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

/** Adds what distinguishes lists beside their filters. No filter has an empty name. */
function marked(filters: Filters, marks: readonly string[]): Filters {
  return marks.length > 0 ? { ...filters, '': marks } : filters;
}

/**
 * Names a list in its cursors: the upstream's field and the given filters, hashed to 8 characters. A null filter counts
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
  return hash('sha256', `${field}${JSON.stringify(sorted(filters, isThere))}`);
}

function sorted(value: unknown, isGiven: (value: unknown) => boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => sorted(item, isGiven));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Filters)
    .filter(([, inner]) => isGiven(inner))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner, isGiven)]));
}

function isNotNull(value: unknown): boolean {
  return value !== null && value !== undefined;
}

function isThere(value: unknown): boolean {
  return value !== undefined;
}

/** What a connection field selects, in the order of the answer. */
export interface ConnectionShape extends Refusable {
  readonly fields: readonly ConnectionField[];
  /** One for each `nodes` and each `edges { node }`. */
  readonly recordSelections: readonly RecordSelection[];
  /** Whether only `totalCount` is selected, which needs no page of the connection. */
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

export type ConnectionField = { readonly key: string; readonly deferred: DeferUse | undefined } & (
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
