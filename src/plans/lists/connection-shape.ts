import { getNamedType, type FieldNode, type GraphQLObjectType, type SelectionNode } from 'graphql';
import {
  collectFields,
  selectionsOf,
  type CollectedField,
  type DeferUse,
  type SelectionScope,
} from '../../answers/collect-fields.ts';

/** What a connection field selects, in the order of the answer. */
export interface ConnectionShape {
  readonly fields: readonly ConnectionField[];
  /** One for each `nodes` and each `edges { node }`. */
  readonly recordSelections: readonly RecordSelection[];
}

export type ConnectionField = { readonly key: string; readonly deferred: DeferUse | undefined } & (
  | {
      readonly kind: 'edges';
      readonly fields: readonly EdgeField[];
      readonly nodes: readonly FieldNode[];
    }
  | {
      readonly kind: 'nodes';
      /** Its index in `recordSelections`. */
      readonly selection: number;
      readonly nodes: readonly FieldNode[];
    }
  | { readonly kind: 'pageInfo'; readonly fields: readonly PageInfoField[] }
  | { readonly kind: 'totalCount' }
  | { readonly kind: 'typename'; readonly name: string }
);

export type EdgeField = {
  readonly key: string;
  /** What is written before its value: the brace of the edge or a comma, the key and a colon. */
  readonly head: Buffer;
} & (
  | { readonly kind: 'cursor' }
  | { readonly kind: 'node'; readonly selection: number }
  /** The value is a part of the head. */
  | { readonly kind: 'typename' }
);

export type PageInfoField = { readonly key: string } & (
  | { readonly kind: 'hasNextPage' | 'hasPreviousPage' | 'startCursor' | 'endCursor' }
  | { readonly kind: 'typename'; readonly name: string }
);

export interface RecordSelection {
  /** The response names that lead to the records: of `edges` and `node`, or of `nodes`. */
  readonly keys: readonly [string, string?];
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
  const selectionAt = (keys: RecordSelection['keys'], nodes: readonly FieldNode[]) =>
    recordSelections.push({ keys, selections: selectionsOf(nodes) }) - 1;
  const fields = collected(scope, typeOf(types.type), selections).map(
    ({ key, nodes, deferred, name }): ConnectionField => {
      const at = { key, deferred };
      switch (name) {
        case 'edges': {
          const edges = collected(scope, typeOf(types.edge), selectionsOf(nodes)).map(
            (edge, index): EdgeField => {
              const head = `${index > 0 ? ',' : '{'}${JSON.stringify(edge.key)}:`;
              const start = { key: edge.key, head: Buffer.from(head) };
              if (edge.name === 'cursor') return { ...start, kind: 'cursor' };
              if (edge.name === 'node') {
                const selection = selectionAt([key, edge.key], edge.nodes);
                return { ...start, kind: 'node', selection };
              }
              const whole = Buffer.from(head + JSON.stringify(types.edge));
              return { ...start, head: whole, kind: 'typename' };
            },
          );
          return { ...at, kind: 'edges', fields: edges, nodes };
        }
        case 'nodes':
          return { ...at, kind: 'nodes', selection: selectionAt([key], nodes), nodes };
        case 'pageInfo': {
          const { pageInfo: definition } = typeOf(types.type).getFields();
          const pageInfo = getNamedType(definition!.type).name;
          const flags = collected(scope, typeOf(pageInfo), selectionsOf(nodes)).map((flag) =>
            flag.name === '__typename'
              ? { key: flag.key, kind: 'typename' as const, name: pageInfo }
              : { key: flag.key, kind: flag.name as 'endCursor' },
          );
          return { ...at, kind: 'pageInfo', fields: flags };
        }
        case 'totalCount':
          return { ...at, kind: 'totalCount' };
        default:
          return { ...at, kind: 'typename', name: types.type };
      }
    },
  );
  return { fields, recordSelections };
}

function collected(
  scope: SelectionScope,
  type: GraphQLObjectType,
  selections: readonly SelectionNode[],
): (CollectedField & { readonly name: string })[] {
  const fields = collectFields(scope, type, selections).values();
  return Array.from(fields, (field) => ({ ...field, name: field.nodes[0]!.name.value }));
}
