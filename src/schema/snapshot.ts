import {
  assertValidSchema,
  buildASTSchema,
  getNamedType,
  GraphQLSchema,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  parse,
  type GraphQLInputType,
  type GraphQLOutputType,
} from 'graphql';
import { OperatorMistake } from '../errors.ts';
import { withoutFederation, type UndefinedDirective } from './federation-sdl.ts';

/**
 * Reads the snapshot of the upstream's schema. In the SDL of a subgraph, the directives of its supergraph are ignored.
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
  const refused = (cause: unknown) => {
    const { message, locations } = cause as Error & { locations?: { line: number }[] };
    return new OperatorMistake(
      `The schema snapshot is not a valid GraphQL schema (${placeIn(path, locations?.[0]?.line)}): ` +
        `${shortened(message.split('\n\n')).join('\n')} ` +
        'Correct the file, or set RECRUITING_SCHEMA to another one.',
      { cause },
    );
  };
  let read: ReturnType<typeof withoutFederation>;
  try {
    read = withoutFederation(parse(source));
  } catch (error) {
    throw refused(error);
  }
  if (read.hiding.length > 0) throw hidingDirectives(read.hiding, path);
  if (read.unknown.length > 0) throw unknownDirectives(read.unknown, path);
  try {
    const schema = buildASTSchema(read.document);
    assertValidSchema(schema);
    return schema;
  } catch (error) {
    throw refused(error);
  }
}

function hidingDirectives(directives: readonly UndefinedDirective[], path: string) {
  const names = directives.map(({ name }) => `@${name}`);
  return new OperatorMistake(
    `The schema snapshot (${placeIn(path, directives[0]!.line)}) uses ${names.join(' and ')}, by which a supergraph ` +
      'hides or protects fields. The gateway would neither hide nor protect them. Remove the fields that callers ' +
      'must not see, and these directives, from the file.',
  );
}

function unknownDirectives(directives: readonly UndefinedDirective[], path: string) {
  const names = directives.map(
    ({ name, count }) => `@${name}${count > 1 ? ` (${count} times)` : ''}`,
  );
  return new OperatorMistake(
    `The schema snapshot (${placeIn(path, directives[0]!.line)}) uses directives that it does not define: ` +
      `${names.join(', ')}. Define them in the file, or remove them: the gateway ignores them.`,
  );
}

function placeIn(path: string, line: number | undefined): string {
  return line === undefined ? path : `${path}, line ${line}`;
}

const SHOWN = 5;

/** A few of many mistakes: usually the first ones cause the others. */
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
