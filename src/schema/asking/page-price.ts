import {
  getArgumentValues,
  getNamedType,
  getNullableType,
  getOperationAST,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  isUnionType,
  Kind,
  OperationTypeNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { selectedFields, type SelectionParts } from './selected-fields.ts';
import type { UpstreamQuery } from './request-loader.ts';

/**
 * What a request costs in pages of the upstream, 50 records each (interface, section 8): a page of a list is
 * one, and a list below its records counts once for each of them. At least 1.
 */
export type PagePrice = (query: UpstreamQuery) => number;

const PAGE = 50;
/** Of a list that is not in pages nobody knows how long it is. */
const PLAIN_LIST = 10;

type Field = GraphQLField<unknown, unknown>;

/** @param schema the upstream's own */
export function pagePrice(schema: GraphQLSchema): PagePrice {
  const roots: unknown[] = [schema.getQueryType(), schema.getMutationType()];
  // Without pages below records, every request is one page, or less.
  if (fieldsOf(schema).every(([parent, field]) => !isPage(field) || roots.includes(parent))) {
    return () => 1;
  }
  return ({ document, variables }) => {
    const records = recordsOf(document, { ...partsOf(schema, document), variables });
    return Math.max(1, Math.ceil(records / PAGE));
  };
}

function fieldsOf(schema: GraphQLSchema) {
  return Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .flatMap((type) => Object.values(type.getFields()).map((field) => [type, field] as const));
}

/**
 * By its type alone: what is too odd to be drained, such as a list whose cursors are numbers, costs the same.
 */
function isPage({ type }: Field): boolean {
  const inner = getNamedType(type);
  if (!isObjectType(inner) && !isInterfaceType(inner)) return false;
  const { items, pageInfo } = inner.getFields();
  return items !== undefined && pageInfo !== undefined;
}

function partsOf(schema: GraphQLSchema, { definitions }: DocumentNode) {
  const fragments = definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  return {
    schema,
    fragments: new Map(fragments.map((fragment) => [fragment.name.value, fragment])),
  };
}

/** The most that it can bring of lists in pages. */
function recordsOf(document: DocumentNode, parts: SelectionParts): number {
  const { schema, variables } = parts;
  const operation = getOperationAST(document);
  if (!operation) return 0;
  const isMutation = operation.operation === OperationTypeNode.MUTATION;
  const root = isMutation ? schema.getMutationType() : schema.getQueryType();
  return root ? below(operation.selectionSet.selections, root, 1) : 0;

  function below(
    selections: readonly SelectionNode[],
    type: GraphQLCompositeType,
    parents: number,
  ): number {
    return selectedFields(parts, type, selections).reduce((sum, { on, nodes }) => {
      const [node] = nodes;
      const field = isUnionType(on) ? undefined : on.getFields()[node!.name.value];
      const inner = field && getNamedType(field.type);
      if (!field || !isCompositeType(inner)) return sum;
      const own = isPage(field) ? sizeOf(field, node!) : 0;
      const many = parents * (own || 1) * (isPlainList(field, on) ? PLAIN_LIST : 1);
      const selected = nodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
      return sum + (own && many) + below(selected, inner, many);
    }, 0);
  }

  function sizeOf(field: Field, node: FieldNode): number {
    try {
      const { first } = getArgumentValues(field, node, variables);
      return typeof first === 'number' ? Math.min(Math.max(first, 1), PAGE) : PAGE;
    } catch {
      // What does not suit the upstream is refused there.
      return PAGE;
    }
  }
}

/** `items` of a page are counted with the page. */
function isPlainList(field: Field, on: GraphQLCompositeType): boolean {
  const isItems = field.name === 'items' && !isUnionType(on) && 'pageInfo' in on.getFields();
  return isListType(getNullableType(field.type)) && !isItems;
}
