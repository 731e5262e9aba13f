import { assertValidSchema, buildSchema, GraphQLSchema } from 'graphql';
import { OperatorMistake } from '../errors.ts';
import { readIntrospection } from './introspection.ts';

/** The schema of the service, as a file or the service itself describes it. */
export interface Snapshot {
  /** Sorted, where an introspection describes it. */
  readonly sdl: string;
  readonly schema: GraphQLSchema;
  /** What was left out because it is flawed. */
  readonly warnings: readonly string[];
}

/**
 * Reads the snapshot of the upstream's schema.
 *
 * @param text SDL, or the JSON of an introspection, with or without `data` around it
 * @param path the file, for messages
 * @throws OperatorMistake
 */
export function readSnapshot(text: string, path: string): Snapshot {
  try {
    return snapshotOf(
      /^\s*\{/.test(text) ? readIntrospection(JSON.parse(text)) : { sdl: text, warnings: [] },
    );
  } catch (cause) {
    const { message, locations: [at] = [] } = cause as Error & { locations?: { line: number }[] };
    const place = at ? `${path}, line ${at.line}` : path;
    const [first, ...others] = message.split('\n\n');
    const more = others.length > 0 ? `${first} (and ${others.length} more)` : first;
    throw new OperatorMistake(
      `The schema snapshot is not a valid GraphQL schema (${place}): ${more} ` +
        'Correct the file, or set RECRUITING_SCHEMA to another one.',
      { cause },
    );
  }
}

/** @throws Error if the schema is not valid */
export function snapshotOf({ sdl, warnings }: Omit<Snapshot, 'schema'>): Snapshot {
  const schema = buildSchema(sdl);
  assertValidSchema(schema);
  return { sdl, schema: onlyServed(schema), warnings };
}

/** The gateway serves no subscriptions, and reads answers whole. */
function onlyServed(schema: GraphQLSchema): GraphQLSchema {
  const { subscription, types, directives, ...config } = schema.toConfig();
  return new GraphQLSchema({
    ...config,
    types: types.filter((type) => type !== subscription),
    directives: directives.filter(({ name }) => name !== 'defer'),
  });
}
