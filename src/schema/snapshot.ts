import {
  assertValidSchema,
  buildSchema,
  getNamedType,
  GraphQLSchema,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  type GraphQLInputType,
  type GraphQLOutputType,
} from 'graphql';
import { OperatorMistake } from '../errors.ts';

/**
 * Reads the snapshot of the upstream's schema.
 *
 * @param source SDL
 * @param path the file, for messages
 * @throws OperatorMistake
 */
export function readSnapshot(source: string, path: string): GraphQLSchema {
  const schema = withoutSubscriptions(build(source, path));
  const unservable = usesOfIntrospection(schema);
  if (unservable.length > 0) {
    throw new OperatorMistake(
      `The schema snapshot (${path}) has fields or arguments whose types are introspection types, which cannot be served: ` +
        `${shortened(unservable).join(', ')}. Remove them from the file.`,
    );
  }
  return schema;
}

function build(source: string, path: string): GraphQLSchema {
  try {
    const schema = buildSchema(source);
    assertValidSchema(schema);
    return schema;
  } catch (cause) {
    const { message, locations } = cause as Error & { locations?: { line: number }[] };
    throw new OperatorMistake(
      `The schema snapshot is not a valid GraphQL schema (${placeIn(path, locations?.[0]?.line)}): ` +
        `${shortened(message.split('\n\n')).join('\n')} ` +
        'Correct the file, or set RECRUITING_SCHEMA to another one.',
      { cause },
    );
  }
}

function placeIn(path: string, line: number | undefined): string {
  return line === undefined ? path : `${path}, line ${line}`;
}

const SHOWN = 5;

/** Returns the first mistakes: usually they cause the others. */
function shortened(mistakes: readonly string[]): string[] {
  const more = mistakes.length - SHOWN;
  return more > 0 ? [...mistakes.slice(0, SHOWN), `(and ${more} more)`] : [...mistakes];
}

/** These are valid, but the library that wraps schemas confuses them with its own types of the same names. */
function usesOfIntrospection(schema: GraphQLSchema): string[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => !isIntrospectionType(type))
    .flatMap((type) => {
      if (isInputObjectType(type)) {
        const fields = Object.values(type.getFields()).filter(isOfIntrospection);
        return fields.map(({ name }) => `${type.name}.${name}`);
      }
      if (!isObjectType(type) && !isInterfaceType(type)) return [];
      return Object.values(type.getFields()).flatMap((field) => [
        ...(isOfIntrospection(field) ? [`${type.name}.${field.name}`] : []),
        ...field.args
          .filter(isOfIntrospection)
          .map(({ name }) => `${type.name}.${field.name}(${name}:)`),
      ]);
    });
}

function isOfIntrospection({ type }: { type: GraphQLInputType | GraphQLOutputType }): boolean {
  return isIntrospectionType(getNamedType(type));
}

/** The published interface has no subscriptions, and the gateway cannot serve any. */
function withoutSubscriptions(schema: GraphQLSchema): GraphQLSchema {
  const { subscription, types, ...config } = schema.toConfig();
  if (!subscription) return schema;
  return new GraphQLSchema({ ...config, types: types.filter((type) => type !== subscription) });
}
