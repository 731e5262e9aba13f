import {
  getNamedType,
  type FieldNode,
  type GraphQLError,
  type GraphQLObjectType,
  type SelectionNode,
} from 'graphql';
import {
  collectFields,
  refusedStream,
  selectionsOf,
  type CollectedField,
  type DeferUse,
  type SelectionScope,
} from '../../answers/collect-fields.ts';

/** What a connection field selects, in the order of the answer. */
export interface ConnectionShape extends Refusable {
  readonly fields: readonly ConnectionField[];
  /** One for each `nodes` and each `edges { node }`. */
  readonly recordSelections: readonly RecordSelection[];
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
  const { all, refusal } = collected(scope, typeOf(types.type), selections);
  const fields = all.map(({ key, nodes, deferred, name }): ConnectionField => {
    const at = { key, deferred };
    switch (name) {
      case 'edges': {
        const edge = collected(scope, typeOf(types.edge), selectionsOf(nodes));
        const edgeFields = edge.all.map((one, index): EdgeField => {
          const head = `${index > 0 ? ',' : '{'}${JSON.stringify(one.key)}:`;
          const start = { key: one.key, head: Buffer.from(head) };
          if (one.name === 'cursor') return { ...start, kind: 'cursor' };
          if (one.name === 'node') {
            const selection = selectionAt([key, one.key], one.nodes);
            return { ...start, kind: 'node', selection };
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
        const selection = selectionAt([key], nodes);
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
  return { fields, recordSelections, refusal };
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
