import { getVariableValues } from '@graphql-tools/delegate';
import { collectSubFields } from '@graphql-tools/utils';
import type { FieldNode, GraphQLObjectType, GraphQLResolveInfo, SelectionNode } from 'graphql';
import type { ResponsePath } from './upstream-value.ts';

/** One place of an operation that shows records, and what it selects of them. */
export interface RecordPlace {
  /** The response keys that lead there, for example `edges.node` or `e.n`. */
  readonly key: string;
  readonly selections: readonly SelectionNode[];
}

/**
 * The places below a connection field that show records: `edges { node }` and `nodes`, under any aliases,
 * through fragments, `@skip` and `@include`.
 */
export function recordPlaces(
  connection: GraphQLObjectType,
  edge: GraphQLObjectType,
  info: GraphQLResolveInfo,
): readonly RecordPlace[] {
  const variables = getVariableValues(info.variableValues);
  const below = (type: GraphQLObjectType, nodes: readonly FieldNode[]) =>
    collectSubFields(info.schema, info.fragments, variables, type, nodes as FieldNode[]).fields;
  const places: RecordPlace[] = [];
  for (const [key, nodes] of below(connection, info.fieldNodes)) {
    const name = nodes[0]?.name.value;
    if (name === 'nodes') places.push({ key, selections: selectionsOf(nodes) });
    if (name !== 'edges') continue;
    for (const [edgeKey, edgeNodes] of below(edge, nodes)) {
      if (edgeNodes[0]?.name.value !== 'node') continue;
      places.push({ key: `${key}.${edgeKey}`, selections: selectionsOf(edgeNodes) });
    }
  }
  return places;
}

export function selectionsOf(nodes: readonly FieldNode[]): readonly SelectionNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
}

export function responsePath(path: GraphQLResolveInfo['path']): ResponsePath {
  const keys: (string | number)[] = [];
  for (let step: typeof path | undefined = path; step; step = step.prev) keys.unshift(step.key);
  return keys;
}
