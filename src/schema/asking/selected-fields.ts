import {
  getDirectiveValues,
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  isCompositeType,
  Kind,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';

/** Fields of one name in the answer, which are merged and asked once (specification, 5.3.2). */
export interface SelectedField {
  /** The type that the field is selected on: of an abstract type perhaps one of those it can be. */
  readonly on: GraphQLCompositeType;
  readonly nodes: readonly FieldNode[];
}

export interface SelectionParts {
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** What is selected of one object, fragments and `@skip` and `@include` considered, whichever type it turns out to be. */
export function selectedFields(
  { schema, fragments, variables }: SelectionParts,
  type: GraphQLCompositeType,
  selections: readonly SelectionNode[],
): SelectedField[] {
  const fields = new Map<string, { on: GraphQLCompositeType; nodes: FieldNode[] }>();
  const spread = new Set<string>();
  collect(selections, type);
  return [...fields.values()];

  function collect(some: readonly SelectionNode[], on: GraphQLCompositeType): void {
    for (const selection of some) {
      if (!isIncluded(selection)) continue;
      if (selection.kind === Kind.FIELD) {
        const name = `${on.name} ${(selection.alias ?? selection.name).value}`;
        const field = fields.get(name) ?? { on, nodes: [] };
        field.nodes.push(selection);
        fields.set(name, field);
        continue;
      }
      const fragment =
        selection.kind === Kind.FRAGMENT_SPREAD ? once(selection.name.value) : selection;
      if (!fragment) continue;
      const { typeCondition, selectionSet } = fragment;
      const narrowed = typeCondition && schema.getType(typeCondition.name.value);
      collect(selectionSet.selections, isCompositeType(narrowed) ? narrowed : on);
    }
  }

  function once(name: string): FragmentDefinitionNode | undefined {
    if (spread.has(name)) return undefined;
    spread.add(name);
    return fragments.get(name);
  }

  function isIncluded(node: SelectionNode): boolean {
    if (!node.directives?.length) return true;
    const skip = getDirectiveValues(GraphQLSkipDirective, node, variables);
    const include = getDirectiveValues(GraphQLIncludeDirective, node, variables);
    return skip?.['if'] !== true && include?.['if'] !== false;
  }
}
