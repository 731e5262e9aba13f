import {
  isAbstractType,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
} from 'graphql';

/** Whether a document, which is valid, selects one of these fields, of any of the types that it may be selected on. */
export function selectsField(
  schema: GraphQLSchema,
  document: DocumentNode,
  fields: ReadonlySet<string>,
): boolean {
  if (fields.size === 0) return false;
  const types = new TypeInfo(schema);
  let found = false;
  visit(
    document,
    visitWithTypeInfo(types, {
      Field: ({ name: { value } }) => {
        const parent = types.getParentType();
        if (parent) found ||= isOneOf(schema, parent, value, fields);
      },
    }),
  );
  return found;
}

/** Whether a field is one of these, on the type itself, on a possible type of it, or on an interface of that. */
export function isOneOf(
  schema: GraphQLSchema,
  parent: GraphQLCompositeType,
  field: string,
  fields: ReadonlySet<string>,
): boolean {
  const possible = isAbstractType(parent) ? schema.getPossibleTypes(parent) : [parent];
  return [parent, ...possible, ...possible.flatMap((type) => type.getInterfaces())].some(
    ({ name }) => fields.has(`${name}.${field}`),
  );
}
