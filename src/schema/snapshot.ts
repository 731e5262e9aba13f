import { assertValidSchema, buildSchema, GraphQLSchema } from 'graphql';

/**
 * Reads the snapshot of the upstream's schema.
 *
 * @param source SDL
 * @param path where it came from, for the message
 * @throws Error with a message for the operator
 */
export function readSnapshot(source: string, path: string): GraphQLSchema {
  try {
    const schema = buildSchema(source);
    assertValidSchema(schema);
    return withoutSubscriptions(schema);
  } catch (error) {
    const { message, locations } = error as Error & { locations?: { line: number }[] };
    const place = locations?.[0] ? `${path}, line ${locations[0].line}` : path;
    throw new Error(
      `The schema snapshot is not a GraphQL schema (${place}): ${message} ` +
        'Correct the file, or set RECRUITING_SCHEMA to another one.',
      { cause: error },
    );
  }
}

/** The published interface has none, and nothing here could carry them. */
function withoutSubscriptions(schema: GraphQLSchema): GraphQLSchema {
  const { subscription, types, ...config } = schema.toConfig();
  if (!subscription) return schema;
  return new GraphQLSchema({ ...config, types: types.filter((type) => type !== subscription) });
}
