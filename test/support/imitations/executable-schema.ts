import {
  buildSchema,
  GraphQLError,
  GraphQLSchema,
  isObjectType,
  type GraphQLFieldResolver,
} from 'graphql';

type Resolvers = Record<string, Record<string, GraphQLFieldResolver<never, unknown, never>>>;

/** Makes an executable schema from SDL and resolvers. Scalars and enums stand for themselves. */
export function makeExecutableSchema(sdl: string, resolvers: Resolvers): GraphQLSchema {
  const schema = buildSchema(sdl);
  for (const [typeName, fields] of Object.entries(resolvers)) {
    const type = schema.getType(typeName);
    if (!isObjectType(type)) throw new TypeError(`${typeName} is not an object type.`);
    for (const [name, resolve] of Object.entries(fields)) {
      const field = type.getFields()[name];
      if (!field) throw new TypeError(`${typeName} has no field ${name}.`);
      field.resolve = resolve as GraphQLFieldResolver<unknown, unknown>;
    }
  }
  return schema;
}

export interface PageArgs {
  readonly first?: number | null;
  readonly after?: string | null;
}

/** Returns one page of a list, as the service pages. Its cursors name positions. */
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

/** Resolves it with persons of these ids, as the array is at the moment. */
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

/** Leaves out the definitions of `@defer` and `@stream`: graphql 17 executes nothing with a schema that has them. */
export function withoutIncremental(schema: GraphQLSchema): GraphQLSchema {
  const directives = schema.getDirectives().filter(({ name }) => !INCREMENTAL.includes(name));
  return new GraphQLSchema({ ...schema.toConfig(), directives });
}

const INCREMENTAL = ['defer', 'stream'];
