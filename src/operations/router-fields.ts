import {
  isAbstractType,
  separateOperations,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';

/** Finds the fields for routers that an operation selects on the query root, at any depth and under any alias. */
export function findRouterFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): readonly string[] {
  // Most documents have none of these names, and a name cannot be written in another way.
  const text = document.loc?.source.body;
  if (text !== undefined && !ROUTER_FIELDS.some((name) => text.includes(name))) return [];
  const found = new Set<string>();
  const types = new TypeInfo(schema);
  // The operation and its own fragments.
  const selected = separateOperations(document)[operation.name?.value ?? ''] ?? document;
  visit(
    selected,
    visitWithTypeInfo(types, {
      Field: ({ name: { value } }) => {
        if (ROUTER_FIELDS.includes(value) && isRoot(types.getParentType(), schema))
          found.add(value);
      },
    }),
  );
  return [...found];
}

const ROUTER_FIELDS = ['_service', '_entities'];

function isRoot(type: GraphQLCompositeType | null | undefined, schema: GraphQLSchema): boolean {
  const root = schema.getQueryType();
  if (!type || !root) return false;
  return type === root || (isAbstractType(type) && schema.isSubType(type, root));
}
