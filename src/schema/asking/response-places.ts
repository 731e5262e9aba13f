import { getCoercedVariableValues, getVariableValues } from '@graphql-tools/delegate';
import { collectSubFields, type FieldsAndPatches } from '@graphql-tools/utils';
import type {
  FieldNode,
  FragmentDefinitionNode,
  GraphQLObjectType,
  GraphQLResolveInfo,
  GraphQLSchema,
  SelectionNode,
} from 'graphql';

/** One place of an operation that shows records, and what it selects of them. */
export interface RecordPlace {
  /** The response keys that lead there, for example `edges.node` or `e.n`. */
  readonly key: string;
  /** The same, one by one. */
  readonly keys: readonly [string, string?];
  readonly selections: readonly SelectionNode[];
}

/** What tells which selections of an operation count. */
export interface SelectionContext {
  /** As callers see it. */
  readonly schema: GraphQLSchema;
  readonly fragments: Record<string, FragmentDefinitionNode>;
  readonly variables: Readonly<Record<string, unknown>>;
}

/**
 * The places below a connection field that show records: `edges { node }` and `nodes`, under any aliases,
 * through fragments, `@skip` and `@include`.
 */
export function recordPlaces(
  connection: { readonly type: string; readonly edge: string },
  context: SelectionContext,
  fieldNodes: readonly FieldNode[],
): readonly RecordPlace[] {
  const places: RecordPlace[] = [];
  for (const [key, nodes] of fieldsBelow(connection.type, context, fieldNodes)) {
    const name = nodes[0]?.name.value;
    if (name === 'nodes') places.push({ key, keys: [key], selections: selectionsOf(nodes) });
    if (name !== 'edges') continue;
    for (const [edgeKey, edgeNodes] of fieldsBelow(connection.edge, context, nodes)) {
      if (edgeNodes[0]?.name.value !== 'node') continue;
      places.push({
        key: `${key}.${edgeKey}`,
        keys: [key, edgeKey],
        selections: selectionsOf(edgeNodes),
      });
    }
  }
  return places;
}

/** The fields of an object type that a selection asks for, `__typename` aside. */
export function namesBelow(
  type: string,
  context: SelectionContext,
  fieldNodes: readonly FieldNode[],
): readonly string[] {
  return [...fieldsBelow(type, context, fieldNodes).values()]
    .flatMap((nodes) => nodes[0]?.name.value ?? [])
    .filter((name) => name !== '__typename');
}

/** By their names in the answer. */
export function fieldsBelow(
  type: string,
  { schema, fragments, variables }: SelectionContext,
  fieldNodes: readonly FieldNode[],
) {
  const parent = schema.getType(type) as GraphQLObjectType;
  const nodes = fieldNodes as FieldNode[];
  return withDeferred(
    collectSubFields(schema, fragments, getVariableValues(variables), parent, nodes),
  );
}

/** The fields by their response keys; those that `@defer` puts off are asked for with the others. */
export function withDeferred({
  fields,
  patches,
}: FieldsAndPatches): ReadonlyMap<string, readonly FieldNode[]> {
  const all = new Map<string, readonly FieldNode[]>(fields);
  for (const [key, nodes] of patches.flatMap((patch) => [...patch.fields])) {
    all.set(key, [...(all.get(key) ?? []), ...nodes]);
  }
  return all;
}

/** The operation that is being resolved. */
export function selectionContext(info: GraphQLResolveInfo): SelectionContext {
  const { schema, fragments, variableValues } = info;
  return { schema, fragments, variables: getCoercedVariableValues(variableValues) ?? {} };
}

export function selectionsOf(nodes: readonly FieldNode[]): readonly SelectionNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
}
