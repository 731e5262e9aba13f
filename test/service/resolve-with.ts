import type { GraphQLSchema } from 'graphql';

/** Gives root fields of a schema their resolvers, which get the arguments alone. */
export function resolveWith(
  type: ReturnType<GraphQLSchema['getQueryType']>,
  resolvers: Record<string, (args: never) => unknown>,
): void {
  const fields = type?.getFields() ?? {};
  for (const [name, resolve] of Object.entries(resolvers)) {
    fields[name]!.resolve = (_root: unknown, args: unknown) => resolve(args as never);
  }
}
