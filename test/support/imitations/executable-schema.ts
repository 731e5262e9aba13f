import { buildSchema, isObjectType, type GraphQLFieldResolver, type GraphQLSchema } from 'graphql';

type Resolvers = Record<string, Record<string, GraphQLFieldResolver<never, unknown, never>>>;

/** An executable schema out of SDL and resolvers. Scalars and enums stand for themselves. */
export function makeExecutableSchema(sdl: string, resolvers: Resolvers): GraphQLSchema {
  const schema = buildSchema(sdl);
  for (const [typeName, fields] of Object.entries(resolvers)) {
    const type = schema.getType(typeName);
    if (!isObjectType(type)) throw new TypeError(`${typeName} is no object type.`);
    for (const [name, resolve] of Object.entries(fields)) {
      const field = type.getFields()[name];
      if (!field) throw new TypeError(`${typeName} has no field ${name}.`);
      field.resolve = resolve as GraphQLFieldResolver<unknown, unknown>;
    }
  }
  return schema;
}
