import {
  buildSchema,
  GraphQLError,
  GraphQLSchema,
  isObjectType,
  type GraphQLFieldResolver,
} from 'graphql';

export type Resolvers = Record<string, Record<string, GraphQLFieldResolver<never, unknown, never>>>;

/** Makes an executable schema from SDL and resolvers. Scalars and enums stand for themselves. */
export function makeExecutableSchema(sdl: string, resolvers: Resolvers): GraphQLSchema {
  const schema = buildSchema(sdl);
  withResolvers(schema, resolvers);
  return schema;
}

/** Adds resolvers to a schema. */
export function withResolvers(schema: GraphQLSchema, resolvers: Resolvers): void {
  for (const [typeName, fields] of Object.entries(resolvers)) {
    const type = schema.getType(typeName);
    if (!isObjectType(type)) throw new TypeError(`${typeName} is not an object type.`);
    for (const [name, resolve] of Object.entries(fields)) {
      const field = type.getFields()[name];
      if (!field) throw new TypeError(`${typeName} has no field ${name}.`);
      field.resolve = resolve as GraphQLFieldResolver<unknown, unknown>;
    }
  }
}

export interface PageArgs {
  readonly first?: number | null;
  readonly after?: string | null;
}

/** Returns one page of a list, as the service does. Its cursors name positions. */
export function pageOf<T>(all: readonly T[], { first, after }: PageArgs, limit = 50) {
  const start = Number(after ?? 0);
  if (!Number.isInteger(start)) throw failure('Bad cursor.', { code: 'BAD_CURSOR' });
  const size = Math.min(first ?? limit, limit);
  if (size < 1) throw failure('first must be positive.');
  const items = all.slice(start, start + size);
  const end = start + items.length;
  return {
    items,
    total: all.length,
    count: all.length,
    pageInfo: {
      first: size,
      hasNextPage: end < all.length,
      endCursor: items.length > 0 ? String(end) : null,
    },
  };
}

/** A list of persons in pages. A test adds what its persons have. */
export const PERSONS = `
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { persons(first: Int, after: String): PersonPage! }
`;

/** Resolves such a list with persons of these ids. A test may change the array. */
export function personPages(ids: readonly string[]) {
  return (_: unknown, args: PageArgs) =>
    pageOf(
      ids.map((id) => ({ id })),
      args,
    );
}

/** Makes the error of a resolver. */
export function failure(message: string, extensions: Record<string, unknown> = {}): GraphQLError {
  return new GraphQLError(message, { extensions });
}

/** The whole numbers from 1. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
