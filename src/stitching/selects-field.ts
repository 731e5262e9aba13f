import {
  isAbstractType,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
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
        if (!parent) return;
        const possible = isAbstractType(parent) ? schema.getPossibleTypes(parent) : [parent];
        found ||= [parent, ...possible, ...possible.flatMap((type) => type.getInterfaces())].some(
          ({ name }) => fields.has(`${name}.${value}`),
        );
      },
    }),
  );
  return found;
}
