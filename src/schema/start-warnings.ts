import { getNamedType, isInterfaceType, isObjectType, type GraphQLSchema } from 'graphql';
import type { AllowedMutations } from './allowed-mutations.ts';

/**
 * What the operator should know of a schema, for the log.
 *
 * @param wrapped the same under served names
 */
export function startWarnings(
  snapshot: GraphQLSchema,
  wrapped: GraphQLSchema,
  mutations: AllowedMutations,
): string[] {
  return [...unknownMutations(snapshot, mutations), ...waysBackToTheRoot(wrapped)];
}

function unknownMutations(snapshot: GraphQLSchema, allowed: AllowedMutations): string[] {
  if (typeof allowed === 'string') return [];
  const there = snapshot.getMutationType()?.getFields() ?? {};
  return allowed
    .filter((name) => !there[name])
    .map((name) => `MUTATIONS names ${name}, but the schema has no such mutation.`);
}

const SHOWN = 3;

/** What is derived at the root stands there alone, and the upstream does not know it. */
function waysBackToTheRoot(wrapped: GraphQLSchema): string[] {
  const root = wrapped.getQueryType();
  const ways = Object.values(wrapped.getTypeMap())
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .flatMap((type) =>
      Object.values(type.getFields())
        .filter((field) => getNamedType(field.type) === root)
        .map((field) => `${type.name}.${field.name}`),
    );
  if (ways.length === 0) return [];
  const more = ways.length > SHOWN ? ` and ${ways.length - SHOWN} more` : '';
  return [`Below ${ways.slice(0, SHOWN).join(', ')}${more} the derived fields do not work.`];
}
