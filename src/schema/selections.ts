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
} from 'graphql';

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

export function fragmentsOf({ definitions }: DocumentNode): Fragments {
  return new Map(
    definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
    ),
  );
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
