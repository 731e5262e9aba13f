import {
  Kind,
  OperationTypeNode,
  print,
  type ASTNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentSpreadNode,
  type InlineFragmentNode,
  type SelectionNode,
} from 'graphql';
import { isApplicable, isIncluded, type SelectionScope } from '../../answers/collect-fields.ts';
import { isIncremental } from '../../schema/incremental-directives.ts';
import { fieldNode } from './added-fields.ts';
import { reduceRoot, type RootSelections } from './root-selections.ts';

/**
 * Where a caller selects a derived field, as far as the service has to know: the directives of the service on the field,
 * and the fragments with such directives around it. The service gets its own fields in the same places.
 */
export interface FieldPlaces {
  /** Selects fields of the service in each place. */
  select(fieldsAt: (place: Place) => readonly FieldNode[]): RootSelections;
  /** Equal for places where the service returns the same; empty without directives. Variables in it count. */
  readonly outline: readonly ASTNode[];
}

export interface Place {
  /** Those of the field. */
  readonly directives: readonly DirectiveNode[];
  /** The fields of all places merge, so only those of the first one have to select everything. */
  readonly isFirst: boolean;
}

/** What a caller selects of records, and where. */
export interface PlacedSelections {
  readonly selections: readonly SelectionNode[];
  readonly places: FieldPlaces;
}

type Fragments = RootSelections['fragments'];

/** Makes a function that finds the places of a derived field of the root. @param nodes of one key of the answer */
export function placesAtRoot(
  root: RootSelections,
  scope: SelectionScope,
): (nodes: readonly FieldNode[]) => FieldPlaces {
  const type = scope.schema.getQueryType()!;
  let under: ReadonlySet<FieldNode> | undefined;
  const isSent = (node: FragmentSpreadNode | InlineFragmentNode) => {
    const { typeCondition } =
      node.kind === Kind.INLINE_FRAGMENT ? node : root.fragments.get(node.name.value)!;
    return (
      isIncluded(scope, node.directives) &&
      isApplicable(scope.schema, typeCondition?.name.value, type)
    );
  };

  return (nodes) => {
    under ??= fieldsUnderDirectives(root, isSent);
    if (!nodes.some((node) => under!.has(node))) return placesOf(nodes, root.fragments);
    const own = new Set(nodes);
    const select: FieldPlaces['select'] = (fieldsAt) => {
      let isFirst = true;
      return reduceRoot(root, {
        field: (node) => {
          if (!own.has(node)) return [];
          const fields = fieldsAt({ directives: sentOf(node), isFirst });
          isFirst = false;
          return fields;
        },
        fragment: (node) => (isSent(node) ? { ...node, directives: sentOf(node) } : undefined),
      });
    };
    return { select, outline: [outlineOf(select, root.fragments)] };
  };
}

/** The one place of a derived field below the root, as if the caller had written the field once. */
export function placeBelowRoot(nodes: readonly FieldNode[], fragments: Fragments): FieldPlaces {
  return placesOf([nodes.find((node) => sentOf(node).length > 0) ?? nodes[0]!], fragments);
}

/** Fields that fragments with directives of the service are around. */
function fieldsUnderDirectives(
  { selections, fragments }: RootSelections,
  isSent: (node: FragmentSpreadNode | InlineFragmentNode) => boolean,
): ReadonlySet<FieldNode> {
  const found = new Set<FieldNode>();
  const seen = new Set<string>();
  collect(selections, false);
  return found;

  function collect(some: readonly SelectionNode[], isUnder: boolean): void {
    for (const selection of some) {
      if (selection.kind === Kind.FIELD) {
        if (isUnder) found.add(selection);
        continue;
      }
      if (!isSent(selection)) continue;
      const isInner = isUnder || sentOf(selection).length > 0;
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        collect(selection.selectionSet.selections, isInner);
        continue;
      }
      const fragment = fragments.get(selection.name.value)!;
      const isBelow = isInner || sentOf(fragment).length > 0;
      const name = `${fragment.name.value} ${isBelow}`;
      if (seen.has(name)) continue;
      seen.add(name);
      collect(fragment.selectionSet.selections, isBelow);
    }
  }
}

/** Places without fragments: one for each set of directives. */
function placesOf(nodes: readonly FieldNode[], fragments: Fragments): FieldPlaces {
  const sets = new Map(nodes.map((node) => [textOf(sentOf(node)), sentOf(node)]));
  const places = Array.from(sets.values(), (directives, at) => ({ directives, isFirst: at === 0 }));
  const select: FieldPlaces['select'] = (fieldsAt) => ({
    selections: places.flatMap(fieldsAt),
    fragments,
  });
  const outline =
    places.length === 1
      ? places[0]!.directives.map((one) => fieldNode(Kind.FIELD, { directives: [one] }))
      : [outlineOf(select, fragments)];
  return { select, outline };
}

function textOf(directives: readonly DirectiveNode[]): string {
  return directives.map(print).join(' ');
}

/** Only the directives and their places: whatever is selected there. */
function outlineOf(select: FieldPlaces['select'], fragments: Fragments): DocumentNode {
  const { selections, fragments: all } = select(({ directives }) => [
    fieldNode(Kind.FIELD, { directives }),
  ]);
  return {
    kind: Kind.DOCUMENT,
    definitions: [
      {
        kind: Kind.OPERATION_DEFINITION,
        operation: OperationTypeNode.QUERY,
        selectionSet: { kind: Kind.SELECTION_SET, selections },
      },
      ...Array.from(all.values()).filter(({ name }) => !fragments.has(name.value)),
    ],
  };
}

/** The directives of the service. The others have done their part when the operation was planned, or are the gateway's. */
function sentOf({
  directives = [],
}: {
  readonly directives?: readonly DirectiveNode[] | undefined;
}): readonly DirectiveNode[] {
  return directives.filter(
    (one) => one.name.value !== 'skip' && one.name.value !== 'include' && !isIncremental(one),
  );
}
