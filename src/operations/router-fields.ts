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

const ROUTER_FIELDS = ['_service', '_entities'];

/** Which of the fields that routers ask the query root for are in this operation, at any depth and under any alias. */
export function findRouterFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): readonly string[] {
  // Most documents name none of them, and a name cannot be written in any other way.
  const text = document.loc?.source.body;
  if (text !== undefined && !ROUTER_FIELDS.some((name) => text.includes(name))) return [];
  const found = new Set<string>();
  const types = new TypeInfo(schema);
  // The operation, with its fragments alone.
  const asked = separateOperations(document)[operation.name?.value ?? ''] ?? document;
  visit(
    asked,
    visitWithTypeInfo(types, {
      Field: ({ name: { value } }) => {
        if (ROUTER_FIELDS.includes(value) && isRoot(types.getParentType(), schema))
          found.add(value);
      },
    }),
  );
  return [...found];
}

function isRoot(type: GraphQLCompositeType | null | undefined, schema: GraphQLSchema): boolean {
  const root = schema.getQueryType();
  if (!type || !root) return false;
  return type === root || (isAbstractType(type) && schema.isSubType(type, root));
}
