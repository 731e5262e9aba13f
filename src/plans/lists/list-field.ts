import { randomUUID } from 'node:crypto';
import type { FieldNode, GraphQLError, GraphQLField, GraphQLObjectType } from 'graphql';
import { refusedStream, selectionsOf } from '../../answers/collect-fields.ts';
import type { UpstreamError } from '../../answers/answer-errors.ts';
import type { Placeholder } from '../../answers/reading.ts';
import type { ShapeScope } from '../../answers/shape.ts';
import { atOnce } from '../../pausable.ts';
import type { Adapter, NestedAdapter } from '../../schema/derived.ts';
import type { Call, CallVariables } from '../call.ts';
import { pageFetcher, type PageSource } from '../pages/fetch-page.ts';
import { pageRequests, pageSizesOf, type PageRequests } from '../pages/page-request.ts';
import type { PageAnswer } from '../pages/read-page.ts';
import { wayToParent, withoutId } from '../pages/way-to-parent.ts';
import type { AcceptedSizes } from '../requests/accepted-sizes.ts';
import type { FieldPlaces } from '../requests/field-places.ts';
import type { RequestWriter, WrittenOperation } from '../requests/request-text.ts';
import type { ReadingTelemetry } from '../telemetry.ts';
import { connectionShape, type ConnectionShape } from './connection-shape.ts';
import type { DrainedList, Drains } from './drains.ts';
import { itemsKey } from './inlined-pages.ts';
import { listArguments, type ListArguments, type ListKeys } from './list-arguments.ts';

/** What derived fields are planned with. */
export interface FieldParts {
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
  readonly writer: RequestWriter;
  readonly drains: Drains;
  readonly telemetry: ReadingTelemetry;
  readonly sizes: AcceptedSizes;
  readonly connectionMax: number;
}

/** A derived field of a list, as a caller selects it. */
export interface SelectedList {
  readonly kind: 'all' | 'connection';
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  readonly places: FieldPlaces;
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
  adapter: Adapter,
  { kind, key, nodes, places }: SelectedList,
): ListField {
  const { writer, scope, operation } = parts;
  const node = nodes[0]!;
  const selections = selectionsOf(nodes);
  const connection =
    kind === 'connection' ? connectionShape(scope, adapter.connection!, selections) : undefined;
  const recordSelections = connection
    ? connection.recordSelections.map((one) => one.selections)
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
      places,
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
      ownArguments(adapter, kind),
      { operation, places },
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

function ownArguments(
  { all, connection }: Adapter,
  kind: 'all' | 'connection',
): (string | undefined)[] {
  return kind === 'all'
    ? [all!.limit, all!.after]
    : ['first', connection!.after, connection!.last, connection!.before];
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
  const keys =
    selections.length > 0 ? selections.map((selection) => itemsKey(...selection.keys)) : ['items'];
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
