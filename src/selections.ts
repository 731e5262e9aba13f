import {
  getOperationAST,
  Kind,
  separateOperations,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionNode,
} from 'graphql';

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

export function fragmentsOf({ definitions }: DocumentNode): Fragments {
  return new Map(
    definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
    ),
  );
}

/** Returns the combined selections of the fields of one key. */
export function selectionsOf(nodes: readonly FieldNode[]): readonly SelectionNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
}

/** Groups the fields that selections have for one object by their keys in the answer, whatever their conditions. */
export function fieldsByKey(
  selections: readonly SelectionNode[],
  fragments: Fragments,
): ReadonlyMap<string, readonly FieldNode[]> {
  return Map.groupBy(fieldsIn(selections, fragments), ({ alias, name }) => (alias ?? name).value);
}

/**
 * Returns the fields that selections have for one object, whatever their conditions: also those in fragments, but not
 * those below fields. A fragment is entered once, however often it is spread, so that the time is bounded by the length
 * of the document.
 */
function fieldsIn(
  selections: readonly SelectionNode[],
  fragments: Fragments,
): readonly FieldNode[] {
  const fields: FieldNode[] = [];
  const entered = new Set<string>();
  const collect = (selection: SelectionNode): void => {
    if (selection.kind === Kind.FIELD) return void fields.push(selection);
    if (selection.kind === Kind.INLINE_FRAGMENT) {
      return selection.selectionSet.selections.forEach(collect);
    }
    const name = selection.name.value;
    if (entered.has(name)) return;
    entered.add(name);
    fragments.get(name)?.selectionSet.selections.forEach(collect);
  };
  selections.forEach(collect);
  return fields;
}

/** Returns one operation of a document, with the fragments that it uses. */
export function onlyOperation(document: DocumentNode, { name }: OperationDefinitionNode) {
  const only = separateOperations(document)[name?.value ?? ''] ?? document;
  return { document: only, operation: getOperationAST(only, name?.value)! };
}

/**
 * Calls a function for each field of a document, with the type on which the field is selected. Fields that are selected
 * on an unknown type are skipped.
 */
export function visitFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  enter: (node: FieldNode, parent: GraphQLCompositeType) => void,
): void {
  const types = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(types, {
      Field: (node) => {
        const parent = types.getParentType();
        if (parent) enter(node, parent);
      },
    }),
  );
}
