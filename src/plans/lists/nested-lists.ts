import { setImmediate as nextTurn } from 'node:timers/promises';
import { getArgumentValues } from '@graphql-tools/utils';
import {
  BREAK,
  isNullableType,
  isObjectType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { inlinedPageKey } from '../../answers/answer-errors.ts';
import type { SelectionScope } from '../../answers/collect-fields.ts';
import {
  keyBytesOf,
  shapeOf,
  type PlaceholderShape,
  type ShapeScope,
} from '../../answers/shape.ts';
import { codedError } from '../../errors.ts';
import { idOf, type DerivedField, type NestedAdapter } from '../../schema/derived.ts';
import { selectionsOf } from '../../selections.ts';
import type { Call } from '../call.ts';
import { isFilled, isPlaceholder, type Filled, type Written } from '../output.ts';
import { countFields, pageSizeOf } from '../pages/page.ts';
import { identifying, idKey } from '../pages/record-identity.ts';
import {
  argumentNode,
  fieldNode,
  orTypename,
  type PagesToInline,
} from '../requests/request-text.ts';
import { selectResult } from '../requests/results.ts';
import { connectionShape, listField, readList, type ListField } from './list-field.ts';

/** Plans the derived field of a nested list, on first use. */
type Filling = () => ListField;

/**
 * Fills in the derived fields of nested lists: first the lists of all parents, at the same time, then the lists nested
 * in their records.
 */
export async function fillPlaceholders(call: Call, written: Written): Promise<Filled> {
  if (isFilled(written)) return written;
  let begun = 0;
  let turn = Promise.resolve();
  const filled = await Promise.all(
    written.parts.map(async (part): Promise<Filled | string | Buffer> => {
      if (!isPlaceholder(part)) return part;
      begun += 1;
      // An operation may have ten thousand placeholders. Other requests are served between batches of them.
      if (begun % BATCH === 0) turn = turn.then(() => nextTurn());
      await turn;
      const field = (part.shape.filling as Filling)();
      const value = await readList(field, call, part.path, undefined, part);
      return fillPlaceholders(call, { ...value, parts: value.parts ?? ['null'] });
    }),
  );
  const parts: (string | Buffer)[] = [];
  const errors = [...written.errors];
  for (const part of filled) {
    if (typeof part === 'string' || Buffer.isBuffer(part)) parts.push(part);
    else {
      for (const inner of part.parts) parts.push(inner);
      for (const error of part.errors) errors.push(error);
    }
  }
  return { parts, errors };
}

const BATCH = 50;

interface NestedPlaceholders {
  /** Returns a placeholder for a derived field of a nested list, which the shape of an answer holds in its place. */
  readonly at: ShapeScope['placeholderAt'];
  /** By how many bytes aliases lengthen each record of the `all…` field with the longest ones. */
  readonly aliasBytes: () => number;
}

export function nestedPlaceholders(
  derivedBelow: ReadonlyMap<string, DerivedField>,
  shared: Parameters<typeof listField>[0],
): NestedPlaceholders {
  // Nothing below them is deferred: they are sent whole, together with their parent.
  const whole = { ...shared, scope: { ...shared.scope, defers: false } };
  /** By the node that selects the field, which may be in the shapes of several types. */
  const aliasBytes = new Map<FieldNode, number>();
  return {
    at: (type, key, nodes): PlaceholderShape | undefined => {
      const derived = derivedBelow.get(`${type.name}.${nodes[0]!.name.value}`);
      if (derived?.kind !== 'all' && derived?.kind !== 'connection') return undefined;
      let made: ListField | undefined;
      const filling: Filling = () => (made ??= listField(whole, derived, { key, nodes }));
      if (derived.kind === 'all' && !aliasBytes.has(nodes[0]!)) {
        const record = shapeOf(whole.scope, derived.adapter.recordType, selectionsOf(nodes));
        aliasBytes.set(nodes[0]!, keyBytesOf([record]).ofAliases);
      }
      return {
        kind: 'placeholder',
        filling,
        idKey: idOf(type) ? idKey(type.name) : undefined,
        pageKey: inlinedPageKey(type.name, key),
      };
    },
    aliasBytes: () => Math.max(0, ...aliasBytes.values()),
  };
}

/*
 * The first page of a nested list is inlined into the request for its parent, so that a list of parents does not cost
 * a request each: the derived field is replaced by the upstream's list, and the id of the parent is selected.
 */

interface InliningParts {
  /** The upstream's schema under served names. */
  readonly upstream: GraphQLSchema;
  readonly adapters: readonly NestedAdapter[];
  readonly connectionMax: number;
}

interface InliningScope extends SelectionScope {
  readonly variables: Readonly<Record<string, unknown>>;
  readonly pages: PagesToInline;
}

export interface PageInlining {
  /** Returns the document itself if it has no derived fields. */
  inline(document: DocumentNode, scope: InliningScope): DocumentNode;
  /**
   * Returns a function that names what the values of variables decide about the inlined pages; undefined if no page
   * can be inlined. Equal names mean equal requests.
   */
  decisions(
    document: DocumentNode,
  ): ((schema: GraphQLSchema, variables: InliningScope['variables']) => string) | undefined;
}

/** Connections are written out wherever their fragment is spread, so nested fragments could grow without end. */
const MAX_INLINED = 1_000;

export function createPageInlining(parts: InliningParts): PageInlining {
  const { upstream, adapters } = parts;
  const fields = derivedFields(parts);
  const names = new Set(adapters.flatMap(({ all, connection }) => [all?.field, connection?.field]));

  return {
    inline: (document, scope) => {
      if (adapters.length === 0 || !mentions(document, names)) return document;
      const types = new TypeInfo(upstream);
      let written = 0;
      return visit(
        document,
        visitWithTypeInfo(types, {
          SelectionSet: (node) => {
            const parent = types.getParentType();
            const derived = isObjectType(parent) ? fields.get(parent.name) : undefined;
            if (!isObjectType(parent) || !derived) return undefined;
            const isDerived = (selection: SelectionNode) =>
              selection.kind === Kind.FIELD && derived.has(selection.name.value);
            if (!node.selections.some(isDerived)) return undefined;
            const selections = node.selections.flatMap((selection) => {
              const list = selection.kind === Kind.FIELD && derived.get(selection.name.value);
              if (!list) return [selection];
              written += 1;
              if (written > MAX_INLINED) throw tooManyLists();
              return list.page(selection, scope);
            });
            return { ...node, selections: orTypename([...selections, ...parentId(parent)]) };
          },
        }),
      );
    },
    decisions: (document) => {
      if (adapters.length === 0 || !mentions(document, names)) return undefined;
      const uses: { list: InlinedField; node: FieldNode }[] = [];
      visit(document, {
        Field: (node) => {
          for (const derived of fields.values()) {
            const list = derived.get(node.name.value);
            if (list) uses.push({ list, node });
          }
        },
      });
      return (schema, variables) =>
        uses.map(({ list, node }) => list.decision(node, schema, variables)).join(' ');
    },
  };
}

interface InlinedField {
  /** What replaces the field in the request; empty if its first page is not inlined. */
  page(node: FieldNode, scope: InliningScope): FieldNode[];
  decision(node: FieldNode, schema: GraphQLSchema, variables: InliningScope['variables']): string;
}

function derivedFields({ upstream, adapters, connectionMax }: InliningParts) {
  const byParent = new Map<string, Map<string, InlinedField>>();
  for (const adapter of adapters) {
    const { parent, all, connection } = adapter;
    const fields = byParent.get(parent) ?? new Map<string, InlinedField>();
    byParent.set(parent, fields);
    const identity = identifying(upstream, adapter).selections;
    const items = (alias: string, selections: readonly SelectionNode[]) =>
      fieldNode('items', { alias, selections: orTypename([...identity, ...selections]) });
    const derived = (firstPage: FirstPage, lists: Lists): InlinedField => ({
      page(node, scope) {
        if (!isInlined(adapter, node, scope.pages)) return [];
        const args = argumentsOf(node, parent, scope);
        const page = args && firstPage(args);
        return page ? [inlinedPage(adapter, node, page, lists(node, scope))] : [];
      },
      decision(node, schema, variables) {
        const args = argumentsOf(node, parent, { schema, variables });
        const page = args && firstPage(args);
        return page ? String(page.first) : '-';
      },
    });
    if (all) {
      fields.set(
        all.field,
        derived(
          (args) => firstOfAll(args[all.limit], args[all.after]),
          (node) => [items('items', node.selectionSet?.selections ?? []), ...countFields(adapter)],
        ),
      );
    }
    if (connection) {
      fields.set(
        connection.field,
        derived(
          (args) =>
            isPresent(args[connection.after]) || isPresent(args[connection.before])
              ? undefined
              : firstOfConnection(args['first'], args[connection.last], connectionMax),
          (node, scope) => {
            const { recordSelections, fields: selected } = connectionShape(
              scope,
              connection,
              node.selectionSet?.selections ?? [],
            );
            const isCounted = selected.some(({ kind }) => kind === 'totalCount');
            return [
              ...(recordSelections.length > 0
                ? recordSelections.map(({ itemsKey, selections }) => items(itemsKey, selections))
                : [items('items', [])]),
              ...(isCounted ? countFields(adapter) : []),
            ];
          },
        ),
      );
    }
  }
  return byParent;
}

function isInlined(adapter: NestedAdapter, node: FieldNode, pages: PagesToInline): boolean {
  if (pages === 'all') return true;
  if (pages === 'none') return false;
  if (pages === 'safe') return isNullableType(adapter.field.type);
  return !pages.has(keyOf(adapter, node));
}

function keyOf({ parent }: NestedAdapter, { alias, name }: FieldNode): string {
  return inlinedPageKey(parent, alias?.value ?? name.value);
}

/** Returns the size of the page to inline (undefined: the upstream's limit); undefined if none is inlined. */
type FirstPage = (
  args: Readonly<Record<string, unknown>>,
) => { first: number | undefined } | undefined;
type Lists = (node: FieldNode, scope: InliningScope) => FieldNode[];

function firstOfAll(limit: unknown, after: unknown) {
  // A cursor may point into the middle of a page, so that list is read by separate requests.
  if (isPresent(after)) return undefined;
  if (typeof limit !== 'number') return { first: undefined };
  return limit > 0 ? { first: limit } : undefined;
}

function firstOfConnection(first: unknown, last: unknown, max: number) {
  if (typeof last === 'number') {
    return isPresent(first) || last < 0 || last > max ? undefined : { first: undefined };
  }
  if (typeof first !== 'number') return { first: undefined };
  // The connection itself requests one record for `first: 0` too.
  return first >= 0 && first <= max ? { first: Math.max(first, 1) } : undefined;
}

function inlinedPage(
  adapter: NestedAdapter,
  node: FieldNode,
  { first }: { first: number | undefined },
  lists: readonly FieldNode[],
): FieldNode {
  const requested = first ?? pageSizeOf(adapter);
  const size =
    adapter.page === undefined ? requested : Math.min(requested ?? Infinity, adapter.page);
  const filters = new Set(adapter.filters.map(({ name }) => name));
  const alias = keyOf(adapter, node);
  const pageInfo = fieldNode('pageInfo', {
    selections: [fieldNode('hasNextPage'), fieldNode('endCursor')],
  });
  return {
    ...fieldNode(adapter.name, {
      alias,
      selections: selectResult(adapter.result, [...lists, pageInfo]),
    }),
    arguments: [
      ...(size === undefined
        ? []
        : [argumentNode(adapter.first.name, { kind: Kind.INT, value: String(size) })]),
      ...(node.arguments ?? []).filter(({ name }) => filters.has(name.value)),
    ],
    ...(node.directives && { directives: node.directives }),
  };
}

/** Returns undefined if they are invalid: then no page is inlined, and filling in the field reports the error. */
function argumentsOf(
  node: FieldNode,
  parent: string,
  { schema, variables }: Pick<InliningScope, 'schema' | 'variables'>,
) {
  const type = schema.getType(parent);
  const definition = isObjectType(type) ? type.getFields()[node.name.value] : undefined;
  try {
    return definition && getArgumentValues(definition, node, { ...variables });
  } catch {
    return undefined;
  }
}

/** Treats an empty cursor as absent. */
function isPresent(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '';
}

function parentId(parent: GraphQLObjectType): readonly FieldNode[] {
  return idOf(parent) ? [fieldNode('id', { alias: idKey(parent.name) })] : [];
}

function mentions(document: DocumentNode, names: ReadonlySet<string | undefined>): boolean {
  let isMentioned = false;
  visit(document, {
    Field: ({ name }) => {
      isMentioned ||= names.has(name.value);
      return isMentioned ? BREAK : undefined;
    },
  });
  return isMentioned;
}

function tooManyLists() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `The operation selects derived lists at more than ${MAX_INLINED} places; a fragment counts wherever it is spread. Split the operation.`,
  );
}
