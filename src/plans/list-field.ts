import type { FieldNode, GraphQLField, GraphQLObjectType } from 'graphql';
import { selectionsOf } from '../answers/collect-fields.ts';
import type { UpstreamError } from '../answers/errors.ts';
import type { Hole } from '../answers/read.ts';
import type { ShapeScope } from '../answers/shape.ts';
import { randomUUID } from 'node:crypto';
import type { Adapter, NestedAdapter } from '../schema/derived.ts';
import type { Call, CallVariables } from './call.ts';
import { connectionShape, type ConnectionShape } from './connection-shape.ts';
import type { DrainedList, Drains } from './drains.ts';
import { pageFetcher, type PageSource } from './fetch-page.ts';
import { itemsKey } from './inlined-pages.ts';
import { listArguments, type ListArguments, type ListKeys } from './list-arguments.ts';
import { pageText, type PageText } from './page-text.ts';
import type { PageAnswer } from './read-page.ts';
import type { ReadingWatch } from './reading-watch.ts';
import type { RequestWriter, WrittenOperation } from './upstream-request.ts';
import { wayToParent, withoutId } from './way-to-parent.ts';

/** What the fields that are derived of lists need of the rest. */
export interface ListParts {
  readonly writer: RequestWriter;
  readonly drains: Drains;
  readonly watch: ReadingWatch;
  readonly connectionMax: number;
}

/** One derived field of an operation, `all…` or `…Connection`: made once, read in every call. */
export interface ListField {
  readonly adapter: Adapter;
  readonly key: string;
  /** Undefined for an `all…` field. */
  readonly connection: ConnectionShape | undefined;
  readonly argumentsOf: (variables: CallVariables) => ListArguments;
  /** With what is selected of the records. */
  readonly shown: PageText;
  /** With nothing of them but their identities. */
  readonly bare: () => PageText;
  readonly parts: ListParts;
}

export interface ListFieldParts extends ListParts {
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
}

export function listField(
  parts: ListFieldParts,
  adapter: Adapter,
  { kind, key, nodes }: { kind: 'all' | 'connection'; key: string; nodes: readonly FieldNode[] },
): ListField {
  const { writer, scope, operation } = parts;
  const [node] = nodes;
  const selections = selectionsOf(nodes);
  const connection =
    kind === 'connection' ? connectionShape(scope, adapter.connection!, selections) : undefined;
  const places = connection ? connection.places.map((place) => place.selections) : [selections];
  const way =
    'reach' in adapter ? wayToParent(adapter.parent, (adapter as NestedAdapter).reach) : undefined;
  const page = (of: typeof places) =>
    pageText({ writer, scope, operation, adapter, args: node!.arguments ?? [], places: of, way });
  let bare: PageText | undefined;
  return {
    adapter,
    key,
    connection,
    argumentsOf: listArguments(
      definitionOf(scope, adapter, node!),
      node!,
      ownArguments(adapter, kind),
      operation.directives,
    ),
    shown: page(places.length > 0 ? places : [[]]),
    bare: () => (bare ??= page([[]])),
    parts,
  };
}

/** One list as one call reads it: that of the root, or that of one parent. */
export interface OpenedList {
  readonly field: ListField;
  readonly call: Call;
  readonly args: ListArguments['values'];
  readonly keys: ListKeys;
  readonly isNested: boolean;
  /** With what is selected of the records, or with nothing of them. */
  source(what: 'shown' | 'bare'): PageSource;
  /** For a drain. @param selection names what is selected; undefined: shared with nobody */
  drained(source: PageSource, selection: string | undefined): DrainedList;
}

/** @param hole the place below a parent; undefined at the root @throws BAD_USER_INPUT */
export function openList(field: ListField, call: Call, hole?: Hole): OpenedList {
  const { adapter, parts } = field;
  const { variables } = call;
  const args = field.argumentsOf(variables);
  const parent = hole && parentOf(field, hole);
  const keys = args.keysOf(parent?.name ?? adapter.name, parent?.walkName);
  return {
    field,
    call,
    args: args.values,
    keys,
    isNested: hole !== undefined,
    source: (what) => ({
      adapter,
      variables,
      watch: parts.watch,
      text: what === 'shown' ? field.shown : field.bare(),
      ...parent?.source,
      ...(what === 'shown' && parent && { firstPage: parent.firstPage }),
    }),
    drained: (source, selection) => ({
      key: keys.walk,
      field: `${adapter.parent}.${adapter.name}`,
      fetcher: (asking) => pageFetcher(source, asking),
      selection,
      isNested: hole !== undefined,
      hasFirstPage: source.firstPage !== undefined,
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
    : ['first', 'after', connection!.last, connection!.before];
}

interface Parent {
  readonly name: string;
  /** Of a parent without an id, that nothing of its list is taken for another's. */
  readonly walkName: string;
  readonly source: Pick<PageSource, 'parentId' | 'unreachable'>;
  readonly firstPage: PageAnswer | undefined;
}

function parentOf({ adapter, shown, connection }: ListField, { id, page, errors }: Hole): Parent {
  const { parent, name, reach } = adapter as NestedAdapter;
  const isPlain = id?.kind === 'string' || id?.kind === 'number';
  const text = isPlain ? (id.string ?? id.raw) : undefined;
  const list = `${parent}.${name}`;
  const named = text === undefined ? list : `${list}(${JSON.stringify(text)})`;
  const isOnly = reach.kind === 'path' && !reach.hasId;
  const places = connection?.places ?? [];
  const keys = places.length > 0 ? places.map((place) => itemsKey(...place.keys)) : ['items'];
  return {
    name: named,
    walkName: text === undefined && !isOnly ? `${list}#${randomUUID()}` : named,
    source: {
      parentId: isPlain ? id.raw : undefined,
      unreachable:
        reach.kind === 'id' && !isPlain ? unreachable(withoutId(parent).errors) : undefined,
    },
    // It is not there behind a cursor, nor where it would take its parent along.
    firstPage: page && shown.readInlined(page, errors, keys),
  };
}

function unreachable(errors: readonly UpstreamError[]): PageAnswer {
  return { page: undefined, isNull: false, errors, takenAlong: new Set() };
}
